"""What the answers of a run add up to: per tier and pool, per tier, per phase, and the copying task; pure.

Only whole answers are averaged; refused, failed and cut ones are counted beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from app.demo.answers import Answer, Objective, Phase, in_time
from autoscaling.types import Role, Tier

FEWEST = 20  # a 95th percentile of fewer says nothing


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles in seconds; None where too few values are known."""

    p50_s: float | None
    p95_s: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """The whole answers of one tier by one pool."""

    tier: Tier
    pool: Role | None  # None: the answer did not say
    answers: int
    ttft: Spread
    tpot: Spread
    tokens_per_s: float | None  # from the first request to the last byte; None without any usage
    acceptance: float | None  # accepted / drafted tokens, 0..1
    tokens_per_draft: float | None  # accepted ones and the model's own, per step with a draft
    reasons: Mapping[str, int]  # of routes, the most frequent first


@dataclass(frozen=True, slots=True)
class Total:
    """Every request of one tier, and what became of it."""

    tier: Tier
    requests: int  # attempts, those that were cut included
    answered: int
    refused: int
    again: int  # of the refused ones, those that were sent again
    failed: int
    cut: int  # by the end of the demo
    met: int  # of the objective
    missed: int  # of the objective, with the refused and the failed ones
    codes: Mapping[str, int]  # of refusals and failures

    @property
    def lost(self) -> int:
        """Requests that no attempt answered, those that the demo cut aside."""
        return self.refused - self.again + self.failed

    @property
    def attainment(self) -> float | None:
        """Share of the requests inside the objective, 0..1; None when none could be judged."""
        judged = self.met + self.missed
        return self.met / judged if judged else None


@dataclass(frozen=True, slots=True)
class ByPhase:
    """The whole answers of one tier that were asked for in one phase."""

    phase: Phase
    answers: int
    ttft: Spread
    tpot: Spread


@dataclass(frozen=True, slots=True)
class Copies:
    """The same copying task on both pools, one at a time."""

    answers: Mapping[Role, int]  # whole ones
    tpot_s: Mapping[Role, float | None]  # median
    acceptance: float | None

    @property
    def ratio(self) -> float | None:
        """Time per token, speculative / plain; below 1 speculation helped.  None when not measured."""
        speculative, plain = self.tpot_s[Role.SPECULATIVE], self.tpot_s[Role.PLAIN]
        return None if speculative is None or not plain else speculative / plain


def rows(answers: Iterable[Answer]) -> tuple[Row, ...]:
    """One row for each tier and pool that answered, in the order of both."""
    whole = [one for one in answers if one.answered]
    pools: tuple[Role | None, ...] = (*Role, None)
    sorted_out = (
        (tier, pool, [one for one in whole if one.tier is tier and one.pool is pool])
        for tier in Tier
        for pool in pools
    )
    return tuple(_row(tier, pool, own) for tier, pool, own in sorted_out if own)


def totals(answers: Sequence[Answer], objectives: Mapping[Tier, Objective | None]) -> tuple[Total, ...]:
    """One for each tier, also without any request; an objective of None is unknown."""
    return tuple(
        _total(tier, [one for one in answers if one.tier is tier], objectives[tier]) for tier in Tier
    )


def by_phase(answers: Iterable[Answer], tier: Tier) -> tuple[ByPhase, ...]:
    """One for each phase in which requests of the tier were sent and answered."""
    whole = [one for one in answers if one.answered and one.tier is tier]
    grouped = ((phase, [one for one in whole if one.phase is phase]) for phase in Phase)
    return tuple(ByPhase(phase, len(own), _ttft(own), _tpot(own)) for phase, own in grouped if own)


def copies(answers: Iterable[Answer]) -> Copies:
    """What the copying task took on each pool; an answer of the wrong pool does not count."""
    whole = [one for one in answers if one.answered]
    of = {role: [one for one in whole if one.pool is role] for role in Role}
    times = {role: _known(one.tpot_s for one in own) for role, own in of.items()}
    return Copies(
        answers={role: len(own) for role, own in of.items()},
        tpot_s={role: median(found) if found else None for role, found in times.items()},
        acceptance=_acceptance(of[Role.SPECULATIVE]),
    )


def slowest(answers: Iterable[Answer]) -> Answer | None:
    """The whole interactive answer that took longest."""
    own = [one for one in answers if one.answered and one.tier is Tier.INTERACTIVE]
    return max(own, key=lambda one: one.e2e_s, default=None)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0..1) of the values lie, interpolated; there is at least one."""
    ordered = sorted(values)
    position = (len(ordered) - 1) * share
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def _row(tier: Tier, pool: Role | None, own: Sequence[Answer]) -> Row:
    tokens = _known(one.tokens for one in own)
    span = max(one.began_s + one.e2e_s for one in own) - min(one.began_s for one in own)
    drafts = [one.drafts for one in own if one.drafts is not None]
    steps = sum(one.steps for one in drafts)
    reasons = Counter(one.reason or "unknown" for one in own)
    return Row(
        tier=tier,
        pool=pool,
        answers=len(own),
        ttft=_ttft(own),
        tpot=_tpot(own),
        tokens_per_s=sum(tokens) / span if tokens and span > 0 else None,
        acceptance=_acceptance(own),
        tokens_per_draft=1 + sum(one.accepted for one in drafts) / steps if steps else None,
        reasons=dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
    )


def _total(tier: Tier, own: Sequence[Answer], objective: Objective | None) -> Total:
    judged = [in_time(one, objective) for one in own] if objective and objective.promised else []
    codes = Counter(one.code or f"HTTP {one.status}" for one in own if one.refused or one.failed)
    return Total(
        tier=tier,
        requests=len(own),
        answered=_count(own, lambda one: one.answered),
        refused=_count(own, lambda one: one.refused),
        again=_count(own, lambda one: one.again),
        failed=_count(own, lambda one: one.failed),
        cut=_count(own, lambda one: one.cut),
        met=judged.count(True),
        missed=judged.count(False),
        codes=dict(sorted(codes.items(), key=lambda item: (-item[1], item[0]))),
    )


def _count(own: Iterable[Answer], what: Callable[[Answer], bool]) -> int:
    return sum(map(what, own))


def _ttft(own: Iterable[Answer]) -> Spread:
    return _spread(one.ttft_s for one in own)


def _tpot(own: Iterable[Answer]) -> Spread:
    return _spread(one.tpot_s for one in own)


def _spread(values: Iterable[float | None]) -> Spread:
    known = _known(values)
    return Spread(
        p50_s=percentile(known, 0.5) if known else None,
        p95_s=percentile(known, 0.95) if len(known) >= FEWEST else None,
    )


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _acceptance(own: Iterable[Answer]) -> float | None:
    drafts = [one.drafts for one in own if one.drafts is not None]
    drafted = sum(one.drafted for one in drafts)
    return sum(one.accepted for one in drafts) / drafted if drafted else None
