"""Answers of another program at the service's address, which no part of `twinpool policy apply` may trust."""

from __future__ import annotations

from typing import Any

import pytest

from app.cli import policy_running
from app.cli.client import NotReachableError
from app.cli.policy_await import Outcome, Waiting, wait

ODD: list[Any] = [{}, {"status": "ok"}, {"path": "x", "active_revision": 1, "history": None}]


@pytest.mark.parametrize("answer", ODD)
def test_what_runs_is_not_told_by_another_program(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object without our fields is no answer of twinpool."""
    monkeypatch.setattr(policy_running, "get", lambda _service, _path: answer)

    with pytest.raises(NotReachableError, match="not twinpool's"):
        policy_running.running("http://127.0.0.1:1")


@pytest.mark.parametrize("answer", ODD)
def test_waiting_goes_on_past_an_odd_answer(answer: Any) -> None:
    """After the write it is asked again until the time is over, and then what was seen is said."""
    found, seen = wait(lambda: answer, "sha", Waiting(0.0), lambda _words: None)

    assert (Outcome.NOT_SEEN, "the answer is not twinpool's") == (found.outcome, seen)
