"""A pool as one request sees it: which replicas could serve it, and how much room the best has."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import attrgetter

from app.candidates import Candidate
from app.routing.ask import Ask
from autoscaling.types import Role

_load = attrgetter("load")


@dataclass(frozen=True, slots=True)
class PoolView:
    """Replicas of one pool, from all that take work down to those that may be asked now."""

    role: Role
    accepting: int  # replicas that take work
    able: tuple[Candidate, ...]  # of these, such as take the request's parameters
    open: tuple[Candidate, ...]  # of these, not tried yet and below their hard limit
    emptiest: Candidate | None  # the one with the fewest sequences, of `open`, else of `able`

    def roomy(self, sequences: int, reserve: int, *, alone: bool) -> tuple[Candidate, ...]:
        """The open ones with room for so many sequences above a reserve, inside the soft limit.

        With `alone` an idle replica takes what would fit nowhere: by itself it does no harm to others.
        """
        return tuple(
            [
                one
                for one in self.open
                if one.free_for(reserve) >= sequences or (alone and one.load == 0 and one.free > 0)
            ]
        )


def pool_view(role: Role, ask: Ask, candidates: Sequence[Candidate], tried: Collection[str]) -> PoolView:
    """Sort out one pool's replicas for this request."""
    accepting = [one for one in candidates if one.replica.role is role and one.replica.accepting]
    able = tuple([one for one in accepting if _takes(one, ask)] if _is_choosy(ask) else accepting)
    open_ = tuple([one for one in able if one.hard_room and one.replica.replica_id not in tried])
    return PoolView(role, len(accepting), able, open_, emptiest(open_ or able))


def emptiest(candidates: Sequence[Candidate]) -> Candidate | None:
    """The one with the fewest sequences; the first of several."""
    return min(candidates, key=_load, default=None)


def _is_choosy(ask: Ask) -> bool:
    """Whether there may be a replica that cannot serve this request."""
    return bool(ask.parameters) or ask.among is not None


def _takes(one: Candidate, ask: Ask) -> bool:
    if ask.among is not None and one.replica.replica_id not in ask.among:
        return False
    return ask.parameters.isdisjoint(one.replica.capabilities.refuses)
