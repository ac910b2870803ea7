"""Durations on the command line: `90s`, `15m`, `2h`, `1d`, `1h30m`."""

from __future__ import annotations

import re

UNITS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
LONGEST_S = 366 * UNITS["d"]
_SHAPE = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", re.ASCII)


class DurationError(ValueError):
    """The text is no duration that can be used; the message says what would be."""


def parse(text: str) -> float:
    """Read whole days, hours, minutes and seconds, in this order, as seconds; raises DurationError."""
    found = _SHAPE.fullmatch(text.strip())
    if not text.strip() or found is None:
        hint = f": the unit is missing, such as {text.strip()}s or {text.strip()}m" if _bare(text) else ""
        raise DurationError(f"{text!r} is no duration{hint}; write for example 90s, 15m, 2h, 1d or 1h30m")
    seconds = sum(int(count or 0) * unit for count, unit in zip(found.groups(), UNITS.values(), strict=True))
    if seconds <= 0:
        raise DurationError(f"{text!r} is no time at all: write at least 1s")
    if seconds > LONGEST_S:
        raise DurationError(
            f"{text!r} is longer than 366d: what should last longer belongs into the policy file"
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
    return text.strip().isdecimal()
