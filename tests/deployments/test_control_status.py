"""The controller's part of the status JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autoscaling.types import Role, ServePool, ServeStates
from deployments.control_status import control_status, move_status, pool_words
from tests.deployments.control_world import (
    PLAIN,
    SPECULATIVE,
    WALL,
    World,
    controller_settings,
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


def status(world: World) -> Any:
    """As it leaves the service: plain JSON without NaN."""
    loop = world.loop
    found = control_status(
        world.settings, loop.state, loop.serve, loop.default, now=world.now, wall=world.wall
    )
    return json.loads(json.dumps(found, allow_nan=False))


async def test_before_anything_is_known(folder: Path) -> None:
    """Unknown is null, never zero; counters and lists of this life are empty."""
    world = World(controller_settings(folder), asleep=True)
    world.start()
    assert {
        "last_tick": None,
        "ticks": 0,
        "failed_ticks": 0,
        "model": "fallback",
        "moves_ended": {},
        "policy": {
            "name": None,
            "path": None,
            "mode": None,
            "seen_revision": None,
            "active_revision": None,
            "shadow_revision": None,
            "sha": None,
            "state": None,
            "last_error": None,
            "refused": 0,
        },
        "hold": None,
        "overrides": [],
        "budget": None,
        "moves": [],
        "last_decision": None,
        "shadow_decision": None,
        "precedence": None,
        "next_schedule_change": None,
    } == status(world)
    assert {
        "target": None,
        "planned": None,
        "serve_target": None,
        "clamped_by": None,
        "demand": None,
        "capacity": None,
        "utilization": None,
        "short_seconds": None,
    } == pool_words(world.loop.state, PLAIN, None, world.now)


async def test_a_service_that_runs(folder: Path) -> None:
    """Policy, budget and the last decision, with their times in UTC."""
    world = await running(folder)
    found = status(world)
    assert ("2027-01-15T08:00:03Z", 6, 0) == (found["last_tick"], found["ticks"], found["failed_ticks"])
    policy_part = found["policy"]
    assert ("test", "enforce", 1, 1, "active", None, 0) == (
        policy_part["name"],
        policy_part["mode"],
        policy_part["seen_revision"],
        policy_part["active_revision"],
        policy_part["state"],
        policy_part["last_error"],
        policy_part["refused"],
    )
    assert 64 == len(policy_part["sha"])
    assert {"accelerators": 4, "used": 4, "min": 4, "surge": 0} == found["budget"]
    assert {
        "id": "6",
        "at": "2027-01-15T08:00:03Z",
        "reason": "steady",
        "summary": "no pool is short",
    } == found["last_decision"]
    assert (
        "hold > override > schedule > pools; now speculative by pools; plain by pools" == found["precedence"]
    )
    assert {
        "target": 2,
        "planned": 2,
        "serve_target": 2,
        "clamped_by": None,
        "demand": 0.0,
        "capacity": 16.0,
        "utilization": 0.0,
        "short_seconds": None,
    } == pool_words(world.loop.state, PLAIN, world.loop.serve, world.now)


async def test_a_pool_that_is_short(folder: Path) -> None:
    """What it needs, what it can serve, and since when, by the controller's own clock."""
    world = await running(folder)
    await world.tick(5, wanted=sizes(0, 30))
    needs = ("demand", "capacity", "utilization", "short_seconds")
    found = {role: pool_words(world.loop.state, role, world.loop.serve, world.now + 0.25) for role in Role}
    assert {PLAIN: (30.0, 16.0, 1.875, 2.25), SPECULATIVE: (0.0, 16.0, 0.0, None)} == {
        role: tuple(words[name] for name in needs) for role, words in found.items()
    }


async def test_a_refused_policy(folder: Path) -> None:
    """Seen and active differ, and the error has a message, a line and a field."""
    world = await running(folder)
    world.policy = policy(2, 2, pools={"plain": {"softInflight": 3}})
    await world.tick()
    found = status(world)["policy"]
    assert (2, 1, "refused", 1) == (
        found["seen_revision"],
        found["active_revision"],
        found["state"],
        found["refused"],
    )
    assert {"message", "line", "field"} == set(found["last_error"])
    assert "spec.pools.plain.softInflight" == found["last_error"]["field"]


async def test_a_shadow(folder: Path) -> None:
    """Its revision and its last decision are beside the acting ones."""
    world = await running(folder)
    world.policy = policy(3, 1, mode="shadow", pools={"speculative": {"minReplicas": 3}})
    await world.tick(2)
    found = status(world)
    assert (1, 2, "enforce", "shadow") == (
        found["policy"]["active_revision"],
        found["policy"]["shadow_revision"],
        found["policy"]["mode"],
        found["policy"]["state"],
    )
    assert ("steady", "bounds") == (found["last_decision"]["reason"], found["shadow_decision"]["reason"])


async def test_a_hold_and_overrides(folder: Path) -> None:
    """An operator's, and those of the file; ended ones are not shown."""
    text = policy(
        2,
        2,
        overrides=[
            {
                "name": "old",
                "pool": "plain",
                "maxReplicas": 2,
                "until": "2027-01-01T00:00:00Z",
                "reason": "x",
            },
            {
                "name": "new",
                "pool": "plain",
                "maxReplicas": 3,
                "until": "2027-02-01T00:00:00Z",
                "reason": "y",
            },
        ],
    )
    world = await running(folder, text)
    await world.orders.take("hold", {"reason": "launch", "who": "ann"})
    order = {"pool": "speculative", "min_replicas": 2, "for_s": 60.0, "reason": "z", "who": "ann"}
    await world.orders.take("override_set", order)
    await world.tick()
    found = status(world)
    assert {
        "by": "operator",
        "reason": "launch",
        "since": "2027-01-15T08:00:03Z",
        "expires": None,
        "who": "ann",
    } == found["hold"]
    assert [("policy", "plain", None), ("ann", "speculative", "2027-01-15T08:00:03Z")] == [
        (one["by"], one["pool"], one["since"]) for one in found["overrides"]
    ]
    assert {
        "id",
        "pool",
        "replicas",
        "min_replicas",
        "max_replicas",
        "since",
        "until",
        "reason",
        "by",
    } == set(found["overrides"][0])


async def test_a_move(folder: Path) -> None:
    """From, to, reason, what it waits for; durations once it has ended; the newest first."""
    world = await running(folder, QUICK)
    await world.tick(wanted=sizes(0, 30))
    (move,) = status(world)["moves"]
    assert {
        "id": "m1",
        "at": "2027-01-15T08:00:03Z",
        "from": "speculative",
        "to": "plain",
        "count": 1,
        "before": {"speculative": 2, "plain": 2},
        "after": {"speculative": 1, "plain": 3},
        "reason": "shortfall",
        "state": "draining",
        "waiting_for": "1 replica of speculative to drain",
        "age_seconds": 0.0,
        "duration_seconds": None,
        "drain_seconds": None,
        "start_seconds": None,
        "revision": 1,
    } == move
    world.obey()
    world.now += 0.25
    assert 0.25 == status(world)["moves"][0]["age_seconds"]
    world.now -= 0.25
    await world.settle(4)
    (move,) = status(world)["moves"]
    assert ("done", None, None) == (move["state"], move["waiting_for"], move["age_seconds"])
    assert {"done": 1} == status(world)["moves_ended"]
    assert (0.5, 0.5, 1.0) == (move["drain_seconds"], move["start_seconds"], move["duration_seconds"])


def test_at_most_20_moves_are_shown() -> None:
    """The newest first."""
    world = World(controller_settings(None))
    world.start()
    move = {
        "id": "m",
        "at": 0.0,
        "wall": WALL,
        "source": None,
        "receiver": "plain",
        "count": 1,
        "reason": "shortfall",
        "state": "timed_out",
        "waiting_for": "1 replica of plain to start",
        "revision": 1,
        "ended_at": 900.0,
        "started_at": 1.0,
    }
    world.loop.state.moves = [move | {"id": f"m{number}"} for number in range(30)]
    assert [f"m{number}" for number in range(29, 9, -1)] == [one["id"] for one in status(world)["moves"]]
    found = move_status(move, None)
    assert (None, None, None, 900.0, None, None, "1 replica of plain to start", None) == (
        found["before"],
        found["after"],
        found["age_seconds"],
        found["duration_seconds"],
        found["drain_seconds"],
        found["start_seconds"],
        found["waiting_for"],
        found["from"],
    )


@pytest.mark.parametrize(
    ("states", "used"),
    [
        ({"RUNNING": 2}, 3),
        ({"RUNNING": 1, "STARTING": 1, "STOPPING": 1}, 4),
        ({"UPDATING": 1, "RECOVERING": 1, "PENDING_MIGRATION": 1}, 4),
        ({}, 1),
    ],
)
async def test_what_is_used_of_the_budget(folder: Path, states: dict[str, int], used: int) -> None:
    """Every replica that holds an accelerator counts, a draining one too."""
    world = await running(folder)
    looked = world.loop.serve
    assert looked is not None
    world.loop.serve = ServeStates(
        looked.at,
        {
            SPECULATIVE: ServePool(2, states, frozenset()),
            PLAIN: ServePool(1, {"RUNNING": 1}, frozenset({"a"})),
        },
    )
    assert used == status(world)["budget"]["used"]


async def test_used_is_unknown_without_a_look(folder: Path) -> None:
    """Null, not zero."""
    world = await running(folder)
    world.loop.serve = None
    assert {"accelerators": 4, "used": None, "min": 4, "surge": 0} == status(world)["budget"]


@pytest.mark.parametrize(
    ("minimum", "maximum", "bound_by", "expected"),
    [
        (1, 3, "pools", None),
        (2, 3, "pools", "minReplicas"),
        (1, 2, "pools", "maxReplicas"),
        (2, 2, "pools", None),
        (1, 3, "schedule night", "schedule night"),
        (2, 3, "schedule night", "schedule night, minReplicas"),
        (2, 2, "override o-1", "override o-1"),
    ],
)
async def test_what_clamps_a_pool(
    folder: Path, minimum: int, maximum: int, bound_by: str, expected: str | None
) -> None:
    """Any layer that keeps a pool from being larger or smaller is named."""
    world = await running(folder)
    in_force = world.loop.state.policy
    assert in_force is not None
    rules = replace(in_force.pools[Role.PLAIN], minimum=minimum, maximum=maximum, bound_by=bound_by)
    world.loop.state.policy = replace(in_force, pools={**in_force.pools, Role.PLAIN: rules})
    assert expected == pool_words(world.loop.state, Role.PLAIN, world.loop.serve, world.now)["clamped_by"]


async def test_the_next_change_of_the_schedules_is_told(folder: Path) -> None:
    """When schedules begin to act or cease to; nothing when the policy has none."""
    night = {
        "name": "night",
        "timeZone": "UTC",
        "days": ["Fri"],
        "start": "22:00",
        "end": "20:00",
        "pools": {"plain": {"minReplicas": 1}},
    }
    world = await running(folder, policy(2, 2, schedules=[night]))
    # The world's clock begins on a Friday, at 08:00 UTC.
    assert "2027-01-15T22:00:00Z" == status(world)["next_schedule_change"]
