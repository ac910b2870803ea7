"""What is told of a measurement that goes on."""

from __future__ import annotations

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
        clock.now += 50.0
        showing.done(25.0)
        clock.now += 70.0
        showing.say("more")
        clock.now += 200.0
        showing.say("late")

    assert ["starting", "2 min left  starting", "80 s left  more", "0 s left  late"] == [
        line.strip() for line in capture.get().splitlines()
    ]


def test_nothing_is_said_of_the_time_before_a_part_is_done(console: Console, clock: Clock) -> None:
    """A guess that no part has confirmed is none."""
    with console.capture() as capture, Showing(console, clock) as showing:
        showing.expect(100.0)
        clock.now += 40.0
        showing.say("starting [the engines]")

    assert "starting [the engines]" == capture.get().strip()


def test_a_start_says_nothing_of_the_pace(console: Console, clock: Clock) -> None:
    """It took 2 s instead of 45 s; the rest, half done after 60 s, still needs 60 s."""
    with console.capture() as capture, Showing(console, clock) as showing:
        showing.expect(145.0)
        clock.now += 2.0
        showing.started(45.0)
        showing.say("round 1 of 2")
        clock.now += 60.0
        showing.done(50.0)

    assert ["", "60 s left  round 1 of 2"] == [line.strip() for line in capture.get().splitlines()]


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
        clock.now += 30.0
        showing.done(25.0)
        showing.say("round 1 of 2")

    assert "90 s left" not in capture.get()
    assert "2 min left" in capture.get()
    assert "round 1 of 2" in capture.get()
