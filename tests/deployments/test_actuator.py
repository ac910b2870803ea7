"""The plan actuator, behind Ray Serve's own autoscaling state: metrics in, targets out, no cluster."""

from __future__ import annotations

import logging
import math
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ray import cloudpickle
from ray.serve._private import autoscaling_state
from ray.serve._private.autoscaling_state import ApplicationAutoscalingState
from ray.serve._private.common import (
    DeploymentHandleSource,
    DeploymentID,
    HandleMetricReport,
    ReplicaID,
    ReplicaMetricReport,
    TimeStampedValue,
)
from ray.serve._private.config import DeploymentConfig
from ray.serve._private.deployment_info import DeploymentInfo
from ray.serve.autoscaling_policy import _apply_app_level_autoscaling_config
from ray.serve.config import AutoscalingConfig, AutoscalingContext, AutoscalingPolicy
from ray.serve.schema import ServeDeploySchema

from deployments.actuator import ApplyPlan, Plan, changes, hold

pytestmark = pytest.mark.contract

NAMES = {"controller": "controller", "pools": ["speculative", "plain"], "ceiling": 64}
SETTINGS: dict[str, Any] = {
    "min_replicas": 0,
    "max_replicas": 64,
    "upscale_delay_s": 0,
    "downscale_delay_s": 0,
}
AT = 1_800_000_000.0  # what the controller's node believes the time to be


def plan(speculative: Any, plain: Any, budget: Any = 4, **other: Any) -> dict[str, Any]:
    """The numbers of one plan, without its place; other metrics by name."""
    return {
        "plan_budget": budget,
        "target_speculative": speculative,
        "target_plain": plain,
        "accelerators_speculative": 1,
        "accelerators_plain": 1,
    } | other


class Serve:
    """Ray Serve's autoscaling state of one application, with a clock for the policy alone."""

    def __init__(self, speculative: int, plain: int, *, ceiling: int = 64, **config: Any) -> None:
        self.now = 0.0
        self.seq = 0
        self.policy = ApplyPlan("controller", ["speculative", "plain"], ceiling, clock=lambda: self.now)
        self.state = ApplicationAutoscalingState("twinpool")
        self.state._policy = _apply_app_level_autoscaling_config(self.policy)
        self.targets: dict[DeploymentID, int] = {}
        for name, replicas in {"speculative": speculative, "plain": plain, "controller": 1}.items():
            settings = AutoscalingConfig(**(SETTINGS | config))
            info = DeploymentInfo(DeploymentConfig(autoscaling_config=settings), None, 0, "job")
            self.targets[self.id(name)] = self.state.register_deployment(self.id(name), info, replicas)
            self.run(name, replicas)

    @staticmethod
    def id(name: str) -> DeploymentID:
        return DeploymentID(name, "twinpool")

    def run(self, name: str, replicas: int) -> None:
        """So many replicas of a deployment are running."""
        ids = [ReplicaID(f"{name}-{number}", self.id(name)) for number in range(replicas)]
        self.state.update_running_replica_ids(self.id(name), ids)

    def queue(self, name: str, requests: float) -> None:
        """So many requests wait at an ingress for a deployment."""
        self.state.record_request_metrics_for_handle(
            HandleMetricReport(
                self.id(name),
                "handle",
                "actor",
                DeploymentHandleSource.UNKNOWN,
                [TimeStampedValue(AT, requests)],
                {},
                AT,
            )
        )

    def report(
        self, numbers: dict[str, Any], *, replica: int = 0, at: float | None = None, **own: float
    ) -> None:
        """A controller replica reports; `own` gives single metrics a timestamp of their own."""
        moment = AT + self.now if at is None else at
        metrics = {
            name: [
                TimeStampedValue(moment - 1, 99.0),
                TimeStampedValue(own.get(name, moment), value),
            ]
            for name, value in numbers.items()
        }
        sender = ReplicaID(f"controller-{replica}", self.id("controller"))
        self.state.record_request_metrics_for_replica(ReplicaMetricReport(sender, metrics, moment))

    def next(self, numbers: dict[str, Any], epoch: int = 1, **kwargs: Any) -> dict[str, int]:
        """A quarter of a second later the next report of a plan is there; one tick."""
        self.now += 0.25
        self.seq += 1
        self.report({"plan_epoch": epoch, "plan_seq": self.seq} | numbers, **kwargs)
        return self.tick()

    def tick(self) -> dict[str, int]:
        """One tick of Serve's control loop: what it decided, which is then the target."""
        decisions = self.state.get_decision_num_replicas(self.targets)
        self.targets |= decisions
        return {deployment.name: replicas for deployment, replicas in decisions.items()}

    def target(self, name: str) -> int:
        return self.targets[self.id(name)]

    def alive(self, **kwargs: Any) -> None:
        """The actuator has seen a plan that changes nothing, and has seen it advance."""
        same = plan(self.target("speculative"), self.target("plain"), 64)
        for _ in range(2):
            assert self.next(same, **kwargs) == {}


@pytest.fixture
def serve() -> Serve:
    """Three speculative replicas and one plain, all running, under a living controller."""
    serve = Serve(3, 1)
    serve.alive()
    return serve


def test_donors_first_receivers_in_the_next_tick(serve: Serve) -> None:
    """A move lowers the donor at once and raises the receiver when Serve has the lower target."""
    assert {"speculative": 1} == serve.next(plan(1, 3))
    assert {"plain": 3} == serve.next(plan(1, 3))
    assert {} == serve.next(plan(1, 3))


def test_a_plan_that_is_in_force_changes_nothing(serve: Serve) -> None:
    """Targets equal to the plan are omitted, and Serve leaves them alone."""
    assert {} == serve.next(plan(3, 1))


def test_free_room_is_used_at_once(serve: Serve) -> None:
    """A receiver grows in the same tick where the budget has room with the current targets."""
    assert {"plain": 3} == serve.next(plan(3, 3, 6))


def test_a_receiver_grows_in_part(serve: Serve) -> None:
    """A raise that does not fit whole is made as far as whole replicas fit."""
    assert {"speculative": 2, "plain": 2} == serve.next(plan(2, 3, 5))
    assert {"plain": 3} == serve.next(plan(2, 3, 5))


def test_receivers_share_the_room() -> None:
    """Room that one pool took is not given to another: here the donor's is not free yet."""
    of_three = Plan(
        epoch=1, seq=1, budget=6, targets={"a": 1, "b": 3, "c": 2}, accelerators={"a": 1, "b": 1, "c": 1}
    )
    assert {"a": 1, "b": 2} == changes(of_three, {"a": 3, "b": 1, "c": 1})


def test_nothing_grows_above_a_smaller_budget(serve: Serve) -> None:
    """A budget below what is in use only lowers."""
    assert {"speculative": 1} == serve.next(plan(1, 2, 3))
    assert {"plain": 2} == serve.next(plan(1, 2, 3))


def test_a_pool_goes_to_zero_through_one_inside_the_budget(serve: Serve) -> None:
    """Serve lets a pool go to 0 only from 1; the other grows behind it, never above the budget."""
    moves = [serve.next(plan(0, 4)) for _ in range(4)]
    assert [{"speculative": 1}, {"speculative": 0, "plain": 3}, {"plain": 4}, {}] == moves


def test_queued_requests_do_not_raise_a_pool_that_is_at_zero() -> None:
    """Serve forces a pool with a queue and no replica up to 1 only if the policy names it."""
    serve = Serve(0, 4)
    serve.queue("speculative", 5.0)
    serve.alive()
    assert {} == serve.next(plan(0, 4))


def test_a_donor_that_serve_does_not_lower_blocks_the_receiver() -> None:
    """A pool that starts and has a queue is kept up by Serve; the receiver waits for its room."""
    serve = Serve(3, 1)
    serve.alive()
    serve.run("speculative", 0)
    serve.queue("speculative", 5.0)
    assert [{"speculative": 3}] * 5 == [serve.next(plan(1, 3)) for _ in range(5)]
    serve.run("speculative", 1)
    assert [{"speculative": 1}, {"plain": 3}] == [serve.next(plan(1, 3)) for _ in range(2)]


def test_serves_minimum_of_one_stays_inside_the_budget() -> None:
    """Where the deployment's own minimum keeps a replica, the receiver gets only what is left."""
    serve = Serve(3, 1, min_replicas=1)
    serve.alive()
    moves = [serve.next(plan(0, 4)) for _ in range(3)]
    assert [{"speculative": 1}, {"speculative": 1, "plain": 3}, {"speculative": 1}] == moves


def test_unequal_accelerators_two_plain_for_one_speculative() -> None:
    """A speculative replica of two accelerators comes when both plain ones have given theirs."""
    serve = Serve(1, 2)
    serve.alive()
    to_speculative = plan(2, 0, 4, accelerators_speculative=2)
    assert [{"plain": 1}, {"plain": 0}, {"speculative": 2}, {}] == [
        serve.next(to_speculative) for _ in range(4)
    ]
    back = plan(1, 2, 4, accelerators_speculative=2)
    assert [{"speculative": 1}, {"plain": 2}, {}] == [serve.next(back) for _ in range(3)]


def test_unequal_accelerators_count_against_the_budget(serve: Serve) -> None:
    """Two speculative replicas of two and one plain are five accelerators, not three replicas."""
    assert {} == serve.next(plan(2, 1, 4, accelerators_speculative=2))
    assert {"speculative": 2} == serve.next(plan(2, 1, 5, accelerators_speculative=2))


def test_of_two_controllers_the_highest_epoch_wins() -> None:
    """Two controller replicas report; the plan of the younger controller is applied."""
    serve = Serve(3, 1)
    serve.run("controller", 2)
    serve.alive(epoch=7, replica=1)
    serve.report({"plan_epoch": 6, "plan_seq": 900} | plan(0, 0), replica=0)
    assert {"speculative": 2} == serve.next(plan(2, 2), epoch=7, replica=1)


def test_a_lower_epoch_is_ignored() -> None:
    """When the younger controller is gone, the older one is not obeyed at once."""
    serve = Serve(3, 1)
    serve.run("controller", 2)
    serve.alive(epoch=7, replica=1)
    serve.run("controller", 1)
    for _ in range(100):
        assert {} == serve.next(plan(1, 3), epoch=6)
    assert {"speculative": 1} == serve.next(plan(1, 3), epoch=8)


@pytest.mark.parametrize(("silent_s", "expected"), [(299.0, {}), (300.0, {"speculative": 1})])
def test_a_lower_epoch_counts_when_the_highest_is_long_gone(
    silent_s: float, expected: dict[str, int]
) -> None:
    """After 5 minutes of silence one that advances is obeyed: an epoch of a lost store is not for ever."""
    serve = Serve(3, 1)
    serve.alive(epoch=7)
    last = serve.now
    assert {} == serve.next(plan(1, 3), epoch=6)
    serve.now = last + silent_s - 0.25
    assert expected == serve.next(plan(1, 3), epoch=6)


def test_a_lower_epoch_that_does_not_advance_never_counts() -> None:
    """The last word of a dead controller is no sign of life, however old the highest epoch is."""
    serve = Serve(3, 1)
    serve.alive(epoch=7)
    for _ in range(3):
        serve.now += 400.0
        serve.report({"plan_epoch": 6, "plan_seq": 900} | plan(1, 3))
        assert {} == serve.tick()


def test_a_broken_report_of_an_older_controller_does_no_harm() -> None:
    """What an older epoch says is not read beyond its epoch."""
    serve = Serve(3, 1)
    serve.run("controller", 2)
    serve.report({"plan_epoch": 6, "plan_seq": 900} | plan(-1, 2.5), replica=0, target_plain=AT - 9)
    serve.alive(epoch=7, replica=1)
    assert {"speculative": 1} == serve.next(plan(1, 3), epoch=7, replica=1)


def test_a_broken_plan_of_the_highest_epoch_is_not_replaced_by_an_older_one() -> None:
    """In doubt about the younger controller nobody is obeyed."""
    serve = Serve(3, 1)
    serve.run("controller", 2)
    serve.alive(epoch=6, replica=0)
    serve.report({"plan_epoch": 7, "plan_seq": 1} | plan(-1, 1), replica=1)
    assert {} == serve.next(plan(1, 3), epoch=6, replica=0)


def test_of_two_reports_of_one_epoch_the_highest_sequence_wins() -> None:
    """A late report of the same controller life does not undo the newer one."""
    serve = Serve(3, 1)
    serve.run("controller", 2)
    serve.alive(replica=1)
    serve.report({"plan_epoch": 1, "plan_seq": 1} | plan(0, 0), replica=0)
    assert {"speculative": 2} == serve.next(plan(2, 2), replica=1)
    serve.report({"plan_epoch": 1, "plan_seq": 99} | plan(1, 3), replica=0)
    assert {"speculative": 1, "plain": 2} == serve.tick()


def test_a_lower_sequence_is_ignored(serve: Serve) -> None:
    """Within an epoch a plan older than the last one is not applied."""
    serve.seq = 0
    assert {} == serve.next(plan(1, 3))


@pytest.mark.parametrize("skew_s", [3600.0, -20.0])
def test_the_controllers_nodes_clock_does_not_matter(skew_s: float) -> None:
    """A node an hour ahead or 20 s behind is obeyed while its plan advances, and only then."""
    serve = Serve(3, 1)
    for _ in range(2):
        assert {} == serve.next(plan(3, 1), at=AT + skew_s + serve.now)
    assert {"speculative": 1} == serve.next(plan(1, 3), at=AT + skew_s + serve.now)
    serve.now += 15.01
    assert {} == serve.tick()


@pytest.mark.parametrize("late", ["target_plain", "target_speculative", "plan_seq", "plan_budget"])
def test_a_torn_plan_holds(serve: Serve, late: str) -> None:
    """Numbers of two moments are two plans: neither is applied."""
    assert {} == serve.next(plan(1, 3), **{late: AT + serve.now})
    assert {"speculative": 1} == serve.next(plan(1, 3))


@pytest.mark.parametrize("nonsense", [2.5, -1, -0.5, math.nan, math.inf, -math.inf, True, 2.0**60, None, "2"])
@pytest.mark.parametrize(
    "metric", ["plan_epoch", "plan_budget", "target_speculative", "target_plain", "accelerators_plain"]
)
def test_a_value_that_is_no_whole_number_holds(serve: Serve, metric: str, nonsense: Any) -> None:
    """One negative, fractional or otherwise senseless number refuses the whole plan."""
    assert {} == serve.next(plan(1, 3) | {metric: nonsense})


def test_a_whole_number_may_travel_as_a_float(serve: Serve) -> None:
    """2.0 replicas are two."""
    assert {"speculative": 2} == serve.next(plan(2.0, 1.0, 4.0))


def test_a_replica_of_no_accelerators_is_refused(serve: Serve) -> None:
    """What costs nothing would have no limit."""
    assert {} == serve.next(plan(1, 3, accelerators_plain=0))


@pytest.mark.parametrize(
    "metric", ["plan_epoch", "plan_seq", "plan_budget", "target_plain", "accelerators_plain"]
)
def test_a_missing_number_holds(serve: Serve, metric: str) -> None:
    """A plan that lacks a metric is no plan."""
    serve.now += 1
    numbers = {"plan_epoch": 1, "plan_seq": 99} | plan(1, 3)
    del numbers[metric]
    serve.report(numbers)
    assert {} == serve.tick()


def test_no_plan_holds() -> None:
    """Before the controller says anything, and when it runs no more, targets stay."""
    serve = Serve(3, 1)
    assert {} == serve.tick()
    serve.alive()
    serve.run("controller", 0)
    assert {} == serve.next(plan(1, 3))


@pytest.mark.parametrize("missing", ["plain", "speculative", "controller"])
def test_a_missing_deployment_holds(serve: Serve, missing: str) -> None:
    """Without the context of both pools and the controller nothing moves."""
    serve.state.deregister_deployment(serve.id(missing))
    assert {} == serve.next(plan(1, 1))


def test_targets_above_the_plans_own_budget_hold(serve: Serve) -> None:
    """A plan that costs more than it says it may is refused whole, its donor too."""
    assert {} == serve.next(plan(2, 3, 4))


def test_a_budget_above_the_ceiling_holds() -> None:
    """The ceiling of the deployment binds every plan, however small its targets are."""
    serve = Serve(3, 1, ceiling=4)
    for _ in range(2):
        assert {} == serve.next(plan(3, 1, 4))
    assert {} == serve.next(plan(1, 3, 5))
    assert {"speculative": 1} == serve.next(plan(1, 3, 4))


def test_the_first_sight_of_a_plan_is_not_applied() -> None:
    """A plan counts from its second report: the first may be the last word of a dead controller."""
    serve = Serve(3, 1)
    assert {} == serve.next(plan(1, 3))
    serve.now += 5
    assert {} == serve.tick()
    assert {"speculative": 1} == serve.next(plan(1, 3))


@pytest.mark.parametrize(("silent_s", "expected"), [(15.0, {"speculative": 1}), (15.01, {})])
def test_a_plan_is_stale_after_15_s_without_an_advance(silent_s: float, expected: dict[str, int]) -> None:
    """A plan is applied for 15 s of the actuator's own clock after it last advanced; then targets stay."""
    serve = Serve(3, 1)
    serve.alive()
    serve.report({"plan_epoch": 1, "plan_seq": serve.seq} | plan(1, 3), at=AT + 99)
    serve.now += silent_s
    assert expected == serve.tick()


def test_a_stale_plan_counts_again_when_it_advances(serve: Serve) -> None:
    """A controller that was silent and speaks again is obeyed at once."""
    serve.now += 60
    assert {} == serve.tick()
    assert {"speculative": 1} == serve.next(plan(1, 3))


def test_the_same_report_again_is_no_advance(serve: Serve) -> None:
    """New timestamps on an old sequence are no sign of life."""
    for _ in range(70):
        serve.now += 0.25
        serve.report({"plan_epoch": 1, "plan_seq": serve.seq} | plan(3, 1))
        serve.tick()
    serve.report({"plan_epoch": 1, "plan_seq": serve.seq} | plan(1, 3), at=AT + serve.now + 1)
    assert {} == serve.tick()


@pytest.mark.parametrize("policy", ["plan", "hold"])
def test_targets_stay_while_replicas_start(policy: str) -> None:
    """Case C3: with no replica running yet and no traffic, ten ticks leave the target at 2."""
    serve = Serve(2, 2, min_replicas=2, max_replicas=10, upscaling_factor=2.0)
    if policy == "plan":
        serve.alive()
    else:
        serve.state._policy = None
        for state in serve.state._deployment_autoscaling_states.values():
            state._policy = autoscaling_state._apply_autoscaling_config(hold)
    for name in ("speculative", "plain"):
        serve.run(name, 0)
    for _ in range(10):
        serve.next(plan(2, 2))
    assert (2, 2) == (serve.target("speculative"), serve.target("plain"))


def test_hold_returns_the_target(serve: Serve) -> None:
    """The fallback of each pool keeps its target whatever runs."""
    state = serve.state._deployment_autoscaling_states[serve.id("speculative")]
    assert (5, {}) == hold(state.get_autoscaling_context(5))


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What the actuator logs in this test; Serve's logger does not always propagate."""
    serve_logger = logging.getLogger("ray.serve")
    before = serve_logger.propagate
    serve_logger.propagate = False
    serve_logger.addHandler(caplog.handler)
    with caplog.at_level(logging.INFO, "ray.serve"):
        yield caplog
    serve_logger.removeHandler(caplog.handler)
    serve_logger.propagate = before


def test_a_cause_is_logged_once_a_minute(serve: Serve, said: pytest.LogCaptureFixture) -> None:
    """A hold that lasts says why, once a minute for each cause."""
    for _ in range(241):
        serve.next(plan(3, 3))
    serve.next(plan(2.5, 1))
    above = "twinpool holds the targets (above_budget): targets of 6 accelerators; the budget is 4."
    broken = "twinpool holds the targets (not_whole): target_speculative is 2.5, not a whole number"
    assert [above, above, f"{broken} of at least 0."] == [record.getMessage() for record in said.records]


def test_the_log_names_the_cause(serve: Serve, said: pytest.LogCaptureFixture) -> None:
    """Each kind of doubt has a word of its own, at a level that fits it."""
    serve.run("controller", 0)
    serve.tick()
    serve.run("controller", 1)
    serve.next(plan(1, 3), target_plain=AT)
    serve.next(plan(1, 3, accelerators_plain=0))
    serve.next(plan(1, 65, 66))
    serve.now += 16
    serve.next(plan(3, 1), epoch=0)
    serve.report({"plan_epoch": 1} | plan(3, 1), at=AT + 99)
    serve.tick()
    serve.state.deregister_deployment(serve.id("plain"))
    serve.tick()
    assert [
        ("INFO", "no_plan"),
        ("WARNING", "torn"),
        ("WARNING", "not_whole"),
        ("WARNING", "above_ceiling"),
        ("WARNING", "old"),
        ("WARNING", "incomplete"),
        ("WARNING", "missing_deployment"),
    ] == [(record.levelname, record.args[0]) for record in said.records if isinstance(record.args, tuple)]


class Trap:
    """Something that raises on every use."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __repr__(self) -> str:
        raise RuntimeError("repr")

    def __bool__(self) -> bool:
        raise RuntimeError("bool")


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.builds(Trap),
    st.just(10**400),
)
metric_name = st.sampled_from(["plan_epoch", "plan_seq", *plan(1, 1)])
points = st.lists(st.builds(TimeStampedValue, st.sampled_from([1.0, 2.0, math.nan]), scalars), max_size=2)
raw = st.one_of(
    scalars,
    st.dictionaries(metric_name, st.one_of(scalars, st.dictionaries(st.integers(0, 1), points, max_size=2))),
    st.fixed_dictionaries(
        dict.fromkeys(
            ["plan_epoch", "plan_seq", *plan(1, 1)],
            st.fixed_dictionaries(
                {0: st.lists(st.builds(TimeStampedValue, st.just(1.0), scalars), min_size=1)}
            ),
        )
    ),
)
context = st.one_of(
    scalars,
    st.builds(SimpleNamespace, target_num_replicas=scalars, raw_metrics=raw),
    st.builds(SimpleNamespace),
)
names = st.sampled_from(["controller", "speculative", "plain"]).map(
    lambda name: DeploymentID(name, "twinpool")
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.one_of(scalars, st.dictionaries(st.one_of(names, st.integers()), context)), max_size=4))
def test_garbage_never_raises(garbage: list[Any]) -> None:
    """Whatever Serve hands over, the answer is a pair of dicts with whole targets of our pools."""
    policy = ApplyPlan("controller", ["speculative", "plain"], 64)
    for contexts in garbage:
        decisions, state = policy(contexts)
        assert state == {}
        for deployment, replicas in decisions.items():
            assert deployment.name in ("speculative", "plain")
            assert type(replicas) is int
            assert replicas >= 0


@pytest.mark.parametrize("kwargs", [{"pools": None}, {"pools": 3}, {"ceiling": "many"}, {"controller": None}])
def test_bad_arguments_hold(kwargs: dict[str, Any]) -> None:
    """Arguments that make no sense neither stop the application's registration nor move anything."""
    serve = Serve(3, 1)
    serve.state._policy = _apply_app_level_autoscaling_config(ApplyPlan(**(NAMES | kwargs)))
    for _ in range(3):
        assert {} == serve.next(plan(1, 3))


plans = st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 12), st.integers(1, 4))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 6),
    st.integers(0, 6),
    st.integers(0, 1),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.lists(plans, min_size=1, max_size=6),
    st.data(),
)
def test_no_sequence_of_plans_exceeds_the_budget(
    speculative: int,
    plain: int,
    minimum: int,
    costs: tuple[int, int],
    sequence: list[tuple[int, int, int, int]],
    data: st.DataObject,
) -> None:
    """With queues and replicas that start and stop: never above the budget, or never further above it."""
    serve = Serve(speculative, plain, min_replicas=minimum)
    serve.next(plan(0, 0, 0))
    own = {"accelerators_speculative": costs[0], "accelerators_plain": costs[1]}

    def used() -> int:
        return serve.target("speculative") * costs[0] + serve.target("plain") * costs[1]

    for wanted_speculative, wanted_plain, budget, ticks in sequence:
        for _ in range(ticks):
            for name in ("speculative", "plain"):
                serve.run(name, data.draw(st.integers(0, serve.target(name))))
                serve.queue(name, data.draw(st.sampled_from([0.0, 3.0])))
            before = used()
            serve.next(plan(wanted_speculative, wanted_plain, budget, **own))
            assert used() <= max(before, budget)

    for name in ("speculative", "plain"):
        serve.queue(name, 0.0)
    within = wanted_speculative * costs[0] + wanted_plain * costs[1] <= budget
    if within and minimum == 0:
        for _ in range(4):
            for name in ("speculative", "plain"):
                serve.run(name, serve.target(name))
            serve.next(plan(wanted_speculative, wanted_plain, budget, **own))
        assert (wanted_speculative, wanted_plain) == (serve.target("speculative"), serve.target("plain"))


def test_ray_loads_it_by_import_path() -> None:
    """Serve pickles the class where the application is built and makes one object of it in its controller."""
    serve = Serve(3, 1)
    sent = AutoscalingPolicy(policy_function="deployments.actuator:ApplyPlan", policy_kwargs=NAMES)
    received = AutoscalingPolicy(
        policy_function=sent.policy_function,
        policy_kwargs=NAMES,
        _serialized_policy_def=sent.get_serialized_policy_def(),
    )
    serve.state.register(received)
    serve.alive()
    assert {"speculative": 1} == serve.next(plan(1, 3))
    assert {"plain": 3} == serve.next(plan(1, 3))


def test_the_pickled_class_needs_nothing_of_ours(tmp_path: Path) -> None:
    """Serve's controller process may not have this package: the pickle carries the whole module."""
    (tmp_path / "policy").write_bytes(
        AutoscalingPolicy(policy_function="deployments.actuator:ApplyPlan").get_serialized_policy_def()
    )
    code = (
        "import pathlib, sys; from ray import cloudpickle;"
        f"policy = cloudpickle.loads(pathlib.Path('policy').read_bytes())(**{NAMES!r});"
        "assert policy({}) == ({}, {}); assert 'deployments' not in sys.modules"
    )
    subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, check=True, timeout=60)


def test_it_survives_a_pickle_by_name() -> None:
    """The class and the fallback are plain module members."""
    assert cloudpickle.loads(cloudpickle.dumps(ApplyPlan)) is ApplyPlan
    assert cloudpickle.loads(cloudpickle.dumps(hold)) is hold


def test_the_module_imports_without_ray() -> None:
    """Nothing but the standard library is imported with it."""
    code = (
        "import sys; before = set(sys.modules); import deployments.actuator;"
        "new = {name.split('.')[0] for name in set(sys.modules) - before} - {'deployments'};"
        "assert new <= set(sys.stdlib_module_names), new"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True, timeout=60)


def test_serve_still_has_what_the_actuator_rests_on() -> None:
    """The context's fields that it reads, and the wrapper that Serve puts around it."""
    state = Serve(1, 1).state._deployment_autoscaling_states[Serve.id("plain")]
    context = state.get_autoscaling_context(1)
    assert isinstance(context, AutoscalingContext)
    assert (1, {}) == (context.target_num_replicas, context.raw_metrics)
    resolve = autoscaling_state._resolve_policy_callable
    assert callable(resolve(AutoscalingPolicy(policy_function="deployments.actuator:hold")))
    gains = AutoscalingConfig(**SETTINGS)
    assert (1.0, 1.0) == (gains.get_upscaling_factor(), gains.get_downscaling_factor())
    assert gains.initial_replicas is None


def test_the_declarative_schema_takes_both_policies() -> None:
    """An application with the plan actuator, and pools of replicas `auto` with the fallback."""
    pool = {
        "name": "speculative",
        "num_replicas": "auto",
        "autoscaling_config": {
            "min_replicas": 1,
            "max_replicas": 64,
            "upscale_delay_s": 0,
            "downscale_delay_s": 0,
            "metrics_interval_s": 0.25,
            "look_back_period_s": 1.25,
            "policy": {"policy_function": "deployments.actuator:hold"},
        },
    }
    application = {
        "name": "twinpool",
        "import_path": "app.main:build",
        "autoscaling_policy": {"policy_function": "deployments.actuator:ApplyPlan", "policy_kwargs": NAMES},
        "deployments": [pool],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        accepted = ServeDeploySchema(applications=[application]).applications[0]
    policy = accepted.autoscaling_policy
    assert policy is not None
    assert ApplyPlan.__name__ == AutoscalingPolicy(**policy).get_policy().__name__
    assert NAMES == policy["policy_kwargs"]
    config = accepted.deployments[0].autoscaling_config
    assert (1, 64, 0.0, 0.0, None) == (
        config["min_replicas"],
        config["max_replicas"],
        config["upscale_delay_s"],
        config["downscale_delay_s"],
        config.get("initial_replicas"),
    )
    assert "deployments.actuator:hold" == config["policy"]["policy_function"]
