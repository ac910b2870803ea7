"""What differs between two policies in meaning, and what each difference does.

Defaults that are written out, the order of days and the zone in which a time is written are no
difference.  Schedules and overrides are matched by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from autoscaling.claims import pool_of
from autoscaling.instants import rfc3339
from autoscaling.policy import CapacityPolicy, Day
from autoscaling.policy_effects import effect
from autoscaling.types import Role

ORDER_EFFECT = "acts at the next tick: of those that hold at once the later one wins"


@dataclass(frozen=True, slots=True)
class Difference:
    """One field; `old` and `new` are JSON values, None where that policy has none."""

    field: str  # as in the file: spec.pools.plain.maxReplicas, spec.schedules[night].start
    old: Any
    new: Any
    effect: str  # in words


def differences(old: CapacityPolicy, new: CapacityPolicy) -> tuple[Difference, ...]:
    """Every field whose meaning changes from `old` to `new`, in the order of the file."""
    return tuple(_between("", _meaning(old), _meaning(new)))


def render(found: Sequence[Difference]) -> str:
    """Two lines for each difference: the values, and below what the change does."""
    if not found:
        return "no difference\n"
    return "".join(
        f"{item.field}: {_show(item.old)} -> {_show(item.new)}\n    {item.effect}\n" for item in found
    )


def _meaning(policy: CapacityPolicy) -> dict[str, Any]:
    """The policy as JSON values with every default in place and one spelling for each meaning."""
    tree = policy.model_dump(mode="json", by_alias=True)
    spec = tree["spec"]
    if spec["budget"]["min"] is None:
        spec["budget"]["min"] = spec["budget"]["max"]
    for role in Role:
        spec["pools"][role]["role"] = pool_of(policy, role).role or role.value
    week = {day.value: place for place, day in enumerate(Day)}
    for schedule in spec["schedules"]:
        schedule["days"] = sorted(set(schedule["days"]), key=week.__getitem__)
    for override, model in zip(spec["overrides"], policy.spec.overrides, strict=True):
        override["until"] = rfc3339(model.until.timestamp())
    return dict(tree)


def _between(path: str, old: Any, new: Any) -> Iterator[Difference]:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict) and path != "metadata.annotations":
        for key in dict.fromkeys((*old, *new)):
            yield from _between(f"{path}.{key}".lstrip("."), old.get(key), new.get(key))
    elif path in ("spec.schedules", "spec.overrides"):
        yield from _by_name(path, old, new)
    else:
        yield Difference(path, old, new, effect(path, old, new))


def _by_name(path: str, old: Sequence[Any], new: Sequence[Any]) -> Iterator[Difference]:
    before, after = ({item["name"]: item for item in items} for items in (old, new))
    for name in dict.fromkeys((*before, *after)):
        yield from _between(f"{path}[{name}]", before.get(name), after.get(name))
    kept = [name for name in before if name in after]
    order = [name for name in after if name in before]
    if kept != order:
        yield Difference(path, kept, order, ORDER_EFFECT)


def _show(value: Any) -> str:
    if value is None:
        return "(none)"
    return value if isinstance(value, str) else json.dumps(_given(value), ensure_ascii=False)


def _given(value: Any) -> Any:
    """The value without what is not given: a schedule or override has many fields that may be absent."""
    if isinstance(value, dict):
        return {key: _given(item) for key, item in value.items() if item is not None}
    return [_given(item) for item in value] if isinstance(value, list) else value
