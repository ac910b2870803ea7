"""The search of one request for a replica: at most five that do not accept, within two seconds."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from app import errors
from app.errors import ApiError
from app.membership import Membership
from app.routing import Choose, Refusal, Route, route, why_none
from app.tiers import TierChoice
from app.upstream import NotAccepted, Outgoing
from autoscaling.types import Role

MAX_REFUSALS = 5
LIMIT_S = 2.0
PAUSE_S = 0.05
RETRY_AFTER_S = 1.0  # a slot frees at the pace of requests


@dataclass(frozen=True, slots=True)
class Job:
    """One client request, ready to be relayed."""

    request_id: str
    outgoing: Outgoing
    tier: TierChoice
    pin: Role | None
    parameters: frozenset[str]
    sequences: int = 1


class Search:
    """Hands out one route after another until one is taken."""

    def __init__(self, job: Job, membership: Membership, choose: Choose) -> None:
        self._job = job
        self._membership = membership
        self._choose = choose
        self._tried: frozenset[str] = frozenset()
        self._refusals = 0
        self._deadline = time.monotonic() + LIMIT_S

    async def next(self) -> Route:
        """The next replica to try; waits for room.

        Raises ApiError: no_capacity, not_ready, or parameter_not_supported.
        """
        job = self._job
        while True:
            now = time.monotonic()
            candidates = self._membership.candidates_view(now)
            found = route(
                job.tier.tier, job.pin, job.parameters, candidates, tried=self._tried, choose=self._choose
            )
            if found is not None:
                return found
            why = why_none(job.pin, job.parameters, candidates)
            if why is Refusal.CAPABILITY:
                raise errors.parameter_not_supported(job.parameters)
            if now >= self._deadline:
                raise self._none(why)
            self._tried = frozenset()  # each may have room again by the next look
            await asyncio.sleep(PAUSE_S)

    def refused(self, found: Route, outcome: NotAccepted) -> None:
        """Note a replica that did not accept; raises no_capacity after the fifth, or when time is up."""
        now = time.monotonic()
        replica_id = found.replica.replica_id
        if outcome.unreachable:
            self._membership.eject(replica_id, now)
        else:
            self._membership.refused(replica_id, now)
        self._tried |= {replica_id}
        self._refusals += 1
        if self._refusals >= MAX_REFUSALS or now >= self._deadline:
            raise errors.no_capacity(self._retry_after_s())

    def lost(self, found: Route) -> None:
        """Note a replica that was lost with this request: a new search begins, without it."""
        replica_id = found.replica.replica_id
        now = time.monotonic()
        self._membership.eject(replica_id, now)
        self._tried |= {replica_id}
        self._refusals, self._deadline = 0, now + LIMIT_S

    def _none(self, why: Refusal) -> ApiError:
        if why is Refusal.NO_REPLICA:
            pool = "a replica" if self._job.pin is None else f"a replica of the {self._job.pin} pool"
            return errors.not_ready(f"{pool} to take work", RETRY_AFTER_S)
        return errors.no_capacity(self._retry_after_s())

    def _retry_after_s(self) -> float:
        """The policy's value, by the newest snapshot."""
        return self._membership.retry_after_s or RETRY_AFTER_S
