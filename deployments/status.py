"""The pools' part of the status JSON; unknown is None, never zero."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from autoscaling.decisions import PoolRules
from autoscaling.observations import Seen, soft_limit_of
from autoscaling.types import EngineTotals, Role


def pool_status(
    seen: Iterable[Seen],
    states: Mapping[str, Mapping[str, int]] | None,
    rules: Mapping[Role, PoolRules] | None,
    now: float,
) -> dict[str, Any]:
    """Per pool: Serve's replica states joined with the replicas' own reports; limits by `rules`."""
    rules = rules or {}
    by_pool: dict[str, list[Seen]] = {role.value: [] for role in Role}
    for item in seen:
        by_pool.setdefault(item.report.pool, []).append(item)
    return {
        name: _pool(name, items, None if states is None else states.get(name, {}), rules, now)
        for name, items in by_pool.items()
    }


def _pool(
    name: str,
    seen: list[Seen],
    states: Mapping[str, int] | None,
    rules: Mapping[Role, PoolRules],
    now: float,
) -> dict[str, Any]:
    reports = [item.report for item in seen]
    totals = [report.totals for report in reports]
    lengths = [report.draft_length for report in reports if report.draft_length is not None]
    return {
        "role": reports[0].role.value if reports else name,
        "target": None,
        "running": None if states is None else states.get("RUNNING", 0),
        "starting": None if states is None else states.get("STARTING", 0) + states.get("UPDATING", 0),
        "draining": None if states is None else states.get("STOPPING", 0),
        "clamped_by": None,
        "inflight": sum(report.inflight for report in reports) if reports else None,
        "waiting": _sum_known(report.waiting for report in reports),
        "draft_length": {"min": min(lengths), "max": max(lengths)} if lengths else None,
        "mean_acceptance_length": _ratio(totals, "accepted", "drafts", plus=1.0),
        "draft_acceptance_rate": _ratio(totals, "accepted", "drafted"),
        "break_even_acceptance_rate": None,
        "replicas": [_replica(item, rules, now) for item in seen],
    }


def _replica(item: Seen, rules: Mapping[Role, PoolRules], now: float) -> dict[str, Any]:
    report = item.report
    totals = report.totals
    return {
        "id": report.replica_id,
        "node": report.node_id,
        "state": report.state.value,
        "pid": report.pid,
        "inflight": report.inflight,
        "soft_limit": soft_limit_of(report, rules.get(report.role)),
        "running": report.running,
        "waiting": report.waiting,
        "kv_cache_usage": report.kv_cache_usage,
        "draft_length": report.draft_length,
        "report_age_seconds": round(now - item.at, 3),
        "draining": report.state.value == "draining",
        "engine": report.capabilities.engine,
        "engine_version": report.capabilities.engine_version,
        "method": report.capabilities.method,
        "model_fingerprint": report.capabilities.fingerprint,
        "cores": list(report.capabilities.cores),
        "oversubscribed": report.capabilities.oversubscribed,
        "steps": totals.steps,
        "finished": totals.finished,
        "finished_prompt_tokens": totals.finished_prompt_tokens,
        "finished_generated_tokens": totals.finished_generated_tokens,
    }


def _sum_known(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _ratio(totals: list[EngineTotals], above: str, below: str, plus: float = 0.0) -> float | None:
    """Pooled ratio over replicas; None before the first draft."""
    denominator: int = sum(getattr(item, below) for item in totals)
    numerator: int = sum(getattr(item, above) for item in totals)
    return None if denominator == 0 else round(plus + numerator / denominator, 4)
