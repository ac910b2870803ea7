"""An operator's orders: what each does, what it leaves in the audit, what it answers, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autoscaling.request_line import Outcome
from autoscaling.request_record import as_fields
from tests.autoscaling.request_lines import STRICT, line, load
from tests.deployments.control_world import (
    BOTH_TWO,
    SPECULATIVE,
    World,
    controller_settings,
    published,
    running,
    sizes,
)
from tests.policies import policy

QUICK = policy(
    2,
    2,
    behavior={
        "scaleUp": {"stabilizationWindowSeconds": 0},
        "scaleDown": {"stabilizationWindowSeconds": 0},
    },
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


def override(**changes: Any) -> dict[str, Any]:
    return {"pool": "plain", "for_s": 600.0, "reason": "launch", "who": "ann"} | changes


async def body(world: World, name: str, **arguments: Any) -> Any:
    """The answer to an order that must be taken."""
    answer = await world.orders.take(name, arguments)
    assert 200 == answer["status"], answer
    assert {"status", "body"} == set(answer)
    return answer["body"]


async def refused(world: World, name: str, **arguments: Any) -> tuple[int, str, str | None]:
    """Status, words and field of an order that must be refused, and that changes nothing."""
    lines, before = world.audit(), world.loop.state.document(0.0, 0.0)
    answer = await world.orders.take(name, arguments)
    assert {"status", "error", "field"} == set(answer), answer
    assert lines == world.audit()
    assert before == world.loop.state.document(0.0, 0.0)
    return answer["status"], answer["error"], answer["field"]


# --- hold and release --------------------------------------------------------------------------------


async def test_a_hold_keeps_the_targets(folder: Path) -> None:
    """It holds whatever the signals say, is in the audit and the state, and is answered with its times."""
    world = await running(folder, QUICK)
    found = await body(world, "hold", reason="launch", who="ann", for_s=90.0)
    assert {
        "hold": {
            "by": "operator",
            "reason": "launch",
            "since": "2027-01-15T08:00:03Z",
            "expires": "2027-01-15T08:01:33Z",
            "who": "ann",
        }
    } == found
    (line,) = world.audit("hold")
    assert ("launch", "ann") == (line["hold"]["reason"], line["hold"]["who"])
    assert [line["hold"]] == world.state()["holds"]
    await world.settle(5, wanted=sizes(0, 30))
    assert (2, 2) == published(world.loop.plan())


async def test_a_hold_without_an_end(folder: Path) -> None:
    """Its expiry is unknown, not a number."""
    world = await running(folder)
    found = await body(world, "hold", reason="launch", who="ann", for_s=None)
    assert found["hold"]["expires"] is None


async def test_a_release_ends_the_hold(folder: Path) -> None:
    """The targets move again; the line says who released what."""
    world = await running(folder, QUICK)
    await body(world, "hold", reason="launch", who="ann")
    assert {"released": True} == await body(world, "release", who="bob")
    (line,) = world.audit("release")
    assert ("bob", "launch") == (line["who"], line["hold"]["reason"])
    assert [] == world.state()["holds"]
    await world.settle(5, wanted=sizes(0, 30))
    assert (1, 3) == published(world.loop.plan())


async def test_a_release_of_nothing(folder: Path) -> None:
    """It is answered, and leaves no line."""
    world = await running(folder)
    assert {"released": False} == await body(world, "release", who="bob")
    assert [] == world.audit("release")


async def test_a_second_hold_replaces_the_first(folder: Path) -> None:
    """There is one operator's hold."""
    world = await running(folder)
    for reason in ("first", "second"):
        await body(world, "hold", reason=reason, who="ann")
    assert world.loop.state.hold is not None
    assert "second" == world.loop.state.hold.reason
    assert 1 == len(world.state()["holds"])


# --- overrides ---------------------------------------------------------------------------------------


async def test_an_override_acts_with_the_next_tick(folder: Path) -> None:
    """It goes beyond what the signals want; audit, state and answer name it."""
    world = await running(folder)
    found = (await body(world, "override_set", **override(replicas=3)))["override"]
    assert found["id"].startswith("o-")
    assert {
        "id": found["id"],
        "pool": "plain",
        "replicas": 3,
        "min_replicas": None,
        "max_replicas": None,
        "since": "2027-01-15T08:00:03Z",
        "until": "2027-01-15T08:10:03Z",
        "reason": "launch",
        "by": "ann",
    } == found
    (line,) = world.audit("override")
    assert (found["id"], 3) == (line["override"]["id"], line["override"]["replicas"])
    assert [found["id"]] == [one["id"] for one in world.state()["overrides"]]
    await world.settle(3)
    assert (1, 3) == published(world.loop.plan())
    assert {"overrides": [found]} == await body(world, "override_list")


async def test_an_override_ends_by_itself(folder: Path) -> None:
    """After its time it is gone from the list."""
    world = await running(folder)
    await body(world, "override_set", **override(replicas=3, for_s=2.0))
    await world.settle(5)
    assert {"overrides": []} == await body(world, "override_list")


async def test_an_override_is_cleared_by_its_id(folder: Path) -> None:
    """The other ones stay; the line names who cleared which."""
    world = await running(folder)
    ids = [
        (await body(world, "override_set", **override(max_replicas=most)))["override"]["id"]
        for most in (2, 3)
    ]
    assert {"cleared": ids[:1]} == await body(world, "override_clear", id=ids[0], who="bob")
    assert ids[1:] == [one.id for one in world.loop.state.overrides]
    (line,) = world.audit("override_clear")
    assert ("bob", ids[:1]) == (line["who"], [one["id"] for one in line["overrides"]])
    assert ids[1:] == [one["id"] for one in world.state()["overrides"]]


async def test_all_overrides_are_cleared_at_once(folder: Path) -> None:
    """`all` takes every operator's override, also when there is none."""
    world = await running(folder)
    ids = [
        (await body(world, "override_set", **override(max_replicas=most)))["override"]["id"]
        for most in (2, 3)
    ]
    assert {"cleared": ids} == await body(world, "override_clear", id="all", who="bob")
    assert {"cleared": []} == await body(world, "override_clear", id="all", who="bob")
    assert 1 == len(world.audit("override_clear"))


async def test_an_unknown_override_cannot_be_cleared(folder: Path) -> None:
    """404 with the ones that there are."""
    world = await running(folder)
    assert (404, "no override o-1 was set at run time; known: there are none", "id") == await refused(
        world, "override_clear", id="o-1", who="bob"
    )
    known = (await body(world, "override_set", **override(replicas=3)))["override"]["id"]
    status, words, field = await refused(world, "override_clear", id="o-1", who="bob")
    assert (404, "id") == (status, field)
    assert words.endswith(f"known: {known}")


async def test_an_override_beyond_the_budget_is_refused(folder: Path) -> None:
    """400 with what there is room for."""
    world = await running(folder)
    status, words, _ = await refused(world, "override_set", **override(replicas=4))
    assert 400 == status
    assert "replicas 4 of plain does not fit" in words
    assert "at most 3 beside the minimum of speculative" in words


@pytest.mark.parametrize("name", ["replicas", "min_replicas"])
async def test_an_override_below_serves_minimum_is_refused(folder: Path, name: str) -> None:
    """A pool that was not set up to be empty cannot be emptied; the field is named."""
    world = await running(folder)
    status, words, field = await refused(world, "override_set", **override(**{name: 0}))
    assert (400, name) == (status, field)
    assert f"{name} is 0, but the plain pool cannot be empty" in words
    assert "may_be_empty" in words


async def test_an_override_may_empty_a_pool_that_is_set_up_so(folder: Path) -> None:
    """With `may_be_empty` the last replica goes."""
    world = await running(folder, policy(2, 2, pools={"plain": {"minReplicas": 0}}), floor=0)
    await body(world, "override_set", **override(replicas=0))
    await world.settle(3)
    assert 0 == published(world.loop.plan())[1]


async def test_an_override_with_a_bad_time_is_refused(folder: Path) -> None:
    """Longer than a month belongs into the policy."""
    world = await running(folder)
    status, words, _ = await refused(world, "override_set", **override(replicas=3, for_s=40 * 86_400.0))
    assert 400 == status
    assert "more than 30 days ahead" in words


# --- policies ----------------------------------------------------------------------------------------


async def test_the_policy_and_its_history(folder: Path) -> None:
    """What acts, what was refused and why, and every revision, the newest first."""
    world = await running(folder)
    world.policy = "spec: [\n"
    await world.tick()
    found = await body(world, "policy")
    assert (1, 2, "refused") == (found["active_revision"], found["seen_revision"], found["state"])
    assert [(2, "refused"), (1, "active")] == [(one["revision"], one["state"]) for one in found["history"]]
    assert ["2027-01-15T08:00:03Z", "2027-01-15T08:00:00Z"] == [one["at"] for one in found["history"]]
    assert found["last_error"]["message"] in found["history"][0]["message"]


async def test_the_text_of_a_revision(folder: Path) -> None:
    """As it was written, refused ones too; also after a restart, from the folder."""
    world = await running(folder)
    world.policy = "spec: [\n"
    await world.tick()
    for _ in range(2):
        found = await body(world, "policy_text", revision=1)
        assert (1, "active", BOTH_TWO) == (found["revision"], found["state"], found["text"])
        assert "spec: [\n" == (await body(world, "policy_text", revision=2))["text"]
        world.start()


@pytest.mark.parametrize("revision", [0, 2, 999])
async def test_the_text_of_an_unknown_revision(folder: Path, revision: int) -> None:
    """404 by its number."""
    world = await running(folder)
    assert (404, f"the text of revision {revision} is not kept", "revision") == await refused(
        world, "policy_text", revision=revision
    )


# --- why ---------------------------------------------------------------------------------------------


async def moved(folder: Path) -> World:
    world = await running(folder)
    await body(world, "override_set", **override(replicas=3))
    await world.settle(4)
    return world


async def test_why_of_a_move(folder: Path) -> None:
    """The newest without an id; each by its own."""
    world = await moved(folder)
    for wanted in (None, "m1"):
        found = await body(world, "why", kind="move", id=wanted)
        assert ("move", "m1", "override") == (found["kind"], found["record"]["id"], found["record"]["reason"])
        assert {"speculative": 2, "plain": 2} == found["record"]["before"]


async def test_why_of_a_move_that_is_not_kept(folder: Path) -> None:
    """404 with the newest one, or that there was none."""
    world = await running(folder)
    assert (404, "no move m9 is kept; there was none yet", "id") == await refused(
        world, "why", kind="move", id="m9"
    )
    await body(world, "override_set", **override(replicas=3))
    await world.settle(4)
    assert (404, "no move m9 is kept; the newest is m1", "id") == await refused(
        world, "why", kind="move", id="m9"
    )


async def test_why_of_a_decision(folder: Path) -> None:
    """The newest from memory, an older one from the audit; both have their steps."""
    world = await moved(folder)
    newest = world.loop.state.decision
    assert newest is not None
    for wanted in (None, str(newest.number)):
        found = await body(world, "why", kind="decision", id=wanted)
        assert newest.number == found["record"]["number"]
    older = await body(world, "why", kind="decision", id="1")
    assert ("bootstrap", {"speculative": 2, "plain": 2}) == (
        older["record"]["reason"],
        older["record"]["targets"],
    )
    assert "know" == older["record"]["steps"][0]["name"]


async def test_why_of_a_decision_of_a_former_life(folder: Path) -> None:
    """The audit outlives the controller."""
    world = await moved(folder)
    world.start()
    await world.tick()
    assert "bootstrap" == (await body(world, "why", kind="decision", id="1"))["record"]["reason"]


async def test_why_of_a_decision_that_is_not_kept(folder: Path) -> None:
    """404: only changes are kept, and the newest is named."""
    world = await moved(folder)
    newest = world.loop.state.decision
    assert newest is not None
    status, words, field = await refused(world, "why", kind="decision", id="99999")
    assert (404, "id") == (status, field)
    assert f"no decision 99999 is kept; the newest is {newest.number}" in words


async def test_why_before_the_first_decision(folder: Path) -> None:
    """404: nothing was decided yet."""
    world = await running(folder)
    world.start()
    status, words, _ = await refused(world, "why", kind="decision", id=None)
    assert (404, "nothing has been decided yet: the controller has just started") == (status, words)


async def test_why_of_a_request(folder: Path) -> None:
    """By the caller's id and the engine's, the newest without one."""
    world = await running(folder)
    for seq in (1, 2):
        world.requests.take_load("i", load(line(seq, outcome=Outcome.SHED)), 0.0)
    world.requests.settle(0.0, STRICT)
    for wanted, found in (("req-1", "req-1"), ("req-1-abc", "req-1"), (None, "req-2")):
        record = (await body(world, "why", kind="request", id=wanted))["record"]
        assert (found, "shed", "missed") == (record["id"], record["outcome"], record["verdict"])


async def test_why_of_a_request_that_is_not_kept(folder: Path) -> None:
    """404: when it would be known, how many are kept, and where older ones would be."""
    world = await running(folder)
    assert (404, "no request has ended since this controller began", "id") == await refused(
        world, "why", kind="request", id=None
    )
    status, words, field = await refused(world, "why", kind="request", id="req-9")
    assert (404, "id") == (status, field)
    assert words == (
        "no request req-9 is known: it is reported within a second of its end, the newest 10,000 are kept "
        "while the controller lives, and older ones are in no record: the service runs without --record"
    )


async def test_why_of_a_request_of_a_former_life(tmp_path: Path) -> None:
    """The records outlive the controller; the newest of an id counts."""
    settings = controller_settings(tmp_path / "state", record_dir=str(tmp_path / "records"))
    world = World(settings)
    world.start()
    for seq in (1, 2):
        world.requests.take_load("i", load(line(seq, id="same", outcome=Outcome.SHED)), 0.0)
    world.requests.settle(0.0, STRICT)
    await world.kept.keep_requests([as_fields(one) for one in world.requests.drain()])
    world.start()
    for wanted, seq in (("same", 2), ("req-1-abc", 1)):
        assert seq == (await body(world, "why", kind="request", id=wanted))["record"]["seq"]
    status, words, _ = await refused(world, "why", kind="request", id="req-9")
    assert 404 == status
    assert words.endswith("and older ones are in no record that was searched")


async def test_why_of_something_else(folder: Path) -> None:
    """400 with the three kinds."""
    world = await running(folder)
    assert (400, "weather is neither decision, move nor request", "kind") == await refused(
        world, "why", kind="weather", id="r"
    )


async def test_an_unknown_order(folder: Path) -> None:
    """404 with the orders that there are."""
    world = await running(folder)
    status, words, _ = await refused(world, "freeze")
    assert 404 == status
    assert words.startswith("freeze is none of hold, release, ")


async def test_orders_work_before_anything_is_known(tmp_path: Path) -> None:
    """A controller that has not seen Ray Serve takes a hold, an override and a question for the policy."""
    world = await running(tmp_path / "state")
    world.asleep = True
    world.start()
    await body(world, "hold", reason="launch", who="ann")
    await body(world, "override_set", **override(pool=SPECULATIVE.value, max_replicas=2))
    assert 1 == (await body(world, "policy"))["active_revision"]


# --- where nothing can be written -----------------------------------------------------------------------


async def test_an_order_acts_although_nothing_can_be_written(folder: Path) -> None:
    """A full disk is no reason to refuse a hold in an incident; the answer warns, and the status says why."""
    world = await running(folder, QUICK)
    for file in folder.iterdir():
        if file.is_file():
            file.unlink()
    (folder / "policies").rename(folder.parent / "aside")
    folder.rmdir()
    folder.write_text("a file where the folder was")
    answer = await world.orders.take("hold", {"reason": "incident", "who": "ann", "for_s": None})
    assert 200 == answer["status"]
    assert "a restart would lose it" in answer["body"]["warning"]
    assert world.loop.state.hold is not None
    assert world.kept.problem is not None
    folder.unlink()
    answer = await world.orders.take("release", {"who": "ann"})
    assert {"status": 200, "body": {"released": True}} == answer
    assert world.kept.problem is None


async def test_a_store_that_could_not_be_opened_is_tried_again(folder: Path) -> None:
    """A controller that began without its folder keeps its state there as soon as it can."""
    folder.write_text("a file where the folder should be")
    world = await running(folder, QUICK)
    assert world.kept.problem is not None
    answer = await world.orders.take("hold", {"reason": "incident", "who": "ann", "for_s": None})
    assert "warning" in answer["body"]
    folder.unlink()
    answer = await world.orders.take("hold", {"reason": "again", "who": "ann", "for_s": None})
    assert {"hold"} == set(answer["body"])
    assert "again" == world.state()["holds"][0]["reason"]


async def test_a_controller_that_was_succeeded_takes_no_orders(folder: Path) -> None:
    """What it would write is refused by the store, and its successor would never know."""
    world = await running(folder, QUICK)
    old = world.orders
    world.start()
    await world.tick()
    first = await old.take("hold", {"reason": "x", "who": "ann", "for_s": None})
    second = await old.take("hold", {"reason": "x", "who": "ann", "for_s": None})
    assert (200, True) == (first["status"], "warning" in first["body"])
    assert 503 == second["status"]


async def test_reads_leave_the_store_as_it_is(folder: Path) -> None:
    """Odd and huge numbers of a revision are 404, unread; no read is a problem of the store."""
    world = await running(folder)
    for wanted in (10**300, 10**5000, -1, 1.0, True, "1", None, [1]):
        answer = await world.orders.take("policy_text", {"revision": wanted})
        assert (404, "revision") == (answer["status"], answer["field"])
    world.start()
    (folder / "policies" / "1.yaml").unlink()
    (folder / "policies" / "1.yaml").mkdir()
    assert 404 == (await world.orders.take("policy_text", {"revision": 1}))["status"]
    assert world.kept.problem is None


async def test_a_51st_override_is_refused(folder: Path) -> None:
    """409 with what to do; one less, and there is room again."""
    world = await running(folder)
    for _ in range(50):
        await body(world, "override_set", **override(max_replicas=3))
    assert (
        409,
        "50 overrides are set at run time, no more are taken: clear some, or all",
        None,
    ) == await refused(world, "override_set", **override(max_replicas=3))
    await body(world, "override_clear", id=world.loop.state.overrides[0].id, who="bob")
    await body(world, "override_set", **override(max_replicas=3))


# --- clocks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", [False, True])
async def test_a_wall_clock_that_jumps_for_a_moment_ends_nothing(folder: Path, again: bool) -> None:
    """A hold and an override of two hours outlive a tick at a clock three hours ahead, restored or not."""
    world = await running(folder, QUICK)
    await body(world, "hold", reason="launch", who="ann", for_s=7200.0)
    await body(world, "override_set", **override(max_replicas=3, for_s=7200.0))
    if again:
        world.start()
    world.wall += 3 * 3600
    await world.tick()
    world.wall -= 3 * 3600
    await world.tick(2)
    decision = world.loop.state.decision
    assert decision is not None
    assert decision.hold is not None
    assert "launch" == decision.hold.reason
    assert 1 == len((await body(world, "override_list"))["overrides"])


async def test_a_wall_clock_that_was_set_ahead_for_good_ends_them(folder: Path) -> None:
    """They act no more at once, and are forgotten when their time has really passed."""
    world = await running(folder, QUICK)
    await body(world, "hold", reason="launch", who="ann", for_s=60.0)
    await body(world, "override_set", **override(replicas=3, for_s=60.0))
    world.wall += 3 * 3600
    await world.tick()
    decision = world.loop.state.decision
    assert decision is not None
    assert decision.hold is None
    assert "override" not in decision.reason.value
    assert world.loop.state.hold is not None
    await world.tick(every_s=60.0)
    assert (None, ()) == (world.loop.state.hold, world.loop.state.overrides)
