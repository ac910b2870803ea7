"""Settings of the engines of a measurement: room for its largest batch, K as asked, cores of their own."""

from __future__ import annotations

import os
from typing import Final

from app.bench.plan import Plan
from deployments.config import EngineSettings, PoolSettings
from deployments.synthetic_acceptance import is_synthetic

TABLE: Final = "num_speculative_tokens_per_batch_size"
RATES: Final = "synthetic_acceptance_rates"  # one per position
DETAILED: Final = ("--per-request-spec-decode-metrics", "detailed")


def for_bench(pool: PoolSettings, plan: Plan, length: int, *, live: bool) -> PoolSettings:
    """The pool's settings as a measurement needs them: room for its largest batch, and K as asked."""
    engine = pool.engine
    changes: dict[str, object] = {"max_num_seqs": max(engine.max_num_seqs, *plan.batches, *plan.hold_out)}
    if engine.speculative_config is not None:
        given = engine.speculative_config
        changes["speculative_config"] = {
            **{name: value for name, value in given.items() if name != TABLE},
            "num_speculative_tokens": length,
            **({TABLE: [[1, changes["max_num_seqs"], length]]} if live else {}),
            **({RATES: list(given[RATES])[:length]} if given.get(RATES) else {}),
        }
        if engine.kind == "vllm":
            changes["extra_args"] = (*engine.extra_args, *DETAILED)
    return pool.model_copy(update={"engine": EngineSettings.model_validate(engine.model_dump() | changes)})


def synthetic_acceptance(pool: PoolSettings) -> bool:
    """Whether the drafts' acceptance is prescribed."""
    return is_synthetic(pool.engine.speculative_config or {})


def cores(pool: PoolSettings, place: int) -> tuple[int, ...]:
    """The CPU cores of the engine at a place, 0 or 1, as many as a replica leases; none without a lease."""
    wanted = pool.cores_per_replica
    ours = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if not wanted or not ours:
        return ()
    first = place * wanted
    return tuple(ours[at % len(ours)] for at in range(first, first + wanted))
