"""Unix seconds as RFC 3339 text in UTC: how every instant is shown to people."""

from __future__ import annotations

from datetime import UTC, datetime

MOST_WALL = 253_402_300_799.0  # the last second of the year 9999, the last that the text can hold


def rfc3339(wall: float) -> str:
    """`wall` in Unix seconds as `2027-03-28T01:00:00Z`, whole seconds, rounded down.

    What lies outside the years 1970 to 9999 is shown as the nearest end, since a message about it must
    not fail.
    """
    inside = min(max(wall, 0.0), MOST_WALL)
    return f"{datetime.fromtimestamp(inside // 1, UTC):%Y-%m-%dT%H:%M:%SZ}"
