"""What was simulated, in words for its report: the parts of its first line, and what a reader has to know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.cli.durations import show
from autoscaling.decisions import Mode
from autoscaling.instants import rfc3339
from autoscaling.policy import CapacityPolicy

if TYPE_CHECKING:
    from app.simulation.compared import Ground, Model


def about(trace: str, policies: Sequence[CapacityPolicy], ground: Ground, model: Model) -> tuple[str, ...]:
    """Trace, engines, the size of each policy, and how they were simulated."""
    from app.report.words import joined  # noqa: PLC0415
    from app.simulation.traces.load import base_rate  # noqa: PLC0415

    engines, ingresses = ground.engines, ground.ingresses
    budgets = joined([f"{policy.spec.budget.max}" for policy in policies])
    base = base_rate(trace)
    source = trace.partition(",")[0]
    return (
        f"trace {trace}: {len(ground.trace):,} requests in {show(ground.trace_s)}",
        *(() if base is None else (f"rate=1 of {source} is {base:.2f} requests/s on average",)),
        f"begins {rfc3339(ground.wall)}",
        f"engines {engines.name} ({engines.source})",
        f"{budgets} accelerators, a replica starts in {ground.delays.start_s:g} s",
        f"{model} model, seed {ground.seed}, {ingresses} ingress{'' if ingresses == 1 else 'es'}",
    )


def notes(policy: CapacityPolicy, ground: Ground) -> list[str]:
    """Sentences about what is not as it might be expected."""
    found = []
    if policy.spec.mode is not Mode.ENFORCE:
        found.append(
            f"spec.mode is {policy.spec.mode}, so nothing moves here either; enforce would show moves."
        )
    each, known = policy.spec.pools.plain.accelerators_per_replica, ground.engines.accelerators
    if each != known:
        found.append(
            f"A replica takes {each} accelerators by the policy and {known} by the profile: the budget "
            "counts by the policy, accelerator-hours and costs by the profile."
        )
    longest = ground.engines.longest
    too_long = sum(one.prompt_tokens >= longest for one in ground.trace)
    if too_long:
        found.append(
            f"{too_long:,} requests have prompts longer than the {longest:,} tokens that an engine holds, "
            "and count nowhere."
        )
    return found
