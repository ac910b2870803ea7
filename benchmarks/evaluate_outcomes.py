"""What one run of `benchmarks.evaluate` keeps: a policy on a load in a few numbers; pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from app.simulation.scores import Moment, Scores
from autoscaling.types import Role, Tier
from benchmarks.evaluate_plan import Cell


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run; shares are 0..1."""

    cell: Cell
    attainment: float  # of interactive requests
    refused: float  # share of interactive requests
    failed: float  # share of interactive requests that were broken off
    interactive_tokens_per_s: float
    batch_tokens_per_s: float
    moves: int
    reversals: int
    switching_share: float  # of the accelerators' hours: replicas started or drained
    short_share: (
        float | None
    )  # of the time: interactive work wanted more than its pool's limits; None: no pool
    plain_share: float  # of all replicas, mean over the time
    seconds: float  # of the trace

    @property
    def misses(self) -> float:
        """Share of interactive requests that were not served in time."""
        return 1.0 - self.attainment

    @property
    def moves_per_h(self) -> float:
        """Moves in an hour of the trace."""
        return 3600.0 * self.moves / self.seconds


def outcome_of(cell: Cell, scores: Scores) -> Outcome:
    """The numbers of one run; raises ValueError without interactive requests, replicas or a series."""
    tier = scores.tiers.get(Tier.INTERACTIVE)
    if tier is None or tier.attainment is None:
        raise ValueError(f"{cell}: no interactive request arrived: give a longer trace or a higher rate")
    if scores.accelerator_hours <= 0 or not scores.series:
        raise ValueError(f"{cell}: no replica ever ran: give a policy with replicas")
    has_pool = any(one.running[Role.SPECULATIVE] > 0 for one in scores.series)
    short = [one.demand[Role.SPECULATIVE] > one.capacity[Role.SPECULATIVE] for one in scores.series]
    return Outcome(
        cell=cell,
        attainment=tier.attainment,
        refused=tier.refused / tier.arrived,
        failed=tier.failed / tier.arrived,
        interactive_tokens_per_s=scores.tier_tokens_per_s(Tier.INTERACTIVE),
        batch_tokens_per_s=scores.tier_tokens_per_s(Tier.BATCH),
        moves=len(scores.moves),
        reversals=scores.reversals,
        switching_share=scores.switching_hours / scores.accelerator_hours,
        short_share=statistics.fmean(map(float, short)) if has_pool else None,
        plain_share=statistics.fmean(_plain_share(one) for one in scores.series),
        seconds=scores.seconds,
    )


def _plain_share(moment: Moment) -> float:
    states: tuple[Mapping[Role, float], ...] = (moment.running, moment.starting, moment.draining)
    of = {role: sum(state[role] for state in states) for role in Role}
    return of[Role.PLAIN] / sum(of.values())
