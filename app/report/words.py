"""Numbers and names as a reader sees them; what is unknown is `-`, never 0 or nan."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from app.cli.output import printable
from autoscaling.profiling.findings import Estimate

UNKNOWN = "-"
NOT_MEASURED = "not measured"
WIDE = 10.0  # times the lower end: such an interval comes from two rounds, and tells nothing
LONGEST_NAME = 40  # of a workload or a model in a table; a plot has no room for more

Shown = Callable[[float | None], str]


def number(value: float | None) -> str:
    """About three digits, thousands apart."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def count(value: float | None) -> str:
    """A whole number."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{value:,.0f}"


def plain_number(value: float) -> str:
    """A given number without needless zeros: an objective, a K."""
    return f"{value:.10g}"


def share(value: float | None) -> str:
    """A ratio 0..1 with two digits behind the point."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{value:.2f}"


def percent(value: float | None) -> str:
    """A ratio 0..1 in percent."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{100 * value:.1f} %"


def ms(seconds: float | None) -> str:
    """Seconds as milliseconds."""
    return UNKNOWN if seconds is None else number(1000 * seconds)


def with_bounds(found: Estimate | None, shown: Shown = number) -> str:
    """A value and its 95 % interval; an open bound is not given, and of two ends far apart neither."""
    if found is None:
        return UNKNOWN
    low, high = shown(found.low), shown(found.high)
    value = shown(found.value)
    if low == high == UNKNOWN:
        return value
    if UNKNOWN in (low, high):
        return f"{value} (at most {high})" if low == UNKNOWN else f"{value} (at least {low})"
    if too_wide(found):
        return f"{value} (too few rounds)"
    return f"{value} ({low} to {high})"


def too_wide(found: Estimate) -> bool:
    """Whether its ends lie so far apart that it tells nothing."""
    return found.low is not None and found.high is not None and 0 < WIDE * found.low <= found.high


def name(text: str | None) -> str:
    """A name that came from outside: on one line, without control characters, not longer than fits."""
    if not text:
        return UNKNOWN
    seen = printable(text)
    return seen if len(seen) <= LONGEST_NAME else seen[: LONGEST_NAME - 3] + "..."


def joined(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def sequences(value: float) -> str:
    """`1 sequence`, `16 sequences`, `10.9 sequences`."""
    words = f"{value:,.0f}" if float(value).is_integer() else number(value)
    return f"{words} {'sequence' if value == 1 else 'sequences'}"


def objective(tpot_s: float) -> str:
    """A time per output token that is promised."""
    return f"{plain_number(1000 * tpot_s)} ms"
