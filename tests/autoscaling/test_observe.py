"""Reports, Ray Serve's replica states and the ingresses' demand as one observation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from autoscaling.decisions import Observation, PoolObservation
from autoscaling.demand import Demand
from autoscaling.latencies import Latencies
from autoscaling.observations import Seen
from autoscaling.observe import observe
from autoscaling.types import IngressLoad, ReplicaState, Role, ServePool, ServeStates
from tests.autoscaling.reports import finished_request, report

SPECULATIVE, PLAIN = Role.SPECULATIVE, Role.PLAIN
NOW, WALL = 100.0, 1_800_000_000.0


def serve(at: float = NOW, *, ids: tuple[str, ...] = ("a", "b"), **states: int) -> ServeStates:
    """Two targets per pool; `states` and `ids` are the plain pool's."""
    plain = ServePool(2, states or {"RUNNING": 2}, frozenset(ids))
    return ServeStates(at, {SPECULATIVE: ServePool(2, {}, frozenset()), PLAIN: plain})


def seen(replica_id: str = "a", at: float = NOW, **fields: Any) -> Seen:
    return Seen(report(replica_id, **fields), at)


def look(*reports: Seen, found: ServeStates | None = None, **given: Any) -> Observation:
    options = {"now": NOW, "wall": WALL, "report_expires_s": 15.0, "young": False, "fresh": False}
    return observe(
        reports,
        found,
        given.pop("demand", Demand()),
        given.pop("latencies", Latencies()),
        **options | given,
    )


def plain(*reports: Seen, **given: Any) -> PoolObservation:
    return look(*reports, **given).pools[PLAIN]


def test_nothing_is_known() -> None:
    """Everything is unknown but the number of replicas that report: that is 0."""
    found = look()
    assert (NOW, WALL, False, False) == (found.now, found.wall, found.young, found.fresh)
    assert {SPECULATIVE: PoolObservation(), PLAIN: PoolObservation()} == found.pools


def test_what_is_known_of_the_controller_is_handed_on() -> None:
    """Young and fresh are the caller's word."""
    found = look(young=True, fresh=True)
    assert (True, True) == (found.young, found.fresh)


def test_everything_is_known() -> None:
    """Serve's target and states, the reports' load and smallest limit, the ingresses' demand, latencies."""
    demand, latencies = Demand(), Latencies()
    demand.take("i", IngressLoad({PLAIN: 5}, {PLAIN: 1}), NOW - 1)
    demand.take("i", IngressLoad({PLAIN: 9}, {PLAIN: 3}), NOW)
    latencies.take(PLAIN, [replace(finished_request("r"), prefill_s=0.5, decode_s=0.6)] * 20, NOW)
    found = plain(
        seen("a", inflight=3, soft_limit=8),
        seen("b", inflight=4, soft_limit=6),
        found=serve(RUNNING=2, STARTING=1, STOPPING=1),
        demand=demand,
        latencies=latencies,
    )
    assert found.tpot_p95_s == pytest.approx(0.1)
    assert (
        PoolObservation(
            target=2,
            running=2,
            starting=1,
            draining=1,
            reporting=2,
            inflight=7,
            wanted=9,
            refused=2,
            soft_limit=6,
            batch_limit=16,
            ttft_p95_s=0.5,
            tpot_p95_s=found.tpot_p95_s,
        )
        == found
    )


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ({"RUNNING": 1, "PENDING_MIGRATION": 1}, (2, 0, 0)),
        ({"STARTING": 1, "UPDATING": 1, "RECOVERING": 1}, (0, 3, 0)),
        ({"STOPPING": 2}, (0, 0, 2)),
        ({"A_NEW_WORD": 5}, (0, 0, 0)),
    ],
)
def test_serves_words(states: dict[str, int], expected: tuple[int, int, int]) -> None:
    """Each of Serve's states is running, starting or draining; a word we do not know is none of them."""
    found = plain(found=serve(**states))
    assert expected == (found.running, found.starting, found.draining)


@pytest.mark.parametrize(("age_s", "known"), [(0.0, True), (5.0, True), (5.01, False), (1e6, False)])
def test_an_old_look_says_nothing(age_s: float, known: bool) -> None:
    """After 5 s Serve's part is unknown; the reports count on."""
    found = plain(seen(inflight=3), found=serve(NOW - age_s))
    assert (2 if known else None) == found.running
    assert (2 if known else None) == found.target
    assert (0 if known else None) == found.draining
    assert (1, 3) == (found.reporting, found.inflight)


@pytest.mark.parametrize(("age_s", "expected"), [(15.0, (1, 3)), (15.01, (0, None))])
def test_an_old_report_says_nothing(age_s: float, expected: tuple[int, int | None]) -> None:
    """By the policy's own limit; load that nobody reports is unknown, not zero."""
    found = plain(seen(at=NOW - age_s, inflight=3), found=serve())
    assert expected == (found.reporting, found.inflight)


@pytest.mark.parametrize("state", [ReplicaState.DRAINING, ReplicaState.STOPPED, ReplicaState.FAILED])
def test_a_replica_that_takes_no_work_does_not_report(state: ReplicaState) -> None:
    """What it still serves is not the pool's load."""
    found = plain(seen("a", inflight=3), seen("b", inflight=9, state=state), found=serve())
    assert (1, 3) == (found.reporting, found.inflight)


def test_a_replica_that_serve_does_not_run_does_not_report() -> None:
    """It may say what it likes; without Serve's word it is believed."""
    reports = seen("a", inflight=3), seen("stranger", inflight=9)
    assert (1, 3) == (plain(*reports, found=serve()).reporting, plain(*reports, found=serve()).inflight)
    assert (2, 12) == (plain(*reports).reporting, plain(*reports).inflight)


def test_the_pools_are_apart() -> None:
    """A report counts for its own pool only."""
    found = look(seen("a", role=SPECULATIVE, inflight=3))
    assert (1, 0) == (found.pools[SPECULATIVE].reporting, found.pools[PLAIN].reporting)


def test_a_pool_that_serve_does_not_name_is_unknown() -> None:
    """The other one is known."""
    half = ServeStates(NOW, {PLAIN: ServePool(1, {"RUNNING": 1}, frozenset({"a"}))})
    found = look(found=half)
    assert (None, 1) == (found.pools[SPECULATIVE].running, found.pools[PLAIN].running)
