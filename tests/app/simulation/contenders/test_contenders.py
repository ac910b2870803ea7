"""Every contender runs in the event model, within the budget."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

import pytest

from app.simulation.belief import BelievedError
from app.simulation.contenders import CONTENDERS
from app.simulation.contenders.hindsight_course import Course, CourseControl
from app.simulation.score import scores
from app.simulation.service import simulate
from app.simulation.setup import Setup
from autoscaling.request_line import Outcome
from autoscaling.types import Role, Tier
from tests.app.simulation.contenders.scenes import REPLICAS, TRACE_S, rush, scene
from tests.app.simulation.services import ENGINES, policy, steady

NAMES = (
    "twinpool",
    "all-plain",
    "all-speculative",
    "one-pool-k-table",
    "one-pool-k-table-our-routing",
    "static-25",
    "static-50",
    "static-75",
    "threshold",
    "hpa-like",
    "dynamo-like",
    "hindsight",
)


def made(name: str, **changes: object) -> Setup:
    return CONTENDERS[name].make(scene(**changes))


def test_the_contenders_are_these() -> None:
    """By name, in the order of a table."""
    assert NAMES == tuple(CONTENDERS)
    assert all(name == one.name and one.words for name, one in CONTENDERS.items())


@pytest.mark.parametrize("name", NAMES)
def test_a_contender_serves_a_trace_within_the_budget(name: str) -> None:
    """Every request is accounted for; no second has more than four replicas, those that drain included."""
    setup, trace = made(name), rush()
    found = simulate(setup, trace)
    score = scores(found, setup, TRACE_S)

    assert REPLICAS == sum(setup.sizes.values())
    for at in found.pools:
        assert sum((*at.running.values(), *at.starting.values(), *at.draining.values())) <= REPLICAS
    assert len(trace) == sum(one.arrived for one in score.tiers.values())
    for one in score.tiers.values():
        assert one.arrived == one.in_time + one.late + one.refused + one.failed
    assert score.accelerator_hours <= REPLICAS * TRACE_S / 3600 + 1e-9


@pytest.mark.parametrize("name", ["all-plain", "all-speculative", "one-pool-k-table", "static-25"])
def test_sizes_without_a_controller_never_change(name: str) -> None:
    """Whatever comes."""
    setup = made(name)
    found = simulate(setup, rush())

    assert all(one.running == setup.sizes for one in found.pools)
    assert () == found.moves


@pytest.mark.parametrize("name", ["threshold", "hpa-like", "dynamo-like"])
def test_a_rule_moves_capacity_and_its_moves_are_recorded(name: str) -> None:
    """The rush fills two speculative replicas, eight sequences to each; a third comes from plain."""
    found = simulate(made(name, policy=policy(REPLICAS, tpot_s=0.0045)), rush())

    assert 3 == max(one.running[Role.SPECULATIVE] for one in found.pools)
    up = next(one for one in found.moves if one.receiver is Role.SPECULATIVE)
    assert (Role.PLAIN, "shortfall") == (up.source, up.reason)
    assert up.state in ("done", "replaced")
    assert 20 <= up.at_s <= 40


def test_a_course_is_followed_with_moves_that_begin_early() -> None:
    """Three speculative replicas run when their interval begins; the move took its drain, stop and start."""
    course = partial(CourseControl, Course((1, 3), lead_s=10.0))
    setup = replace(made("hindsight"), sizes={Role.SPECULATIVE: 1, Role.PLAIN: 3}, control=course)
    found = simulate(setup, rush())

    assert [1, 1, 3] == [found.pools[second].running[Role.SPECULATIVE] for second in (0, 19, 30)]
    assert [(Role.PLAIN, Role.SPECULATIVE, 2, "done")] == [
        (one.source, one.receiver, one.count, one.state) for one in found.moves
    ]
    assert pytest.approx(20.0, abs=0.5) == found.moves[0].at_s


def test_one_pool_routes_by_load_alone_and_the_rival_by_tier() -> None:
    """The same engines with the same table: pools matter only under our routing."""
    plain_balancing, routed = made("one-pool-k-table"), made("one-pool-k-table-our-routing")
    trace = steady(Tier.BATCH, 4, 10)

    assert plain_balancing.lies == routed.lies
    assert {("least_loaded", Role.SPECULATIVE): 40} == Counter(
        (one.reason, one.pool) for one in simulate(plain_balancing, trace).served
    )
    assert {("tier_batch", Role.PLAIN): 40} == Counter(
        (one.reason, one.pool) for one in simulate(routed, trace).served
    )


def test_an_error_of_belief_changes_limits_and_not_engines() -> None:
    """With half of the gain fewer sequences are welcome; requests without company fare exactly the same."""
    trace = steady(Tier.INTERACTIVE, 0.2, 15)
    exact, wrong = (
        simulate(made("twinpool", believed_error=error), trace)
        for error in (BelievedError(), BelievedError(acceptance=0.5))
    )

    assert exact.served == wrong.served
    assert {Outcome.OK} == {one.outcome for one in wrong.served}
    # Two replicas of (12 ms x tokens per step - 9.228 ms) / 0.1087 ms for a sequence of 512 tokens.
    assert [2 * 163, 2 * 94] == [one.pools[0].capacity[Role.SPECULATIVE] for one in (exact, wrong)]


def test_an_error_of_cost_makes_every_second_longer() -> None:
    """A fifth more for a step leaves fewer sequences within the objective."""
    believed = made("twinpool", believed_error=BelievedError(cost=1.2)).believed
    assert believed.profile is not None
    for role in Role:
        assert pytest.approx(1.2 * ENGINES.costs[role].base_s) == believed.profile.costs[role].base_s
    assert ENGINES.acceptance["chat"].tokens_per_step(3) == believed.profile.tokens_per_step["chat"]


def test_a_scene_needs_the_budget_of_its_replicas() -> None:
    """Else contenders would have unequal fleets."""
    with pytest.raises(ValueError, match=r"replicas: 6 of 1 .*budget.max of the policy is 4"):
        scene(replicas=6)
    with pytest.raises(ValueError, match=r"replicas: 1: give 2 or more"):
        scene(replicas=1)
