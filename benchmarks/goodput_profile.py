"""From the findings of a measurement to what `benchmarks.goodput` needs of them; pure."""

from __future__ import annotations

from typing import Final

from app.workload.classify import WorkloadClass
from autoscaling.profiling.findings import Findings, PoolPrediction
from benchmarks.goodput_plan import MAX_NUM_SEQS, TPOTS_S
from benchmarks.goodput_requests import CHATS, EDIT
from benchmarks.goodput_rules import MEAN, Calibrated, Predicted

# The class that stands for what the rules call by another name; all others have the mean of both.
ALIKE: Final = {
    WorkloadClass.CHAT.value: CHATS,
    WorkloadClass.CODE.value: EDIT,
    WorkloadClass.GROUNDED.value: EDIT,
}


def predictions(findings: Findings) -> tuple[PoolPrediction, ...]:
    """What the findings say of each of our objectives."""
    by_ms = {round(1000 * one.tpot_s): one for one in findings.pools}
    return tuple(by_ms[ms] for tpot_s in TPOTS_S if (ms := round(1000 * tpot_s)) in by_ms)


def calibrated(findings: Findings, longest: int) -> Calibrated:
    """What routing, draft lengths and the comparison need of the findings."""
    gains = {
        name: {length: one.value for length, one in survival.tokens_per_step.items()}
        for name, survival in findings.survivals.items()
    }
    named = {kind.value: gains[ALIKE.get(kind.value, MEAN)] for kind in WorkloadClass}
    table = [0] * (MAX_NUM_SEQS + 1)
    for row in findings.table:
        for size in range(row.first, min(row.last, MAX_NUM_SEQS) + 1):
            table[size] = min(row.draft_length, longest)
    return Calibrated(
        costs={role: fit.cost for role, fit in findings.fits.items()},
        gains={**named, MEAN: gains[MEAN]},
        context_tokens=findings.context_tokens,
        table=tuple(table),
        longest=longest,
        predicted=tuple(
            Predicted(one.tpot_s, one.answer, one.margin, one.goodput) for one in predictions(findings)
        ),
        errors={role: fit.error for role, fit in findings.fits.items()},
    )
