"""What the figures of `benchmarks.evaluate` say, in sentences; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.evaluate_cells import Panel
from benchmarks.evaluate_compare import Beaten, Row, beaten, front
from benchmarks.evaluate_figures import Results, Sensed
from benchmarks.evaluate_plan import BATCH_TIE, MISSES_TIE, MOST_STATIC_MISSES, OURS
from benchmarks.intervals import Interval
from benchmarks.results import number


@dataclass(frozen=True, slots=True)
class Cause:
    """One number in which two policies may differ, and from how much on it is worth a sentence."""

    of: Callable[[Row], float | None]
    least: float
    words: str  # with the places {mine} and {theirs}
    scale: float = 1.0


# In the order in which they explain: what moves cost, what they did, where capacity lay, who was turned away.
CAUSES: Final = (
    Cause(
        lambda row: row.over(lambda one: one.switching_share),
        0.005,
        "it spent {mine} % of its accelerators' time in starts and drains, the other one {theirs} %",
        100.0,
    ),
    Cause(
        lambda row: row.over(lambda one: one.moves_per_h),
        1.0,
        "it moved {mine} times an hour, the other one {theirs} times",
    ),
    Cause(
        lambda row: row.short_share,
        0.01,
        "callers wanted more of the speculative pool than its limits hold during {mine} % of the time, "
        "with the other one during {theirs} %",
        100.0,
    ),
    Cause(
        lambda row: row.over(lambda one: one.plain_share),
        0.02,
        "{mine} % of its replicas were plain, {theirs} % of the other one's",
        100.0,
    ),
    Cause(
        lambda row: row.over(lambda one: one.refused),
        0.001,
        "it refused {mine} % of the interactive requests, the other one {theirs} %",
        100.0,
    ),
    Cause(
        lambda row: row.over(lambda one: one.failed),
        0.001,
        "{mine} % of the interactive requests were broken off by drains, with the other one {theirs} %",
        100.0,
    ),
)


def verdicts(found: Results) -> list[str]:
    """Ours on each panel: Pareto-optimal, or beaten by whom, by how much, and why."""
    return [sentence for panel, rows in found.panels.items() for sentence in verdict(panel, rows)]


def verdict(panel: Panel, rows: Sequence[Row]) -> list[str]:
    """The sentences on one panel; none without ours."""
    ours = next((one for one in rows if one.contender == OURS), None)
    if ours is None:
        return []
    place = f"{panel.traffic.value.capitalize()}, {panel.delay_s:g} s:"
    by = beaten(ours, rows)
    if not by:
        others = [f"`{one.contender}`" for one in front(rows) if one is not ours]
        beside = f", beside {listed(others)}" if others else ""
        return [f"{place} nobody dominates the default policy; it is Pareto-optimal{beside}."]
    names = listed([f"`{how.by.contender}`" for how in by])
    first = by[0]
    causes = why(ours, first.by)
    because = (
        f"By the numbers, against `{first.by.contender}`: {'; '.join(causes)}."
        if causes
        else f"Moves, pool sizes, refusals and shortfall are those of `{first.by.contender}`: "
        "what differs is what lies in the pools, and which replica a request goes to."
    )
    return [f"{place} the default policy is dominated by {names}.", how_much(ours, first), because]


def why(row: Row, other: Row) -> list[str]:
    """The numbers in which a policy differs from another one enough to matter, in the order of `CAUSES`."""
    found = []
    for cause in CAUSES:
        mine, theirs = cause.of(row), cause.of(other)
        if mine is not None and theirs is not None and abs(mine - theirs) >= cause.least:
            both = {"mine": number(cause.scale * mine), "theirs": number(cause.scale * theirs)}
            found.append(cause.words.format(**both))
    return found


def how_much(ours: Row, how: Beaten) -> str:
    """By how much another policy is better than ours, in both figures."""
    name, fewer, more = how.by.contender, how.fewer_misses, how.more_batch
    said = []
    if abs(fewer.value) <= MISSES_TIE:
        said.append(f"misses as many requests ({number(100 * ours.misses.value)} %)")
    else:
        said.append(
            f"misses {_interval(fewer, 100.0)} percentage points fewer "
            f"({number(100 * how.by.misses.value)} % and not {number(100 * ours.misses.value)} %)"
        )
    if abs(more.value) <= BATCH_TIE * ours.batch.value:
        said.append(f"sells as many batch tokens ({number(ours.batch.value)} per second)")
    else:
        said.append(
            f"sells {_interval(more, 1.0)} batch tokens per second more "
            f"({number(how.by.batch.value)} and not {number(ours.batch.value)})"
        )
    return f"`{name}` {' and '.join(said)}."


def statics(found: Results) -> list[str]:
    """What the best static split of each load is."""
    said = []
    for traffic, best in found.best.items():
        size = next(size for size, row in found.splits[traffic].items() if row is best)
        rule = (
            f"the most batch tokens with at most {100 * MOST_STATIC_MISSES:g} % misses"
            if best.misses.value <= MOST_STATIC_MISSES
            else f"every split misses more than {100 * MOST_STATIC_MISSES:g} %, and this one fewest"
        )
        said.append(
            f"{traffic.value.capitalize()}: {size} speculative replicas ({rule}), with "
            f"{number(100 * best.misses.value)} % misses and {number(best.batch.value)} batch tokens "
            "per second."
        )
    return said


def sensitivities(sensed: Iterable[Sensed]) -> list[str]:
    """The worst that one wrong belief or late figures do to each policy."""
    said = []
    rows = list(sensed)
    for name in dict.fromkeys(one.contender for one in rows):
        right, *off = [one for one in rows if one.contender == name]
        worst = max(off, key=lambda one: one.row.misses.value)
        least = min(off, key=lambda one: one.row.batch.value)
        said.append(
            f"`{name}` misses {number(100 * right.row.misses.value)} % with nothing off and at most "
            f"{number(100 * worst.row.misses.value)} % ({worst.words}); it sells "
            f"{number(right.row.batch.value)} batch tokens per second and at least "
            f"{number(least.row.batch.value)} ({least.words})."
        )
    return said


def listed(names: Sequence[str]) -> str:
    """Names as a sentence has them: `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _interval(found: Interval, scale: float) -> str:
    if found.low is None or found.high is None:
        return number(scale * found.value)
    low, high = number(scale * found.low), number(scale * found.high)
    return f"{number(scale * found.value)} (95 % from {low} to {high})"
