"""Which of many findings a reader sees first: the draft length that stands for a kind of prompts."""

from __future__ import annotations

import math
from collections.abc import Iterable

from app.report.words import NOT_MEASURED
from autoscaling.profile import MEAN
from autoscaling.profiling.findings import Crossover, Findings, SpeedUp, Verdict


def workloads(findings: Findings) -> tuple[str, ...]:
    """Kinds of prompts in the order of the measurement."""
    names = [one.workload for one in findings.speed_ups]
    names += [one.cell.workload for one in findings.measurement.runs]
    names += [name for name in findings.survivals if name != MEAN]
    return tuple(dict.fromkeys(names))


def lengths(findings: Findings, workload: str) -> tuple[int, ...]:
    """The K above 0 that were compared for a kind of prompts."""
    found = {one.draft_length for one in findings.speed_ups if one.workload == workload}
    return tuple(sorted(found - {0}))


def best_length(findings: Findings, workload: str) -> int | None:
    """The K that gains most over the batches at which it pays; None when nothing was compared.

    Where it does not pay drafts can be left off, so that a loss there counts only between K that never pay.
    """
    found = {
        length: [one.measured.value for one in line(findings, workload, length)]
        for length in lengths(findings, workload)
    }
    return max(found, key=lambda length: _worth(found[length])) if found else None


def line(findings: Findings, workload: str, draft_length: int) -> tuple[SpeedUp, ...]:
    """Speed-ups at one K by growing batch."""
    found = [
        one
        for one in findings.speed_ups
        if one.workload == workload and one.draft_length == draft_length and math.isfinite(one.measured.value)
    ]
    return tuple(sorted(found, key=lambda one: one.sequences))


def crossover(findings: Findings, workload: str, draft_length: int | None) -> Crossover | None:
    """Where that K stops to pay."""
    for one in findings.crossovers:
        if one.workload == workload and one.draft_length == draft_length:
            return one
    return None


def furthest(findings: Findings, workload: str) -> Crossover | None:
    """The crossover of the K above 0 that pays up to the largest batch; None when nothing was compared."""
    found = [one for one in findings.crossovers if one.workload == workload and one.draft_length > 0]
    return max(found, key=reach, default=None)


def reach(found: Crossover) -> tuple[int, float, int]:
    """How far a K pays, to compare with that of another; of equals the larger K comes first."""
    at = 0.0 if found.sequences is None else found.sequences.value
    order = (Verdict.NEVER_PAYS, Verdict.MIXED, Verdict.PAYS_BELOW, Verdict.PAYS_ALWAYS)
    return order.index(found.verdict), at, found.draft_length


def surely(findings: Findings, workload: str, draft_length: int) -> tuple[list[int], list[int]]:
    """The batches at which that K was measured to gain, and to lose, with 95 %."""
    found = line(findings, workload, draft_length)
    gains = [one.sequences for one in found if (one.measured.low or 0.0) > 1.0]
    loses = [one.sequences for one in found if one.measured.high is not None and one.measured.high < 1.0]
    return gains, loses


def missing(findings: Findings) -> str:
    """Why something is not in the report."""
    if findings.relied or not findings.fits:
        return NOT_MEASURED
    return "not predicted, since a cost model is refused"


def batches(findings: Findings) -> tuple[int, ...]:
    """The batches at which both engines were compared."""
    return tuple(sorted({one.sequences for one in findings.speed_ups}))


def objectives(findings: Findings) -> tuple[float, ...]:
    """Times per output token that capacity and pools were judged by."""
    return tuple(sorted({one.tpot_s for one in findings.capacities} | {one.tpot_s for one in findings.pools}))


def _worth(speed_ups: Iterable[float]) -> tuple[float, float]:
    """Gain where it pays, then gain and loss together; both on a logarithmic scale."""
    found = [math.log(value) for value in speed_ups if value > 0]
    return sum(max(0.0, one) for one in found), sum(found)
