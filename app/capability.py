"""Which replicas take more than another one: fewer refused parameters, or a longer context; pure."""

from __future__ import annotations

from collections.abc import Iterable

from app.candidates import Candidate
from autoscaling.types import ReplicaView


def wider_than(narrow: ReplicaView, candidates: Iterable[Candidate]) -> frozenset[str]:
    """Replicas that take work, everything that `narrow` takes, and something that it refuses."""
    refused, length = set(narrow.capabilities.refuses), narrow.capabilities.max_model_len
    found = set()
    for one in candidates:
        own = one.replica.capabilities
        covers = set(own.refuses) <= refused and own.max_model_len >= length
        more = set(own.refuses) < refused or own.max_model_len > length
        if one.replica.accepting and covers and more:
            found.add(one.replica.replica_id)
    return frozenset(found)
