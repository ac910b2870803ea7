"""Which schedules hold at an instant, by the wall clock of each schedule's own place.

A window belongs to the day on which it starts; an end at or before its start is on the next day, so
that equal times are 24 hours.  The clock on the wall decides alone, also when it is changed: a time that
is skipped in spring is in no window, a window that starts in the skipped hour opens as soon as the clock
shows a later time, one that ends in it closes at the jump; an hour that is repeated in autumn counts both
times, so a window that starts or ends within it opens or closes twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo

from autoscaling.policy import Day, Schedule
from autoscaling.zones import zone

AHEAD_S = 8 * 86_400.0  # a week, and a day for windows that a change of the clock swallows
DAYS = tuple(Day)  # Monday first, as `datetime.weekday` counts


def active(schedules: Sequence[Schedule], wall: float) -> tuple[Schedule, ...]:
    """The schedules whose windows contain `wall` (Unix seconds), in their order.

    A zone that is not known here raises ValueError; `policy_checks` refuses such a file.
    """
    return tuple(schedule for schedule in schedules if _holds(schedule, wall))


def next_change(schedules: Sequence[Schedule], wall: float) -> float | None:
    """The first instant after `wall` at which the set of active schedules is another one.

    Unix seconds, exact to the minute; None when nothing changes within eight days.
    """
    if not schedules:
        return None
    now = [_holds(schedule, wall) for schedule in schedules]
    moments = {moment for schedule in schedules for moment in _moments(schedule, wall)}
    for moment in sorted(moments):
        if [_holds(schedule, moment) for schedule in schedules] != now:
            return moment
    return None


def _holds(schedule: Schedule, wall: float) -> bool:
    local = datetime.fromtimestamp(wall, _zone(schedule))
    start, end = time.fromisoformat(schedule.start), time.fromisoformat(schedule.end)
    clock = local.time()
    today = DAYS[local.weekday()] in schedule.days
    if start < end:
        return today and start <= clock < end
    yesterday = DAYS[local.weekday() - 1] in schedule.days
    return (today and clock >= start) or (yesterday and clock < end)


def _moments(schedule: Schedule, wall: float) -> Iterator[float]:
    """Every instant ahead at which the schedule may open or close: its times, and changes of the clock."""
    place = _zone(schedule)
    today = datetime.fromtimestamp(wall, place).date()
    found = list(_jumps(place, wall))
    for days in range(-1, 10):  # a day more on each side than eight days ahead can touch
        for text in {schedule.start, schedule.end}:
            local = datetime.combine(today + timedelta(days=days), time.fromisoformat(text), place)
            found += [local.timestamp(), local.replace(fold=1).timestamp()]
    yield from (moment for moment in found if wall < moment <= wall + AHEAD_S)


def _zone(schedule: Schedule) -> tzinfo:
    found = zone(schedule.time_zone)
    if found is None:
        raise ValueError(f"schedule {schedule.name}: no zone {schedule.time_zone} is known here")
    return found


def _jumps(place: tzinfo, wall: float) -> Iterator[float]:
    """The instants ahead at which the zone's clock is changed, to the minute."""

    def offset(minute: int) -> timedelta | None:
        return datetime.fromtimestamp(minute * 60, UTC).astimezone(place).utcoffset()

    first = int(wall // 60)
    for minute in range(first, first + int(AHEAD_S // 60), 60):  # no clock is changed twice in an hour
        if offset(minute) != offset(minute + 60):
            yield 60.0 * _first_other(minute, minute + 60, offset)


def _first_other(low: int, high: int, value: Callable[[int], timedelta | None]) -> int:
    """The first minute above `low` whose value differs from that of `low`; that of `high` does."""
    before = value(low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if value(middle) == before else (low, middle)
    return high
