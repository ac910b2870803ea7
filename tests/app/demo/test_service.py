"""A service of the demo's own, with a small program in its place: followed, and stopped whatever happens."""

from __future__ import annotations

import sys

import pytest

from app.demo.service import NotStartedError, running, serve_command

READY = """
import signal, sys
def stop(*_):
    print("drained", flush=True)
    sys.exit(0)
signal.signal(signal.SIGINT, stop)
print("loading", file=sys.stderr)
print("ready after 3 s, pid 1", file=sys.stderr, flush=True)
while True:
    signal.pause()
"""


def program(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_its_words_are_passed_on_until_it_is_ready() -> None:
    """And then it is asked to stop as by Ctrl-C."""
    said: list[str] = []
    with running(program(READY), said.append):
        assert ["loading", "ready after 3 s, pid 1"] == said

    assert "stopping the demo's own service" == said[-1]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_it_is_stopped_whatever_ends_the_demo(error: type[BaseException]) -> None:
    """A failure and Ctrl-C alike; both go on afterwards."""
    said: list[str] = []
    with pytest.raises(error), running(program(READY), said.append):
        raise error

    assert "stopping the demo's own service" == said[-1]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            "it ended with 1: error: port 8000 is taken",
            "sys.exit('error: port 8000 is taken\\nmend: end it')",
        ),
        ("it ended with 3: loading", "print('loading', file=sys.stderr); sys.exit(3)"),
        ("it ended with 0: it said nothing", "pass"),
    ],
)
def test_a_start_that_fails_says_why(words: str, text: str) -> None:
    """By its own error line where there is one."""
    with pytest.raises(NotStartedError) as found, running(program(f"import sys; {text}"), lambda _line: None):
        pass

    assert words == str(found.value)


def test_it_leaves_nothing_behind() -> None:
    """No state folder, and a port of its own."""
    assert ["serve", "--engine", "simulated", "--port", "8123", "--state-dir", "none"] == serve_command(
        "simulated", 8123
    )[3:]
