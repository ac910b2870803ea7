"""Relay: find a replica that takes the request, pass its bytes on, and end every way this can end.

Before the first byte: replicas that do not accept cost nothing, a lost one costs one retry from the
budget.  After it: one error event, then the end; never a second generation.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from app import errors
from app.demand import Demand
from app.errors import ApiError, Code
from app.membership import Membership
from app.retries import RetryBudget
from app.routing import Route, preferred_role
from app.search import Job, Search
from app.upstream import Lost, NotAccepted, OpenAnswer, Silent, Upstream
from deployments.engine import Send

logger = logging.getLogger("ray.serve")


class Relay:
    """Shared by all requests of one ingress."""

    def __init__(self, membership: Membership, upstream: Upstream) -> None:
        self._membership = membership
        self._upstream = upstream
        self.demand = Demand()
        self._budget = RetryBudget()
        self._choose = random.Random().randrange  # noqa: S311  # a choice between replicas, nothing secret
        self.retries = 0

    async def serve(self, job: Job, send: Send) -> None:
        """Answer `job`; raises ApiError when nothing has been sent yet."""
        preferred = preferred_role(job.tier.tier, job.pin)
        with self.demand.open(preferred, job.sequences):
            try:
                await self._serve(job, send)
            except ApiError as error:
                if error.code is Code.NO_CAPACITY:
                    self.demand.refuse(preferred, job.sequences)
                raise

    async def _serve(self, job: Job, send: Send) -> None:
        self._budget.request(time.monotonic())
        search = Search(job, self._membership, self._choose)
        retried = False
        while True:
            found = await search.next()
            with self._open_at(found.replica.replica_id, job.sequences):
                try:
                    answer = await self._upstream.open(found.replica, job.outgoing)
                except NotAccepted as outcome:
                    search.refused(found, outcome)
                    continue
                except Lost as outcome:
                    search.lost(found)
                    self._spend_retry(job, found, outcome, retried)
                    retried = True
                    continue
                except Silent as outcome:
                    raise errors.upstream_timeout(outcome.limit_s) from outcome
                try:
                    await self._pass_on(job, found, answer, send)
                finally:
                    answer.close()
                return

    @contextmanager
    def _open_at(self, replica_id: str, sequences: int) -> Iterator[None]:
        """Count an open request at a replica, however it ends."""
        self._membership.started(replica_id, sequences)
        try:
            yield
        finally:
            self._membership.finished(replica_id, sequences)

    def _spend_retry(self, job: Job, found: Route, outcome: Lost, retried: bool) -> None:
        logger.warning(
            f"request {job.request_id}: {found.replica.replica_id} lost before the first byte ({outcome})"
        )
        if retried or not self._budget.allow(time.monotonic()):
            raise errors.replica_lost() from outcome
        self.retries += 1

    async def _pass_on(self, job: Job, found: Route, answer: OpenAnswer, send: Send) -> None:
        headers = [*answer.headers, *answer_headers(job, found)]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.first, "more_body": True})
        end = answer.first[-2:]
        try:
            async for piece in answer.rest():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                end = (end + piece)[-2:] if len(piece) < 2 else piece[-2:]
        except (Lost, Silent) as outcome:
            self._membership.eject(found.replica.replica_id, time.monotonic())
            logger.warning(
                f"request {job.request_id}: {found.replica.replica_id} lost in mid-answer ({outcome})"
            )
            if not answer.is_event_stream:
                raise  # half a JSON body: only a closed connection can say so
            # Cut in the middle of an event: ours must not continue its line.
            gap = b"" if end in (b"", b"\n\n") else b"\n\n"
            await send(_last(gap + errors.event(_interrupted(outcome))))
            return
        self._membership.succeeded(found.replica.replica_id)
        await send(_last(b""))


def answer_headers(job: Job, found: Route) -> list[tuple[bytes, bytes]]:
    """What every routed answer says about its route."""
    tier = job.tier
    headers = [
        (b"x-twinpool-pool", found.pool.encode()),
        (b"x-twinpool-tier", tier.tier.value.encode()),
        (b"x-twinpool-route-reason", found.reason.value.encode()),
        (b"x-twinpool-replica", found.replica.replica_id.encode()),
    ]
    if tier.requested is not None and tier.requested is not tier.tier:
        headers.append((b"x-twinpool-tier-requested", tier.requested.value.encode()))
    return headers


def _interrupted(outcome: Lost | Silent) -> ApiError:
    if isinstance(outcome, Lost):
        return errors.stream_interrupted()
    return errors.upstream_timeout(outcome.limit_s)


def _last(body: bytes) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": False}
