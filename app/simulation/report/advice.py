"""What to do about a policy, by what its pools looked like when it was late; sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from app.report.words import number, percent
from app.simulation.report.judged import KEPT, Miss, misses
from app.simulation.report.subject import Promise, Subject
from app.simulation.scores import Moment, Scores, TierScore
from autoscaling.types import Role, Tier

OWN = {Tier.INTERACTIVE: Role.SPECULATIVE, Tier.STANDARD: Role.PLAIN, Tier.BATCH: Role.PLAIN}
ROOMY = 0.6  # of all capacity, and of what is promised: more than this trace needs
FEW_MOVES = 4  # below so many moves a reversal says nothing


def advice(subject: Subject, name: str) -> tuple[str, ...]:
    """What would help a policy, the most important first; one sentence that nothing has to be done if so."""
    scores = subject.scores[name]
    found = [_for(miss, scores) for miss in misses(subject, name)]
    found += _of_moves(scores)
    if not misses(subject, name) and not subject.sizes:
        found += _of_size(subject, scores)
    return tuple(dict.fromkeys(found)) or ("Nothing has to be changed for this trace.",)


def use(moment: Moment) -> float | None:
    """The demand of both pools over what both serve inside their limits; None where that is unknown."""
    capacity = _total(moment.capacity)
    demand = _total(moment.demand)
    return None if capacity is None or demand is None or capacity <= 0 else demand / capacity


def _for(miss: Miss, scores: Scores) -> str:
    late = [
        moment
        for moment in scores.series
        if (share := moment.attainment.get(miss.tier)) is not None and share < KEPT
    ]
    pool = OWN[miss.tier]
    full = [moment for moment in late if (used := use(moment)) is not None and used > 1]
    short = [moment for moment in late if _is_short(moment, pool)]
    if late and 2 * len(full) >= len(late):
        worst = max(full, key=lambda moment: use(moment) or 0.0)
        demand, capacity = _total(worst.demand), _total(worst.capacity)
        return (
            f"Give it more accelerators: in {len(full)} of the {_intervals(late)} in which {miss.tier} was "
            f"late, callers had more open than all replicas serve inside their limits, at worst "
            f"{number(demand)} sequences against {number(capacity)}; a run with a larger budget shows "
            "what it would bring."
        )
    if late and 2 * len(short) >= len(late):
        return (
            f"Give the {pool} pool its replicas sooner: in {len(short)} of the {_intervals(late)} in which "
            f"{miss.tier} was late, it was short while the other pool had room; a shorter "
            "spec.behavior.scaleUp.stabilizationWindowSeconds, a shorter cooldownSeconds or a higher "
            f"minReplicas of {pool} would help."
        )
    return (
        f"Give it more accelerators, or promise {miss.tier} less: replicas had room inside their limits and "
        f"were still too slow; a lower spec.pools.{pool}.limits.softInflight helps where it sends other work "
        "elsewhere, and else lets callers wait."
    )


def _of_moves(scores: Scores) -> Iterator[str]:
    if len(scores.moves) >= FEW_MOVES and 2 * scores.reversals >= len(scores.moves):
        yield (
            f"Let capacity go to and fro less: {scores.reversals} of {len(scores.moves)} moves undid the one "
            "before; a longer spec.behavior.scaleDown.stabilizationWindowSeconds or cooldownSeconds would "
            "help."
        )
    given_up = sum(move.state == "timed_out" for move in scores.moves)
    if given_up:
        yield (
            f"Look at the moves: {given_up} took longer than spec.guardrails.moveTimeoutSeconds and "
            f"{'was' if given_up == 1 else 'were'} given up."
        )


def _of_size(subject: Subject, scores: Scores) -> Iterator[str]:
    if all(sum(moment.running.values()) <= len(Role) for moment in scores.series):
        return  # two pools need two replicas
    if any(_is_close(score, subject.promise(tier)) for tier, score in scores.tiers.items()):
        return  # replicas that have room inside their limits may be as full as objectives bear
    known = [used for moment in scores.series if (used := use(moment)) is not None]
    if known and (most := float(np.percentile(known, 99))) <= ROOMY:
        yield (
            f"Fewer accelerators may do: in 99 of 100 intervals no more than {percent(most)} of what all "
            "replicas serve inside their limits was asked for, and objectives were kept by far; smaller "
            "sizes, several at once with --replicas, show how far that goes."
        )


def _is_close(score: TierScore, promise: Promise) -> bool:
    """Whether a tier's times are so near to what it is promised that fewer replicas would hardly keep it."""
    pairs = ((score.ttft_p95_s, promise.ttft_s), (score.tpot_p95_s, promise.tpot_s))
    return any(
        late_s is not None and most_s is not None and late_s > ROOMY * most_s for late_s, most_s in pairs
    )


def _is_short(moment: Moment, pool: Role) -> bool:
    demand, capacity = moment.demand.get(pool), moment.capacity.get(pool)
    return demand is not None and capacity is not None and demand > capacity


def _total(each: Mapping[Role, float]) -> float | None:
    """Of both pools; None where one of them is unknown."""
    return sum(each[role] for role in Role) if set(each) >= set(Role) else None


def _intervals(late: Sequence[Moment]) -> str:
    return f"{len(late)} interval{'' if len(late) == 1 else 's'}"
