"""The policy at one moment: precedence, feasible bounds, bootstrap, objectives, hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaling.decisions import Hold, HoldBy, Limit, Mode, PolicyInForce, PoolRules, ScaleRule
from autoscaling.overrides import Override
from autoscaling.policy import CapacityPolicy
from autoscaling.policy_in_force import in_force, precedence_words
from autoscaling.types import Role
from tests.autoscaling.good_policy import override, policy, schedule

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
SPECULATIVE, PLAIN = Role.SPECULATIVE, Role.PLAIN
HOLD = Hold(HoldBy.OPERATOR, "incident", NOW - 60, NOW + 60, "ann")


def stands(
    file: CapacityPolicy, *overrides: Override, hold: Hold | None = None, wall: float = NOW
) -> PolicyInForce:
    return in_force(file, 7, "abc", overrides=overrides, hold=hold, wall=wall)


def set_by(pool: Role, since: float = NOW, **values: Any) -> Override:
    new = Override("o1", pool, None, None, None, since, NOW + 3600, "incident", "ann")
    return replace(new, **values)


def rules(found: PolicyInForce, pool: Role) -> tuple[int, int, str, bool]:
    one = found.pools[pool]
    return one.minimum, one.maximum, one.bound_by, one.forced


def test_a_plain_file_is_taken_as_it_is() -> None:
    """Without schedules and overrides the rules are the pools' own, and defaults are the file's."""
    found = stands(policy())
    assert found == PolicyInForce(
        revision=7,
        sha="abc",
        mode=Mode.ENFORCE,
        budget_min=8,
        budget_max=8,
        bootstrap={SPECULATIVE: 4, PLAIN: 4},
        pools={SPECULATIVE: PoolRules(1, 6), PLAIN: PoolRules(2, 7)},
        scale_up=ScaleRule(30),
        scale_down=ScaleRule(300),
    )


def test_every_value_of_the_file_arrives() -> None:
    """Budget, behaviour, limits, objectives and guards under their own names."""
    found = stands(
        policy(
            {
                "spec.budget.min": 5,
                "spec.surgeSlots": 2,
                "spec.behavior": {
                    "utilization": {"above": 0.9, "below": 0.5},
                    "cooldownSeconds": 61,
                    "scaleUp": {
                        "stabilizationWindowSeconds": 31,
                        "selectPolicy": "Min",
                        "policies": [
                            {"type": "Replicas", "value": 2, "periodSeconds": 60},
                            {"type": "Percent", "value": 50, "periodSeconds": 90},
                        ],
                    },
                    "scaleDown": {"stabilizationWindowSeconds": 301, "selectPolicy": "Disabled"},
                },
                "spec.pools.plain.acceleratorsPerReplica": 2,
                "spec.pools.plain.limits": {"softInflight": 9, "hardInflight": 65},
                "spec.pools.plain.drainTimeoutSeconds": 299,
                "spec.guardrails": {"maxStepReplicas": 3, "moveTimeoutSeconds": 901},
                "spec.onMetricsLoss": {"afterSeconds": 9, "minFreshShare": 0.25},
            }
        )
    )
    assert (found.budget_min, found.budget_max, found.surge) == (5, 8, 2)
    assert (found.utilization_above, found.utilization_below, found.cooldown_s) == (0.9, 0.5, 61)
    assert found.scale_up == ScaleRule(31, (Limit(2, 60), Limit(50, 90, percent=True)), "Min")
    assert found.scale_down == ScaleRule(301, (), "Disabled")
    assert found.pools[PLAIN] == PoolRules(2, 7, 2, 9, 65, 299)
    assert (found.max_step, found.move_timeout_s) == (3, 901)
    assert (found.metrics_after_s, found.min_fresh_share) == (9, 0.25)


@pytest.mark.parametrize(
    ("objectives", "speculative", "plain"),
    [
        ({}, (None, None), (None, None)),
        ({"interactive": {"ttftSeconds": 1, "tpotSeconds": 0.05}}, (1.0, 0.05), (None, None)),
        ({"standard": {"ttftSeconds": 5}, "batch": {"ttftSeconds": 60}}, (None, None), (5.0, None)),
        ({"standard": {"ttftSeconds": 5}, "batch": {"tpotSeconds": 0.2}}, (None, None), (5.0, 0.2)),
        ({"batch": {"ttftSeconds": 60, "tpotSeconds": 0.2}}, (None, None), (60.0, 0.2)),
    ],
)
def test_each_pool_is_held_to_the_tier_that_it_serves_first(
    objectives: dict[str, Any], speculative: tuple[float | None, ...], plain: tuple[float | None, ...]
) -> None:
    """The speculative pool to interactive; the plain one to standard, and to batch where that is silent."""
    pools = stands(policy({"spec.objectives": objectives})).pools
    assert speculative == (pools[SPECULATIVE].ttft_s, pools[SPECULATIVE].tpot_s)
    assert plain == (pools[PLAIN].ttft_s, pools[PLAIN].tpot_s)


# --- precedence


def test_a_later_schedule_wins_over_an_earlier_one() -> None:
    """Value by value: what the later one leaves open stays the earlier one's."""
    found = stands(
        policy(
            {
                "spec.schedules": [
                    schedule("day", pools={"speculative": {"minReplicas": 3, "maxReplicas": 5}}),
                    schedule("rush", pools={"speculative": {"minReplicas": 4}}),
                ]
            }
        )
    )
    assert rules(found, SPECULATIVE) == (4, 5, "schedule rush", False)
    assert rules(found, PLAIN) == (2, 7, "pools", False)


def test_a_schedule_outside_its_window_does_nothing() -> None:
    """NOW is a Friday."""
    file = policy({"spec.schedules": [schedule("week", days=["Sat"], pools={"plain": {"minReplicas": 4}})]})
    assert rules(stands(file), PLAIN) == (2, 7, "pools", False)
    assert rules(stands(file, wall=NOW + 86_400), PLAIN) == (4, 7, "schedule week", False)


def test_an_override_wins_over_a_schedule_and_an_operator_over_the_file() -> None:
    """And of two operators' overrides the newest, in whatever order they are given."""
    changes = {
        "spec.schedules": [schedule("day", pools={"plain": {"minReplicas": 3}})],
        "spec.overrides": [override("launch", "plain", replicas=4)],
    }
    file = policy(changes)
    assert rules(stands(file), PLAIN) == (4, 4, "override launch", True)
    older = set_by(PLAIN, NOW - 60, replicas=5)
    newer = set_by(PLAIN, NOW - 30, id="o2", replicas=6)
    assert rules(stands(file, older), PLAIN) == (5, 5, "override o1", True)
    assert rules(stands(file, newer, older), PLAIN) == (6, 6, "override o2", True)
    after = stands(file, newer, older, wall=NOW + 3600)
    assert rules(after, PLAIN) == (4, 4, "override launch", True)


def test_bounds_over_an_exact_number_are_bounds() -> None:
    """A stronger maximum takes the place of the weaker override's; its exact number stays the minimum."""
    file = policy({"spec.overrides": [override("launch", "plain", replicas=4)]})
    assert rules(stands(file, set_by(PLAIN, maximum=6)), PLAIN) == (4, 6, "override o1", False)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"minimum": 7}, (7, 7, "override o1", False)),  # raises the maximum
        ({"maximum": 1}, (1, 1, "override o1", False)),  # lowers the minimum
        ({"minimum": 3, "maximum": 4}, (3, 4, "override o1", False)),
        ({"replicas": 0}, (0, 0, "override o1", True)),
        ({"replicas": 7}, (7, 7, "override o1", True)),
    ],
)
def test_a_stronger_bound_moves_the_weaker_one_that_excludes_it(
    values: dict[str, int], expected: tuple[int, int, str, bool]
) -> None:
    """Case C7: a raised minimum acts although the pool's own maximum is lower, and the other way round."""
    file = policy({"spec.pools.plain": {"minReplicas": 2, "maxReplicas": 5}})
    assert expected == rules(stands(file, set_by(PLAIN, **values)), PLAIN)


# --- the budget


def test_the_other_pools_own_minimum_is_never_squeezed() -> None:
    """The override is cut to what the budget holds beside it, and says so."""
    found = stands(policy(), set_by(SPECULATIVE, replicas=8))
    assert rules(found, SPECULATIVE) == (6, 6, "override o1, cut by the budget", True)
    assert rules(found, PLAIN) == (2, 7, "pools", False)
    found = stands(policy(), set_by(SPECULATIVE, minimum=8))
    assert rules(found, SPECULATIVE) == (6, 6, "override o1, cut by the budget", False)


def test_a_scheduled_minimum_yields_to_an_override_of_the_other_pool() -> None:
    """Down to the pool's own minimum: hold > override > schedule > pools holds across the pools too."""
    file = policy({"spec.schedules": [schedule("day", pools={"plain": {"minReplicas": 5}})]})
    found = stands(file, set_by(SPECULATIVE, replicas=5))
    assert rules(found, SPECULATIVE) == (5, 5, "override o1", True)
    assert rules(found, PLAIN) == (3, 7, "schedule day, cut by the budget", False)
    found = stands(file, set_by(SPECULATIVE, replicas=7))
    assert rules(found, SPECULATIVE) == (6, 6, "override o1, cut by the budget", True)
    assert rules(found, PLAIN) == (2, 7, "schedule day, cut by the budget", False)


def test_of_two_overrides_the_newer_keeps_its_minimum() -> None:
    """The older one is cut."""
    older = set_by(SPECULATIVE, NOW - 60, replicas=6)
    newer = set_by(PLAIN, NOW - 30, id="o2", replicas=4)
    found = stands(policy(), newer, older)
    assert rules(found, PLAIN) == (4, 4, "override o2", True)
    assert rules(found, SPECULATIVE) == (4, 4, "override o1, cut by the budget", True)


def test_the_budget_counts_accelerators() -> None:
    """With two accelerators per replica, 8 - 1 hold three of them."""
    file = policy({"spec.pools.plain": {"minReplicas": 1, "maxReplicas": 3, "acceleratorsPerReplica": 2}})
    found = stands(file, set_by(PLAIN, replicas=4))
    assert rules(found, PLAIN) == (3, 3, "override o1, cut by the budget", True)


counts = st.none() | st.integers(0, 12)


@st.composite
def situations(draw: st.DrawFn) -> tuple[CapacityPolicy, list[Override]]:
    cost = {role: draw(st.integers(1, 3)) for role in ("speculative", "plain")}
    least = {role: draw(st.integers(0, 3)) for role in cost}
    fits = max(1, sum(cost[role] * least[role] for role in cost))
    changes: dict[str, Any] = {"spec.budget.max": fits + draw(st.integers(0, 10))}
    for role, accelerators in cost.items():
        changes[f"spec.pools.{role}"] = {
            "minReplicas": least[role],
            "maxReplicas": max(1, least[role] + draw(st.integers(0, 6))),
            "acceleratorsPerReplica": accelerators,
        }
    if draw(st.booleans()):
        changes["spec.bootstrap"] = {role: draw(st.integers(0, 12)) for role in cost}
    scheduled = st.fixed_dictionaries(
        {}, optional={"minReplicas": st.integers(0, 12), "maxReplicas": st.integers(1, 12)}
    )
    changes["spec.schedules"] = [
        schedule(f"s{index}", pools={role: draw(scheduled) for role in cost})
        for index in range(draw(st.integers(0, 2)))
    ]
    changes["spec.overrides"] = [
        override(f"f{index}", draw(st.sampled_from(sorted(cost))), replicas=draw(st.integers(0, 12)))
        for index in range(draw(st.integers(0, 2)))
    ]
    set_ = [
        set_by(
            draw(st.sampled_from(Role)),
            NOW - index,
            id=f"o{index}",
            minimum=draw(counts),
            maximum=draw(counts),
        )
        for index in range(draw(st.integers(0, 2)))
    ]
    exact = [
        set_by(draw(st.sampled_from(Role)), NOW + index, id=f"e{index}", replicas=draw(st.integers(0, 12)))
        for index in range(draw(st.integers(0, 2)))
    ]
    return policy(changes), [*set_, *exact]


@given(situations())
@settings(max_examples=400, deadline=None)
def test_what_is_in_force_is_always_feasible(situation: tuple[CapacityPolicy, list[Override]]) -> None:
    """Case C9: 0 <= minimum <= maximum, minimums and bootstrap fit the budget, own minimums are kept.

    The newest exact override acts as it says, or is cut and says so.
    """
    file, overrides = situation
    found = stands(file, *overrides)
    cost = {role: rule.accelerators for role, rule in found.pools.items()}
    for rule in found.pools.values():
        assert 0 <= rule.minimum <= rule.maximum
        assert not rule.forced or rule.minimum == rule.maximum
    assert sum(rule.minimum * cost[role] for role, rule in found.pools.items()) <= found.budget_max
    assert sum(size * cost[role] for role, size in found.bootstrap.items()) <= found.budget_max
    for role, rule in found.pools.items():
        assert rule.minimum <= found.bootstrap[role] <= rule.maximum
    own = {SPECULATIVE: file.spec.pools.speculative, PLAIN: file.spec.pools.plain}
    touched = {one.pool for one in overrides} | {one.pool for one in file.spec.overrides}
    for role in set(Role) - touched:
        scheduled = [getattr(one.pools, role) for one in file.spec.schedules]
        if not any(bounds and bounds.max_replicas is not None for bounds in scheduled):
            least = min(
                [own[role].min_replicas]
                + [one.min_replicas for one in scheduled if one and one.min_replicas is not None]
            )
            assert found.pools[role].minimum >= least
    if overrides and (newest := max(overrides, key=lambda one: one.since or 0)).replicas is not None:
        rule = found.pools[newest.pool]
        if rule.bound_by == f"override {newest.id}":
            assert (newest.replicas, newest.replicas) == (rule.minimum, rule.maximum)
        else:
            assert rule.bound_by == f"override {newest.id}, cut by the budget"
            assert rule.minimum < newest.replicas


# --- bootstrap


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (4, 4)),
        ({"spec.budget.max": 7}, (3, 4)),  # the odd one goes to the plain pool
        ({"spec.pools.plain.maxReplicas": 3}, (5, 3)),  # what plain may not have goes back
        ({"spec.pools.speculative.maxReplicas": 2}, (2, 6)),
        ({"spec.pools.speculative.minReplicas": 5}, (5, 3)),
        ({"spec.pools.plain.minReplicas": 6}, (2, 6)),
        ({"spec.pools.speculative.acceleratorsPerReplica": 2}, (2, 4)),
        ({"spec.pools.plain.acceleratorsPerReplica": 2}, (4, 2)),
        ({"spec.pools.speculative.acceleratorsPerReplica": 3}, (1, 5)),
        ({"spec.pools.speculative.maxReplicas": 1, "spec.pools.plain.maxReplicas": 2}, (1, 2)),
        ({"spec.bootstrap": {"speculative": 5, "plain": 2}}, (5, 2)),
        ({"spec.bootstrap": {"speculative": 0, "plain": 8}}, (1, 7)),  # inside the bounds
        ({"spec.bootstrap": {"speculative": 6, "plain": 6}}, (6, 2)),  # inside the budget
    ],
)
def test_bootstrap_sizes(changes: dict[str, Any], expected: tuple[int, int]) -> None:
    """Case C9: half of the budget each, or what the file says, always inside bounds and budget."""
    found = stands(policy(changes)).bootstrap
    assert expected == (found[SPECULATIVE], found[PLAIN])


def test_bootstrap_obeys_an_override() -> None:
    """A new application starts with what is in force."""
    assert stands(policy(), set_by(SPECULATIVE, replicas=6)).bootstrap == {SPECULATIVE: 6, PLAIN: 2}


# --- hold and words


def test_an_operators_hold_wins_until_it_ends() -> None:
    """Over the policy's mode too; an ended one is none."""
    held = policy({"spec.mode": "hold"})
    by_policy = Hold(HoldBy.POLICY, "spec.mode of the policy is hold", NOW)
    assert stands(policy(), hold=HOLD).hold == HOLD
    assert stands(held, hold=HOLD).hold == HOLD
    assert stands(held).hold == by_policy
    assert stands(policy(), hold=HOLD, wall=NOW + 60).hold is None
    assert stands(policy(), hold=replace(HOLD, expires=None), wall=NOW + 1e6).hold is not None


def test_a_policys_hold_is_as_old_as_the_revision() -> None:
    """When that is known."""
    found = in_force(
        policy({"spec.mode": "hold"}), 7, "abc", overrides=(), hold=None, wall=NOW, active_since=NOW - 500
    )
    assert found.hold == Hold(HoldBy.POLICY, "spec.mode of the policy is hold", NOW - 500)


def test_the_precedence_in_words() -> None:
    """What wins over what, and what acts now."""
    file = policy({"spec.schedules": [schedule("day", pools={"speculative": {"minReplicas": 3}})]})
    assert (
        precedence_words(stands(file))
        == "hold > override > schedule > pools; now speculative by schedule day; plain by pools"
    )
    assert precedence_words(stands(file, set_by(PLAIN, replicas=3), hold=HOLD)) == (
        "hold > override > schedule > pools; "
        "now hold by operator; speculative by schedule day; plain by override o1"
    )
