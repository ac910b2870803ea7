"""Decide on requests as the ingress does, without a network, and time each decision alone."""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Iterable
from random import Random
from typing import Final

import app.ingress  # noqa: F401  # with all that it needs: the collector has as much to look at
from app.admission.desk import Desk
from app.admission.refusals import NoSeatError
from app.admission.seat import Seat
from app.ask_of import Asked, asked
from app.job import Course, Job
from app.lines import Lines, line_of
from app.membership import Membership
from app.peek import Fields, fields_of, peek
from app.routing.route import decide
from app.tiers import Headers, TierChoice, choose_tier, pool_pin
from app.upstream import Outgoing
from app.workload.acceptance import draftable, tokens_per_step
from app.workload.classify import classify
from app.workload.features import read_features
from benchmarks.errors import BenchError
from benchmarks.route_fleet import SOFT_LIMIT, Setting, snapshot
from benchmarks.route_prompts import Body
from benchmarks.route_report import Parts, Timed

SNAPSHOT_EVERY: Final = 50  # requests: at four snapshots a second, 200 a second
# What an OpenAI client sends; a tier is added to three of four.
HEADERS: Final = (
    (b"host", b"localhost:8000"),
    (b"accept", b"application/json"),
    (b"accept-encoding", b"gzip, deflate, br"),
    (b"content-type", b"application/json"),
    (b"user-agent", b"OpenAI/Python 2.8.0"),
    (b"authorization", b"Bearer none"),
    (b"x-stainless-lang", b"python"),
    (b"x-stainless-runtime", b"CPython"),
    (b"content-length", b"33000"),
)
TIERS: Final = (None, b"interactive", b"standard", b"batch")


class Bench:
    """One ingress over replicas that stand still."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._members = Membership(time.monotonic)
        self._choose = Random(1).randrange
        self._desk = Desk(self._members, self._choose)
        self._lines = Lines()
        self._held: deque[Seat] = deque()
        self._places = setting.replicas * SOFT_LIMIT // 2 if setting.half else 0
        self._seq = 0

    async def run(self, requests: Iterable[Body], *, parts: bool = False) -> list[Timed]:
        """Decide on each; with `parts` what a decision consists of is timed, too.  Raises BenchError."""
        timed = []
        for index, body in enumerate(requests):
            if index % SNAPSHOT_EVERY == 0:
                self._seq += 1
                self._members.accept(snapshot(self._setting, self._seq), time.monotonic())
            word = TIERS[index % len(TIERS)]
            headers = HEADERS if word is None else (*HEADERS, (b"x-twinpool-tier", word))
            timed.append(await self._one(body, headers, parts))
        return timed

    async def _one(self, body: Body, headers: Headers, parts: bool) -> Timed:
        clock, members = time.perf_counter_ns, self._members
        raw = b"".join((body.raw[:16384], body.raw[16384:]))  # as it comes: just read, in two pieces
        began = clock()
        fields = fields_of(b"application/json", raw)
        seen = peek(body.path, fields, members.max_model_len)
        tier = choose_tier(headers, seen.service_tier, seen.model, members.served_names)
        pin = pool_pin(headers)
        peeked = clock()
        found = asked(body.path, fields, seen, tier.tier, pin, members.rules, members.method)
        classified = clock()
        try:
            seat = await self._desk.seat(found.ask, since=time.monotonic())
        except NoSeatError as error:
            raise BenchError(f"a request found no room at {self._setting.name}: {error}") from error
        ended = clock()
        spans = (peeked - began, classified - peeked, ended - classified)
        apart = self._parts(body, fields, tier, found, seat) if parts else None
        self._hold(seat)
        return Timed(body.kind, self._setting.name, *spans, parts=apart)

    def _hold(self, seat: Seat) -> None:
        """Keep half of all places taken: the oldest request ends when one comes."""
        self._held.append(seat)
        while len(self._held) > self._places:
            self._held.popleft().release()

    def _parts(self, body: Body, fields: Fields, tier: TierChoice, found: Asked, seat: Seat) -> Parts:
        """Do again, part by part, what the decision did, and write the line."""
        clock, members = time.perf_counter_ns, self._members
        rules, method = members.rules, members.method
        began = clock()
        features = read_features(body.path, fields)
        read = clock()
        draftable(tokens_per_step(method, classify(features), features, rules.tokens_per_step))
        predicted = clock()
        decide(found.ask, members.candidates_view(time.monotonic()), rules, choose=self._choose)
        routed = clock()
        line_ns = self._line(body, tier, found, seat)
        return Parts(read - began, predicted - read, routed - predicted, line_ns)

    def _line(self, body: Body, tier: TierChoice, found: Asked, seat: Seat) -> int:
        outgoing = Outgoing("POST", body.path, (), body.raw)
        job, course = Job("req-1", "req-1-0a1b2c", outgoing, tier, found.ask, stream=True), Course()
        course.route, course.decision = seat.route, seat.route.decision
        course.answered(200)
        began, now, wall = time.perf_counter_ns(), time.monotonic(), time.time()
        self._lines.add(line_of(self._lines.next_seq(), job, found, course, now=now, wall=wall))
        took = time.perf_counter_ns() - began
        self._lines.taken(self._lines.oldest())
        return took


async def measure(
    setting: Setting, requests: Iterable[Body], warm_up: Iterable[Body], *, parts: bool = False
) -> list[Timed]:
    """Requests of one setting after others that do not count; the collector runs as it does in production."""
    bench = Bench(setting)
    await bench.run(warm_up, parts=parts)
    gc.collect()
    return await bench.run(requests, parts=parts)
