"""The parts of a policy that ingresses obey: bounds, words, warnings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from autoscaling.policy_file import read_policy
from autoscaling.routing_rules import RoutingRules
from autoscaling.types import Tier
from tests.autoscaling.good_policy import TREE, policy, put


def read(changes: dict[str, Any]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Problems and warnings of the good policy with these changes; YAML takes JSON."""
    tree = json.loads(json.dumps(TREE))
    for path, value in changes.items():
        put(tree, path, value)
    found = read_policy(json.dumps(tree, indent=2))
    return (
        [(one.field, one.message) for one in found.problems],
        [(one.field, one.message) for one in found.warnings],
    )


def test_the_defaults_are_those_of_the_rules() -> None:
    """What the ingresses do without a controller's word is what a policy means that says nothing."""
    admission, rules = policy().spec.admission, RoutingRules()
    for tier, waiting in (
        (Tier.INTERACTIVE, admission.interactive),
        (Tier.STANDARD, admission.standard),
        (Tier.BATCH, admission.batch),
    ):
        assert (rules.tiers[tier].deadline_s, rules.tiers[tier].max_waiting) == (
            waiting.deadline_seconds,
            waiting.max_waiting,
        )
    assert rules.batch_share == admission.batch_share


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.admission.batch.deadlineSeconds", 0.5),
        ("spec.admission.batch.deadlineSeconds", 3600),
        ("spec.admission.batch.maxWaiting", 0),
        ("spec.admission.batch.maxWaiting", 1_000_000),
        ("spec.admission.batchShare", 0.01),
        ("spec.admission.batchShare", 0.5),
        ("spec.backfill.reserve", 0),
        ("spec.backfill.reserve", 64),
        ("spec.backfill.maxResidenceSeconds", 0.5),
        ("spec.workload.classify", False),
    ],
)
def test_what_may_be_said(path: str, value: Any) -> None:
    """The bounds are inside."""
    assert ([], []) == read({path: value})


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("spec.admission.batch.deadlineSeconds", -1, "must be at least 0, given -1"),
        ("spec.admission.batch.deadlineSeconds", 3601, "is in seconds, at most 3600, given 3601"),
        (
            "spec.admission.interactive.deadlineSeconds",
            "5s",
            "must be a number, given the text '5s'; write seconds as a plain number: 5",
        ),
        ("spec.admission.batch.maxWaiting", 1_000_001, "must be at most 1000000, given 1000001"),
        ("spec.admission.batch.maxWaiting", 1.5, "must be a whole number, given the number 1.5"),
        ("spec.admission.batchShare", 10, "must be at most 1, given 10; it is a share: write 0.1"),
        ("spec.backfill.reserve", -1, "must be at least 0, given -1"),
        ("spec.backfill.maxResidenceSeconds", 0, "must be more than 0, given 0"),
        (
            "spec.workload.classify",
            "yes",
            "must be true or false, given the text 'yes'; write true without quotes",
        ),
        ("spec.backfill.enabled", 0, "must be true or false, given the number 0"),
        ("spec.backfill.reserved", 2, "there is no such field; did you mean reserve?"),
        ("spec.admission.premium", {}, "there is no such field; known here: interactive, standard, "),
    ],
)
def test_what_may_not_be_said(path: str, value: Any, message: str) -> None:
    """Each at its field, with what was given and what to write."""
    ((field, words),) = read({path: value})[0]
    assert path == field
    assert words.startswith(message)


def test_a_wait_longer_than_the_promise_is_doubted() -> None:
    """Of interactive requests, when the file says both; a default is nobody's word."""
    promised = {"spec.objectives.interactive.ttftSeconds": 1.0}
    longer = promised | {"spec.admission.interactive.deadlineSeconds": 2}
    assert [
        (
            "spec.admission.interactive.deadlineSeconds",
            "is 2, longer than ttftSeconds 1 of interactive: a request that waits so long has missed its "
            "objective before it begins",
        )
    ] == read(longer)[1]
    assert [] == read(promised)[1]
    assert [] == read(promised | {"spec.admission.interactive.deadlineSeconds": 1})[1]
    assert [] == read({"spec.admission.interactive.deadlineSeconds": 60})[1]


@pytest.mark.parametrize(
    ("reserve", "expected"),
    [
        (
            4,
            (
                "spec.backfill.reserve",
                "is 4, not below softInflight 4 of speculative: "
                "no standard or batch request ever goes to the speculative pool",
            ),
        ),
        (3, None),
    ],
)
def test_a_reserve_of_everything_is_doubted(reserve: int, expected: tuple[str, str] | None) -> None:
    """Nothing is left above it."""
    found = read({"spec.backfill.reserve": reserve, "spec.pools.speculative.limits.softInflight": 4})[1]
    assert ([] if expected is None else [expected]) == found


def test_a_limit_below_the_default_reserve_is_doubted() -> None:
    """At the limit, which is what the file says."""
    assert [
        (
            "spec.pools.speculative.limits.softInflight",
            "is 2, and backfill.reserve is 2 by default: "
            "no standard or batch request ever goes to the speculative pool",
        )
    ] == read({"spec.pools.speculative.limits.softInflight": 2})[1]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            "spec.admission.batchShare",
            0,
            "is 0: waiting batch requests may never come to their turn while others wait",
        ),
        (
            "spec.admission.batchShare",
            0.51,
            "is 0.51, more than 0.5: waiting batch requests come before others",
        ),
        (
            "spec.admission.interactive.deadlineSeconds",
            0,
            "is 0: no interactive request ever waits, and each that finds no room is refused at once",
        ),
        (
            "spec.admission.standard.deadlineSeconds",
            0,
            "is 0: no standard request ever waits, and each that finds no room is refused at once",
        ),
        (
            "spec.admission.batch.deadlineSeconds",
            0,
            "is 0: no batch request ever waits, and each that finds no room is refused at once",
        ),
        (
            "spec.backfill.reserve",
            65,
            "is 65, more than 64: of a replica that takes no more at once, "
            "no standard or batch request ever goes to the speculative pool",
        ),
    ],
)
def test_a_value_that_undoes_its_guard_is_doubted(path: str, value: float, message: str) -> None:
    """It may be said, and is hardly meant."""
    assert ([], [(path, message)]) == read({path: value})


def test_a_large_reserve_below_a_larger_limit_is_doubted() -> None:
    """A limit that is never reached leaves nothing above the reserve, either."""
    found = read({"spec.backfill.reserve": 65, "spec.pools.speculative.limits.softInflight": 100})[1]
    assert ["spec.backfill.reserve"] == [field for field, _ in found]
