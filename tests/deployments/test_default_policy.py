"""The policy of a service that was given none."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.policy_file import read_policy
from autoscaling.policy_in_force import in_force
from autoscaling.policy_world import check_against
from autoscaling.types import Role
from deployments.config import ControllerSettings
from deployments.default_policy import default_policy_text, world
from deployments.local_config import ServiceSettings, default_settings
from deployments.policy_use import default_policy


def controller_settings(
    speculative: int,
    plain: int,
    *,
    slots: int | None = None,
    ranks: tuple[int, int] = (1, 1),
    empty: bool = False,
) -> ControllerSettings:
    """What the controller gets from the settings of a service."""
    base = default_settings("simulated").model_dump()
    for name, replicas, rank in (("speculative", speculative, ranks[0]), ("plain", plain, ranks[1])):
        base[name]["replicas"] = replicas
        base[name]["may_be_empty"] = empty
        base[name]["engine"]["tensor_parallel_size"] = rank
    return ServiceSettings.model_validate(base | {"slots": slots}).controller()


@st.composite
def any_settings(draw: st.DrawFn) -> ControllerSettings:
    """Settings of every service that may be started."""
    speculative, plain = draw(st.integers(1, 64)), draw(st.integers(1, 64))
    ranks = draw(st.sampled_from((1, 2, 4, 8))), draw(st.sampled_from((1, 2, 3, 8)))
    taken = speculative * ranks[0] + plain * ranks[1]
    slots = draw(st.none() | st.integers(taken, 4096))
    return controller_settings(speculative, plain, slots=slots, ranks=ranks, empty=draw(st.booleans()))


@given(any_settings())
def test_it_is_always_valid(settings: ControllerSettings) -> None:
    """Whatever can be started has a default policy without a problem, also against the service itself."""
    read = read_policy(default_policy_text(settings))
    assert () == read.problems
    assert () == check_against(read, world(settings))


@given(any_settings())
def test_it_begins_with_the_replicas_that_are_set(settings: ControllerSettings) -> None:
    """The bootstrap is the settings', and it lies inside the bounds and the budget."""
    policy, sha = default_policy(settings)
    found = in_force(policy, 0, sha, overrides=(), hold=None, wall=1_800_000_000.0)
    assert {role: settings.pool(role).replicas for role in Role} == found.bootstrap
    taken = sum(settings.pool(role).replicas * settings.pool(role).share for role in Role)
    assert (taken, settings.ceiling) == (found.budget_min, found.budget_max)
    for role in Role:
        rules = found.pools[role]
        assert settings.pool(role).floor == rules.minimum
        assert rules.minimum <= found.bootstrap[role] <= rules.maximum <= settings.pool(role).most
        assert settings.pool(role).share == rules.accelerators


@pytest.mark.parametrize(
    ("slots", "budget", "most"),
    [(None, {"min": 3, "max": 3}, (2, 2)), (8, {"min": 3, "max": 8}, (7, 7))],
)
def test_in_words(slots: int | None, budget: dict[str, int], most: tuple[int, int]) -> None:
    """One speculative and two plain replicas: nothing is left free, or as much as the slots leave."""
    spec = yaml.safe_load(default_policy_text(controller_settings(1, 2, slots=slots)))["spec"]
    assert budget == spec["budget"]
    assert {"speculative": 1, "plain": 2} == spec["bootstrap"]
    assert most == (spec["pools"]["speculative"]["maxReplicas"], spec["pools"]["plain"]["maxReplicas"])
    assert (1, 1) == (spec["pools"]["speculative"]["minReplicas"], spec["pools"]["plain"]["minReplicas"])


def test_a_pool_may_be_empty_only_when_it_is_set_so() -> None:
    """With `may_be_empty` the minimum is 0 and the other pool may have everything."""
    spec = yaml.safe_load(default_policy_text(controller_settings(1, 1, slots=4, empty=True)))["spec"]
    assert (0, 4) == (spec["pools"]["plain"]["minReplicas"], spec["pools"]["plain"]["maxReplicas"])


def test_the_world_is_that_of_the_settings() -> None:
    """Ceiling, floors, Serve's maximum and what a replica takes; no targets before anything runs."""
    found = world(controller_settings(1, 2, slots=9, ranks=(2, 1)))
    assert (9, {Role.SPECULATIVE: 1, Role.PLAIN: 1}) == (found.ceiling_accelerators, found.floors)
    assert ({Role.SPECULATIVE: 4, Role.PLAIN: 9}, {Role.SPECULATIVE: 2, Role.PLAIN: 1}) == (
        found.most,
        found.accelerators,
    )
    assert (None, None) == (found.targets, found.active_revision)
