"""The control loop: what a tick does in which order, and what survives the end of a controller."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from autoscaling.decisions import Hold, HoldBy, MoveState, Reason, Sizes
from autoscaling.policy_file import PolicyRead
from deployments import default_policy, policy_book
from deployments.actuator import ApplyPlan
from deployments.policy_book import PolicyBook
from deployments.policy_source import Seen
from deployments.record_reader import read
from tests.deployments.control_world import (
    BOTH_TWO,
    PLAIN,
    SPECULATIVE,
    WALL,
    World,
    controller_settings,
    published,
    running,
    sizes,
)
from tests.policies import policy

# Moves begin at once, and one of plain is wanted by everybody.
QUICK = policy(
    2,
    2,
    behavior={
        "cooldownSeconds": 60,
        "scaleUp": {"stabilizationWindowSeconds": 0},
        "scaleDown": {"stabilizationWindowSeconds": 0},
    },
)
BUSY = sizes(0, 30)
BROKEN = "spec: [\n"
PLAN = {
    "plan_epoch",
    "plan_seq",
    "plan_budget",
    "target_speculative",
    "target_plain",
    "accelerators_speculative",
    "accelerators_plain",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


# --- the first plan ----------------------------------------------------------------------------------


async def test_a_new_application_gets_the_bootstrap(folder: Path) -> None:
    """The first plan is the policy's bootstrap, whatever Serve's own minimum is."""
    world = World(controller_settings(folder), policy=policy(3, 1))
    world.start()
    await world.tick()
    assert [(3, 1)] == [published(plan) for plan in world.plans]
    decision = world.loop.state.decision
    assert decision is not None
    assert Reason.BOOTSTRAP is decision.reason


async def test_no_plan_before_the_first_look(folder: Path) -> None:
    """A controller that has not seen Ray Serve publishes nothing; with the first look it does."""
    world = World(controller_settings(folder), asleep=True)
    world.start()
    await world.tick(20)
    assert {} == world.loop.plan()
    assert world.loop.state.decision is None
    world.asleep = False
    await world.tick()
    assert (2, 2) == published(world.loop.plan())


async def test_no_plan_while_the_application_is_not_there(folder: Path) -> None:
    """Ray Serve that knows no such application is no look."""
    world = World(controller_settings(folder), there=False)
    world.start()
    await world.tick(3)
    assert {} == world.loop.plan()


async def test_no_plan_before_the_first_tick(folder: Path) -> None:
    """A controller that has read its store and not ticked publishes nothing, and restores first."""
    world = await running(folder)
    world.start()
    assert {} == world.loop.plan()
    assert sizes(2, 2) == world.loop.state.memory.targets


async def test_a_plan_is_empty_or_seven_numbers(folder: Path) -> None:
    """Never None, and never a number that is not plain: Serve would stop asking."""
    world = World(controller_settings(folder), asleep=True)
    world.start()
    await world.tick()
    assert world.loop.plan() == {}
    world.asleep = False
    for _ in range(3):
        await world.tick()
        plan = world.loop.plan()
        assert set(plan) == PLAN
        assert {int} == {type(number) for number in plan.values()}
        assert plan["target_speculative"] + plan["target_plain"] <= plan["plan_budget"] == 4


async def test_every_tick_has_the_next_number(folder: Path) -> None:
    """A plan that is the same still shows by its number that its controller lives."""
    world = await running(folder)
    first = world.loop.plan()
    await world.tick(3)
    assert first | {"plan_seq": first["plan_seq"] + 3} == world.loop.plan()


async def test_serve_is_actuated_once_it_has_the_plan(folder: Path) -> None:
    """Replicas are admitted when Serve's targets have been those of the plan; later ones always."""
    world = World(controller_settings(folder))
    world.start()
    await world.tick()
    assert not world.loop.actuated
    world.targets = {SPECULATIVE: 2, PLAIN: 2}
    await world.tick()
    assert world.loop.actuated
    world.targets = {SPECULATIVE: 1, PLAIN: 1}
    await world.tick()
    assert world.loop.actuated


async def test_a_new_application_ignores_an_old_state(folder: Path) -> None:
    """Targets of an application that is gone are not those of a new one; numbers go on."""
    world = await running(folder, QUICK)
    await world.settle(wanted=BUSY)
    assert sizes(1, 3) == world.loop.state.memory.targets
    saved = world.state()["memory"]["decisions"]
    world.targets, world.running = {SPECULATIVE: 1, PLAIN: 1}, {SPECULATIVE: 0, PLAIN: 0}
    world.start(monotonic=10.0)
    await world.tick()
    assert (2, 2) == published(world.loop.plan())
    assert (1, saved + 1) == (world.loop.state.memory.moves, world.loop.state.memory.decisions)


async def test_a_hold_of_a_former_application_holds_no_old_targets(folder: Path) -> None:
    """The hold outlives the application, its targets and its cool-down do not: the bootstrap is held."""
    world = await running(folder, QUICK)
    await world.settle(wanted=BUSY)
    await world.orders.take("hold", {"reason": "launch", "who": "ann"})
    world.targets, world.running = {SPECULATIVE: 1, PLAIN: 1}, {SPECULATIVE: 0, PLAIN: 0}
    world.start(monotonic=10.0)
    await world.settle(6)
    decision = world.loop.state.decision
    assert decision is not None
    assert (sizes(2, 2), HoldBy.OPERATOR) == (decision.targets, decision.hold and decision.hold.by)
    assert world.loop.state.memory.cooling_until is None


async def test_replicas_that_all_restart_are_no_new_application(folder: Path) -> None:
    """A controller that starts while no replica runs keeps its targets; only Serve's minimum is new."""
    world = await running(folder, QUICK)
    await world.settle(wanted=BUSY)
    world.running = {SPECULATIVE: 0, PLAIN: 0}
    world.start(monotonic=10.0)
    await world.tick(8)
    assert (1, 3) == published(world.loop.plan())


async def test_replicas_that_serve_finds_again_are_no_new_application(folder: Path) -> None:
    """Serve's minimum may be what was decided: with replicas on record it is no new application."""
    world = await running(folder, policy(2, 2, budget={"min": 1, "max": 4}))
    for role in ("speculative", "plain"):
        order = {"pool": role, "replicas": 1, "for_s": 60.0, "reason": "night", "who": "ann"}
        await world.orders.take("override_set", order)
    await world.settle()
    await world.orders.take("override_clear", {"id": "all", "who": "ann"})
    world.running, world.recovering = {SPECULATIVE: 0, PLAIN: 0}, {SPECULATIVE: 1, PLAIN: 1}
    world.start(monotonic=10.0)
    await world.tick(8)
    assert (1, 1) == published(world.loop.plan())


async def test_without_a_state_serves_targets_are_taken_over(tmp_path: Path) -> None:
    """A controller that keeps nothing goes on with what Serve has."""
    world = World(
        controller_settings(None, slots=4),
        targets={SPECULATIVE: 1, PLAIN: 3},
        running={SPECULATIVE: 1, PLAIN: 3},
    )
    world.start()
    await world.tick(6)
    assert [(1, 3)] == [published(plan) for plan in world.plans]
    assert "lost on restart" == world.kept.describe()


# --- kills -------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The controller's process ends here."""


class Dying:
    """A store or a record that ends the process before, or after, one of its methods did its work."""

    def __init__(self, real: Any, method: str, *, after: bool) -> None:
        self._real = real
        self._method = method
        self._after = after

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        return self._dying(found) if name == self._method else found

    def _dying(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def dies(*arguments: Any) -> None:
            if self._after:
                work(*arguments)
            raise Killed

        return dies


POINTS = ("before_audit", "after_audit", "after_state")


def kill_at(world: World, point: str) -> None:
    """Have the present controller die at the next change that it writes down."""
    kept: Any = world.kept
    if point == "after_state":
        kept._store = Dying(kept._store, "save", after=True)
    else:
        kept._audit = Dying(kept._audit, "write", after=point == "after_audit")


def assert_gapless(world: World) -> None:
    numbers = [line["seq"] for line in world.audit()]
    assert list(range(1, len(numbers) + 1)) == numbers


def begun(world: World) -> list[str]:
    """Ids of the moves that the audit saw begin."""
    return [line["decision"]["move"]["id"] for line in world.audit("decision") if line["decision"]["begun"]]


@pytest.mark.parametrize("point", POINTS)
async def test_a_kill_loses_no_move_and_makes_none_twice(folder: Path, point: str) -> None:
    """At every point of a tick: the successor ends the same one move, and the audit has no gap."""
    world = await running(folder, QUICK)
    former = world.loop
    kill_at(world, point)
    with pytest.raises(Killed):
        await world.tick(wanted=BUSY)
    assert (2, 2) == published(former.plan())
    world.start(monotonic=50_000.0)
    known = world.loop.state.memory
    assert (sizes(2, 2) if point == "before_audit" else sizes(1, 3)) == known.targets
    assert (0 if point == "before_audit" else 1) == known.moves
    await world.settle(8, wanted=BUSY)
    assert (1, 3) == published(world.loop.plan())
    assert ["m1"] == begun(world)
    assert ["m1"] == [move["id"] for move in world.loop.state.moves]
    assert MoveState.DONE == world.loop.state.moves[0]["state"]
    assert_gapless(world)


async def test_a_line_is_in_the_audit_before_its_state(folder: Path) -> None:
    """After a kill behind the audit line, the state file does not know that line yet."""
    world = await running(folder, QUICK)
    kill_at(world, "after_audit")
    with pytest.raises(Killed):
        await world.tick(wanted=BUSY)
    (*_, newest) = world.audit()
    assert newest["decision"]["begun"]
    assert newest["seq"] - 1 == world.state()["audit_seq"]
    assert {"speculative": 2, "plain": 2} == world.state()["memory"]["targets"]


async def test_a_state_is_kept_before_its_plan(folder: Path) -> None:
    """After a kill behind the state, the old plan is the published one."""
    world = await running(folder, QUICK)
    kill_at(world, "after_state")
    with pytest.raises(Killed):
        await world.tick(wanted=BUSY)
    assert {"speculative": 1, "plain": 3} == world.state()["memory"]["targets"]
    assert (2, 2) == published(world.loop.plan())


@pytest.mark.parametrize("point", POINTS)
async def test_a_second_kill_keeps_the_clocks_apart(folder: Path, point: str) -> None:
    """A successor that dies at its first line leaves the cool-down of its predecessor as it was."""
    world = await running(folder, QUICK)
    await world.settle(6, wanted=BUSY)
    cooling = world.loop.state.memory.cooling_until
    assert cooling is not None
    left = cooling - world.now
    world.start(monotonic=90_000.0)
    kill_at(world, point)
    with pytest.raises(Killed):
        await world.loop.run()
    world.start(monotonic=3.0)
    found = world.loop.state.memory.cooling_until
    assert found is not None
    # Not the exact number: up to a tick lies between the last save and the end.
    assert left - 1.0 <= found - world.now <= left + 1.0


@pytest.mark.parametrize("point", POINTS)
async def test_a_kill_while_a_policy_is_taken(folder: Path, point: str) -> None:
    """The new revision is there once, and acts after the restart."""
    world = await running(folder)
    world.policy = policy(2, 2, name="second")
    kill_at(world, point)
    with pytest.raises(Killed):
        await world.tick()
    world.start()
    await world.tick(2)
    book = world.loop.state.book
    assert [(1, "superseded"), (2, "active")] == [(one.revision, one.state) for one in book.revisions]
    assert book.active is not None
    assert "second" == book.active.policy.metadata.name
    assert [1, 2] == [line["revision"]["revision"] for line in world.audit("policy")]
    assert_gapless(world)


@pytest.mark.parametrize("point", POINTS)
async def test_a_kill_while_an_order_is_taken(folder: Path, point: str) -> None:
    """An order that was not in the audit was never given; one that was, holds."""
    world = await running(folder)
    kill_at(world, point)
    with pytest.raises(Killed):
        await world.orders.take("hold", {"reason": "launch", "who": "ann"})
    world.start()
    hold = world.loop.state.hold
    assert (None if point == "before_audit" else "launch") == (hold and hold.reason)
    await world.tick(6)
    assert_gapless(world)


# --- restarts ----------------------------------------------------------------------------------------


async def test_a_restart_brings_everything_back(folder: Path) -> None:
    """Targets, the move on its way, hold, overrides, the policy, and the numbers of moves and decisions."""
    world = await running(folder, QUICK)
    order = {"pool": "plain", "max_replicas": 3, "for_s": 600.0, "reason": "cap", "who": "ann"}
    answer = await world.orders.take("override_set", order)
    await world.tick(wanted=BUSY)
    await world.orders.take("hold", {"reason": "launch", "for_s": 300.0, "who": "ann"})
    await world.tick(wanted=BUSY)
    before = world.loop.state
    assert before.memory.move is not None
    assert MoveState.DRAINING is before.memory.move.state
    world.start(monotonic=7.0)
    after = world.loop.state
    assert (sizes(1, 3), "m1", MoveState.DRAINING) == (
        after.memory.targets,
        after.memory.move and after.memory.move.id,
        after.memory.move and after.memory.move.state,
    )
    assert before.hold == after.hold
    assert [answer["body"]["override"]["id"]] == [one.id for one in after.overrides]
    assert before.overrides == after.overrides
    assert after.book.active is not None
    assert (1, "test") == (after.book.active.number, after.book.active.policy.metadata.name)
    assert before.book.revisions == after.book.revisions
    assert before.moves == after.moves
    assert before.memory.decisions == after.memory.decisions
    await world.tick()
    decision = world.loop.state.decision
    assert decision is not None
    assert (sizes(1, 3), HoldBy.OPERATOR) == (decision.targets, decision.hold and decision.hold.by)


async def test_a_move_is_followed_to_its_end_by_the_successor(folder: Path) -> None:
    """A restart in the middle of a move ends it once, and the cool-down begins with its end."""
    world = await running(folder, QUICK)
    await world.tick(wanted=BUSY)
    world.start(monotonic=7.0)
    await world.settle(8, wanted=BUSY)
    memory = world.loop.state.memory
    assert memory.move is not None
    assert (MoveState.DONE, sizes(1, 3)) == (memory.move.state, memory.targets)
    assert memory.move.ended_at is not None
    assert memory.move.ended_at + 60.0 == memory.cooling_until


async def test_a_cool_down_outlives_its_controller(folder: Path) -> None:
    """The rest of a cool-down is waited for by the wall clock, whatever the monotonic one shows."""
    world = await running(folder, QUICK)
    await world.settle(6, wanted=BUSY)
    cooling = world.loop.state.memory.cooling_until
    assert cooling is not None
    left = cooling - world.now
    world.wall += 20.0  # nobody was there for so long
    world.start(monotonic=123_456.0)
    found = world.loop.state.memory.cooling_until
    assert found is not None
    assert pytest.approx(left - 20.0, abs=1.0) == found - world.now


async def test_a_restart_says_how_it_began(folder: Path) -> None:
    """The first line of a life tells what was restored."""
    world = await running(folder)
    world.start()
    world.loop.stop()
    await world.loop.run()
    assert [] == world.audit("start")
    world.start()
    world.asleep = True

    async def one_tick() -> None:
        world.loop.stop()

    world.loop.tick = one_tick  # type: ignore[method-assign]
    await world.loop.run()
    (line,) = world.audit("start")
    assert {"speculative": 2, "plain": 2} == line["controller"]["restored_targets"]
    assert line["controller"]["state"].startswith("kept in ")


# --- two controllers ---------------------------------------------------------------------------------


async def test_a_fenced_controller_publishes_nothing(folder: Path) -> None:
    """A controller whose successor has begun notices it when it writes, and is silent from then on."""
    world = await running(folder, QUICK)
    former, kept = world.loop, world.kept
    world.start()
    await world.tick()
    assert not kept.fenced
    world.policy = policy(2, 2, name="second")
    await former.tick()
    assert kept.fenced
    assert {} == former.plan()
    assert (2, 2) == published(world.loop.plan())
    epochs = [line["epoch"] for line in world.audit()]
    assert sorted(epochs) == epochs
    assert_gapless(world)


async def test_a_fenced_controller_ends_its_loop(folder: Path) -> None:
    """`run` returns once the loop is fenced."""
    world = await running(folder)
    former = world.loop
    world.start()
    await world.tick()
    await former.run()
    assert {} == former.plan()


async def test_a_stopped_controller_publishes_and_writes_nothing(folder: Path) -> None:
    """After `stop` there is no plan, and an order leaves no line."""
    world = await running(folder)
    world.loop.stop()
    lines = world.audit()
    await world.orders.take("hold", {"reason": "late", "who": "ann"})
    await world.loop.tick()
    assert {} == world.loop.plan()
    assert lines == world.audit()


# --- what fails --------------------------------------------------------------------------------------


async def test_a_folder_that_cannot_be_written_stops_nothing(folder: Path) -> None:
    """Decisions go on, the problem is said, and once there is room again everything is kept."""
    world = await running(folder, QUICK)
    away = folder.with_name("away")
    folder.rename(away)
    folder.write_text("a file in the folder's place")
    await world.settle(6, wanted=BUSY)
    assert (1, 3) == published(world.loop.plan())
    assert world.kept.problem is not None
    assert str(folder) in world.kept.problem
    folder.unlink()
    away.rename(folder)
    await world.tick(2, every_s=30.0, wanted=BUSY)
    assert world.kept.problem is None
    assert {"speculative": 1, "plain": 3} == world.state()["memory"]["targets"]
    world.start()
    assert sizes(1, 3) == world.loop.state.memory.targets


async def test_a_folder_that_cannot_be_opened_stops_nothing(folder: Path) -> None:
    """A controller that cannot use its folder at all says so and works without one."""
    folder.write_text("a file in the folder's place")
    world = World(controller_settings(folder))
    world.start()
    await world.tick()
    assert (2, 2) == published(world.loop.plan())
    assert world.kept.problem is not None
    assert f"lost on restart: {world.kept.problem}" == world.kept.describe()


async def test_a_damaged_state_is_put_aside(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A state file that cannot be read is kept aside and said; the audit brings back what its lines carry."""
    world = await running(folder, QUICK)
    await world.settle(wanted=BUSY)
    (folder / "state.json").write_text('{"schema": 1, "epoch": ')
    world.start()
    assert "state.json.corrupt-1" in caplog.text
    assert sizes(1, 3) == world.loop.state.memory.targets


async def test_a_state_of_a_newer_version_is_left_alone(folder: Path) -> None:
    """The service works without a store and says why; the file stays as it was."""
    world = await running(folder)
    text = (folder / "state.json").read_text().replace('"schema":1', '"schema":2', 1)
    (folder / "state.json").write_text(text)
    world.start()
    await world.tick(6)
    assert (2, 2) == published(world.loop.plan())
    assert "schema 2" in (world.kept.problem or "")
    assert text == (folder / "state.json").read_text()


async def test_a_serve_that_does_not_answer_holds_the_plan(folder: Path) -> None:
    """Up to 5 s the last look counts; then the targets are held, the plan stays, and an answer ends that."""
    world = await running(folder, QUICK)
    world.asleep = True
    await world.tick(10)
    decision = world.loop.state.decision
    assert decision is not None
    assert decision.hold is None
    await world.tick(4, wanted=BUSY)
    decision = world.loop.state.decision
    assert decision is not None
    assert decision.hold is not None
    assert (HoldBy.SERVE, sizes(2, 2)) == (decision.hold.by, decision.targets)
    assert [(2, 2)] == [published(plan) for plan in world.plans]
    world.asleep = False
    await world.tick()
    assert world.loop.state.decision is not None
    assert world.loop.state.decision.hold is None


async def test_a_tick_that_fails_is_counted_and_the_next_one_works(folder: Path) -> None:
    """An error leaves the plan as it was."""
    world = await running(folder)
    world.loop.stop()
    plan = world.plans[-1]
    world.start()
    ticks = []

    async def broken() -> None:
        ticks.append(world.loop.plan())
        if len(ticks) == 2:
            world.loop.stop()
        raise ValueError("an error of ours")

    world.loop.tick = broken  # type: ignore[method-assign]
    await world.loop.run()
    assert (2, [{}, {}]) == (world.loop.state.failures, ticks)
    assert (2, 2) == published(plan)


# --- policies ----------------------------------------------------------------------------------------


async def test_without_any_good_policy_the_default_is_held(folder: Path) -> None:
    """Case C10: a file that never was good starts the sizes of the settings, and holds them."""
    world = await running(folder, BROKEN)
    decision = world.loop.state.decision
    assert decision is not None
    assert (sizes(2, 2), HoldBy.NO_POLICY) == (decision.targets, decision.hold and decision.hold.by)
    await world.settle(4, wanted=BUSY)
    assert [(2, 2)] == [published(plan) for plan in world.plans]
    assert world.loop.state.book.last_error is not None


async def test_a_hold_without_a_policy_keeps_its_begin(folder: Path) -> None:
    """Its `since` is the first decision's, and the first good revision ends it."""
    world = await running(folder, BROKEN)
    decision = world.loop.state.decision
    assert decision is not None
    assert decision.hold is not None
    assert WALL + 0.5 == decision.hold.since
    world.policy = BOTH_TWO
    await world.tick()
    decision = world.loop.state.decision
    assert decision is not None
    assert (2, None) == (decision.revision, decision.hold)


async def test_a_policy_folder_without_a_file(folder: Path) -> None:
    """A file that is not there is a refused revision with words; the default is held."""
    world = await running(folder, None)
    assert (2, 2) == published(world.loop.plan())
    book = world.loop.state.book
    assert (None, 1) == (book.active, book.seen_revision)
    assert book.last_error is not None
    assert "the file is gone" == book.last_error["message"]


async def test_a_bad_edit_changes_nothing(folder: Path) -> None:
    """Case C10: the last good revision acts on; the refused one is in the audit with its problems."""
    world = await running(folder)
    world.policy = BROKEN
    await world.settle(3)
    assert [(2, 2)] == [published(plan) for plan in world.plans]
    line = world.audit("policy")[-1]
    assert (2, "refused") == (line["revision"]["revision"], line["revision"]["state"])
    assert line["problems"]
    assert {"message", "line", "field"} == set(line["problems"][0])
    decision = world.loop.state.decision
    assert decision is not None
    assert (1, None) == (decision.revision, decision.hold)


async def test_a_good_edit_acts_with_the_next_tick(folder: Path) -> None:
    """Case C7: a raised minimum is obeyed at once, and the other pool gives."""
    world = await running(folder)
    world.policy = policy(3, 1, pools={"speculative": {"minReplicas": 3}})
    await world.tick()
    decision = world.loop.state.decision
    assert decision is not None
    assert (sizes(3, 1), Reason.BOUNDS, 2) == (decision.targets, decision.reason, decision.revision)


async def test_an_unrelated_edit_makes_no_move(folder: Path) -> None:
    """Case C7: another field changes the revision, and no plan."""
    world = await running(folder)
    world.policy = policy(2, 2, overload={"retryAfterSeconds": 7})
    await world.settle(4)
    assert [(2, 2)] == [published(plan) for plan in world.plans]
    assert [] == world.loop.state.moves
    decision = world.loop.state.decision
    assert decision is not None
    assert (2, Reason.STEADY) == (decision.revision, decision.reason)


async def test_a_shadow_is_recorded_and_does_not_act(folder: Path) -> None:
    """The last enforced revision acts; what the shadow would do stands in the audit and in the status."""
    world = await running(folder)
    world.policy = policy(3, 1, mode="shadow", pools={"speculative": {"minReplicas": 3}})
    await world.settle(5)
    state = world.loop.state
    assert [(2, 2)] == [published(plan) for plan in world.plans]
    assert state.decision is not None
    assert (1, sizes(2, 2)) == (state.decision.revision, state.decision.targets)
    assert state.shadow is not None
    assert (2, sizes(3, 1)) == (state.shadow.revision, state.shadow.targets)
    (line,) = world.audit("shadow")
    assert (2, "bounds") == (line["decision"]["revision"], line["decision"]["reason"])
    assert {"speculative": 3, "plain": 1} == line["decision"]["targets"]
    assert [] == begun(world)
    world.policy = policy(3, 1, pools={"speculative": {"minReplicas": 3}})
    await world.tick()
    assert world.loop.state.shadow is None
    assert sizes(3, 1) == world.loop.state.memory.targets


async def test_a_shadow_outlives_its_controller(folder: Path) -> None:
    """After a restart the enforced revision acts and the shadow is evaluated on."""
    world = await running(folder)
    world.policy = policy(3, 1, mode="shadow", pools={"speculative": {"minReplicas": 3}})
    await world.settle(5)
    world.start(monotonic=20.0)
    await world.tick(6)
    state = world.loop.state
    assert state.decision is not None
    assert state.shadow is not None
    assert (1, 2) == (state.decision.revision, state.shadow.revision)
    assert (2, 2) == published(world.loop.plan())


async def test_a_lower_budget_drains_and_a_higher_one_fills(folder: Path) -> None:
    """Case C7: a budget is obeyed live in both directions."""
    world = World(controller_settings(folder, slots=5), policy=policy(2, 2, most=4))
    world.start()
    await world.settle()
    world.policy = policy(2, 2, most=5)
    await world.settle(4)
    assert 5 == sum(world.running.values())
    world.policy = policy(2, 2, most=4)
    await world.settle(4)
    assert 4 == sum(world.running.values())
    assert all(sum(published(plan)) <= plan["plan_budget"] for plan in world.plans)


# --- holds and records -------------------------------------------------------------------------------


async def test_a_hold_ends_by_itself(folder: Path) -> None:
    """An operator's hold with an end keeps the targets until then and no longer."""
    world = await running(folder, QUICK)
    await world.orders.take("hold", {"reason": "launch", "for_s": 10.0, "who": "ann"})
    await world.settle(19, wanted=BUSY)
    assert (2, 2) == published(world.loop.plan())
    await world.settle(4, wanted=BUSY)
    assert world.loop.state.hold is None
    assert (1, 3) == published(world.loop.plan())


async def test_observations_are_recorded_where_told(folder: Path, tmp_path: Path) -> None:
    """One record each 5 s, beside the decisions; nothing without a folder."""
    world = await running(folder, record_dir=str(tmp_path / "records"))
    await world.tick(20)
    found = list(read(tmp_path / "records", "observations"))
    assert 3 == len(found)
    assert {"observation", "targets", "revision"} <= set(found[-1])
    assert 2 == found[-1]["observation"]["pools"]["plain"]["running"]
    kinds = [line["kind"] for line in read(tmp_path / "records", "decisions")]
    assert ["policy", "decision"] == kinds[:2]


async def test_a_quiet_time_is_saved_now_and_then(folder: Path) -> None:
    """Nothing new is no line in the audit; the state is saved each 30 s."""
    world = await running(folder)
    await world.tick(4)
    lines, saved = len(world.audit()), world.state()["saved_wall"]
    await world.tick(20)
    assert (lines, saved) == (len(world.audit()), world.state()["saved_wall"])
    await world.tick(60)
    assert lines == len(world.audit())
    assert saved < world.state()["saved_wall"]


# --- what comes from outside -------------------------------------------------------------------------


async def test_a_file_that_breaks_the_checks_is_a_refused_revision(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tick goes on, the edit has its number and its words, and it is not judged again."""

    def breaks(*_: object) -> None:
        raise RecursionError("too deep")

    world = await running(folder)
    monkeypatch.setattr(policy_book, "check_against", breaks)
    world.policy = policy(2, 2, name="second")
    await world.tick(3)
    book = world.loop.state.book
    assert [(1, "active"), (2, "refused")] == [(one.revision, one.state) for one in book.revisions]
    assert book.last_error is not None
    assert "RecursionError: too deep" in book.last_error["message"]
    assert (2, 0) == (len(world.audit("policy")), world.loop.state.failures)


class Blocked(PolicyBook):
    """A book that judges until it is told to go on."""

    def __init__(self) -> None:
        super().__init__(default_policy.world(controller_settings(None)))
        self.begun, self.go_on = threading.Event(), threading.Event()

    def judge(self, seen: Seen, targets: Sizes | None, wall: float) -> PolicyRead | None:
        """In a thread, where waiting stops nobody else."""
        self.begun.set()
        assert self.go_on.wait(60.0)
        return super().judge(seen, targets, wall)


async def test_a_heavy_file_stops_no_report_and_no_order(folder: Path) -> None:
    """While a text is judged the controller answers; the text acts when it was judged."""
    world = World(controller_settings(folder))
    world.start()
    world.loop.state.book = book = Blocked()
    ticking = asyncio.create_task(world.tick())
    assert await asyncio.to_thread(book.begun.wait, 60.0)
    assert 200 == (await world.orders.take("hold", {"reason": "launch", "who": "ann"}))["status"]
    assert book.active is None
    book.go_on.set()
    await ticking
    assert book.active is not None


async def test_a_risen_epoch_is_in_the_store(folder: Path) -> None:
    """The successor of a controller that rose above a claim is above it too, and its lines carry it."""
    world = await running(folder)
    risen = world.observations.epoch + 5_000_000
    assert world.observations.succeed(risen - 1, world.now)
    await world.tick()
    assert (risen, b"%d\n" % risen) == (world.kept.epoch, (folder / "epoch").read_bytes())
    await world.orders.take("hold", {"reason": "launch", "who": "ann"})
    assert (risen, risen) == (world.audit("hold")[0]["epoch"], world.state()["epoch"])
    world.start()
    assert risen + 1 == world.observations.epoch


async def test_a_hold_in_mid_move_outlives_a_lower_budget(folder: Path) -> None:
    """The held plan travels with what it costs, so the actuator applies it; above its ceiling it does not."""
    world = await running(folder, QUICK)
    await world.tick(wanted=BUSY)
    assert (1, 2) == published(world.loop.plan())
    await world.orders.take("hold", {"reason": "incident", "who": "ann"})
    world.policy = policy(1, 1, name="less", most=2, guardrails={"allowLargeChange": 1})
    await world.tick(2)
    assert world.loop.state.book.active is not None
    assert "less" == world.loop.state.book.active.policy.metadata.name
    world.draining[SPECULATIVE], world.running[SPECULATIVE] = 1, 1
    plan = world.loop.plan()
    assert ((1, 2), 3) == (published(plan), plan["plan_budget"])
    assert {"speculative": 1} == applied(world, ceiling=4)
    assert {} == applied(world, ceiling=2)
    await world.orders.take("release", {"who": "ann"})
    await world.tick(6)
    plan = world.loop.plan()
    assert ((1, 1), 2) == (published(plan), plan["plan_budget"])


def applied(world: World, ceiling: int) -> dict[str, int]:
    """What an actuator that has seen the plan advance makes of it, by the name of the pool."""
    now = 0.0
    apply = ApplyPlan("controller", ["speculative", "plain"], ceiling, clock=lambda: now)
    found: dict[Any, int] = {}
    for step in range(2):
        now += 0.5
        numbers = world.loop.plan() | {"plan_seq": step}
        raw = {name: {"r": [SimpleNamespace(timestamp=now, value=value)]} for name, value in numbers.items()}
        contexts = {Named("controller"): SimpleNamespace(raw_metrics=raw, target_num_replicas=1)} | {
            Named(role.value): SimpleNamespace(raw_metrics={}, target_num_replicas=target)
            for role, target in world.targets.items()
        }
        found, _ = apply(contexts)
    return {named.name: target for named, target in found.items()}


@dataclass(frozen=True)
class Named:
    """A deployment's id."""

    name: str


async def test_a_kill_while_an_order_waits_loses_no_line(folder: Path) -> None:
    """An order that is written while a tick waits to decide saves nothing of that tick's move."""
    world = await running(folder, QUICK)
    kept: Any = world.kept
    await kept._lock.acquire()  # somebody is writing
    order = asyncio.create_task(world.orders.take("hold", {"reason": "launch", "who": "ann", "for_s": 1.0}))
    await asyncio.sleep(0)
    ticking = asyncio.create_task(world.tick(wanted=BUSY))
    while not world.loop.changing._waiters:  # type: ignore[attr-defined]
        await asyncio.sleep(0)
    kept._store = Dying(kept._store, "save", after=True)
    kept._lock.release()
    with pytest.raises(Killed):
        await order
    ticking.cancel()
    assert (0, None) == (world.state()["memory"]["moves"], world.state()["memory"]["move"])
    world.start(monotonic=50_000.0)
    await world.settle(10, wanted=BUSY)
    assert ["m1"] == begun(world)
    assert_gapless(world)


def state_with(**changed: Any) -> Callable[[World], None]:
    """A state file with other fields."""

    def damage(world: World) -> None:
        (world.folder / "state.json").write_text(json.dumps(world.state() | changed))

    return damage


def both(number: Any) -> dict[str, Any]:
    """A memory whose targets and plan are this number for each pool."""
    sizes_ = {"speculative": number, "plain": number}
    return {"targets": sizes_, "plan": sizes_}


DAMAGES: dict[str, Callable[[World], None]] = {
    "memory is a number": state_with(memory=5),
    "memory of one pool": state_with(memory={"targets": {"plain": 2}, "plan": {"plain": 2}}),
    "plan of one pool": state_with(memory=both(2) | {"plan": {"plain": 2}}),
    "huge targets": state_with(memory=both(10**9)),
    "negative targets": state_with(memory=both(-3)),
    "targets beyond a float": state_with(memory=both(10**400)),
    "counters beyond a float": state_with(memory=both(2) | {"moves": 10**400}),
    "endless cool-down": state_with(memory=both(2) | {"cooling_until": 1e300}),
    "times beyond the calendar": state_with(saved_wall=1e300, saved_now=-1e300),
    "revisions is a number": state_with(revisions=5),
    "an unknown word": state_with(revisions=[{"revision": 1, "sha": "a", "state": "archived", "at": 1.0}]),
    "revisions in disorder": state_with(
        revisions=[{"revision": number, "sha": "a", "state": "refused", "at": 1.0} for number in (2, 1)]
    ),
    "an override without its fields": state_with(overrides=[{"id": "x"}]),
    "a hold without end": state_with(holds=[{"by": "operator", "reason": "x", "since": 1e300}]),
    "lists in lists": lambda world: (
        (world.folder / "state.json").write_text('{"schema":1,"epoch":5,"x":' + "[" * 100_000) and None
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("audit", [True, False])
async def test_a_state_that_cannot_be_true_is_put_aside(
    folder: Path, name: str, audit: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said and kept aside, and the life goes on from its audit, or else from Ray Serve's targets."""
    world = await running(folder)
    DAMAGES[name](world)
    if not audit:
        (folder / "audit.jsonl").unlink()
    world.start()
    assert "state.json.corrupt-1" in caplog.text
    assert (folder / "state.json.corrupt-1").exists()
    await world.loop.keep("start", {}, ())
    await world.tick(6)
    assert (2, 2) == published(world.loop.plan())
    assert (None, 0) == (world.kept.problem, world.loop.state.failures)


@pytest.mark.parametrize(
    "part",
    [
        [1],
        5,
        {"revisions": 5},
        {"revisions": [{"revision": 1, "sha": "a", "state": "archived", "at": 1.0}]},
        {"memory": {"targets": {"speculative": 1}}},
        {"memory": both(-5)},
        {"memory": both(10**400)},
        {"memory": {"hold": {"by": "nobody", "reason": "x", "since": 1}}},
        {"overrides": [5]},
        {"saved_wall": "now", "memory": None},
    ],
)
async def test_an_audit_line_that_cannot_be_true_is_left_out(
    folder: Path, part: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said by its number; the state and the good lines around it count."""
    world = await running(folder)
    seq = world.audit()[-1]["seq"]
    with (folder / "audit.jsonl").open("a") as file:
        for number, state in ((1, part), (2, {"holds": [msgspec.to_builtins(HELD)]})):
            line = {"schema": 1, "kind": "x", "seq": seq + number, "epoch": 1, "state": state}
            file.write(json.dumps(line) + "\n")
    world.start()
    assert f"line {seq + 1} of the audit cannot be used (" in caplog.text
    assert HELD == world.loop.state.hold
    await world.loop.keep("start", {}, ())
    await world.tick(6)
    assert (2, 2) == published(world.loop.plan())
    assert (None, seq + 3) == (world.kept.problem, world.audit("start")[0]["seq"])


HELD = Hold(HoldBy.OPERATOR, "launch", WALL, WALL + 1.0, "ann")


async def test_moves_that_cannot_be_shown_are_left_out(folder: Path) -> None:
    """History stops nothing."""
    world = await running(folder, QUICK)
    await world.settle(8, wanted=BUSY)
    state_with(move_log=[{}, {"id": 5}, *world.state()["move_log"]])(world)
    world.start()
    assert ["m1"] == [move["id"] for move in world.loop.state.moves]
    await world.tick(wanted=BUSY)
    assert 0 == world.loop.state.failures
