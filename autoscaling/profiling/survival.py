"""How far drafts get: survival by position and tokens per step by K, from counts and with intervals.

Kaplan-Meier over the draft positions: a draft that was cut short counts at the positions that it had, and
only there.  The intervals take each draft as drawn by itself; drafts of one answer resemble each other, so
that few answers say less than their drafts suggest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from scipy import stats

from autoscaling.profiling.findings import Estimate, Survival
from autoscaling.profiling.measured import Drafting

OUTSIDE = 0.025  # of the probability on each side of a 95 % interval
NO_DRAFT = Estimate(1.0, 1.0, 1.0)  # a step without a draft gives one token, always


def survival_of(workload: str, by_length: Mapping[int, Sequence[Drafting]]) -> Survival:
    """What the runs at each K say of one kind of prompts; a K whose runs have no step is left out.

    Survival, draft rate and acceptance rate are those at the largest K that is left: they depend on the K in
    force, so that runs at different K are never put together.
    """
    seen = {k: runs for k, runs in by_length.items() if k > 0 and any(run.request_steps for run in runs)}
    largest = _summed(seen[max(seen)]) if seen else Drafting(0, 0, 0, 0, 0)
    steps = largest.request_steps
    return Survival(
        workload=workload,
        survival=survival_by_position(largest.at_risk, largest.survived),
        draft_rate=largest.drafts / steps if steps else 0.0,
        drafted=largest.drafted / steps if steps else 0.0,
        acceptance_rate=largest.accepted / largest.drafted if largest.drafted else None,
        tokens_per_step={0: NO_DRAFT} | {k: tokens_per_step(k, runs) for k, runs in sorted(seen.items())},
    )


def survival_by_position(at_risk: Sequence[int], survived: Sequence[int]) -> tuple[Estimate, ...]:
    """s_1, s_2, ... with 95 % intervals, up to the last position that any draft has reached.

    The interval is that of a product of beta distributions.  It is the exact binomial one where no draft was
    cut short, stays within 0..1, and has room above 0 survivors and below all.  Raises ValueError for counts
    that cannot be.
    """
    found: list[Estimate] = []
    value, low, high = 1.0, _Product(), _Product()
    for position, (reached, kept) in enumerate(zip(at_risk, survived, strict=True)):
        if not 0 <= kept <= reached:
            raise ValueError(f"{kept} of {reached} drafts survived position {position}: check the counts")
        if reached == 0:
            break
        value *= kept / reached
        # The one draft in doubt fell at the first position for the low end, and survived all for the high.
        low = low.times(kept, reached - kept + (1 if position == 0 else 0))
        high = high.times(kept + 1, reached - kept)
        found.append(Estimate(value, low.quantile(OUTSIDE), high.quantile(1.0 - OUTSIDE)))
    return tuple(found)


def tokens_per_step(draft_length: int, runs: Sequence[Drafting]) -> Estimate:
    """Tokens over request steps of all runs at one K, and the 95 % t interval over the runs.

    A ratio of sums, so that long runs count for more.  The bounds are kept within what a step can give, 1 to
    K + 1; they are unknown for a single run.  Raises ValueError when there is no step.
    """
    runs = [run for run in runs if run.request_steps]
    if not runs:
        raise ValueError(f"no step was measured at K={draft_length}: there is nothing to divide by")
    total = _summed(runs)
    value = total.tokens / total.request_steps
    if len(runs) < 2:
        return Estimate(value)
    apart = sum((run.tokens - value * run.request_steps) ** 2 for run in runs)
    error = math.sqrt(apart * len(runs) / (len(runs) - 1)) / total.request_steps
    half = float(stats.t.ppf(1.0 - OUTSIDE, len(runs) - 1)) * error
    return Estimate(
        value,
        min(value, max(1.0, value - half)),
        max(value, min(draft_length + 1.0, value + half)),
    )


def _summed(runs: Sequence[Drafting]) -> Drafting:
    depth = max(len(run.at_risk) for run in runs)
    return Drafting(
        request_steps=sum(run.request_steps for run in runs),
        tokens=sum(run.tokens for run in runs),
        drafts=sum(run.drafts for run in runs),
        drafted=sum(run.drafted for run in runs),
        accepted=sum(run.accepted for run in runs),
        at_risk=tuple(sum(run.at_risk[i] for run in runs if i < len(run.at_risk)) for i in range(depth)),
        survived=tuple(sum(run.survived[i] for run in runs if i < len(run.survived)) for i in range(depth)),
    )


class _Product:
    """A product of independent beta variables, by its first two moments."""

    def __init__(self, mean: float = 1.0, square: float = 1.0) -> None:
        self.mean, self.square = mean, square

    def times(self, kept: int, lost: int) -> _Product:
        """This times Beta(kept, lost); 0 of either stands for a variable that is surely 0 or 1."""
        total = kept + lost
        mean = kept / total
        return _Product(self.mean * mean, self.square * mean * (kept + 1) / (total + 1))

    def quantile(self, share: float) -> float:
        """Of the beta distribution with these moments, exact where the product is one."""
        spread = self.square - self.mean**2
        if spread <= 0.0 or not 0.0 < self.mean < 1.0:
            return self.mean
        weight = self.mean * (1.0 - self.mean) / spread - 1.0
        return float(stats.beta.ppf(share, self.mean * weight, (1.0 - self.mean) * weight))
