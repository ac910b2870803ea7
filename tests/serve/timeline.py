"""How long a move took, part by part, and a table of many.

Input: an order to a service under load.  Output: seconds by the controller's own record of the move, and
the first token of a replica that was not there before.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tests.serve.load import Load
from tests.serve.movement import clear, ids, known, newest, order_size
from tests.service import Service

POLL_S = 0.1
PARTS = ("decision_s", "drain_s", "start_s", "done_s", "first_token_s")


@dataclass(frozen=True, slots=True)
class Timeline:
    """One move.  Decision, done and first token count from the order; drain and the start after it do not."""

    id: str
    source: str
    receiver: str
    count: int
    decision_s: float
    drain_s: float
    start_s: float
    done_s: float
    first_token_s: float

    def line(self) -> str:
        """The move on one line."""
        parts = ", ".join(f"{name.removesuffix('_s')} {getattr(self, name):.2f}" for name in PARTS)
        return f"{self.id} {self.count} from {self.source} to {self.receiver}: {parts} s"


def timed_move(service: Service, load: Load, pool: str, replicas: int, limit_s: float = 200) -> Timeline:
    """Order a size under load and follow the move to its end and to the first token of a new replica.

    Earlier overrides are cleared.  The move must have a donor and a receiver.
    """
    clear(service)
    before = service.status()
    name = f"m{newest(before) + 1}"
    ordered, ordered_wall = time.monotonic(), time.time()
    order_size(service, pool, replicas)
    first_at: float | None = None
    move: dict[str, Any] | None = None
    while move is None or move["ended_at"] is None or first_at is None:
        assert time.monotonic() - ordered < limit_s, f"{name} after {limit_s:.0f} s: {move}, token {first_at}"
        time.sleep(POLL_S)
        status = known(service)
        if status is None or name not in [one["id"] for one in status["moves"]]:
            continue
        move = service.get("/admin/why/move", params={"id": name}).json()["record"]
        if first_at is None:
            new = ids(status, move["receiver"]) - ids(before, move["receiver"])
            # The streams that are open may go on for a minute; a short one finds the new replica at once.
            told = load.probe(move["receiver"]) if new else None
            if told is not None and told.replica in new:
                first_at = told.first_at
    assert move["state"] == "done", move
    decision_s = move["wall"] - ordered_wall
    return Timeline(
        id=name,
        source=move["source"],
        receiver=move["receiver"],
        count=move["count"],
        decision_s=decision_s,
        drain_s=move["drained_at"] - move["at"],
        start_s=move["ended_at"] - move["drained_at"],
        done_s=decision_s + move["ended_at"] - move["at"],
        first_token_s=first_at - ordered,
    )


def table(timelines: Sequence[Timeline]) -> dict[str, dict[str, float]]:
    """Per part of a move: min, median, p95 (nearest rank) and max in seconds."""
    found = {}
    for name in PARTS:
        values = sorted(getattr(one, name) for one in timelines)
        found[name] = {
            "min": values[0],
            "median": statistics.median(values),
            "p95": values[math.ceil(0.95 * len(values)) - 1],
            "max": values[-1],
        }
    return found


def table_lines(found: dict[str, dict[str, float]]) -> list[str]:
    """The table as text."""
    head = f"{'seconds':<14}" + "".join(f"{word:>9}" for word in next(iter(found.values())))
    rows = [
        f"{name:<14}" + "".join(f"{value:>9.2f}" for value in row.values()) for name, row in found.items()
    ]
    return [head, *rows]


def plain(timelines: Sequence[Timeline]) -> list[dict[str, Any]]:
    """Every move as JSON values."""
    return [asdict(one) for one in timelines]
