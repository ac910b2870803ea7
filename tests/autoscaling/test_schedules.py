"""Which schedules hold at an instant, also where the clock is changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaling.policy import Schedule
from autoscaling.schedules import active, next_change

BERLIN, NEW_YORK, UTC_ZONE = "Europe/Berlin", "America/New_York", "UTC"
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MINUTE = 60
WEEK = 7 * 24 * 60  # minutes
# A Monday that begins a week in which a clock is changed on the Sunday.
CHANGES = {
    "Berlin in spring": (BERLIN, datetime(2027, 3, 22, tzinfo=UTC)),  # 28 March, 02:00 -> 03:00
    "Berlin in autumn": (BERLIN, datetime(2027, 10, 25, tzinfo=UTC)),  # 31 October, 03:00 -> 02:00
    "New York in spring": (NEW_YORK, datetime(2027, 3, 8, tzinfo=UTC)),  # 14 March
    "New York in autumn": (NEW_YORK, datetime(2027, 11, 1, tzinfo=UTC)),  # 7 November
}


def window(start: str, end: str, days: str = "Sun", zone: str = BERLIN, name: str = "window") -> Schedule:
    listed = ", ".join(f'"{day}"' for day in days.split())
    return Schedule.model_validate_json(
        f'{{"name": "{name}", "timeZone": "{zone}", "days": [{listed}], "start": "{start}", "end": "{end}",'
        ' "pools": {"plain": {"minReplicas": 2}}}'
    )


def wall(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def open_between(schedule: Schedule, start: str, end: str) -> list[str]:
    """The instants (UTC) at which the window opens or closes, found minute by minute, as `HH:MM`."""
    found, before = [], None
    for moment in range(int(wall(start)), int(wall(end)), MINUTE):
        now = active([schedule], moment) != ()
        if before is not None and now != before:
            found.append(f"{'open' if now else 'shut'} {datetime.fromtimestamp(moment, UTC):%H:%M}")
        before = now
    return found


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("2027-01-15T06:59:59Z", False),  # 07:59:59 in Berlin, a Friday
        ("2027-01-15T07:00:00Z", True),
        ("2027-01-15T17:59:59Z", True),
        ("2027-01-15T18:00:00Z", False),
        ("2027-01-16T10:00:00Z", False),  # Saturday
        ("2027-07-16T06:00:00Z", True),  # 08:00 in summer
        ("2027-07-16T17:00:00Z", False),
    ],
)
def test_a_window_holds_by_the_places_own_clock(moment: str, expected: bool) -> None:
    """The start is inside, the end is outside, and summer time moves both."""
    schedule = window("08:00", "19:00", "Mon Tue Wed Thu Fri")
    assert ((schedule,) if expected else ()) == active([schedule], wall(moment))


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("2027-01-15T21:59:00Z", False),
        ("2027-01-15T22:00:00Z", True),  # Friday night
        ("2027-01-16T05:59:59Z", True),  # Saturday morning, of Friday's window
        ("2027-01-16T06:00:00Z", False),
        ("2027-01-16T22:00:00Z", False),  # Saturday night is not listed
        ("2027-01-15T05:00:00Z", False),  # Friday morning is of Thursday's window
    ],
)
def test_a_window_over_midnight_belongs_to_the_day_on_which_it_starts(moment: str, expected: bool) -> None:
    """Friday's 22:00 to 06:00 holds on Saturday morning and not on Friday morning."""
    schedule = window("22:00", "06:00", "Fri", UTC_ZONE)
    assert expected == (active([schedule], wall(moment)) != ())


def test_equal_times_are_a_whole_day() -> None:
    """From 09:00 to 09:00 of the next day, or from midnight to midnight."""
    assert open_between(
        window("09:00", "09:00", "Fri", UTC_ZONE), "2027-01-14T00:00Z", "2027-01-18T00:00Z"
    ) == [
        "open 09:00",
        "shut 09:00",
    ]
    assert open_between(
        window("00:00", "00:00", "Fri", UTC_ZONE), "2027-01-14T00:00Z", "2027-01-18T00:00Z"
    ) == [
        "open 00:00",
        "shut 00:00",
    ]


def test_schedules_keep_their_order() -> None:
    """Those that hold come in the file's order, which is their strength."""
    first, second, third = (
        window(start, "19:00", "Fri", UTC_ZONE, name)
        for start, name in (("08:00", "a"), ("12:00", "b"), ("09:00", "c"))
    )
    assert active([first, second, third], wall("2027-01-15T10:00Z")) == (first, third)


# On 2027-03-28 the clock of Berlin jumps from 02:00 to 03:00 at 01:00 UTC.
@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("01:00", "05:00", ["open 00:00", "shut 03:00"]),  # three hours long
        ("02:30", "05:00", ["open 01:00", "shut 03:00"]),  # opens with the jump
        ("01:00", "02:30", ["open 00:00", "shut 01:00"]),  # closes with the jump
        ("02:15", "02:45", []),  # that night there is no such time
        ("03:00", "04:00", ["open 01:00", "shut 02:00"]),
    ],
)
def test_a_skipped_hour(start: str, end: str, expected: list[str]) -> None:
    """In spring a time that no clock shows is in no window."""
    assert expected == open_between(window(start, end), "2027-03-27T23:00Z", "2027-03-28T12:00Z")


# On 2027-10-31 the clock of Berlin goes from 03:00 back to 02:00 at 01:00 UTC.
@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("01:00", "05:00", ["open 23:00", "shut 04:00"]),  # five hours long
        ("02:30", "05:00", ["open 00:30", "shut 01:00", "open 01:30", "shut 04:00"]),
        ("01:00", "02:30", ["open 23:00", "shut 00:30", "open 01:00", "shut 01:30"]),
        ("02:15", "02:45", ["open 00:15", "shut 00:45", "open 01:15", "shut 01:45"]),
        ("02:00", "03:00", ["open 00:00", "shut 02:00"]),  # both times, two hours
    ],
)
def test_a_repeated_hour(start: str, end: str, expected: list[str]) -> None:
    """In autumn an hour that the clock shows twice counts both times."""
    assert expected == open_between(window(start, end), "2027-10-30T22:01Z", "2027-10-31T12:00Z")


@pytest.mark.parametrize(
    ("zone", "before", "expected"),
    [
        (BERLIN, "2027-03-27T12:00Z", ["open 21:00", "shut 04:00"]),  # seven hours
        (BERLIN, "2027-10-30T12:00Z", ["open 20:00", "shut 05:00"]),  # nine
        (NEW_YORK, "2027-03-13T12:00Z", ["open 03:00", "shut 10:00"]),
        (NEW_YORK, "2027-11-06T12:00Z", ["open 02:00", "shut 11:00"]),
    ],
)
def test_a_night_across_the_change_of_the_clock(zone: str, before: str, expected: list[str]) -> None:
    """Saturday 22:00 to Sunday 06:00 by the clock is an hour shorter in spring and longer in autumn."""
    after = datetime.fromisoformat(before) + timedelta(days=1)
    assert expected == open_between(window("22:00", "06:00", "Sat", zone), before, after.isoformat())


times = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.sampled_from([0, 1, 15, 30, 59]))
day_sets = st.lists(st.sampled_from(DAYS), min_size=1, unique=True).map(" ".join)
zones = st.sampled_from([BERLIN, NEW_YORK])
windows = st.builds(window, times, times, day_sets, zones)


@pytest.mark.parametrize("week", CHANGES)
@given(start=times, end=times, days=day_sets)
@settings(max_examples=8, deadline=None)
def test_membership_is_what_the_clock_on_the_wall_says(week: str, start: str, end: str, days: str) -> None:
    """At every minute of a week with a change: the shown day and time decide, and nothing else."""
    zone, monday = CHANGES[week]
    schedule = window(start, end, days, zone)
    listed = set(days.split())
    place = ZoneInfo(zone)
    for minute in range(WEEK + 24 * 60):
        moment = monday.timestamp() + minute * MINUTE
        local = datetime.fromtimestamp(moment, place)
        shown, today = f"{local:%H:%M}", DAYS[local.weekday()]
        if start < end:
            expected = today in listed and start <= shown < end
        else:
            yesterday = DAYS[local.weekday() - 1]
            expected = (today in listed and shown >= start) or (yesterday in listed and shown < end)
        assert expected == (active([schedule], moment) != ()), f"{local}"


@pytest.mark.parametrize(
    ("start", "end", "now", "expected"),
    [
        ("08:00", "19:00", "2027-01-15T10:00:30Z", "2027-01-17T07:00Z"),
        ("08:00", "19:00", "2027-01-17T07:00:00Z", "2027-01-17T18:00Z"),
        ("08:00", "19:00", "2027-01-17T18:00:00Z", "2027-01-24T07:00Z"),
        ("02:30", "05:00", "2027-03-27T12:00:00Z", "2027-03-28T01:00Z"),  # opens with the jump
        ("02:30", "05:00", "2027-10-31T00:59:00Z", "2027-10-31T01:00Z"),  # closes with the step back
        ("02:15", "02:45", "2027-03-27T12:00:00Z", "2027-04-04T00:15Z"),  # the next night that has it
    ],
)
def test_the_next_change(start: str, end: str, now: str, expected: str) -> None:
    """The first instant at which a window opens or closes, changes of the clock included."""
    assert wall(expected) == next_change([window(start, end)], wall(now))


def test_no_change_ahead_is_none() -> None:
    """Without schedules, with one that always holds, and with one that is more than eight days off."""
    assert next_change([], 0.0) is None
    assert next_change([window("00:00", "00:00", " ".join(DAYS))], wall("2027-03-27T12:00Z")) is None
    swallowed = window("02:15", "02:45")
    assert next_change([swallowed], wall("2027-03-21T02:00Z")) is None
    assert active([window("05:00", "05:00", " ".join(DAYS))], wall("2027-03-28T01:30Z")) != ()


@pytest.mark.parametrize("week", CHANGES)
@given(schedules=st.lists(windows, min_size=1, max_size=3), offset=st.integers(0, WEEK * MINUTE))
@settings(max_examples=15, deadline=None)
def test_the_next_change_agrees_with_membership(week: str, schedules: list[Schedule], offset: int) -> None:
    """Up to it, minute by minute, the set stays what it is; at it, the set is another one."""
    now = CHANGES[week][1].timestamp() + offset
    found = next_change(schedules, now)
    before = active(schedules, now)
    end = now + 8 * 24 * 3600 if found is None else found
    minutes = range(int(now // MINUTE + 1) * MINUTE, int(end), MINUTE)
    assert [moment for moment in minutes if active(schedules, moment) != before] == []
    assert found is None or (active(schedules, found) != before and found % MINUTE == 0)
