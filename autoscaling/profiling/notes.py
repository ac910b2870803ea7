"""What a reader has to know beside the numbers, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from autoscaling.profiling.findings import Fit, Survival
from autoscaling.profiling.gains import MEAN, drafts_nothing
from autoscaling.profiling.measured import Measurement
from autoscaling.types import Role

# The regimes of the rule of thumb that is handed around, and what it promises: orientation only, since it
# knows neither batch nor cost, and its rate is meant now of each draft token and now of all of them.
LOW, MODERATE, MODERATE_ENDS, HIGH = 0.3, 0.4, 0.6, 0.7
MOST_WITH_DRAFT: Final = 0.95  # of the steps; above, drafts are all but always found


def regime(acceptance_rate: float) -> str:
    """The rule of thumb's word for an acceptance rate."""
    if acceptance_rate < LOW:
        return "low by the rule of thumb (below 0.3: 1.2 times or less)"
    if acceptance_rate < MODERATE:
        return "between low and moderate by the rule of thumb"
    if acceptance_rate <= MODERATE_ENDS:
        return "moderate by the rule of thumb (0.4 to 0.6: 1.5 to 2 times)"
    if acceptance_rate < HIGH:
        return "between moderate and high by the rule of thumb"
    return "high by the rule of thumb (0.7 and above: 2 to 3 times)"


def notes(
    measurement: Measurement,
    survivals: Mapping[str, Survival],
    fits: Mapping[Role, Fit],
    *,
    prior: bool = False,
) -> Iterator[str]:
    """One sentence each; `prior` says whether the fits began from a former profile."""
    if measurement.synthetic_acceptance:
        yield (
            "The acceptance was prescribed (synthetic): it is no property of the drafter, and the answers "
            "were not the model's."
        )
    for workload, survival in survivals.items():
        name = "all prompts together" if workload == MEAN else workload
        if survival.acceptance_rate is not None:
            length = max(survival.tokens_per_step)
            rate = survival.acceptance_rate
            yield f"{name}: an acceptance rate of {rate:.2f} at K = {length} is {regime(rate)}."
        if survival.draft_rate < MOST_WITH_DRAFT and max(survival.tokens_per_step) > 0:
            yield (
                f"{name}: {survival.draft_rate:.0%} of the steps carried a draft; the others count in the "
                "tokens per step, and not in the survival."
            )
    if any(survival.acceptance_rate is not None for survival in survivals.values()):
        yield (
            "The rule of thumb is orientation only: the rate falls when K grows though drafts are as good, "
            "and no such line knows batch or cost; the break-even does."
        )
    if any(max(survival.tokens_per_step) > 0 for survival in survivals.values()) and not drafts_nothing(
        measurement
    ):
        yield (
            "K = 0 was not measured on the speculative engine: its K table and one speculative pool are "
            "judged without it, and what it costs when it drafts nothing is not known."
        )
    for fit in fits.values():
        if not fit.accepted:
            yield f"The cost model of the {fit.role} engine is not relied on: {fit.refused_because}."
        elif fit.hold_out_error is None:
            yield (
                f"The cost model of the {fit.role} engine is not checked on batches that it has not seen: "
                "none were held out of the fit."
            )
    if prior:
        yield "The fits began from a former profile: prices that this measurement hardly shows are near its."
    if not all(fit.accepted for fit in fits.values()):
        yield "Without both cost models nothing is predicted about one pool or two."
