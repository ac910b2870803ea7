"""A policy in a mounted ConfigMap, from the kubelet's swap to what the controller obeys and says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from deployments.policy_source import PolicySource
from tests.deployments.control_world import sizes
from tests.deployments.kubelet import ConfigMapMount, config_map
from tests.deployments.mounted import Mounted, mounted
from tests.policies import policy

__all__ = ["config_map"]

NAME = "policy.yaml"
TWO_EACH = policy(2, 2)
MORE_SPECULATIVE = policy(3, 1, pools={"speculative": {"minReplicas": 3}})
BAD = TWO_EACH.replace("max: 4", "max: 9")


@pytest.fixture
async def world(tmp_path: Path, config_map: ConfigMapMount) -> Mounted:
    """A controller that runs revision 1 out of the mount."""
    config_map.publish({NAME: TWO_EACH})
    found = mounted(tmp_path / "state", config_map.folder)
    found.start()
    await found.settle()
    return found


async def said(world: Mounted) -> dict[str, Any]:
    """What the operator's question for the policy is answered."""
    answer = await world.orders.take("policy", {})
    assert 200 == answer["status"]
    found: dict[str, Any] = answer["body"]
    return found


def revisions(found: dict[str, Any]) -> list[tuple[int, str]]:
    """Oldest first."""
    return [(one["revision"], one["state"]) for one in reversed(found["history"])]


async def test_good_bad_and_back(world: Mounted, config_map: ConfigMapMount) -> None:
    """Case C10: each swap is a revision; a bad one is refused with its line, and the one before acts on."""
    config_map.publish({NAME: MORE_SPECULATIVE})
    await world.settle(8)
    assert sizes(3, 1) == world.targets
    config_map.publish({NAME: BAD})
    await world.settle(8)

    found = await said(world)
    assert (2, 3, "refused") == (found["active_revision"], found["seen_revision"], found["state"])
    line = BAD.splitlines().index("    max: 9") + 1
    assert (line, "spec.budget.max") == (found["last_error"]["line"], found["last_error"]["field"])
    assert sizes(3, 1) == world.targets

    config_map.publish({NAME: TWO_EACH})
    await world.settle(8)
    found = await said(world)
    assert [(1, "superseded"), (2, "superseded"), (3, "refused"), (4, "active")] == revisions(found)
    assert found["history"][0]["sha"] == found["history"][-1]["sha"]
    assert (None, 1) == (found["last_error"], found["refused"])


async def test_two_swaps_within_a_poll_are_one(world: Mounted, config_map: ConfigMapMount) -> None:
    """What was there between two looks is never obeyed; there and back is no news."""
    config_map.publish({NAME: BAD})
    config_map.publish({NAME: MORE_SPECULATIVE})
    await world.settle(8)
    assert [(1, "superseded"), (2, "active")] == revisions(await said(world))

    config_map.publish({NAME: TWO_EACH})
    config_map.publish({NAME: MORE_SPECULATIVE})
    await world.settle(8)
    assert [(1, "superseded"), (2, "active")] == revisions(await said(world))


async def test_a_dangling_link_keeps_the_last_good_policy(world: Mounted, config_map: ConfigMapMount) -> None:
    """Case C10: `..data` with nothing behind it is told, sizes stay, and the next swap is taken."""
    config_map.lose_files()
    assert (config_map.folder / "..data").is_symlink()
    assert not (config_map.folder / NAME).exists()
    await world.settle(8)

    found = await said(world)
    assert (1, "refused") == (found["active_revision"], found["state"])
    assert "a name with no file behind it" in found["last_error"]["message"]
    assert sizes(2, 2) == world.targets
    config_map.publish({NAME: MORE_SPECULATIVE})
    await world.settle(8)
    assert "active" == (await said(world))["state"]
    assert sizes(3, 1) == world.targets


async def test_a_new_controller_beside_a_bad_mount(world: Mounted, config_map: ConfigMapMount) -> None:
    """Case C10: a pod that starts while the ConfigMap is bad obeys the last good revision of its state."""
    config_map.publish({NAME: MORE_SPECULATIVE})
    await world.settle(8)
    config_map.publish({NAME: BAD})
    world.start_anew(config_map.folder)
    await world.settle(8)

    found = await said(world)
    assert (2, "refused") == (found["active_revision"], found["state"])
    assert sizes(3, 1) == world.targets


async def test_a_second_policy_in_the_mount(world: Mounted, config_map: ConfigMapMount) -> None:
    """Which of two files is meant would be a guess: the last good one acts until one of them is gone."""
    config_map.publish({NAME: TWO_EACH, "other.yaml": MORE_SPECULATIVE})
    await world.settle(8)
    found = await said(world)
    assert (1, "refused") == (found["active_revision"], found["state"])
    assert "2 *.yaml in this folder (other.yaml, policy.yaml)" in found["last_error"]["message"]

    config_map.publish({NAME: TWO_EACH})
    await world.settle(8)
    assert None is (await said(world))["last_error"]


def test_neither_inode_nor_time_tells_of_a_swap(config_map: ConfigMapMount) -> None:
    """The visible name is the same link after a swap; the text behind it may have the same size and time."""
    config_map.publish({NAME: "a: 1\n"})
    path = config_map.folder / NAME
    source = PolicySource(path)
    source.poll()
    link, behind = path.lstat(), path.stat()

    config_map.publish({NAME: "a: 2\n"})
    os.utime(path, ns=(behind.st_atime_ns, behind.st_mtime_ns))

    after = path.lstat()
    assert (link.st_ino, link.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert (behind.st_size, behind.st_mtime_ns) == (path.stat().st_size, path.stat().st_mtime_ns)
    news = [source.poll(), source.poll()]
    assert [None, "a: 2\n"] == [one and one.text for one in news]
