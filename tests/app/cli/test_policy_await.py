"""The wait for the controller's word: which revision is the text's, and what is said until then."""

from __future__ import annotations

from typing import Any

import pytest

from app.cli.client import NotReachableError
from app.cli.policy_await import Outcome, Verdict, Waiting, verdict, wait
from autoscaling.policy_file import Problem

OURS, THEIRS = "a" * 64, "b" * 64


def found(*history: tuple[int, str, str], error: dict[str, Any] | None = None) -> dict[str, Any]:
    """What the service says, oldest revision first."""
    return {
        "seen_revision": history[-1][0] if history else None,
        "active_revision": 1 if history else None,
        "last_error": error,
        "history": [
            {"revision": revision, "sha": sha, "state": state, "at": "x", "message": "line 9: m"}
            for revision, sha, state in history
        ],
    }


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ((), None),
        (((1, THEIRS, "active"),), None),
        (((1, THEIRS, "superseded"), (2, OURS, "active")), Verdict(Outcome.ACTIVE, 2)),
        (((1, THEIRS, "active"), (2, OURS, "shadow")), Verdict(Outcome.SHADOW, 2)),
        (((1, OURS, "active"), (2, THEIRS, "refused")), None),
        (((1, THEIRS, "active"), (2, OURS, "superseded")), None),
    ],
)
def test_the_newest_revision_tells(
    history: tuple[tuple[int, str, str], ...], expected: Verdict | None
) -> None:
    """Only a newest revision with the text's hash is its verdict; an older one may be of another edit."""
    assert expected == verdict(found(*history), OURS)
    assert expected == verdict(found(*history) | {"history": found(*history)["history"][::-1]}, OURS)


def test_a_refusal_has_its_place() -> None:
    """Line and field where the service knows them, and all its words."""
    said = found(
        (1, THEIRS, "active"), (2, OURS, "refused"), error={"message": "m", "line": 9, "field": "spec.x"}
    )

    assert Verdict(Outcome.REFUSED, 2, "line 9: m", Problem(9, 1, "spec.x", "m")) == verdict(said, OURS)
    unplaced = found((2, OURS, "refused"), error={"message": "m", "line": None, "field": None})
    assert Verdict(Outcome.REFUSED, 2, "line 9: m") == verdict(unplaced, OURS)


def test_a_silent_service_is_asked_again() -> None:
    """A controller that restarts answers nothing for a while; its word counts when it comes."""
    answers: list[Any] = [NotReachableError("http://x", "refused"), found((1, THEIRS, "active"))]
    answers.append(found((1, THEIRS, "superseded"), (2, OURS, "active")))
    now: list[float] = [0.0]
    said: list[str] = []

    def ask() -> dict[str, Any]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    def rest(seconds: float) -> None:
        now[0] += seconds

    told, _ = wait(ask, OURS, Waiting(90.0, lambda: now[0], rest), said.append)

    assert Verdict(Outcome.ACTIVE, 2) == told
    assert ["0s of 1m30s: no answer from http://x: refused", "its newest revision is 1"] == [
        said[0].removeprefix("waiting for the controller, "),
        said[1].partition(": ")[2].partition(" (")[0],
    ]


def test_the_limit_ends_the_wait() -> None:
    """Asked once more at the limit, and not after it."""
    now, asked = [0.0], []

    def ask() -> dict[str, Any]:
        asked.append(now[0])
        return found((1, THEIRS, "active"))

    def rest(seconds: float) -> None:
        now[0] += seconds

    told, seen = wait(ask, OURS, Waiting(2.5, lambda: now[0], rest), lambda _: None)

    assert Outcome.NOT_SEEN == told.outcome
    assert [0.0, 1.0, 2.0, 2.5] == asked
    assert f"its newest revision is 1 (sha {THEIRS[:12]}), active is 1" == seen
