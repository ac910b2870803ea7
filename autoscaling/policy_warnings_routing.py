"""Warnings about what the ingresses obey: a wait that breaks its own promise, a reserve that takes all."""

from __future__ import annotations

from collections.abc import Iterator

from autoscaling.policy import CapacityPolicy
from autoscaling.policy_problem import Finding


def doubts_about_routing(policy: CapacityPolicy) -> Iterator[Finding]:
    """All of them; none refuses the policy."""
    yield from _waiting(policy)
    yield from _reserve(policy)


def _waiting(policy: CapacityPolicy) -> Iterator[Finding]:
    """A wait that is written down and longer than the promise to callers who wait."""
    waiting, promised = policy.spec.admission.interactive, policy.spec.objectives.interactive.ttft_seconds
    if promised is None or "deadline_seconds" not in waiting.model_fields_set:
        return
    if waiting.deadline_seconds > promised:
        yield Finding(
            "spec.admission.interactive.deadlineSeconds",
            f"is {waiting.deadline_seconds:g}, longer than ttftSeconds {promised:g} of interactive: "
            "a request that waits so long has missed its objective before it begins",
        )


def _reserve(policy: CapacityPolicy) -> Iterator[Finding]:
    """A reserve that leaves nothing to anybody else."""
    reserve, limit = policy.spec.backfill.reserve, policy.spec.pools.speculative.limits.soft_inflight
    if limit is None or reserve < limit:
        return
    never = "no standard or batch request ever goes to the speculative pool"
    if "reserve" in policy.spec.backfill.model_fields_set:
        yield Finding(
            "spec.backfill.reserve", f"is {reserve}, not below softInflight {limit} of speculative: {never}"
        )
    else:
        yield Finding(
            "spec.pools.speculative.limits.softInflight",
            f"is {limit}, and backfill.reserve is {reserve} by default: {never}",
        )
