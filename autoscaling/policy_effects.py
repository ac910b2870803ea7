"""What a change of each field of the policy does to what runs, in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

NEXT_TICK = "acts at the next tick"
NEXT_MOVE = "acts with the next move; no effect on running replicas"
NEXT_REQUESTS = "acts on the next requests, without a restart"
NOTHING = "no effect on running replicas"
SETUP = "is refused by a running service unless its pools were set up so: change the settings first"

# The longest beginning of a field's path that is here gives its words.
WORDS: Mapping[str, str] = {
    "apiVersion": NOTHING,
    "kind": NOTHING,
    "metadata": NOTHING,
    "spec.mode": NEXT_TICK,
    "spec.budget": NEXT_TICK,
    "spec.bootstrap": f"{NOTHING}: only a new application starts from it",
    "spec.surgeSlots": NEXT_MOVE,
    "spec.objectives": f"{NEXT_TICK}, and on the next requests",
    "spec.pools": NEXT_TICK,
    "spec.pools.speculative.acceleratorsPerReplica": SETUP,
    "spec.pools.plain.acceleratorsPerReplica": SETUP,
    "spec.pools.speculative.limits": "acts at once on running replicas, without a restart",
    "spec.pools.plain.limits": "acts at once on running replicas, without a restart",
    "spec.pools.speculative.drainTimeoutSeconds": f"{NOTHING}: it says when a draining move is shown as late",
    "spec.pools.plain.drainTimeoutSeconds": f"{NOTHING}: it says when a draining move is shown as late",
    "spec.workload": NEXT_REQUESTS,
    "spec.backfill": NEXT_REQUESTS,
    "spec.admission": NEXT_REQUESTS,
    "spec.behavior": f"{NEXT_TICK}; {NOTHING} until a pool is short",
    "spec.schedules": f"{NEXT_TICK} when the window holds, else when it opens",
    "spec.overrides": f"{NEXT_TICK}, until it ends",
    "spec.onMetricsLoss": NEXT_TICK,
    "spec.guardrails": NEXT_MOVE,
    "spec.guardrails.maxCutShare": f"{NOTHING}: it judges the edits after this one",
    "spec.guardrails.allowLargeChange": f"{NOTHING}: it judges this edit only",
    "spec.overload": "acts on the next request that finds no room",
}
MODES: Mapping[str, str] = {
    "enforce": f"{NEXT_TICK}: this revision moves capacity",
    "shadow": "this revision is only recorded; the last enforced one keeps acting",
    "hold": f"{NEXT_TICK}: targets stay as they are",
}


def effect(path: str, old: Any, new: Any) -> str:
    """What the change of one field does; values are JSON values, None where a side has none.

    Raises KeyError for a path that is in no part of the policy.
    """
    if path == "spec.mode":
        return MODES[new]
    if pool := re.fullmatch(r"spec\.pools\.(\w+)\.(min|max)Replicas", path):
        return _bound(pool[1], pool[2], old, new)
    if path == "spec.budget.max":
        return _budget(old, new)
    if path == "spec.budget.min":
        return _floor(old, new)
    if re.match(r"spec\.(schedules|overrides)(\[[^]]*\])?$", path) and new is None:
        return f"{NEXT_TICK}: what it gave is no longer asked for"
    return words(path)


def words(path: str) -> str:
    """The general words for a field, whatever its values; raises KeyError for what is no field."""
    parts = re.sub(r"\[[^]]*\]", "", path).split(".")
    for length in range(len(parts), 0, -1):
        if found := WORDS.get(".".join(parts[:length])):
            return found
    raise KeyError(path)


def _bound(pool: str, side: str, old: int, new: int) -> str:
    change = abs(new - old)
    if side == "max":
        if new < old:
            return f"lowers the most that {pool} may have: up to {_replicas(change)} may drain"
        return f"raises the most that {pool} may have, by {_replicas(change)}; {NOTHING}"
    if new > old:
        return f"raises the least that {pool} has: up to {_replicas(change)} may move to it, at the next tick"
    return (
        f"lowers the least that {pool} has, by {_replicas(change)}; {NOTHING} until the other pool is short"
    )


def _budget(old: int, new: int) -> str:
    if new < old:
        return f"lowers the budget: replicas on up to {_accelerators(old - new)} may drain"
    return f"raises the budget by {_accelerators(new - old)}; {NEXT_TICK}"


def _floor(old: int, new: int) -> str:
    if new < old:
        return (
            f"lowers what is kept assigned by {_accelerators(old - new)}: "
            f"replicas that nobody needs may drain; {NEXT_TICK}"
        )
    return f"raises what is kept assigned by {_accelerators(new - old)}; {NEXT_TICK}"


def _accelerators(count: int) -> str:
    return f"{count} accelerator{'' if count == 1 else 's'}"


def _replicas(count: int) -> str:
    return f"{count} replica{'' if count == 1 else 's'}"
