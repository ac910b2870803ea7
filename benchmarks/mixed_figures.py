"""From counted answers of all conditions and rounds to figures with their intervals; pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.demo.answers import Answer, in_time
from autoscaling.route_reasons import RouteReason
from autoscaling.types import Tier
from benchmarks.intervals import Interval, difference, ratio
from benchmarks.mixed_plan import OBJECTIVES, Condition, Window
from benchmarks.mixed_records import Recorded, reason_of
from benchmarks.quantiles import percentile
from benchmarks.results import Target

LOSS, SPILLED = "backfill_interactive_attainment_loss", "spilled_in_time_share"
OVER_TIER, GAIN = "classes_over_tier_in_time_tokens", "backfill_batch_gain"
TARGETS: Final[Mapping[str, Target]] = {LOSS: ("<=", 0.05), SPILLED: (">=", 0.9)}
PROMISED: Final = (Tier.INTERACTIVE, Tier.STANDARD)


@dataclass(frozen=True, slots=True)
class Block:
    """One condition in one round, with the answers that count."""

    round: int
    condition: Condition
    answers: Sequence[Answer]
    window: Window


def met(answer: Answer) -> bool | None:
    """Whether an answer kept its tier's objectives; None where the client cannot tell."""
    return in_time(answer, OBJECTIVES[answer.tier])


def tokens_per_s(block: Block, tiers: Iterable[Tier]) -> float:
    """Tokens of complete answers in time; of a tier without objectives of all complete ones."""
    found = 0.0
    for tier in tiers:
        seconds = block.window.open_s if tier is Tier.STANDARD else block.window.closed_s
        tokens = sum(one.tokens or 0 for one in block.answers if one.tier is tier and met(one))
        found += tokens / seconds
    return found


def attainment(answers: Iterable[Answer], tier: Tier) -> float | None:
    """The share that kept its objectives; None without any that can be judged."""
    verdicts = [found for one in answers if one.tier is tier and (found := met(one)) is not None]
    return sum(verdicts) / len(verdicts) if verdicts else None


def paired(blocks: Sequence[Block], one: Condition, other: Condition) -> list[tuple[Block, Block]]:
    """The blocks of two conditions, round by round."""
    by_round = {(block.round, block.condition): block for block in blocks}
    rounds = sorted({block.round for block in blocks})
    keys = [((index, one), (index, other)) for index in rounds]
    return [(by_round[a], by_round[b]) for a, b in keys if a in by_round and b in by_round]


def of_condition(blocks: Iterable[Block], condition: Condition) -> list[Answer]:
    """All counted answers of a condition."""
    return [one for block in blocks if block.condition is condition for one in block.answers]


def routed(
    answers: Iterable[Answer], records: Mapping[str, Recorded], reason: RouteReason
) -> tuple[int, int]:
    """How many answers of a route reason kept their objectives, of how many that can be judged."""
    verdicts = [met(one) for one in answers if reason_of(one, records) == reason]
    return sum(found is True for found in verdicts), sum(found is not None for found in verdicts)


def reasons(answers: Iterable[Answer], records: Mapping[str, Recorded]) -> Counter[tuple[Tier, str]]:
    """Counts by tier and route reason; what found no pool counts as `none`."""
    return Counter((one.tier, reason_of(one, records) or "none") for one in answers)


def comparisons(blocks: Sequence[Block]) -> dict[str, Interval]:
    """What classes add, and what backfill costs and brings; absent where it cannot be told."""
    tier_only = paired(blocks, Condition.TIER_ONLY, Condition.CLASSES)
    backfill = paired(blocks, Condition.CLASSES, Condition.CLASSES_BACKFILL)
    shares = [
        (attainment(a.answers, Tier.INTERACTIVE), attainment(b.answers, Tier.INTERACTIVE))
        for a, b in backfill
    ]
    found = {
        OVER_TIER: ratio([(tokens_per_s(a, PROMISED), tokens_per_s(b, PROMISED)) for a, b in tier_only]),
        LOSS: difference([(a, b) for a, b in shares if a is not None and b is not None]),
        GAIN: ratio([(tokens_per_s(a, [Tier.BATCH]), tokens_per_s(b, [Tier.BATCH])) for a, b in backfill]),
    }
    return {name: one for name, one in found.items() if one is not None}


def figures(
    blocks: Sequence[Block], compared: Mapping[str, Interval], records: Mapping[str, Recorded]
) -> dict[str, float]:
    """All figures; one that was not measured is absent."""
    found: dict[str, float | None] = {}
    for name, one in compared.items():
        found |= {name: one.value, f"{name}_low": one.low, f"{name}_high": one.high}
    good, judged = routed([one for block in blocks for one in block.answers], records, RouteReason.SPILL)
    found |= {"spilled": float(judged), SPILLED: good / judged if judged else None}
    for condition in Condition:
        found |= _of_condition([one for one in blocks if one.condition is condition], condition, records)
    return {name: round(value, 4) for name, value in found.items() if value is not None}


def _of_condition(
    blocks: Sequence[Block], condition: Condition, records: Mapping[str, Recorded]
) -> dict[str, float | None]:
    if not blocks:
        return {}
    answers = of_condition(blocks, condition)
    found: dict[str, float | None] = {}
    for tier in Tier:
        rate = statistics.fmean(tokens_per_s(block, [tier]) for block in blocks)
        found[f"{condition}_{tier}_in_time_tokens_per_s"] = rate
        if tier in PROMISED:
            found[f"{condition}_{tier}_attainment"] = attainment(answers, tier)
            found[f"{condition}_{tier}_tpot_p50_ms"] = time_ms(answers, tier, "tpot_s", 50)
            found[f"{condition}_{tier}_tpot_p95_ms"] = time_ms(answers, tier, "tpot_s", 95)
            found[f"{condition}_{tier}_ttft_p95_ms"] = time_ms(answers, tier, "ttft_s", 95)
    for reason in (RouteReason.SPILL, RouteReason.BACKFILL, RouteReason.DRAFTABLE):
        found[f"{condition}_{reason}"] = float(
            sum(count for (_, why), count in reasons(answers, records).items() if why == reason)
        )
    return found


def time_ms(answers: Iterable[Answer], tier: Tier, name: str, q: float) -> float | None:
    """A percentile of a time of complete answers, in milliseconds."""
    of_tier = [one for one in answers if one.tier is tier and one.answered]
    values = [1000 * value for one in of_tier if (value := getattr(one, name)) is not None]
    return percentile(values, q) if values else None
