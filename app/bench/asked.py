"""What a measurement is asked for, and what it will not have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.bench.plan import Plan
from app.bench.prompts import Prompt
from autoscaling.types import Role
from deployments.config import PoolSettings


@dataclass(frozen=True, slots=True)
class Asked:
    """What is measured, with what, and where the engines' logs go."""

    speculative: PoolSettings
    plain: PoolSettings
    plan: Plan
    prompts: Sequence[Prompt]
    logs: Path
    live: bool  # whether K is changed in the running engine; otherwise one is started for each K


def groups(asked: Asked) -> list[tuple[int, ...]]:
    """The draft lengths that one start of the speculative engine can have."""
    drafted = tuple(length for length in asked.plan.lengths if length > 0)
    return [asked.plan.lengths] if asked.live else [(length,) for length in drafted]


def left_out(asked: Asked) -> tuple[str, ...]:
    """What this measurement cannot have, or was not asked for though it will be missed."""
    plan, found = asked.plan, []
    if not asked.live and 0 in plan.lengths:
        found.append(
            "K = 0 on the speculative engine: only an engine that changes K while it runs can have it"
        )
    longest = (asked.speculative.engine.speculative_config or {}).get("num_speculative_tokens", 0)
    if longest > plan.longest:
        found.append(f"K = {longest}, which the engine is set to: to a service with it this profile is stale")
    if others := sorted({one.workload for one in asked.prompts} - set(plan.all_workloads)):
        found.append(f"prompts of other kinds: {', '.join(others)}")
    for pool, role in ((asked.speculative, Role.SPECULATIVE), (asked.plain, Role.PLAIN)):
        if (most := pool.engine.max_num_seqs) < max(plan.batches):
            found.append(
                f"conclusions on more than {most} sequences of the {role} engine: its max_num_seqs is {most}"
            )
    return tuple(found)
