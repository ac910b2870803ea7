"""What a reader has to know beside the numbers, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from autoscaling.profiling.findings import Fit, Survival
from autoscaling.profiling.measured import Measurement
from autoscaling.types import Role

# The rules of thumb that are handed around: orientation only, since they know neither batch nor cost.
HIGH: Final = 0.7
LOW: Final = 0.3


def regime(acceptance_rate: float) -> str:
    """The rule of thumb's word for an acceptance rate."""
    if acceptance_rate > HIGH:
        return "high acceptance: by the rule of thumb drafting pays clearly"
    if acceptance_rate >= LOW:
        return "medium acceptance: by the rule of thumb drafting pays somewhat"
    return "low acceptance: by the rule of thumb drafting should be off"


def notes(
    measurement: Measurement, survivals: Mapping[str, Survival], fits: Mapping[Role, Fit]
) -> Iterator[str]:
    """One sentence each."""
    if measurement.synthetic_acceptance:
        yield (
            "The acceptance was prescribed (synthetic): it is no property of the drafter, and the answers "
            "were not the model's."
        )
    for name, survival in survivals.items():
        if survival.acceptance_rate is not None:
            yield f"{name}: {regime(survival.acceptance_rate)} (rate {survival.acceptance_rate:.2f})."
        if survival.draft_rate < 0.95:
            yield (
                f"{name}: {survival.draft_rate:.0%} of the steps carried a draft; the others count in the "
                "tokens per step, and not in the survival."
            )
    for fit in fits.values():
        if not fit.accepted:
            yield f"The cost model of the {fit.role} engine is not relied on: {fit.refused_because}."
    if not all(fit.accepted for fit in fits.values()):
        yield "Without both cost models nothing is predicted about one pool or two."
