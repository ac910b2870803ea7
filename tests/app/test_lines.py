"""Lines of ended requests: kept until the controller has them, and what one says."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from app.ask_of import Asked
from app.errors import no_capacity
from app.job import Course, Job
from app.lines import AT_ONCE, KEPT, Lines, line_of
from app.routing.ask import Ask
from app.routing.replay import recorded, replay
from app.routing.route import route_of
from app.routing.verdicts import Verdict
from app.tiers import TierChoice, TierSource
from app.upstream import Outgoing
from app.workload.classify import Reason, Workload, WorkloadClass
from app.workload.features import Features
from autoscaling.request_line import Outcome, RequestLine
from autoscaling.types import Role, Tier
from tests.app.routing.worlds import MEASURED, decided, plain, spec

ASK = Ask(Tier.INTERACTIVE, tokens_per_step=1.4, sequences=2)
ASKED = Asked(ASK, Workload(WorkloadClass.CHAT, Reason.FREE_TEXT), Features(prompt_chars=40, turns=1))


def job() -> Job:
    return Job(
        request_id="r1",
        engine_id="r1-x",
        outgoing=Outgoing("POST", "/v1/completions", (), b"{}"),
        tier=TierChoice(Tier.INTERACTIVE, Tier.INTERACTIVE, TierSource.HEADER, "m"),
        ask=ASK,
        stream=True,
    )


def line(course: Course, seq: int = 1) -> RequestLine:
    return line_of(seq, job(), ASKED, course, now=course.began + 2.0, wall=1_800_000_002.0)


def lines(count: int) -> Lines:
    kept, one = Lines(), line(Course(began=5.0))
    for _ in range(count):
        kept.add(replace(one, seq=kept.next_seq()))
    return kept


def test_a_served_request() -> None:
    """Arrival, times from it, the route and the engine's own numbers."""
    decision = decided(ASK, [spec(3), plain()], MEASURED)
    course = Course(began=5.0, route=route_of(decision), decision=decision, waited_s=0.25, attempts=1)
    course.first_byte_s = 0.5
    course.answered(200)
    found = line(course)

    assert (found.id, found.engine_id, found.seq) == ("r1", "r1-x", 1)
    assert (found.wall, found.e2e_s, found.first_byte_s, found.waited_s) == (1_800_000_000.0, 2.0, 0.5, 0.25)
    assert (found.outcome, found.status, found.code) == (Outcome.OK, 200, None)
    assert (found.pool, found.replica, found.reason) == (Role.SPECULATIVE, "s", "tier_interactive")
    assert (found.workload, found.workload_reason, found.tokens_per_step) == ("chat", "free_text", 1.4)
    assert (found.stream, found.sequences, found.features["prompt_chars"]) == (True, 2, 40)


def test_a_refused_request() -> None:
    """No route, the error's status and code, and a decision that can be replayed all the same."""
    decision = decided(ASK, [spec(8), plain(32)], MEASURED)
    course = Course(began=5.0, decision=decision)
    course.failed(no_capacity(3))
    found = line(course)

    assert (found.outcome, found.status, found.code) == (Outcome.NO_CAPACITY, 503, "no_capacity")
    assert (found.pool, found.replica, found.reason) == (None, None, None)
    assert replay(found.decision) == recorded(found.decision)
    assert found.decision["pools"]["plain"]["verdict"] == "full"


def test_one_that_waited_says_for_what() -> None:
    """What stood against each pool when it began to wait, beside what was decided in the end."""
    decision = decided(ASK, [spec(3), plain()], MEASURED)
    course = Course(began=5.0, route=route_of(decision), decision=decision)
    course.waited_for = {Role.SPECULATIVE: Verdict.FULL, Role.PLAIN: Verdict.WOULD_MISS_TPOT}

    assert line(course).decision["waited_for"] == {"speculative": "full", "plain": "would_miss_tpot"}


def test_a_request_whose_caller_left_before_anything_was_decided() -> None:
    """Cancelled is what a request is while nothing is said."""
    found = line(Course(began=5.0))

    assert (found.outcome, found.status, found.decision) == (Outcome.CANCELLED, None, {})


def test_a_line_survives_its_way_to_the_controller() -> None:
    """As the message that Ray carries, with a decision that still comes to the same."""
    decision = decided(ASK, [spec(3), plain()], MEASURED)
    sent = line(Course(began=5.0, route=route_of(decision), decision=decision))
    found = msgspec.convert(msgspec.to_builtins(sent), RequestLine)

    assert found == sent
    assert replay(found.decision).replica == "s"


def test_lines_are_kept_until_they_have_arrived() -> None:
    """A message that was lost is sent again, and what came meanwhile follows."""
    kept = lines(3)
    sent = kept.oldest()
    kept.add(replace(sent[0], seq=kept.next_seq()))

    assert [one.seq for one in sent] == [1, 2, 3]
    kept.taken(())
    assert [one.seq for one in kept.oldest()] == [1, 2, 3, 4]
    kept.taken(sent)
    assert [one.seq for one in kept.oldest()] == [4]


def test_a_message_is_bounded() -> None:
    """The rest comes with the next one."""
    kept = lines(AT_ONCE + 1)

    assert len(kept.oldest()) == AT_ONCE
    kept.taken(kept.oldest())
    assert [one.seq for one in kept.oldest()] == [AT_ONCE + 1]


@pytest.mark.parametrize("more", [0, 3])
def test_the_oldest_are_lost_and_counted(more: int) -> None:
    """When no controller has answered for too long."""
    kept = lines(KEPT + more)

    assert (kept.dropped, kept.oldest()[0].seq) == (more, more + 1)
