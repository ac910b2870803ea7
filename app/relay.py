"""Relay: get a replica that takes the request, pass its bytes on, and end every way this can end.

Before the first byte: replicas that do not accept cost nothing, a lost one costs one retry from the
budget, and what a replica refuses is asked of one that takes more.  After it: one error
event, then the end; never a second generation.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace

from app import errors
from app.admission.desk import Desk
from app.admission.refusals import NoSeatError
from app.admission.seat import Seat
from app.answer import Tail, answer_headers, last
from app.capability import wider_than
from app.demand import Demand
from app.errors import ApiError, Code
from app.job import Course, Job
from app.membership import Membership
from app.retries import RetryBudget
from app.routing.route import decide, route_of
from app.routing.rule import preferred_role
from app.upstream import Lost, NotAccepted, OpenAnswer, Silent, Upstream
from deployments.engine import Send

logger = logging.getLogger("ray.serve")

LONGEST_REFUSAL = 64 << 10  # bytes; an engine's 400 is a few hundred
MAX_REFUSALS = 5
REFUSALS_LIMIT_S = 2.0
NO_ROOM = (Code.NO_CAPACITY, Code.RATE_LIMIT_EXCEEDED)


class Relay:
    """Shared by all requests of one ingress."""

    def __init__(self, membership: Membership, upstream: Upstream, desk: Desk) -> None:
        self._membership = membership
        self._upstream = upstream
        self._desk = desk
        self.demand = Demand()
        self._budget = RetryBudget()
        self.retries = 0

    async def serve(self, job: Job, course: Course, send: Send) -> None:
        """Answer `job`; raises ApiError when nothing has been sent yet."""
        preferred = preferred_role(job.ask.tier, job.ask.pin)
        with self.demand.open(preferred, job.ask.sequences):
            try:
                await self._serve(job, course, send)
            except ApiError as error:
                if error.code in NO_ROOM:
                    self.demand.refuse(preferred, job.ask.sequences)
                raise

    async def _serve(self, job: Job, course: Course, send: Send) -> None:
        self._budget.request(time.monotonic())
        search = _Search(self._desk, self._membership, job, course)
        retried = False
        while True:
            with await search.next() as seat:
                try:
                    answer = await self._upstream.open(seat.route.replica, job.outgoing)
                except NotAccepted as outcome:
                    search.refused(seat, outcome)
                    continue
                except Lost as outcome:
                    search.lost(seat)
                    self._spend_retry(job, seat, outcome, retried)
                    retried = True
                    continue
                except Silent as outcome:
                    raise errors.upstream_timeout(outcome.limit_s) from outcome
                try:
                    wider = search.wider(seat) if answer.status == 400 else None
                    if wider is None or not await self._served_by(wider, answer, job, course, send):
                        await self._pass_on(job, seat, answer, course, send)
                finally:
                    answer.close()
                return

    async def _served_by(
        self, wider: Seat, refusal: OpenAnswer, job: Job, course: Course, send: Send
    ) -> bool:
        """Whether a wider replica had another answer than 400, which was passed on then.

        Until it has one the first refusal is kept: whatever goes wrong here, the caller gets that.
        """
        with wider:
            if not await refusal.complete(LONGEST_REFUSAL):
                return False
            course.attempts += 1
            replica_id = wider.route.replica.replica_id
            try:
                answer = await self._upstream.open(wider.route.replica, job.outgoing)
            except NotAccepted as outcome:
                if outcome.unreachable:
                    self._membership.eject(replica_id, time.monotonic())
                return False
            except (Lost, Silent) as outcome:
                self._membership.eject(replica_id, time.monotonic())
                logger.warning(
                    f"request {job.request_id}: {replica_id} lost before the first byte ({outcome})"
                )
                return False
            try:
                if answer.status == 400:
                    return False
                course.wider, course.route, course.decision = True, wider.route, wider.route.decision
                await self._pass_on(job, wider, answer, course, send)
            finally:
                answer.close()
            return True

    def _spend_retry(self, job: Job, seat: Seat, outcome: Lost, retried: bool) -> None:
        replica_id = seat.route.replica.replica_id
        logger.warning(f"request {job.request_id}: {replica_id} lost before the first byte ({outcome})")
        if retried or not self._budget.allow(time.monotonic()):
            raise errors.replica_lost() from outcome
        self.retries += 1

    async def _pass_on(self, job: Job, seat: Seat, answer: OpenAnswer, course: Course, send: Send) -> None:
        replica_id = seat.route.replica.replica_id
        headers = [*answer.headers, *answer_headers(job, seat.route)]
        course.first_byte_s = time.monotonic() - course.began
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.first, "more_body": True})
        tail = Tail(answer.first)
        try:
            async for piece in answer.rest():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                seat.advance(tail.add(piece))
        except (Lost, Silent) as outcome:
            self._membership.eject(replica_id, time.monotonic())
            logger.warning(f"request {job.request_id}: {replica_id} lost in mid-answer ({outcome})")
            error = _interrupted(outcome)
            course.failed(error)
            if not answer.is_event_stream:
                raise  # half a JSON body: only a closed connection can say so
            # Cut in the middle of an event: ours must not continue its line.
            await send(last(tail.gap() + errors.event(error)))
            return
        self._membership.succeeded(replica_id)
        course.answered(answer.status)
        tail.tell(course)
        await send(last(b""))


class _Search:
    """The attempts of one request: which replicas have not accepted it, and when that is enough."""

    def __init__(self, desk: Desk, membership: Membership, job: Job, course: Course) -> None:
        self._desk = desk
        self._membership = membership
        self._ask = job.ask
        self._course = course
        self._tried: frozenset[str] = frozenset()
        self._refusals = 0
        self._asking_since: float | None = None  # first of the replicas asked without a pause
        self._begun = False

    async def next(self) -> Seat:
        """A seat at the next replica; raises ApiError."""
        course, asked_at = self._course, time.monotonic()
        try:
            seat = await self._desk.seat(self._ask, since=course.began, tried=self._tried, again=self._begun)
        except NoSeatError as error:
            course.route, course.decision = None, error.decision
            raise
        except asyncio.CancelledError:
            self._left()
            raise
        finally:
            now = time.monotonic()
            course.waited_s += now - asked_at
        self._begun = True
        course.attempts += 1
        course.route, course.decision = seat.route, seat.route.decision
        if seat.waited_for is not None:
            course.waited_for = seat.waited_for
            self._refusals, self._asking_since = 0, None  # what was known then is old
        self._asking_since = now if self._asking_since is None else self._asking_since
        return seat

    def _left(self) -> None:
        """Note what stood against the request when its caller left the queue."""
        view = self._membership.candidates_view(time.monotonic())
        found = decide(self._ask, view, self._membership.rules, choose=lambda _: 0)
        # With a route it had only to wait for those before it.
        self._course.decision = None if route_of(found) is not None else found

    def refused(self, seat: Seat, outcome: NotAccepted) -> None:
        """Note a replica that did not accept; raises no_capacity after the fifth, or when time is up."""
        now, replica_id = time.monotonic(), seat.route.replica.replica_id
        if outcome.unreachable:
            self._membership.eject(replica_id, now)
        else:
            self._membership.refused(replica_id, now)
        self._tried |= {replica_id}
        self._refusals += 1
        if self._refusals >= MAX_REFUSALS or now - (self._asking_since or now) >= REFUSALS_LIMIT_S:
            raise errors.no_capacity(self._desk.retry_after_s(self._ask.tier))

    def lost(self, seat: Seat) -> None:
        """Note a replica that was lost with this request: a new search begins, without it."""
        replica_id = seat.route.replica.replica_id
        self._membership.eject(replica_id, time.monotonic())
        self._tried |= {replica_id}
        self._refusals, self._asking_since = 0, None

    def wider(self, seat: Seat) -> Seat | None:
        """A seat at once at a replica that takes more than this one, if there is one."""
        if self._ask.pin is not None:
            return None
        wider = wider_than(seat.route.replica, self._membership.candidates_view(time.monotonic()))
        return self._desk.seat_now(replace(self._ask, among=wider, wider=True)) if wider else None


def _interrupted(outcome: Lost | Silent) -> ApiError:
    if isinstance(outcome, Lost):
        return errors.stream_interrupted()
    return errors.upstream_timeout(outcome.limit_s)
