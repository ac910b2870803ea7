"""What a reader has to know beside the numbers, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from autoscaling.profiling.findings import Fit, Survival
from autoscaling.profiling.gains import drafts_nothing
from autoscaling.profiling.measured import BUSY, Measurement
from autoscaling.types import Role


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
    if words := busy_words(measurement):
        yield words
    if any(max(survival.tokens_per_step) > 0 for survival in survivals.values()) and not drafts_nothing(
        measurement
    ):
        yield (
            "K = 0 was not measured on the speculative engine: its K table and one speculative pool are "
            "judged without it, and what it costs when it drafts nothing is not known."
        )
    for fit in fits.values():
        if fit.accepted and fit.hold_out_error is None:
            yield (
                f"The cost model of the {fit.role} engine is not checked on batches that it has not seen: "
                "none were held out of the fit."
            )
    if prior:
        yield "The fits began from a former profile: prices that this measurement hardly shows are near its."


def busy_words(measurement: Measurement) -> str:
    """That other processes disturbed the measurement; empty where they did not, or it is not known."""
    cores = measurement.machine.get("cores", "")
    most = max(measurement.others_cores, default=0.0)
    if not cores.isdecimal() or most <= BUSY * int(cores):
        return ""
    rounds = sum(used > BUSY * int(cores) for used in measurement.others_cores)
    return (
        f"Other processes used up to {most:.1f} of the {cores} cores, in {rounds} of "
        f"{len(measurement.others_cores)} rounds: stop them and measure again, since times are off by that."
    )
