"""Nodes of a real Ray cluster that move, drain, die and fall silent under open streams.

The cluster, the events and what must hold are those of `make bench-nodes`.
"""

from __future__ import annotations

import pytest

from benchmarks.nodes_events import Events
from tests.nodes.conftest import broken

pytestmark = [pytest.mark.long, pytest.mark.serve, pytest.mark.timeout(420)]


def test_moves_across_nodes_add_no_node(events: Events) -> None:
    """Capacity moves to and fro: no stream is lost, no node comes, and no demand is left pending."""
    assert {} == broken(events.run("move"))


def test_a_drained_node_loses_no_stream(events: Events) -> None:
    """Case E4: replicas of a node that drains finish their streams, after replacements are up elsewhere."""
    assert {} == broken(events.run("drain"))


def test_a_node_that_gets_sigterm_loses_no_stream(events: Events) -> None:
    """Case E4: the same for a pod that is deleted, whose `ray start --block` gets SIGTERM."""
    assert {} == broken(events.run("sigterm"))


def test_a_killed_node_ends_only_its_own_streams(events: Events) -> None:
    """Each of them with an error event; no caller waits for ever, and no other stream is touched."""
    assert {} == broken(events.run("node_killed"))


def test_a_silent_node_is_noticed(events: Events) -> None:
    """No reset tells of it: its streams are ended within 25 s, and no other stream is touched."""
    assert {} == broken(events.run("node_silent"))


@pytest.mark.usefixtures("redis")
def test_a_head_that_comes_back_on_its_redis_loses_no_stream(events: Events) -> None:
    """Head and controller die: targets, policy and audit are restored, and capacity moves again."""
    assert {} == broken(events.run("head_restart"))


def test_a_killed_front_serves_again(events: Events) -> None:
    """Its streams are cut, since nobody else has their connections; none hangs, and it is back by itself."""
    assert {} == broken(events.run("front_killed"))
