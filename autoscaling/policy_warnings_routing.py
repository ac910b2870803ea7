"""Warnings about what the ingresses obey: waits, shares and reserves that undo what they are for."""

from __future__ import annotations

from collections.abc import Iterator

from autoscaling.policy import CapacityPolicy
from autoscaling.policy_problem import Finding
from autoscaling.types import Tier

LARGE_RESERVE = 64  # sequences: few engines run more at once inside an objective
LARGE_SHARE = 0.5  # above it batch requests come before callers who wait


def doubts_about_routing(policy: CapacityPolicy) -> Iterator[Finding]:
    """All of them; none refuses the policy."""
    yield from _waiting(policy)
    yield from _no_wait(policy)
    yield from _share(policy)
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


def _no_wait(policy: CapacityPolicy) -> Iterator[Finding]:
    """A tier of which nobody ever waits."""
    admission = policy.spec.admission
    for tier, waiting in (
        (Tier.INTERACTIVE, admission.interactive),
        (Tier.STANDARD, admission.standard),
        (Tier.BATCH, admission.batch),
    ):
        if waiting.deadline_seconds == 0:
            yield Finding(
                f"spec.admission.{tier}.deadlineSeconds",
                f"is 0: no {tier} request ever waits, and each that finds no room is refused at once",
            )


def _share(policy: CapacityPolicy) -> Iterator[Finding]:
    """A share of batch requests that starves them, or the others."""
    share = policy.spec.admission.batch_share
    if share == 0:
        words = "is 0: waiting batch requests may never come to their turn while others wait"
    elif share > LARGE_SHARE:
        words = f"is {share:g}, more than {LARGE_SHARE:g}: waiting batch requests come before others"
    else:
        return
    yield Finding("spec.admission.batchShare", words)


def _reserve(policy: CapacityPolicy) -> Iterator[Finding]:
    """A reserve that leaves nothing to anybody else."""
    reserve, limit = policy.spec.backfill.reserve, policy.spec.pools.speculative.limits.soft_inflight
    never = "no standard or batch request ever goes to the speculative pool"
    if limit is None or reserve < limit:
        if reserve > LARGE_RESERVE:
            yield Finding(
                "spec.backfill.reserve",
                f"is {reserve}, more than {LARGE_RESERVE}: of a replica that takes no more at once, {never}",
            )
        return
    if "reserve" in policy.spec.backfill.model_fields_set:
        yield Finding(
            "spec.backfill.reserve", f"is {reserve}, not below softInflight {limit} of speculative: {never}"
        )
    else:
        yield Finding(
            "spec.pools.speculative.limits.softInflight",
            f"is {limit}, and backfill.reserve is {reserve} by default: {never}",
        )
