"""The parts of a policy file that read well, so that one bad field does not hide what others contradict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import ValidationError

from autoscaling.policy import (
    MOST_ENTRIES,
    Bootstrap,
    Budget,
    CapacityPolicy,
    Part,
    PolicyOverride,
    Pool,
    Role,
    Schedule,
    Utilization,
)

_Model = TypeVar("_Model", bound=Part)


@dataclass(frozen=True, slots=True)
class Readable:
    """Parts that can be checked against each other; what is absent or did not read is not here."""

    budget: Budget | None = None
    bootstrap: Bootstrap | None = None
    utilization: Utilization | None = None
    pools: Mapping[Role, Pool] = field(default_factory=dict)
    schedules: Mapping[int, Schedule] = field(default_factory=dict)  # by their index in the file
    overrides: Mapping[int, PolicyOverride] = field(default_factory=dict)


def all_of(policy: CapacityPolicy) -> Readable:
    """All parts of a whole policy."""
    spec = policy.spec
    return Readable(
        budget=spec.budget,
        bootstrap=spec.bootstrap,
        utilization=spec.behavior.utilization,
        pools={Role.SPECULATIVE: spec.pools.speculative, Role.PLAIN: spec.pools.plain},
        schedules=dict(enumerate(spec.schedules)),
        overrides=dict(enumerate(spec.overrides)),
    )


def what_reads(data: Mapping[str, Any]) -> Readable:
    """The parts of a file's plain data that their models take, each by itself."""
    spec = _mapping(data, "spec")
    pools = _mapping(spec, "pools")
    return Readable(
        budget=_one(Budget, spec.get("budget")),
        bootstrap=_one(Bootstrap, spec.get("bootstrap")),
        utilization=_one(Utilization, _mapping(spec, "behavior").get("utilization")),
        pools={role: pool for role in Role if (pool := _one(Pool, pools.get(role.value))) is not None},
        schedules=_many(Schedule, spec.get("schedules")),
        overrides=_many(PolicyOverride, spec.get("overrides")),
    )


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = data.get(key)
    return found if isinstance(found, dict) else {}


def _many(model: type[_Model], data: object) -> dict[int, _Model]:
    # As many as a valid file has: pairs of them are compared.
    items = data[:MOST_ENTRIES] if isinstance(data, list) else []
    return {index: part for index, item in enumerate(items) if (part := _one(model, item)) is not None}


def _one(model: type[_Model], data: object) -> _Model | None:
    try:
        return model.model_validate_json(json.dumps(data))
    except ValidationError:
        return None
