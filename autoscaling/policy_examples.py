"""An example for each field of the policy file; tests put every one into a policy and validate it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_TIER = {"ttftSeconds": 1.0, "tpotSeconds": 0.05}
_LIMITS = {"softInflight": 8, "hardInflight": 64}
_POOL = {"minReplicas": 1, "maxReplicas": 6}
_DIRECTION = {
    "stabilizationWindowSeconds": 60,
    "policies": [{"type": "Replicas", "value": 1, "periodSeconds": 60}],
}
_SCHEDULE = {
    "name": "business-hours",
    "timeZone": "Europe/Berlin",
    "days": ["Mon", "Tue", "Wed", "Thu", "Fri"],
    "start": "08:00",
    "end": "19:00",
    "pools": {"speculative": {"minReplicas": 4}},
}
_OVERRIDE = {
    "name": "launch",
    "pool": "plain",
    "minReplicas": 6,
    "until": "2026-12-01T00:00:00Z",
    "reason": "launch day",
}

# `*` stands for one word of the path: a pool, a tier or a direction.
EXAMPLES: Mapping[str, Any] = {
    "apiVersion": "twinpool.dev/v1alpha1",
    "kind": "CapacityPolicy",
    "metadata": {"name": "interactive-first"},
    "metadata.name": "interactive-first",
    "metadata.annotations": {"change": "CHG-1234"},
    "spec": {"budget": {"max": 8}, "pools": {"speculative": _POOL, "plain": _POOL}},
    "spec.mode": "shadow",
    "spec.budget": {"min": 6, "max": 8},
    "spec.budget.min": 6,
    "spec.budget.max": 8,
    "spec.bootstrap": {"speculative": 5, "plain": 3},
    "spec.bootstrap.*": 4,
    "spec.surgeSlots": 1,
    "spec.objectives": {"interactive": _TIER, "batch": {"ttftSeconds": 60.0}},
    "spec.objectives.standard": {"ttftSeconds": 5.0, "tpotSeconds": 0.1},
    "spec.objectives.standard.ttftSeconds": 5.0,
    "spec.objectives.standard.tpotSeconds": 0.1,
    "spec.objectives.batch": {"ttftSeconds": 60.0},
    "spec.objectives.batch.ttftSeconds": 60.0,
    "spec.objectives.batch.tpotSeconds": 0.5,
    "spec.objectives.*": _TIER,
    "spec.objectives.*.ttftSeconds": 1.0,
    "spec.objectives.*.tpotSeconds": 0.05,
    "spec.pools": {"speculative": _POOL, "plain": _POOL},
    "spec.pools.*": _POOL,
    "spec.pools.speculative.role": "speculative",
    "spec.pools.plain.role": "plain",
    "spec.pools.*.minReplicas": 2,
    "spec.pools.*.maxReplicas": 6,
    "spec.pools.*.acceleratorsPerReplica": 1,
    "spec.pools.*.limits": _LIMITS,
    "spec.pools.*.limits.softInflight": 8,
    "spec.pools.*.limits.hardInflight": 64,
    "spec.pools.*.drainTimeoutSeconds": 120,
    "spec.workload": {"classify": False},
    "spec.workload.classify": False,
    "spec.backfill": {"enabled": True, "reserve": 3},
    "spec.backfill.enabled": False,
    "spec.backfill.reserve": 3,
    "spec.backfill.maxResidenceSeconds": 10,
    "spec.admission": {"batch": {"deadlineSeconds": 900}, "batchShare": 0.2},
    "spec.admission.interactive": {"deadlineSeconds": 1, "maxWaiting": 32},
    "spec.admission.interactive.deadlineSeconds": 1,
    "spec.admission.interactive.maxWaiting": 32,
    "spec.admission.*": {"deadlineSeconds": 600, "maxWaiting": 500},
    "spec.admission.*.deadlineSeconds": 600,
    "spec.admission.*.maxWaiting": 500,
    "spec.admission.batchShare": 0.2,
    "spec.behavior": {"cooldownSeconds": 120, "scaleUp": _DIRECTION},
    "spec.behavior.utilization": {"above": 0.9, "below": 0.5},
    "spec.behavior.utilization.above": 0.9,
    "spec.behavior.utilization.below": 0.5,
    "spec.behavior.cooldownSeconds": 120,
    "spec.behavior.*": _DIRECTION,
    "spec.behavior.*.stabilizationWindowSeconds": 60,
    "spec.behavior.*.selectPolicy": "Min",
    "spec.behavior.*.policies": _DIRECTION["policies"],
    "spec.behavior.*.policies[].type": "Percent",
    "spec.behavior.*.policies[].value": 2,
    "spec.behavior.*.policies[].periodSeconds": 120,
    "spec.schedules": [_SCHEDULE],
    "spec.schedules[].name": "business-hours",
    "spec.schedules[].timeZone": "America/New_York",
    "spec.schedules[].days": ["Sat", "Sun"],
    "spec.schedules[].start": "22:00",
    "spec.schedules[].end": "06:00",
    "spec.schedules[].pools": {"speculative": {"minReplicas": 4}, "plain": {"maxReplicas": 4}},
    "spec.schedules[].pools.*": {"minReplicas": 2, "maxReplicas": 6},
    "spec.schedules[].pools.*.minReplicas": 2,
    "spec.schedules[].pools.*.maxReplicas": 6,
    "spec.overrides": [_OVERRIDE],
    "spec.overrides[].name": "launch",
    "spec.overrides[].pool": "plain",
    "spec.overrides[].replicas": 4,
    "spec.overrides[].minReplicas": 6,
    "spec.overrides[].maxReplicas": 7,
    "spec.overrides[].until": "2026-12-01T18:00:00+01:00",
    "spec.overrides[].reason": "launch day, see CHG-1234",
    "spec.onMetricsLoss": {"afterSeconds": 8, "minFreshShare": 0.5, "action": "hold"},
    "spec.onMetricsLoss.afterSeconds": 8,
    "spec.onMetricsLoss.minFreshShare": 0.75,
    "spec.onMetricsLoss.action": "hold",
    "spec.guardrails": {"maxStepReplicas": 2, "maxCutShare": 0.25},
    "spec.guardrails.maxStepReplicas": 2,
    "spec.guardrails.moveTimeoutSeconds": 600,
    "spec.guardrails.maxCutShare": 0.25,
    "spec.guardrails.allowLargeChange": 7,
    "spec.overload": {"retryAfterSeconds": 5},
    "spec.overload.retryAfterSeconds": 5,
}


def example(path: str) -> Any:
    """The example of one field, a JSON value; raises KeyError for a field that has none."""
    return EXAMPLES[key(path)]


def key(path: str) -> str:
    """The entry of `EXAMPLES` that `path` uses: its own, or one with `*`; raises KeyError for none."""
    if path in EXAMPLES:
        return path
    for entry in EXAMPLES:
        if re.fullmatch(re.escape(entry).replace(r"\*", r"\w+"), path):
            return entry
    raise KeyError(path)
