"""Conditions of the status: true, false, or null while unknown."""

from __future__ import annotations

from typing import Any

import pytest

from app.conditions import at_fault, conditions
from autoscaling.types import Role

TYPES = [
    "SpeculativePoolServing",
    "PlainPoolServing",
    "ControllerReachable",
    "OneModel",
    "TakingRequests",
    "PolicyAccepted",
    "CapacityFree",
    "WithinBudget",
    "MovesOnTime",
    "StateKept",
    "ProfileStale",
    "OnePoolEnough",
]
FALSE_WHEN_WELL = {"ProfileStale", "OnePoolEnough"}
ANSWER = {"tpot_seconds": 0.05, "answer": "two_pools", "margin": 1.3}
PROFILE: dict[str, Any] = {
    "path": "/p.json",
    "state": "measured",
    "differences": [],
    "two_pools": ANSWER,
}
GOOD: dict[str, Any] = {
    "pools": {"plain": {"replicas": [{"model_fingerprint": "f"}]}},
    "policy": {"last_error": None},
    "hold": None,
    "budget": {"accelerators": 4, "used": 4, "surge": 0},
    "moves": [],
    "store_problem": None,
    "profile": PROFILE,
}
MOVE = {"id": "m7", "state": "done", "waiting_for": None}


def found(kind: str, *, stopping: bool = False, reachable: bool = True, **changes: Any) -> dict[str, Any]:
    """One condition of a service where all is well but for `changes`."""
    every = conditions(GOOD | changes, tuple(Role), stopping, reachable)
    (one,) = (item for item in every if item["type"] == kind)
    return one


def said(kind: str, **changes: Any) -> tuple[bool | None, str, str]:
    one = found(kind, **changes)
    return one["status"], one["reason"], one["message"]


def test_all_is_well() -> None:
    """Every condition is there once, none is at fault, and only information has words.

    All but two are true; all are in Kubernetes' shape.
    """
    every = conditions(GOOD, tuple(Role), stopping=False, reachable=True)
    assert TYPES == [item["type"] for item in every]
    for item in every:
        assert {"type", "status", "reason", "message", "since"} == set(item)
        kind = item["type"]
        assert (kind not in FALSE_WHEN_WELL, None) == (item["status"], item["since"])
        assert (kind == "OnePoolEnough") is bool(item["message"])
        assert not at_fault(kind, item["status"])
        assert item["reason"].isidentifier()


def test_before_the_controllers_first_word() -> None:
    """What only the controller knows is unknown, neither true nor false."""
    every = {item["type"]: item for item in conditions({}, (), stopping=False, reachable=False)}
    unknown = [kind for kind, item in every.items() if item["status"] is None]
    assert [
        "OneModel",
        "PolicyAccepted",
        "CapacityFree",
        "WithinBudget",
        "MovesOnTime",
        "StateKept",
        "ProfileStale",
        "OnePoolEnough",
    ] == unknown
    assert {("Unknown", "")} == {(every[kind]["reason"], every[kind]["message"]) for kind in unknown}


def test_a_pool_without_a_replica() -> None:
    """Only that pool's condition is false, and it says who serves its tier."""
    every = {item["type"]: item for item in conditions(GOOD, (Role.PLAIN,), stopping=False, reachable=True)}
    assert (False, True) == (every["SpeculativePoolServing"]["status"], every["PlainPoolServing"]["status"])
    assert every["SpeculativePoolServing"]["message"] == (
        "no replica of the speculative pool takes work; the other pool serves its tier"
    )


def test_no_controller_and_a_stopping_service() -> None:
    """Both say so."""
    assert (False, "NoAnswer") == said("ControllerReachable", reachable=False)[:2]
    assert (False, "Stopping") == said("TakingRequests", stopping=True)[:2]


def test_two_models() -> None:
    """While replicas differ, the minority waits."""
    pools = {
        role: {"replicas": [{"model_fingerprint": mark}]}
        for role, mark in (("speculative", "f"), ("plain", "g"))
    }
    assert (False, "Mixed", "replicas of the model that fewer have take no work") == said(
        "OneModel", pools=pools
    )
    assert (None, "Unknown", "") == said("OneModel", pools={"plain": {"replicas": []}})


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ({"message": "is 5", "line": 9, "field": "spec.budget.max"}, "line 9: spec.budget.max: is 5"),
        ({"message": "broken YAML", "line": 7, "field": None}, "line 7: broken YAML"),
        ({"message": "the file is gone", "line": None, "field": None}, "the file is gone"),
    ],
)
def test_a_refused_policy(error: dict[str, Any], words: str) -> None:
    """Case C10: line, field and reason, and that the last good one stays."""
    expected = f"the last good revision stays in force; the newest is refused: {words}"
    assert (False, "Refused", expected) == said("PolicyAccepted", policy={"last_error": error})


def test_a_hold() -> None:
    """Who holds and why."""
    hold = {"by": "operator", "reason": "launch"}
    assert (False, "Held", "operator: launch") == said("CapacityFree", hold=hold)


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        ({"accelerators": 4, "used": 4, "surge": 0}, True),
        ({"accelerators": 4, "used": 5, "surge": 1}, True),
        ({"accelerators": 4, "used": 5, "surge": 0}, False),
        ({"accelerators": 4, "used": 0, "surge": 0}, True),
        ({"accelerators": 4, "used": None, "surge": 0}, None),
        (None, None),
    ],
)
def test_the_budget(budget: dict[str, Any] | None, expected: bool | None) -> None:
    """What is used against budget and surge; unknown use is unknown."""
    assert expected is found("WithinBudget", budget=budget)["status"]


def test_above_the_budget_in_words() -> None:
    """Both numbers."""
    budget = {"accelerators": 4, "used": 5, "surge": 0}
    assert (False, "OverBudget", "5 accelerators are in use, the budget is 4") == said(
        "WithinBudget", budget=budget
    )


@pytest.mark.parametrize("state", ["draining", "starting", "done", "replaced"])
def test_moves_that_are_on_time(state: str) -> None:
    """Every state but one."""
    assert found("MovesOnTime", moves=[MOVE | {"state": state}])["status"] is True


def test_a_move_that_was_given_up() -> None:
    """Its id and what it waited for; an older one does not count."""
    late = MOVE | {"state": "timed_out", "waiting_for": "1 replica of plain to start"}
    assert (False, "TimedOut", "move m7 was given up; 1 replica of plain to start") == said(
        "MovesOnTime", moves=[late]
    )
    assert found("MovesOnTime", moves=[MOVE, late])["status"] is True


@pytest.mark.parametrize(
    ("speculative", "plain", "expected"),
    [
        ((3, 3, 0), (1, 1, 0), True),
        ((3, 2, 0), (1, 1, 0), False),
        ((3, 3, 0), (1, 1, 1), False),
        ((3, 3, 0), (1, None, None), False),
        ((None, 3, 0), (None, 1, 0), False),
    ],
)
def test_a_late_move_that_came_to_its_end(
    speculative: tuple[int | None, ...], plain: tuple[int | None, ...], expected: bool
) -> None:
    """True again once both pools run what they are meant to and nothing drains; unknown proves nothing."""
    pools = {
        role: dict(zip(("target", "running", "draining"), counts, strict=True)) | {"replicas": []}
        for role, counts in (("speculative", speculative), ("plain", plain))
    }
    late = MOVE | {"state": "timed_out", "waiting_for": "1 replica of plain to start"}
    assert expected is found("MovesOnTime", moves=[late], pools=pools)["status"]


def test_a_state_that_cannot_be_written() -> None:
    """The store's own words."""
    assert (False, "CannotWrite", "the disk is full") == said("StateKept", store_problem="the disk is full")


def test_a_stale_profile() -> None:
    """True is bad here: what differs, what follows and what to do; also while a bad edit hides it."""
    for state in ("stale", "invalid"):
        profile = PROFILE | {"state": state, "differences": ["device was cpu, the plain pool has H200"]}
        assert said("ProfileStale", profile=profile) == (
            True,
            "Differs",
            "/p.json: device was cpu, the plain pool has H200: limits are unmeasured and predictions do "
            "without it until it fits; run `twinpool bench` again",
        )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (False, "Fits", "")),
        ({"state": "none", "differences": None}, (False, "NoProfile", "")),
        ({"state": None, "differences": None}, (None, "Unknown", "")),
        ({"state": "invalid", "differences": None}, (None, "Unknown", "")),
    ],
)
def test_a_profile_that_is_not_stale(changes: dict[str, Any], expected: tuple[bool | None, str, str]) -> None:
    """It fits, or there is none, or nobody knows."""
    assert expected == said("ProfileStale", profile=PROFILE | changes)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            ANSWER,
            (
                False,
                "TwoPools",
                "by the profile the best is two pools at 0.05 s per token, 1.3 times the next best",
            ),
        ),
        (
            ANSWER | {"answer": "one_plain_pool", "margin": None},
            (True, "OnePool", "by the profile the best is one plain pool at 0.05 s per token"),
        ),
        (
            ANSWER | {"answer": "one_speculative_pool", "margin": 1.0},
            (
                True,
                "OnePool",
                "by the profile the best is one speculative pool at 0.05 s per token, 1 times the next best",
            ),
        ),
        (None, (None, "Unknown", "")),
    ],
)
def test_whether_one_pool_is_enough(
    answer: dict[str, Any] | None, expected: tuple[bool | None, str, str]
) -> None:
    """Which configuration and by how much; null where the profile does not say."""
    assert expected == said("OnePoolEnough", profile=PROFILE | {"two_pools": answer})


@pytest.mark.parametrize(
    ("kind", "faults"),
    [
        ("StateKept", [False, True, False]),
        ("ProfileStale", [True, False, False]),
        ("OnePoolEnough", [False, False, False]),
        ("OfAnotherVersion", [False, True, False]),
    ],
)
def test_what_is_a_fault(kind: str, faults: list[bool]) -> None:
    """False, but for a condition that is bad when it is true and for information; unknown never is."""
    assert faults == [at_fault(kind, status) for status in (True, False, None)]
