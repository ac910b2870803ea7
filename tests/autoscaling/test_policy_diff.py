"""What differs between two policies, and what the difference does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.policy import CapacityPolicy
from autoscaling.policy_diff import Difference, differences, render
from autoscaling.policy_effects import WORDS, words
from autoscaling.policy_fields import fields
from tests.autoscaling.good_policy import override, policy, schedule


def only(old: CapacityPolicy, new: CapacityPolicy) -> Difference:
    (found,) = differences(old, new)
    return found


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"spec.mode": "enforce"},
        {"spec.budget.min": 8},
        {"spec.behavior.cooldownSeconds": 60.0},
        {"spec.behavior": {"scaleDown": {"stabilizationWindowSeconds": 300}}},
        {"spec.pools.plain.role": "plain"},
        {"spec.pools.plain.limits": {}},
        {"spec.schedules": []},
        {"metadata.annotations": {}},
        {"spec.guardrails.allowLargeChange": None},
    ],
)
def test_a_default_that_is_written_out_is_no_difference(changes: dict[str, Any]) -> None:
    """In both directions."""
    assert differences(policy(), policy(changes)) == ()
    assert differences(policy(changes), policy()) == ()


def test_another_spelling_of_the_same_is_no_difference() -> None:
    """The order of days, a day twice, and the zone of a time."""
    one = policy(
        {
            "spec.schedules": [schedule("night", days=["Mon", "Tue"])],
            "spec.overrides": [override("launch", "plain", replicas=3)],
        }
    )
    other = policy(
        {
            "spec.schedules": [schedule("night", days=["Tue", "Mon", "Tue"])],
            "spec.overrides": [
                override("launch", "plain", replicas=3) | {"until": "2027-03-01T13:00:00+01:00"}
            ],
        }
    )
    assert differences(one, other) == ()


@pytest.mark.parametrize(
    ("path", "old", "new", "effect"),
    [
        (
            "spec.pools.plain.maxReplicas",
            7,
            5,
            "lowers the most that plain may have: up to 2 replicas may drain",
        ),
        (
            "spec.pools.plain.maxReplicas",
            7,
            8,
            "raises the most that plain may have, by 1 replica; no effect on running replicas",
        ),
        (
            "spec.pools.speculative.minReplicas",
            1,
            2,
            "raises the least that speculative has: up to 1 replica may move to it, at the next tick",
        ),
        (
            "spec.pools.plain.minReplicas",
            2,
            0,
            "lowers the least that plain has, by 2 replicas; no effect on running replicas until the other "
            "pool is short",
        ),
        ("spec.budget.max", 8, 5, "lowers the budget: replicas on up to 3 accelerators may drain"),
        ("spec.budget.max", 8, 9, "raises the budget by 1 accelerator; acts at the next tick"),
        (
            "spec.budget.min",
            8,
            6,
            "lowers what is kept assigned by 2 accelerators: replicas that nobody needs may drain; "
            "acts at the next tick",
        ),
        ("spec.budget.min", 6, 7, "raises what is kept assigned by 1 accelerator; acts at the next tick"),
        (
            "spec.pools.plain.acceleratorsPerReplica",
            1,
            2,
            "is refused by a running service unless its pools were set up so: change the settings first",
        ),
        ("spec.mode", "enforce", "hold", "acts at the next tick: targets stay as they are"),
        ("spec.mode", "hold", "enforce", "acts at the next tick: this revision moves capacity"),
        (
            "spec.mode",
            "enforce",
            "shadow",
            "this revision is only recorded; the last enforced one keeps acting",
        ),
        ("metadata.name", "good", "better", "no effect on running replicas"),
        ("metadata.annotations", {}, {"change": "7"}, "no effect on running replicas"),
        (
            "spec.bootstrap",
            None,
            {"speculative": 1, "plain": 2},
            "no effect on running replicas: only a new application starts from it",
        ),
        (
            "spec.pools.plain.limits.softInflight",
            None,
            4,
            "acts at once on running replicas, without a restart",
        ),
        (
            "spec.behavior.cooldownSeconds",
            60.0,
            90.0,
            "acts at the next tick; no effect on running replicas until a pool is short",
        ),
        (
            "spec.guardrails.maxStepReplicas",
            1,
            2,
            "acts with the next move; no effect on running replicas",
        ),
        ("spec.overload.retryAfterSeconds", 2, 5, "acts on the next request that finds no room"),
        ("spec.workload.classify", True, False, "acts on the next requests, without a restart"),
        ("spec.backfill.reserve", 2, 0, "acts on the next requests, without a restart"),
        ("spec.admission.batch.maxWaiting", 1024, 9, "acts on the next requests, without a restart"),
        (
            "spec.objectives.interactive.ttftSeconds",
            None,
            1.0,
            "acts at the next tick, and on the next requests",
        ),
    ],
)
def test_one_field_and_its_effect(path: str, old: Any, new: Any, effect: str) -> None:
    """Case C7: each change is named by its path, with both values and what it does to what runs."""
    minimum = {} if path == "spec.budget.min" else {"spec.budget.min": 1}
    changed = [policy(minimum | ({} if value is None else {path: value})) for value in (old, new)]
    assert Difference(path, old, new, effect) == only(*changed)


def test_schedules_are_matched_by_name() -> None:
    """One is changed, one is taken out, one is new; the changed one is named field by field."""
    old = policy({"spec.schedules": [schedule("day", start="08:00"), schedule("night")]})
    new = policy(
        {
            "spec.schedules": [
                schedule("launch"),
                schedule("day", start="09:00", pools={"plain": {"minReplicas": 3}}),
            ]
        }
    )
    found = differences(old, new)
    assert [(item.field, item.effect) for item in found] == [
        ("spec.schedules[day].start", "acts at the next tick when the window holds, else when it opens"),
        (
            "spec.schedules[day].pools.plain",
            "acts at the next tick when the window holds, else when it opens",
        ),
        ("spec.schedules[night]", "acts at the next tick: what it gave is no longer asked for"),
        ("spec.schedules[launch]", "acts at the next tick when the window holds, else when it opens"),
    ]
    assert (found[0].old, found[0].new) == ("08:00", "09:00")
    assert (found[2].new, found[3].old) == (None, None)
    assert found[3].new["name"] == "launch"


def test_the_order_of_schedules_is_a_difference() -> None:
    """The later one wins where both hold."""
    day, night = schedule("day"), schedule("night")
    one, other = policy({"spec.schedules": [day, night]}), policy({"spec.schedules": [night, day]})
    assert only(one, other) == Difference(
        "spec.schedules",
        ["day", "night"],
        ["night", "day"],
        "acts at the next tick: of those that hold at once the later one wins",
    )


def test_overrides_are_matched_by_name() -> None:
    """A changed value is the field's, a removed one is the override's."""
    one = policy({"spec.overrides": [override("launch", "plain", replicas=3)]})
    other = policy({"spec.overrides": [override("launch", "plain", replicas=4)]})
    assert only(one, other) == Difference(
        "spec.overrides[launch].replicas", 3, 4, "acts at the next tick, until it ends"
    )
    assert only(one, policy()).effect == "acts at the next tick: what it gave is no longer asked for"


def test_what_is_not_given_is_not_shown() -> None:
    """A new override is shown with the values that it has."""
    added = only(policy(), policy({"spec.overrides": [override("launch", "plain", replicas=3)]}))
    text = render([added])
    assert '"replicas": 3' in text
    assert "null" not in text


def test_scaling_policies_are_one_value() -> None:
    """They have no names, so the list is shown whole."""
    limits = [{"type": "Replicas", "value": 1, "periodSeconds": 60}]
    found = only(policy(), policy({"spec.behavior.scaleUp.policies": limits}))
    assert (found.field, found.old, found.new) == ("spec.behavior.scaleUp.policies", [], limits)


def test_the_text_of_differences() -> None:
    """Two lines each; nothing is said to be nothing."""
    new = policy({"spec.pools.plain.maxReplicas": 5, "spec.bootstrap": {"speculative": 5, "plain": 3}})
    assert render(differences(policy(), new)) == (
        'spec.bootstrap: (none) -> {"speculative": 5, "plain": 3}\n'
        "    no effect on running replicas: only a new application starts from it\n"
        "spec.pools.plain.maxReplicas: 7 -> 5\n"
        "    lowers the most that plain may have: up to 2 replicas may drain\n"
    )
    assert render(()) == "no difference\n"


def test_every_field_has_an_effect() -> None:
    """And every entry of the table is of a field."""
    paths = [field.path for field in fields()]
    assert [path for path in paths if path != "spec" and not words(path)] == []
    assert set(WORDS) <= set(paths)
    with pytest.raises(KeyError):
        words("spec.speed")


examples = [field for field in fields() if field.path not in ("apiVersion", "kind", "metadata", "spec")]


@given(st.sampled_from(examples), st.sampled_from(examples))
def test_any_two_edits_can_be_told_apart(one: Any, other: Any) -> None:
    """A policy does not differ from itself, and differs both ways at the same fields."""
    first, second = policy({one.path: one.example}), policy({other.path: other.example})
    assert differences(first, first) == ()
    there, back = differences(first, second), differences(second, first)
    assert {(item.field, str(item.old), str(item.new)) for item in there} == {
        (item.field, str(item.new), str(item.old)) for item in back
    }
    assert all(item.effect for item in there)
