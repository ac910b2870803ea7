"""The tables of `benchmarks.goodput`, as rows of text; pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from autoscaling.profiling.findings import PoolAnswer
from autoscaling.types import Role
from benchmarks.goodput_figures import (
    Block,
    Compared,
    attainment,
    batch_tokens_per_s,
    curve,
    of,
)
from benchmarks.goodput_plan import CONDITIONS, TPOTS_S, WEIGHT, Condition, Method
from benchmarks.goodput_rules import MEAN, Calibrated
from benchmarks.intervals import Interval, mean
from benchmarks.results import number

CURVE_HEAD: Final = ("configuration", "routing", *(f"{1000 * one:.0f} ms" for one in TPOTS_S))
COMPARED_HEAD: Final = (
    "method",
    "TPOT",
    "predicted",
    "margin",
    "best other",
    "ours over it",
    "95 % from",
    "to",
    "worse than",
    "two over one",
)
PREDICTION_HEAD: Final = ("TPOT", "answer", "margin", *(one.value for one in PoolAnswer))
BATCH_HEAD: Final = ("configuration", "routing", "batch tok/s", "95 % from", "to", "interactive", "refused")


def with_interval(one: Interval | None) -> str:
    """A value, and in brackets where it lies."""
    if one is None:
        return "-"
    if one.low is None or one.high is None:
        return number(one.value)
    return f"{number(one.value)} ({number(one.low)} to {number(one.high)})"


def curve_rows(blocks: Sequence[Block], method: Method, weight: float = WEIGHT) -> list[list[str]]:
    """Goodput of every condition by objective."""
    return _rows(blocks, method, lambda some: [with_interval(one) for one in curve(some, weight).values()])


def attainment_rows(blocks: Sequence[Block], method: Method) -> list[list[str]]:
    """The share of interactive requests in time by objective."""
    return _rows(blocks, method, lambda some: [number(attainment(some, one)) for one in TPOTS_S])


def batch_rows(blocks: Sequence[Block], method: Method) -> list[list[str]]:
    """Batch tokens of every condition, and how many interactive requests came and were refused."""

    def row(some: Sequence[Block]) -> list[str]:
        one = mean([batch_tokens_per_s(block) for block in some])
        asked = [sent for block in some for sent in block.sent if sent.tier == "interactive"]
        refused = sum(sent.slot is None for sent in asked)
        value, low, high = (None, None, None) if one is None else (one.value, one.low, one.high)
        return [number(value), number(low), number(high), str(len(asked)), str(refused)]

    return _rows(blocks, method, row)


def compared_rows(compared: Sequence[Compared]) -> list[list[str]]:
    """One row per method and objective."""
    rows = []
    for one in compared:
        ratio = one.to_best
        rows.append(
            [
                one.method.in_words,
                f"{1000 * one.tpot_s:.0f} ms",
                one.answer.value,
                number(one.margin),
                "-" if one.best is None else words(one.best),
                number(None if ratio is None else ratio.value),
                number(None if ratio is None else ratio.low),
                number(None if ratio is None else ratio.high),
                str(len(one.worse_than)),
                number(one.two_over_one),
            ]
        )
    return rows


def engine_rows(found: Calibrated) -> list[list[str]]:
    """What calibration says of both engines at the draft lengths that matter."""
    rows = []
    for role in Role:
        cost = found.costs[role]
        error = found.errors.get(role)
        rows.append(
            [
                role.value,
                number(1000 * cost.base_s),
                f"{1000 * cost.per_token_s:.3f}",
                number(1000 * (cost.draft_s + cost.draft_length * cost.per_draft_s)),
                "-" if error is None else f"{100 * error:.0f} %",
            ]
        )
    return rows


def prediction_rows(found: Calibrated) -> list[list[str]]:
    """What was predicted at each objective, as shares of the best."""
    rows = []
    for one in found.predicted:
        best = max(one.goodput.values(), default=0.0)
        shares = [one.goodput.get(answer) for answer in PoolAnswer]
        cells = [number(None if share is None or best <= 0 else share / best) for share in shares]
        rows.append([f"{1000 * one.tpot_s:.0f} ms", one.answer.value, number(one.margin), *cells])
    return rows


def table_words(table: Sequence[int]) -> str:
    """A K table in words, such as `4 up to 3 sequences, 0 up to 16`."""
    parts: list[str] = []
    for size in range(1, len(table)):
        if size + 1 == len(table) or table[size + 1] != table[size]:
            parts.append(
                f"{table[size]} up to {size} sequences" if not parts else f"{table[size]} up to {size}"
            )
    return ", ".join(parts)


def gain_words(found: Calibrated) -> str:
    """Tokens per step by K over all classes."""
    return ", ".join(f"{number(gain)} at K = {length}" for length, gain in sorted(found.gains[MEAN].items()))


def words(condition: Condition) -> str:
    """A condition in words."""
    return f"{condition.configuration.value}, {_routing(condition)}"


def _routing(condition: Condition) -> str:
    obeyed = "" if condition.in_force_s is None else f" at {1000 * condition.in_force_s:.0f} ms"
    return f"{condition.routing.value}{obeyed}"


def _rows(
    blocks: Sequence[Block], method: Method, cells: Callable[[Sequence[Block]], list[str]]
) -> list[list[str]]:
    return [
        [one.configuration.value, _routing(one), *cells(some)]
        for one in CONDITIONS
        if (some := of(blocks, method, one))
    ]
