"""Durations on the command line: `90s`, `15m`, `2h`, `1d`, `1h30m`."""

from __future__ import annotations

import re
from math import inf

UNITS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
LONGEST_S = 366 * UNITS["d"]
MOST_DIGITS = 9  # of one count; a year has eight digits of seconds
_SHOWN = 60  # characters of what was typed
_SHAPE = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", re.ASCII)


class DurationError(ValueError):
    """The text is no duration that can be used; `mend` says what to do."""

    def __init__(self, message: str, mend: str) -> None:
        super().__init__(message)
        self.mend = mend


def parse(text: str, longest_s: float = LONGEST_S) -> float:
    """Read whole days, hours, minutes and seconds, in this order, as seconds; raises DurationError."""
    found = _SHAPE.fullmatch(text.strip())
    if not text.strip() or found is None:
        hint = f": the unit is missing, such as {text.strip()}s or {text.strip()}m" if _bare(text) else ""
        raise DurationError(
            f"{_cut(text)} is no duration{hint}; write for example 90s, 15m, 2h, 1d or 1h30m",
            "give the duration with its unit",
        )
    counts = [(count or "").lstrip("0") for count in found.groups()]
    if any(len(count) > MOST_DIGITS for count in counts):
        seconds = inf  # not counted: Python refuses to read thousands of digits
    else:
        seconds = sum(int(count or 0) * unit for count, unit in zip(counts, UNITS.values(), strict=True))
    if seconds <= 0:
        raise DurationError(f"{_cut(text)} is no time at all: write at least 1s", "give a longer time")
    if seconds > longest_s:
        longest = show(longest_s)
        raise DurationError(
            f"{_cut(text)} is longer than {longest}: what should last longer belongs into the policy file",
            f"give {longest} at most, or edit the policy file",
        )
    return float(seconds)


def show(seconds: float | None) -> str:
    """Write seconds as `parse` reads them, at most two units; a dash when unknown."""
    if seconds is None:
        return "-"
    rest = max(round(seconds), 0)
    parts = []
    for letter, unit in UNITS.items():
        count, rest = divmod(rest, unit)
        if count:
            parts.append(f"{count}{letter}")
    return "".join(parts[:2]) or "0s"


def _bare(text: str) -> bool:
    return text.strip().isdecimal() and len(text) <= _SHOWN


def _cut(text: str) -> str:
    """What was typed in quotes, its beginning only when it is long."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."
