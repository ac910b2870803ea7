"""Engines' records that wait for the line of their request; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from autoscaling.types import FinishedRequest

MOST = 10_000  # records that wait
_CHAT = "chatcmpl-"
_COMPLETION = re.compile(r"cmpl-(.+)-\d+", re.DOTALL)  # the number of the prompt


def engine_id(request_id: str) -> str:
    """What the replica was told as the request's id, by what the engine calls the sequence."""
    if request_id.startswith(_CHAT):
        return request_id[len(_CHAT) :]
    found = _COMPLETION.fullmatch(request_id)
    return request_id if found is None else found[1]


class Unmatched:
    """Records in by replica, out by request."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[tuple[str, FinishedRequest]]] = {}  # by engine id, oldest first
        self._count = 0

    def take(self, replica_id: str, records: Iterable[FinishedRequest]) -> set[str]:
        """Keep new records of one replica; answers the engine ids that they are of."""
        new: set[str] = set()
        for record in records:
            key = engine_id(record.request_id)
            self._waiting.setdefault(key, []).append((replica_id, record))
            self._count += 1
            new.add(key)
        while self._count > MOST:
            self.drop(next(iter(self._waiting)))
        return new

    def of(self, key: str, replica_id: str | None) -> list[FinishedRequest]:
        """The records of one request by the replica that answered it, by any replica with None."""
        return [one for said_by, one in self._waiting.get(key, ()) if replica_id in (None, said_by)]

    def drop(self, key: str) -> None:
        """Forget the records of a request; those of replicas that lost it too."""
        self._count -= len(self._waiting.pop(key, ()))

    def __len__(self) -> int:
        return self._count
