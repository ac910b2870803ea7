"""Time zones by their IANA names, and whether two weekly windows ever meet."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from autoscaling.policy import Day, Schedule

# A whole year from a Monday on, so that every change of summer time is met by each day of the week.
_FIRST = date(2026, 12, 28)
_DAYS = 7 * 54

# Files of zone data that are no place: not set, the machine's own rules, and copies that count leap seconds
# or exist on some machines only.
_NO_PLACE = {"Factory", "posixrules", "localtime"}
_COPIES = ("right/", "posix/")


def zone(name: str) -> tzinfo | None:
    """The zone of a name, or None for an unknown one; UTC is known without any zone data."""
    if name in ("UTC", "Etc/UTC"):
        return UTC
    if not _may_be_place(name):
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown; a path, not a name; a folder of zones
        return None


def unknown_zone(name: str) -> str | None:
    """Why a name is no zone, with the nearest one; None when it is one."""
    if zone(name) is not None:
        return None
    known = sorted(filter(_may_be_place, available_timezones()))
    if not known:
        return f"{name[:60]!r} cannot be looked up: no time zone data here; install tzdata, or use UTC"
    bare = next((name.removeprefix(start) for start in _COPIES if name.startswith(start)), name)
    close = [bare] if bare in known else get_close_matches(bare[:60], known, n=1, cutoff=0.75)
    hint = f"did you mean {close[0]}?" if close else "write an IANA name such as Europe/Berlin"
    return f"{name[:60]!r} is no known time zone; {hint}"


def _may_be_place(name: str) -> bool:
    return name not in _NO_PLACE and not name.startswith(_COPIES)


def ever_together(one: Schedule, other: Schedule) -> bool:
    """Whether two schedules hold at the same moment on any day of a year; false if a zone is unknown."""
    mine, theirs = list(_windows_of(one)), list(_windows_of(other))
    while mine and theirs:
        if mine[-1][0] < theirs[-1][1] and theirs[-1][0] < mine[-1][1]:
            return True
        (mine if mine[-1][0] > theirs[-1][0] else theirs).pop()
    return False


def always_within(one: Schedule, other: Schedule) -> bool:
    """Whether each window of `one` in a year lies in one window of `other`; false if a zone is unknown."""
    mine, theirs = _windows_of(one), _windows_of(other)
    place = 0
    for start, end in mine:
        while place < len(theirs) and theirs[place][1] < end:
            place += 1
        # The year's last windows may be cut off by its end.
        if place < len(theirs) and not theirs[place][0] <= start:
            return False
    return bool(mine) and bool(theirs)


def _windows_of(schedule: Schedule) -> tuple[tuple[float, float], ...]:
    return _windows(schedule.time_zone, schedule.days, schedule.start, schedule.end)


@lru_cache(maxsize=128)
def _windows(name: str, days: tuple[Day, ...], start: str, end: str) -> tuple[tuple[float, float], ...]:
    """Every window of the year as Unix seconds, in order."""
    where = zone(name)
    if where is None:
        return ()
    wanted = {list(Day).index(day) for day in days}
    found = []
    for number in range(_DAYS):
        day = _FIRST + timedelta(days=number)
        if day.weekday() in wanted:
            last = day if end > start else day + timedelta(days=1)
            found.append((_moment(day, start, where), _moment(last, end, where)))
    return tuple(found)


def _moment(day: date, clock: str, where: tzinfo) -> float:
    hour, minute = clock.split(":")
    return datetime(day.year, day.month, day.day, int(hour), int(minute), tzinfo=where).timestamp()
