"""What a simulated policy brought, by whichever model: tiers, pools over time, moves, and what it cost.

Counts are numbers of requests and tokens, whole in the event model and shares of them in the fluid one.
Times are seconds since the trace's beginning; `None` is unknown, never zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from autoscaling.types import Role, Tier


@dataclass(frozen=True, slots=True)
class TierScore:
    """What callers of one tier got."""

    arrived: float
    in_time: float  # answered whole, and inside every objective where the tier has some
    late: float  # answered whole, outside an objective
    refused: float  # shed or no capacity before the deadline
    failed: float  # broken off
    tokens: float  # of answers that ended before the trace did
    ttft_p50_s: float | None = None
    ttft_p95_s: float | None = None
    tpot_p50_s: float | None = None
    tpot_p95_s: float | None = None

    @property
    def attainment(self) -> float | None:
        """Share of those who arrived that were served in time; None when nobody arrived."""
        return self.in_time / self.arrived if self.arrived > 0 else None


@dataclass(frozen=True, slots=True)
class PoolScore:
    """What the replicas of one pool did, for callers of whatever tier."""

    judged: float  # requests that it took of tiers with an objective
    in_time: float  # of these
    tokens: float  # of answers that ended before the trace did

    @property
    def attainment(self) -> float | None:
        """Share of the judged ones that were served in time; None when there were none."""
        return self.in_time / self.judged if self.judged > 0 else None


@dataclass(frozen=True, slots=True)
class Moment:
    """Both pools over one interval of the trace, which begins at `at_s`."""

    at_s: float
    running: Mapping[Role, float]  # replicas, at the interval's beginning
    starting: Mapping[Role, float]
    draining: Mapping[Role, float]
    demand: Mapping[Role, float]  # sequences open for callers who prefer the pool, waiting ones included
    capacity: Mapping[Role, float]  # sequences that the running replicas serve inside their soft limits
    attainment: Mapping[Tier, float | None]  # of the requests that arrived in it
    tpot_p95_s: Mapping[Tier, float | None]  # of the requests that arrived in it


@dataclass(frozen=True, slots=True)
class MoveMade:
    """A change of targets, as the controller's own record of it has it."""

    at_s: float
    source: Role | None  # None: from free budget
    receiver: Role | None  # None: given back
    count: int
    reason: str
    state: str  # done, timed_out, replaced, or where it was when the trace ended
    took_s: float | None = None  # to its end; None where it had none


@dataclass(frozen=True, slots=True)
class Scores:
    """One policy on one trace."""

    seconds: float  # of the trace
    tiers: Mapping[Tier, TierScore]  # those that the trace has
    accelerator_hours: float  # of all replicas that ran, started or drained
    switching_hours: float  # the part of it in which replicas started or drained
    moves: tuple[MoveMade, ...]
    series: tuple[Moment, ...]  # by growing time
    interval_s: float  # of the series
    pools: Mapping[Role, PoolScore] = field(
        default_factory=dict
    )  # empty where a model does not tell them apart

    @property
    def tokens_per_s(self) -> float:
        """Answer tokens of all tiers over the trace's seconds."""
        return sum(one.tokens for one in self.tiers.values()) / self.seconds

    def tier_tokens_per_s(self, tier: Tier) -> float:
        """Answer tokens of one tier over the trace's seconds; 0 for a tier that the trace has not."""
        return self.tiers[tier].tokens / self.seconds if tier in self.tiers else 0.0

    @property
    def reversals(self) -> int:
        """Moves that undo the one before them."""
        pairs = zip(self.moves, self.moves[1:], strict=False)
        return sum(
            before.receiver is not None
            and before.receiver is after.source
            and before.source is after.receiver
            for before, after in pairs
        )


def middle_and_high(values: Iterable[float | None]) -> tuple[float | None, float | None]:
    """The 50th and the 95th percentile of those that are known; None where none is."""
    known = [value for value in values if value is not None]
    if not known:
        return None, None
    middle, high = np.percentile(known, (50.0, 95.0))
    return float(middle), float(high)
