"""The load of a trace on both pools as it will be, second by second, in closed form; pure.

Every request is open from its arrival for as long as a replica needs for it that has as many sequences as
keep the objective: its prompt, and its tokens at the time per token of that batch, prompts of others
included.  By Little's law that is what a pool has open while every request finds room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from app.routing.rule import preferred_role
from app.simulation.acceptance import SPREAD_AT
from app.simulation.arrival import Arrival
from app.simulation.engine_profile import EngineProfile
from autoscaling.step_cost import churn_s, prefill_s, step_s
from autoscaling.types import Role

Numbers = NDArray[np.float64]
LONG_STAY = 95.0  # percentile: a drain waits for the longest of what is open


@dataclass(frozen=True, slots=True)
class PoolLoad:
    """What callers who prefer a pool will have open, and how replicas of the pool will serve it."""

    open: Numbers  # [second of the trace] sequences, mean over the second
    stay_s: float  # of most requests; 0 without any
    late: Numbers  # [sequences of a replica, up to its limit] share of requests that miss the objective


def loads(
    trace: Sequence[Arrival],
    engines: EngineProfile,
    limits: Mapping[Role, int],
    interactive_tpot_s: float | None,
) -> dict[Role, PoolLoad]:
    """The load of both pools over the trace's seconds, the last arrival's included.

    Only interactive requests are late: of all others what finds room is served well.
    """
    seconds = int(trace[-1].at_s) + 1
    by_role: dict[Role, list[Arrival]] = {role: [] for role in Role}
    for one in trace:
        by_role[preferred_role(one.tier, None)].append(one)
    objectives = {Role.SPECULATIVE: interactive_tpot_s, Role.PLAIN: None}
    return {
        role: _load(asked, role, engines, limits[role], objectives[role], seconds)
        for role, asked in by_role.items()
    }


def _load(
    asked: Sequence[Arrival],
    role: Role,
    engines: EngineProfile,
    limit: int,
    objective_s: float | None,
    seconds: int,
) -> PoolLoad:
    if not asked:
        return PoolLoad(np.zeros(seconds), 0.0, np.zeros(limit + 1))
    cost = engines.cost_of(role)
    prompts = float(np.mean([one.prompt_tokens for one in asked]))
    answers = float(np.mean([one.answer_tokens for one in asked]))
    context = prompts + answers / 2
    steps = np.array([step_s(cost, sequences, context) for sequences in range(limit + 1)])
    churn = np.array([churn_s(cost, sequences - 1, prompts, answers) for sequences in range(limit + 1)])
    kinds = Counter(one.workload for one in asked)
    gains = {kind: engines.acceptance_of(kind).tokens_per_step(cost.draft_length) for kind in kinds}
    mean = sum(gains[kind] * count for kind, count in kinds.items()) / len(asked)
    late, most = np.zeros(limit + 1), limit
    if objective_s is not None:
        for kind, count in kinds.items():
            spread = _spread(engines, kind, gains[kind])
            late += count / len(asked) * _late(steps, churn, gains[kind], spread, objective_s)
        kept = np.flatnonzero(steps / mean + churn <= objective_s)
        most = max(1, int(kept.max())) if kept.size else limit
    begun = np.array([one.at_s for one in asked])
    stays = np.array(
        [
            prefill_s(cost, one.prompt_tokens, most, context)
            + one.answer_tokens * (steps[most] / gains[one.workload] + churn[most])
            for one in asked
        ]
    )
    return PoolLoad(_mean_open(begun, begun + stays, seconds), float(np.percentile(stays, LONG_STAY)), late)


def _spread(engines: EngineProfile, kind: str, gain: float) -> float:
    """Standard deviation of requests' tokens per step at the K of this gain."""
    acceptance = engines.acceptance_of(kind)
    known = acceptance.tokens_per_step(SPREAD_AT)
    return acceptance.spread * (gain - 1.0) / (known - 1.0) if known > 1.0 else 0.0


def _late(steps: Numbers, churn: Numbers, gain: float, spread: float, objective_s: float) -> Numbers:
    """Share of requests that gain less than they would have to, at each number of sequences."""
    left = objective_s - churn
    needed = np.full(len(steps), np.inf)
    np.divide(steps, left, out=needed, where=left > 0)
    found: Numbers = ndtr((needed - gain) / spread) if spread > 0 else (needed > gain).astype(float)
    return found


def _mean_open(begun: Numbers, ended: Numbers, seconds: int) -> Numbers:
    """Open requests, mean over each second: how much the time that all have been open grows in it."""
    edges = np.arange(seconds + 1, dtype=float)
    found: Numbers = np.diff(_open_seconds(begun, edges) - _open_seconds(ended, edges))
    return found


def _open_seconds(since: Numbers, edges: Numbers) -> Numbers:
    """Of all times in `since`, the seconds from there to each edge, together."""
    times = np.sort(since)
    before = np.searchsorted(times, edges)
    sums = np.concatenate(([0.0], np.cumsum(times)))
    found: Numbers = before * edges - sums[before]
    return found
