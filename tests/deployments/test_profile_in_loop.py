"""A profile in the control loop: read with each tick, and the limit of signals and snapshots alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from autoscaling.types import Role
from deployments.control_status import control_status
from deployments.profile_source import ProfileSource
from tests.autoscaling.profiles import TREE, profile_text
from tests.deployments.control_world import World, controller_settings
from tests.policies import policy

SPEC = Role.SPECULATIVE
# A step of B sequences takes 0.016 + 0.003 x B s.
PROMISED = policy(2, 2, objectives={"interactive": {"tpotSeconds": 0.0202}})


async def with_profile(file: Path) -> World:
    """Two and two replicas up, the controller told of the profile."""
    world = World(controller_settings(file.parent / "state"), policy=PROMISED)
    world.start()
    world.loop._ports = replace(world.loop._ports, profile=ProfileSource(file))
    await world.settle()
    return world


def limits(world: World) -> tuple[int | None, int]:
    """The limit of a speculative replica that the last decision counted with, and that of the snapshot."""
    state = world.loop.state
    assert state.decision is not None
    assert state.policy is not None
    views = world.observations.snapshot(world.now, state.policy.pools).replicas
    return state.decision.signals[SPEC].limit, next(view.soft_share for view in views if view.role is SPEC)


ON_SIMULATED = {"engine": "simulated", "device": "cpu"}
DRAFTS_ALWAYS = {"mean": 2.5}


@pytest.mark.parametrize(
    ("text", "state", "expected", "limits_from"),
    [
        (profile_text(tokensPerStep=DRAFTS_ALWAYS), "measured", 11, "profile"),
        (profile_text(tokensPerStep={"mean": 1.0}), "measured", 1, "profile"),
        (profile_text(tokensPerStep={"mean": 5.0}), "measured", 16, "profile"),
        (profile_text(measuredOn=ON_SIMULATED, tokensPerStep=DRAFTS_ALWAYS), "measured", 11, "profile"),
        (
            profile_text(pools={"plain": {"baseSeconds": 0.01, "perTokenSeconds": 0.01}}),
            "measured",
            8,
            "unmeasured",
        ),
        (profile_text(syntheticAcceptance=True, tokensPerStep=DRAFTS_ALWAYS), "measured", 8, "unmeasured"),
        (profile_text(fingerprint="other", tokensPerStep=DRAFTS_ALWAYS), "stale", 8, "unmeasured"),
        (profile_text(fingerprint="other", tokensPerStep={"mean": 1.3}), "stale", 3, "unmeasured"),
        (profile_text(measuredOn={"engineVersion": "1"}), "stale", 8, "unmeasured"),
        ("{", "invalid", 3, "profile"),
        (None, "none", 8, "unmeasured"),
    ],
)
async def test_signals_and_snapshots_have_one_limit(
    tmp_path: Path, text: str | None, state: str, expected: int, limits_from: str
) -> None:
    """After an edit of a profile that allowed 3: a new one, the last good one, or the replicas' own 8.

    A profile of something else only lowers it.
    """
    file = tmp_path / "profile.json"
    file.write_text(profile_text(tokensPerStep={"mean": 1.3}), encoding="utf-8")
    world = await with_profile(file)
    assert (3, 3) == limits(world)
    if text is None:
        file.unlink()
    else:
        file.write_text(text, encoding="utf-8")
    await world.tick(2)
    assert (expected, expected) == limits(world)
    found = world.loop.profile_status()
    assert state == found["state"]
    assert {"speculative": limits_from, "plain": "unmeasured"} == found["limits"]


async def test_the_model_is_fitted_once_both_pools_pass(tmp_path: Path) -> None:
    """And falls back when the profile is taken away."""
    fit = {"fit": {"points": 9, "error": 0.05, "accepted": True}}
    file = tmp_path / "profile.json"
    file.write_text(
        profile_text(pools={role: pool | fit for role, pool in TREE["pools"].items()}), encoding="utf-8"
    )
    world = await with_profile(file)
    assert "fitted" == model(world)
    file.unlink()
    await world.tick(2)
    assert "fallback" == model(world)


def model(world: World) -> str:
    """The status's word for what limits and predictions rest on."""
    loop = world.loop
    found = control_status(
        world.settings, loop.state, loop.serve, loop.default, now=world.now, wall=world.wall
    )
    return str(found["model"])
