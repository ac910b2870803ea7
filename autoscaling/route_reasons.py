"""The words for why a pool was taken: on answers, records and metrics."""

from __future__ import annotations

from enum import StrEnum


class RouteReason(StrEnum):
    """Why the pool was taken; a retry is routed, and named, like a first attempt."""

    TIER_INTERACTIVE = "tier_interactive"
    TIER_STANDARD = "tier_standard"
    TIER_BATCH = "tier_batch"
    DRAFTABLE = "draftable"  # drafts are predicted to pay, and there was room above the reserve
    SPILL = "spill"  # the tier's own pool had no room inside the objective; this one had
    BACKFILL = "backfill"  # batch work in room of the speculative pool that nobody else needs
    POOL_UNAVAILABLE = "pool_unavailable"  # no replica of the tier's own pool takes work
    CAPABILITY = "capability"  # the tier's own pool refuses a parameter of the request
    PINNED_BY_CALLER = "pinned_by_caller"
