"""What is told of a measurement that goes on."""

from __future__ import annotations

import io
import threading
import time

import pytest
from rich.console import Console

from app.bench.progress import Showing


class Clock:
    """A time that stands until it is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """The measurement's."""
    return Clock()


def counted(showing: Showing, clock: Clock, took_s: float, expected_s: float) -> None:
    """Three parts done, alike, the time after the second."""
    showing.done(expected_s / 3)
    showing.done(expected_s / 3)
    clock.now += took_s
    showing.done(expected_s / 3)


@pytest.fixture
def console() -> Console:
    """No terminal."""
    return Console(width=100, color_system=None, force_terminal=False)


def test_without_a_terminal_a_line_every_15_s(console: Console, clock: Clock) -> None:
    """The first one at once; what is said between two lines is not told."""
    with console.capture() as capture, Showing(console, clock) as showing:
        for seconds in range(31):
            clock.now = 1000.0 + seconds
            showing.say(f"at {seconds} s")

    assert ["at 0 s", "at 15 s", "at 30 s"] == [line.strip() for line in capture.get().splitlines()]


def test_the_time_left_follows_what_the_done_parts_took(console: Console, clock: Clock) -> None:
    """A quarter was expected to take 25 s and took 50 s, so 150 s are left; then they run down."""
    with console.capture() as capture, Showing(console, clock) as showing:
        showing.expect(100.0)
        showing.say("starting")
        counted(showing, clock, 50.0, 25.0)
        clock.now += 70.0
        showing.say("more")
        clock.now += 200.0
        showing.say("late")

    assert ["starting", "2 min left  starting", "80 s left  more", "0 s left  late"] == [
        line.strip() for line in capture.get().splitlines()
    ]


def test_nothing_is_said_of_the_time_before_three_parts_are_done(console: Console, clock: Clock) -> None:
    """A guess by one small batch, or by none, is off by a factor of ten."""
    with console.capture() as capture, Showing(console, clock) as showing:
        showing.expect(100.0)
        showing.say("starting [the engines]")
        for _ in range(3):
            clock.now += 16.0
            showing.done(1.0)

    assert [
        "starting [the engines]",
        "starting [the engines]",
        "starting [the engines]",
        "26 min left  starting [the engines]",
    ] == [line.strip() for line in capture.get().splitlines()]


def test_a_start_says_nothing_of_the_pace(console: Console, clock: Clock) -> None:
    """It took 2 s instead of 45 s; the rest, half done after 60 s, needs 60 s more, and another start 45."""
    with console.capture() as capture, Showing(console, clock) as showing:
        showing.expect(100.0, 90.0)
        clock.now += 2.0
        showing.started(45.0)
        showing.say("round 1 of 2")
        counted(showing, clock, 60.0, 50.0)
        clock.now += 45.0
        showing.started(45.0)

    assert ["", "2 min left  round 1 of 2", "60 s left  round 1 of 2"] == [
        line.strip() for line in capture.get().splitlines()
    ]


def test_no_more_is_left_than_the_budget_allows(console: Console, clock: Clock) -> None:
    """Three times as slow as expected: rounds will be left out, but the first two are made anyway."""
    with console.capture() as capture, Showing(console, clock) as showing:
        showing.expect(200.0)
        showing.within(240.0, 60.0)
        showing.say("round 1")
        counted(showing, clock, 60.0, 20.0)
        clock.now += 15.0
        showing.within(100.0, 60.0)
        showing.say("round 2")

    assert ["round 1", "3 min left  round 1", "2 min left  round 2"] == [
        line.strip() for line in capture.get().splitlines()
    ]


def test_what_will_not_be_done_is_not_counted_as_done(console: Console, clock: Clock) -> None:
    """Else a cell without room, done in no time, would make the others look fast."""
    with console.capture() as capture, Showing(console, clock) as showing:
        showing.expect(120.0)
        showing.say("round 1")
        counted(showing, clock, 50.0, 50.0)
        clock.now += 15.0
        showing.drop(20.0)

    assert ["round 1", "70 s left  round 1", "35 s left  round 1"] == [
        line.strip() for line in capture.get().splitlines()
    ]


def test_a_start_is_told_with_its_time(console: Console, clock: Clock) -> None:
    """And with what is usual; the next status has none."""
    with console.capture() as capture, Showing(console, clock) as showing:
        showing.wait("starting the engines", "the embedded model takes about 45 s")
        clock.now += 31.0
        showing.started(45.0)
        clock.now += 15.0
        showing.say("warming up")

    assert [
        "starting the engines: 0 s, the embedded model takes about 45 s",
        "starting the engines: 31 s, the embedded model takes about 45 s",
        "warming up",
    ] == [line.strip() for line in capture.get().splitlines()]


def test_a_note_stays(console: Console, clock: Clock) -> None:
    """Whatever was told within the last 15 s."""
    with console.capture() as capture, Showing(console, clock) as showing:
        showing.say("starting")
        showing.note("the plain engine serves after 3 s")

    assert "the plain engine serves after 3 s" in capture.get().splitlines()


def test_on_a_terminal_it_is_a_bar(clock: Clock) -> None:
    """That goes when the work ends."""
    console = Console(width=100, color_system=None, force_terminal=True)
    with console.capture() as capture, Showing(console, clock) as showing:
        showing.expect(100.0)
        counted(showing, clock, 30.0, 25.0)
        showing.say("round 1 of 2")

    assert "90 s left" not in capture.get()
    assert "2 min left" in capture.get()
    assert "round 1 of 2" in capture.get()


def test_it_goes_on_telling_while_the_caller_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a thread, which ends with the block."""
    monkeypatch.setattr("app.bench.progress.TICK_S", 0.01)
    monkeypatch.setattr("app.bench.progress.LINE_EVERY_S", 0.02)
    told = io.StringIO()
    with Showing(Console(file=told)) as showing, showing.beating():
        showing.say("computing")
        while told.getvalue().count("computing") < 3:
            time.sleep(0.01)

    assert "progress" not in {thread.name for thread in threading.enumerate()}
