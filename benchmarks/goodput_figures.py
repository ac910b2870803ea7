"""From what was sent in every condition to goodput curves, ratios and figures with their intervals; pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from autoscaling.profiling.findings import PoolAnswer
from autoscaling.types import Tier
from benchmarks.goodput_load import Sent
from benchmarks.goodput_plan import (
    CONDITIONS,
    IN_FORCE_S,
    SURE_WIN,
    TPOTS_S,
    TTFT_S,
    WEIGHT,
    WIN,
    Condition,
    Configuration,
    Method,
    Window,
    ours_at,
)
from benchmarks.goodput_rules import Calibrated
from benchmarks.intervals import Interval, above, mean, ratio
from benchmarks.results import Target

WORST, WORSE_AT = "worst_ratio_to_best_rival", "worse_at"
WRONG: Final = 0.05  # chance that any verdict of being worse is wrong
PREDICTED, MEASURED = "predicted_wins", "predicted_wins_measured"
# The configuration that an answer of the profile stands for.
LAID: Final[Mapping[PoolAnswer, Configuration]] = {
    PoolAnswer.TWO_POOLS: Configuration.TWO_POOLS,
    PoolAnswer.ONE_PLAIN: Configuration.ALL_PLAIN,
    PoolAnswer.ONE_SPECULATIVE: Configuration.ONE_POOL_TABLE,
}


@dataclass(frozen=True, slots=True)
class Block:
    """One condition in one round, with the requests that count."""

    method: Method
    round: int
    condition: Condition
    window: Window
    sent: Sequence[Sent]


@dataclass(frozen=True, slots=True)
class Compared:
    """Our configuration against the others at one objective."""

    method: Method
    tpot_s: float
    ours: Condition
    margin: float  # as predicted
    answer: PoolAnswer
    best: Condition | None  # of the others, by its mean; None: no other had any goodput
    to_best: Interval | None  # ours over the best other
    above: Mapping[Condition, float]  # chance that one of the others looks so much better, all together
    two_over_one: float | None  # two pools under our routing over the best condition with one pool
    comparisons: int = 1  # of the whole run: together they may be wrong with 5 %

    @property
    def predicted_win(self) -> bool:
        """Whether the profile was sure that two pools win."""
        return self.answer is PoolAnswer.TWO_POOLS and self.margin >= SURE_WIN

    @property
    def worse_than(self) -> list[Condition]:
        """The others that are better for sure: with 95 % none of the whole run is named by chance."""
        return [rival for rival, chance in self.above.items() if chance < WRONG / self.comparisons]


def in_time(sent: Sent, tpot_s: float) -> bool:
    """Whether an interactive request was answered within both objectives."""
    if sent.error is not None or sent.ttft_s is None or sent.tpot_s is None:
        return False
    return sent.ttft_s <= TTFT_S and sent.tpot_s <= tpot_s


def interactive_tokens_per_s(block: Block, tpot_s: float) -> float:
    """Tokens of interactive answers in time."""
    good = [one for one in block.sent if one.tier is Tier.INTERACTIVE and in_time(one, tpot_s)]
    return sum(one.tokens or 0 for one in good) / block.window.measured_s


def batch_tokens_per_s(block: Block) -> float:
    """Tokens of batch answers that came in the window."""
    found = sum(one.counted_tokens for one in block.sent if one.tier is Tier.BATCH)
    return found / block.window.measured_s


def goodput(block: Block, tpot_s: float, weight: float = WEIGHT) -> float:
    """Weighted tokens per second."""
    return weight * interactive_tokens_per_s(block, tpot_s) + batch_tokens_per_s(block)


def attainment(blocks: Iterable[Block], tpot_s: float) -> float | None:
    """The share of interactive requests in time, all rounds together; None without any."""
    found = [in_time(one, tpot_s) for block in blocks for one in block.sent if one.tier is Tier.INTERACTIVE]
    return sum(found) / len(found) if found else None


def of(blocks: Iterable[Block], method: Method, condition: Condition) -> list[Block]:
    """The blocks of a condition, by round."""
    found = [one for one in blocks if one.method is method and one.condition == condition]
    return sorted(found, key=lambda one: one.round)


def curve(blocks: Sequence[Block], weight: float = WEIGHT) -> dict[float, Interval]:
    """Goodput of one condition by objective; empty without rounds."""
    found = {tpot: mean([goodput(one, tpot, weight) for one in blocks]) for tpot in TPOTS_S}
    return {tpot: one for tpot, one in found.items() if one is not None}


def over(one: Sequence[Block], other: Sequence[Block], tpot_s: float) -> Interval | None:
    """Goodput of the first condition over that of the second, paired by round."""
    mine = {block.round: goodput(block, tpot_s) for block in one}
    theirs = {block.round: goodput(block, tpot_s) for block in other}
    return ratio([(theirs[index], mine[index]) for index in sorted(mine.keys() & theirs.keys())])


def comparisons(blocks: Sequence[Block], found: Mapping[Method, Calibrated]) -> list[Compared]:
    """Every method at every objective that our rules obey; what was not predicted or measured is left out."""
    found_all = [
        compared
        for method, calibrated in found.items()
        for predicted in calibrated.predicted
        if predicted.tpot_s in IN_FORCE_S
        and (compared := _compare(blocks, method, predicted.tpot_s, predicted.answer, predicted.margin))
        is not None
    ]
    return [replace(one, comparisons=len(found_all)) for one in found_all]


def _compare(
    blocks: Sequence[Block], method: Method, tpot_s: float, answer: PoolAnswer, margin: float
) -> Compared | None:
    measured = {
        one: found
        for one in CONDITIONS
        if one.in_force_s in (None, tpot_s) and (found := of(blocks, method, one))
    }
    ours = ours_at(LAID[answer], tpot_s)
    if ours not in measured:
        return None
    height = {
        one: statistics.fmean(goodput(block, tpot_s) for block in some) for one, some in measured.items()
    }
    rivals = {one: height[one] for one in measured if one != ours and height[one] > 0}
    best = max(rivals, key=lambda one: rivals[one], default=None)
    two = ours_at(Configuration.TWO_POOLS, tpot_s)
    single = [height[one] for one in measured if one.configuration is not Configuration.TWO_POOLS]
    return Compared(
        method,
        tpot_s,
        ours,
        margin,
        answer,
        best,
        None if best is None else over(measured[ours], measured[best], tpot_s),
        _above(measured, ours, rivals, tpot_s),
        height[two] / max(single) if two in height and max(single, default=0.0) > 0 else None,
    )


def _above(
    measured: Mapping[Condition, Sequence[Block]], ours: Condition, rivals: Iterable[Condition], tpot_s: float
) -> dict[Condition, float]:
    """By rival, over the rounds that all have; a condition without any goodput in a round is left out."""
    heights = {
        one: {block.round: goodput(block, tpot_s) for block in measured[one]} for one in (ours, *rivals)
    }
    rounds = sorted(set.intersection(*(set(one) for one in heights.values())))
    values = {one: [by_round[index] for index in rounds] for one, by_round in heights.items()}
    values = {one: some for one, some in values.items() if min(some, default=0.0) > 0}
    control = values.pop(ours, None)
    return {} if control is None else above(control, values)


def figures(blocks: Sequence[Block], compared: Sequence[Compared]) -> dict[str, float]:
    """All figures; one that was not measured is absent."""
    found: dict[str, float | None] = {}
    ratios = [one.to_best.value for one in compared if one.to_best is not None]
    wins = [one for one in compared if one.predicted_win]
    if compared:
        found = {
            WORST: min(ratios, default=None),
            WORSE_AT: float(sum(len(one.worse_than) for one in compared)) if _several(blocks) else None,
            PREDICTED: float(len(wins)),
        }
    if wins:
        found[MEASURED] = sum((one.two_over_one or 0.0) >= WIN for one in wins) / len(wins)
    for method in dict.fromkeys(block.method for block in blocks):
        for condition in CONDITIONS:
            some = of(blocks, method, condition)
            if some:
                prefix = f"{method}_synthetic" if method.synthetic else method.value
                found |= _of_condition(f"{prefix}_{condition.name}", some)
    return {name: round(value, 4) for name, value in found.items() if value is not None}


def targets(found: Mapping[str, float]) -> dict[str, Target]:
    """The targets; where no win was predicted there is none to be held against."""
    wanted: dict[str, Target] = {WORSE_AT: ("==", 0.0)}
    return wanted | ({MEASURED: (">=", 1.0)} if found.get(PREDICTED) else {})


def _several(blocks: Sequence[Block]) -> bool:
    return len({block.round for block in blocks}) > 1


def _of_condition(name: str, blocks: Sequence[Block]) -> dict[str, float | None]:
    batch = mean([batch_tokens_per_s(one) for one in blocks])
    found: dict[str, float | None] = {} if batch is None else {f"{name}_batch_tokens_per_s": batch.value}
    for tpot_s, one in curve(blocks).items():
        at = f"{name}_at_{tpot_s * 1000:.0f}_ms"
        found |= {f"{at}_goodput": one.value, f"{at}_goodput_low": one.low, f"{at}_goodput_high": one.high}
        found[f"{at}_attainment"] = attainment(blocks, tpot_s)
    return found
