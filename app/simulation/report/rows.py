"""The numbers of a report as rows of words: policies side by side, tiers, moves, costs."""

from __future__ import annotations

from dataclasses import dataclass

from app.report.words import UNKNOWN, count, ms, name, number, percent
from app.simulation.report.judged import KEPT, misses, tokens_per_hour
from app.simulation.report.match import Match
from app.simulation.report.subject import Promise, Subject
from app.simulation.scores import MoveMade
from app.simulation.traces.rates import WINDOW_S
from autoscaling.types import Tier

MILLION = 1_000_000
FREE = "the free budget"


@dataclass(frozen=True, slots=True)
class TierRow:
    """One tier under one policy; `late`: it was promised something and did not get it."""

    tier: Tier
    cells: tuple[str, ...]
    late: bool


TIER_HEAD = ("in time", "TTFT p95, s", "TPOT p95, ms", "tokens/s", "refused")
REQUEST_HEAD = ("requests", "were in time", "late", "were refused", "broken off")
POLICY_HEAD = ("moves", "undone", "accel.-hours", "switching")
COST = "cost"
NO_OBJECTIVE = "no objective"
TOKENS_WORDS = "answer tokens per second of the trace, of the answers that ended in it"


def tier_rows(subject: Subject, one: str) -> tuple[TierRow, ...]:
    """The tiers that had requests, in their order; cells as `TIER_HEAD`."""
    scores = subject.scores[one]
    late = {miss.tier for miss in misses(subject, one)}
    found = []
    for tier in Tier:
        score = scores.tiers.get(tier)
        if score is None or score.arrived <= 0:
            continue
        cells = (
            percent(score.attainment) if subject.promise(tier, one).is_any else NO_OBJECTIVE,
            number(score.ttft_p95_s),
            ms(score.tpot_p95_s),
            number(scores.tier_tokens_per_s(tier)),
            count(score.refused),
        )
        found.append(TierRow(tier, cells, tier in late))
    return tuple(found)


RATE_HEAD = ("tier", "requests", "requests/s", f"in the fullest {WINDOW_S:.0f} s")


def rate_rows(subject: Subject) -> tuple[tuple[str, ...], ...]:
    """How many requests come, as `RATE_HEAD`: each tier, and where there are several all together."""
    total, *tiers = subject.rates or (None,)
    found = tiers if total is None or len(tiers) == 1 else [*tiers, total]
    return tuple(
        (one.tier or "all", count(one.requests), number(one.mean), number(one.peak)) for one in found
    )


def rate_words(subject: Subject) -> str:
    """The same in half a line; empty where nothing is known."""
    parts = [f"{tier} {mean}, at most {peak}" for tier, _, mean, peak in rate_rows(subject)]
    return f"requests/s, on average and in the fullest {WINDOW_S:.0f} s: {'; '.join(parts)}" if parts else ""


MATCH_HEAD = ("", "requests", "in time, simulated", "recorded", "tokens/s, simulated", "recorded")


def match_rows(found: Match) -> tuple[tuple[str, ...], ...]:
    """The simulation beside the record, as `MATCH_HEAD`: tiers, then pools."""
    return tuple(
        (
            one.name,
            count(one.requests),
            *(percent(share) for share in one.attainment),
            *(number(tokens) for tokens in one.tokens_per_s),
        )
        for one in found.sides
    )


def policy_head(subject: Subject) -> tuple[str, ...]:
    """The head of `policy_cells`."""
    return POLICY_HEAD if subject.price_per_hour is None else (*POLICY_HEAD, COST)


def policy_cells(subject: Subject, one: str) -> tuple[str, ...]:
    """Moves, how many undid the one before, accelerator-hours and what they cost."""
    scores = subject.scores[one]
    cells = (
        count(len(scores.moves)),
        count(scores.reversals),
        number(scores.accelerator_hours),
        number(scores.switching_hours),
    )
    return cells if subject.price_per_hour is None else (*cells, number(subject.cost(scores)))


def request_cells(subject: Subject, one: str, tier: Tier) -> tuple[str, ...]:
    """Requests that arrived, were in time, late, refused, broken off; without objectives nothing is late."""
    score = subject.scores[one].tiers[tier]
    judged = (score.in_time, score.late) if subject.promise(tier, one).is_any else (None, None)
    return tuple(map(count, (score.arrived, *judged, score.refused, score.failed)))


def cost_cells(subject: Subject, one: str) -> tuple[str, ...]:
    """Accelerator-hours, the share of it switching, tokens per hour, cost, and cost per million tokens."""
    scores = subject.scores[one]
    hours, cost = scores.accelerator_hours, subject.cost(scores)
    tokens = scores.tokens_per_s * scores.seconds
    per_million = None if cost is None or tokens <= 0 else cost / tokens * MILLION
    return (
        name(one),
        number(hours),
        percent(scores.switching_hours / hours if hours > 0 else None),
        number(tokens_per_hour(scores)),
        *(() if cost is None else (number(cost), number(per_million))),
    )


def move_cells(move: MoveMade) -> tuple[str, ...]:
    """When, what, why, how it ended and how long it took."""
    what = f"{move.count} from {move.source or FREE} to {move.receiver or FREE}"
    took = UNKNOWN if move.took_s is None else f"{move.took_s:,.0f} s"
    return clock(move.at_s), what, move.reason, move.state.replace("_", " "), took


def clock(seconds: float) -> str:
    """A moment of the trace: `0:04:10`."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def promised_words(promise: Promise) -> str:
    """What a tier is promised, in words."""
    parts = []
    if promise.ttft_s is not None:
        parts.append(f"first token within {number(promise.ttft_s)} s")
    if promise.tpot_s is not None:
        parts.append(f"{ms(promise.tpot_s)} ms per token")
    return f"{', '.join(parts)}, for {percent(KEPT)}" if parts else "nothing"


def promises_rows(subject: Subject) -> tuple[str, ...]:
    """A line for each tier, `batch: nothing`; one for each policy where they promise different things."""
    found = []
    for tier in subject.tiers():
        each = {one: promised_words(subject.promise(tier, one)) for one in subject.scores}
        if len(set(each.values())) == 1:
            found.append(f"{tier}: {next(iter(each.values()))}")
        else:
            found += [f"{tier}, by {name(one)}: {words}" for one, words in each.items()]
    return tuple(found)
