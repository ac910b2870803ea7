"""What `benchmarks.nodes` makes of its callers' words, and the cluster that it describes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from autoscaling.types import Role
from benchmarks.errors import BenchError
from benchmarks.nodes_demand import demand_figures
from benchmarks.nodes_outcome import Seen, outcome
from benchmarks.nodes_plan import (
    BUDGET,
    DRAIN_S,
    ENGINES,
    FRONT_NODE,
    HEAD,
    MOVE_DELAY_S,
    SIZES,
    Places,
    cluster_config,
    node_environment,
    policy_text,
    settings,
)
from benchmarks.nodes_report import COLUMNS, TITLES, figures, page, rows, targets
from benchmarks.nodes_restored import restored
from benchmarks.nodes_streams import End, Told
from benchmarks.results import Verdict, judge
from deployments.default_policy import world
from deployments.policy_book import PolicyBook
from deployments.policy_source import FixedPolicy

WHOLE = Told(
    Role.PLAIN, 80, opened_at=9.0, first_at=9.1, last_at=14.0, ended_at=14.0, silence_s=0.2, end=End.WHOLE,
    replica="a",
)  # fmt: skip
CUT_OFF = replace(WHOLE, ended_at=10.5, end=End.TOLD, code="stream_interrupted", replica="b")


def seen(*told: Told, event: str = "node_killed") -> Seen:
    """An event at second 10."""
    return Seen(event, 10.0, told, 12.0, least_serving=2)


def test_a_lost_stream_of_what_was_hit_is_told_apart() -> None:
    """Only those on the victim may be lost, and each needs a word."""
    found = outcome(seen(WHOLE, CUT_OFF), frozenset({"b"}))

    assert (2, 1, 1, 1, 0) == (found.in_flight, found.at_risk, found.lost, found.told, found.elsewhere)
    assert 0.5 == found.told_after_s
    assert {} == missed("node_killed", outcome(seen(WHOLE, CUT_OFF), frozenset({"b"})))


@pytest.mark.parametrize(
    ("told", "figure"),
    [
        (replace(CUT_OFF, replica="a"), "node_killed_lost_elsewhere"),
        (replace(CUT_OFF, end=End.CUT), "node_killed_cut"),
        (replace(CUT_OFF, end=End.HUNG, silence_s=60.0), "node_killed_hung"),
        (replace(WHOLE, silence_s=26.0), "node_killed_silence_s"),
    ],
)
def test_a_crash_is_judged(told: Told, figure: str) -> None:
    """A stranger's loss, a cut without a word, a hanging stream and a long silence each miss a target."""
    found = outcome(seen(WHOLE, CUT_OFF, told), frozenset({"b"}))

    assert figure in missed("node_killed", found)


def test_a_crash_that_hits_nobody_shows_nothing() -> None:
    """It is no proof, and the target says so."""
    assert ["node_killed_at_risk"] == list(missed("node_killed", outcome(seen(WHOLE), frozenset({"b"}))))


def test_a_planned_event_loses_nothing() -> None:
    """Not even a stream that had an error event."""
    found = outcome(seen(WHOLE, CUT_OFF, event="move"), frozenset(), more=demand_figures([look(1.0)]))

    assert ["move_lost"] == list(missed("move", found))


def test_a_refused_request_is_not_a_lost_stream() -> None:
    """It is counted beside them: its caller was told when to come again."""
    found = outcome(seen(replace(WHOLE, end=End.REFUSED)), frozenset())

    assert (0, 1) == (found.lost, found.not_served)


def test_what_was_not_measured_is_no_success() -> None:
    """Without Redis the head's restart has no figures."""
    assert {Verdict.NOT_MEASURED} == set(judge({}, targets(["head_restart"])).values())


def missed(event: str, found: object) -> dict[str, float | None]:
    measured = figures([found])  # type: ignore[list-item]
    verdicts = judge(measured, targets([event]))
    return {name: measured.get(name) for name, verdict in verdicts.items() if verdict is not Verdict.HOLDS}


# --- Ray's picture -----------------------------------------------------------------------------------


def look(at: float, *pending: object, nodes: str = "ab") -> dict[str, object]:
    return {"at": at, "nodes": [{"id": one, "address": ""} for one in nodes], "pending": list(pending)}


def test_demand_that_goes_in_between_is_not_one_wait() -> None:
    """An autoscaler acts on demand that stays."""
    one = [{"engine_slot": 1.0}, 1]
    found = demand_figures([look(0), look(1, one), look(2, one), look(3), look(9, one), look(9.5)])

    assert (1.0, 0.0, 0.0) == (found["pending_s"], found["pending_after"], found["nodes_added"])


def test_a_node_that_came_is_seen_even_if_it_went() -> None:
    """And so is demand that is left at the end."""
    found = demand_figures([look(0), look(1, nodes="abc"), look(2, [{}, 3])])

    assert (1.0, 3.0) == (found["nodes_added"], found["pending_after"])


def test_no_picture_is_no_figure() -> None:
    """Zero would be a claim."""
    with pytest.raises(BenchError, match="said nothing"):
        demand_figures([])


# --- the head ----------------------------------------------------------------------------------------


def status(revision: int) -> dict[str, object]:
    pools = {role.value: {"target": SIZES[role]} for role in Role}
    return {"pools": pools, "policy": {"active_revision": revision}}


def line(seq: int, epoch: int, kind: str = "decision", **fields: object) -> dict[str, object]:
    return {"seq": seq, "epoch": epoch, "kind": kind} | fields


BEGUN = {"controller": {"restored_targets": {"speculative": 2, "plain": 2}}}


def test_a_successor_that_goes_on_has_restored_everything() -> None:
    """Its targets, the number of the next revision, and the audit's numbers under a higher epoch."""
    found = restored(status(3), [line(1, 7), line(2, 7)], status(4), [line(3, 8, "start", **BEGUN)])

    assert {"targets_restored": 1.0, "policy_restored": 1.0, "audit_restored": 1.0} == found


@pytest.mark.parametrize(
    ("after", "later", "figure"),
    [
        (4, [line(3, 8)], "targets_restored"),
        (4, [line(3, 8, "start", controller={"restored_targets": None})], "targets_restored"),
        (1, [line(3, 8, "start", **BEGUN)], "policy_restored"),
        (4, [line(1, 8, "start", **BEGUN)], "audit_restored"),
        (4, [line(3, 7, "start", **BEGUN)], "audit_restored"),
    ],
)
def test_a_successor_that_began_anew_is_found_out(
    after: int, later: list[dict[str, object]], figure: str
) -> None:
    """Without targets, from revision 1, or with an audit of its own."""
    assert 0.0 == restored(status(3), [line(1, 7), line(2, 7)], status(after), later)[figure]


# --- the cluster -------------------------------------------------------------------------------------


def test_the_config_is_the_services_own_but_for_places(tmp_path: Path) -> None:
    """A front on every node; ingress and controller where the callers are sent."""
    found = cluster_config(settings(Places(tmp_path), "198.18.7.11", "haproxy"))

    placed = {
        one["name"]: one["ray_actor_options"].get("resources")
        for one in found["applications"][0]["deployments"]
    }
    assert ("EveryNode", "0.0.0.0") == (found["proxy_location"], found["http_options"]["host"])
    assert {FRONT_NODE: 1} == placed["ingress"] == placed["controller"]
    assert {"engine_slot": 1} == placed["speculative"] == placed["plain"]


def test_the_timings_nest(tmp_path: Path) -> None:
    """Ray waits long enough for a replacement to start and for Serve to stop what is drained."""
    wanted = settings(Places(tmp_path), "198.18.7.11", "haproxy")
    pools = [
        one["graceful_shutdown_timeout_s"]
        for one in cluster_config(wanted)["applications"][0]["deployments"]
        if one["name"] in SIZES
    ]

    assert 2 == len(pools)
    assert max(pools) + MOVE_DELAY_S <= DRAIN_S


def test_only_the_head_is_told_of_redis(tmp_path: Path) -> None:
    """And no node asks a proxy for addresses that no proxy knows."""
    places = Places(tmp_path)
    wanted = settings(places, "198.18.7.11", "haproxy")
    head, other = (node_environment(wanted, places, name, "198.18.7.1:6379") for name in (HEAD, ENGINES[0]))

    assert "198.18.7.1:6379" == head["RAY_REDIS_ADDRESS"]
    assert "RAY_REDIS_ADDRESS" not in other
    assert not {"http_proxy", "HTTPS_PROXY"} & set(other)
    assert str(DRAIN_S) == other["RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S"]


@pytest.mark.parametrize("speculative", [1, 2, 3])
def test_the_policies_are_taken(tmp_path: Path, speculative: int) -> None:
    """Each edit is a revision that the controller accepts."""
    wanted = settings(Places(tmp_path), "198.18.7.11", "haproxy").controller()
    text = policy_text("edit", {Role.SPECULATIVE: speculative, Role.PLAIN: BUDGET - speculative})
    seen_ = FixedPolicy(text).poll()
    assert seen_ is not None
    book = PolicyBook(world(wanted))
    book.take(seen_, None, 1_800_000_000.0)

    assert book.last_error is None
    assert book.active is not None


def test_the_page_has_a_row_for_each_event() -> None:
    """With a column for each number of it."""
    found = [outcome(seen(WHOLE, event=name), frozenset()) for name in TITLES]

    assert {len(COLUMNS)} == {len(row) for row in rows(found)}
    assert all(title in page(found, "haproxy") for title in TITLES.values())
