"""The book of requests: joins, repeats, bounds, pictures and counts."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.request_book import INGRESSES, MOST, RequestBook, TierPicture
from autoscaling.request_line import Outcome, RequestLine
from autoscaling.request_record import RequestRecord, Verdict, as_fields
from autoscaling.routing_rules import TierRules
from autoscaling.types import Role, Tier
from tests.autoscaling.request_lines import STRICT, line, load, record

STANDARD = Tier.STANDARD


def settled(book: RequestBook, now: float = 0.0) -> tuple[RequestRecord, ...]:
    """What is finished now, and was not before."""
    book.settle(now, STRICT)
    return book.drain()


def tokens(found: RequestRecord) -> int | None:
    return None if found.measured is None else found.measured.generated_tokens


# --- joins


@pytest.mark.parametrize("order", list(permutations(["line", "one", "two"])))
def test_line_and_records_come_in_any_order(order: tuple[str, ...]) -> None:
    """The request is finished by the last of them, with the tokens of all its sequences."""
    book = RequestBook()
    for step, what in enumerate(order):
        assert () == settled(book, float(step))
        match what:
            case "line":
                book.take_load("i", load(line(1, sequences=2)), float(step))
            case "one":
                book.take_records("a", [record(1)])
            case "two":
                book.take_records("a", [record(1, generated_tokens=4, decode_s=0.25)])
    (found,) = settled(book, 2.0)
    assert (13, Verdict.MET) == (tokens(found), found.verdict)
    assert 0 == book.counts.unjoined


def test_a_line_waits_five_seconds_for_its_record() -> None:
    """Then it is finished without, and counted; a record that comes later changes nothing."""
    book = RequestBook()
    book.take_load("i", load(line(1)), 0.0)
    assert () == settled(book, 5.0)
    (found,) = settled(book, 5.1)
    assert (None, Verdict.UNKNOWN, 1) == (found.measured, found.verdict, book.counts.unjoined)
    book.take_records("a", [record(1)])
    assert () == settled(book, 6.0)


def test_a_part_of_the_sequences_is_not_the_answer() -> None:
    """With one of two records the tokens stay unknown."""
    book = RequestBook()
    book.take_records("a", [record(1)])
    book.take_load("i", load(line(1, sequences=2)), 0.0)
    (found,) = settled(book, 5.1)
    assert found.measured is None


def test_only_the_replica_that_answered_counts() -> None:
    """One that lost the request before the first byte has a record of it too."""
    book = RequestBook()
    book.take_records("lost", [record(1, generated_tokens=2, finish_reason="abort")])
    book.take_load("i", load(line(1, attempts=2)), 0.0)
    assert () == settled(book)
    book.take_records("a", [record(1)])
    (found,) = settled(book)
    assert 9 == tokens(found)


@pytest.mark.parametrize(
    "changes",
    [
        {"outcome": Outcome.SHED, "pool": None, "replica": None, "attempts": 0},
        {"outcome": Outcome.NO_CAPACITY, "pool": None, "replica": None, "attempts": 0},
        {"outcome": Outcome.CALLER},
        {"outcome": Outcome.CANCELLED, "pool": None, "replica": None, "attempts": 0},
    ],
)
def test_what_no_engine_ran_is_finished_at_once(changes: dict[str, Any]) -> None:
    """There will be no record, and none is missed."""
    book = RequestBook()
    book.take_load("i", load(line(1, **changes)), 0.0)
    (found,) = settled(book)
    assert (None, 0) == (found.measured, book.counts.unjoined)


# --- repeats


def test_a_repeated_poll_adds_nothing() -> None:
    """Lines are repeated until a call returned; each counts once, and new ones behind them count."""
    book = RequestBook()
    for lines in ([1, 2], [1, 2, 3], [3]):
        book.take_load("i", load(*(line(seq, outcome=Outcome.SHED) for seq in lines)), 0.0)
    assert [1, 2, 3] == [one.line.seq for one in settled(book)]


def test_each_ingress_has_numbers_of_its_own() -> None:
    """A new one may begin anywhere, also where another is."""
    book = RequestBook()
    book.take_load("i", load(line(700, outcome=Outcome.SHED)), 0.0)
    book.take_load("j", load(line(3, outcome=Outcome.SHED), line(700, outcome=Outcome.SHED)), 0.0)
    assert [("i", 700), ("j", 3), ("j", 700)] == [(one.ingress, one.line.seq) for one in settled(book)]


def test_lines_that_an_ingress_lost_are_counted_once() -> None:
    """By the difference to what it said before."""
    book = RequestBook()
    for dropped in (5, 5, 8):
        book.take_load("i", load(lines_dropped=dropped), 0.0)
    book.take_load("j", load(lines_dropped=2), 0.0)
    assert 10 == book.counts.lines_dropped


def test_numbers_that_never_came_are_counted() -> None:
    """Of one ingress, after its first line here: a message was lost, or two ingresses have one id."""
    book = RequestBook()
    for seqs in ([7, 8], [8, 9], [12], [], [12, 13, 15]):
        book.take_load("i", load(*(line(seq, outcome=Outcome.SHED) for seq in seqs)), 0.0)
    assert 3 == book.counts.lines_dropped


def test_numbers_that_an_ingress_says_it_lost_are_counted_once() -> None:
    """They are skipped, too."""
    book = RequestBook()
    book.take_load("i", load(line(1, outcome=Outcome.SHED)), 0.0)
    book.take_load("i", load(line(5, outcome=Outcome.SHED), lines_dropped=3), 0.0)
    assert 3 == book.counts.lines_dropped


@pytest.mark.parametrize(
    ("unread", "expected"), [((1,), 1), ((3,), 1), ((4,), 2), ((1, 3), 2), ((None,), 1), ((None, 3), 1)]
)
def test_lines_that_were_not_understood_are_counted_once(
    unread: tuple[int | None, ...], expected: int
) -> None:
    """However often they are repeated, if they have a number; beside line 2 of the ingress."""
    book = RequestBook()
    book.take_load("i", load(line(2, outcome=Outcome.SHED)), 0.0, unread)
    assert expected == book.counts.lines_dropped
    numbered = tuple(seq for seq in unread if seq is not None)
    book.take_load("i", load(line(2, outcome=Outcome.SHED)), 0.0, numbered)
    assert (expected, 1) == (book.counts.lines_dropped, len(settled(book)))


# --- bounds


def test_at_most_10000_are_kept() -> None:
    """The oldest go; those that were to be written are counted."""
    book = RequestBook()
    for seq in range(MOST + 3):
        book.take_load("i", load(line(seq, outcome=Outcome.SHED)), 0.0)
        book.settle(0.0, STRICT)
    assert (None, None) == (book.find("req-2"), book.find("req-2-abc"))
    assert book.find("req-3") is book.find("req-3-abc")
    assert (MOST, 3) == (len(book.drain()), book.counts.unwritten)
    assert 2 * MOST == len(book._by_id)


def test_at_most_10000_wait() -> None:
    """The oldest is finished without its record."""
    book = RequestBook()
    for seq in range(MOST + 1):
        book.take_load("i", load(line(seq)), 0.0)
    (found,) = settled(book)
    assert (0, 1) == (found.line.seq, book.counts.unjoined)


def test_two_lines_of_one_engine_id_do_not_share_a_record() -> None:
    """The older one is finished without, and counted."""
    book = RequestBook()
    book.take_load("i", load(line(1, engine_id="same"), line(2, engine_id="same")), 0.0)
    book.take_records("a", [record(1, request_id="chatcmpl-same")])
    assert [(1, None), (2, 9)] == [(one.line.seq, tokens(one)) for one in settled(book)]
    assert 1 == book.counts.unjoined


def test_at_most_1000_ingresses_are_remembered() -> None:
    """The one that was silent for longest goes; those that speak stay."""
    book = RequestBook()
    for number in range(INGRESSES + 1):
        book.take_load("alive", load(), float(number))
        book.take_load(f"i{number}", load(), float(number))
    assert INGRESSES == len(book._ingresses)
    assert "alive" in book._ingresses
    assert "i1" not in book._ingresses


# --- what `why` asks


def test_a_request_is_found_by_both_ids() -> None:
    """The newest of an id, and the newest of all without one."""
    book = RequestBook()
    assert book.find(None) is None
    for seq in (1, 2):
        book.take_load("i", load(line(seq, id="same", outcome=Outcome.SHED)), 0.0)
        book.settle(0.0, STRICT)
    for wanted, seq in (("same", 2), (None, 2), ("req-1-abc", 1)):
        found = book.find(wanted)
        assert found is not None
        assert seq == found.line.seq
    assert book.find("other") is None


def test_one_that_waits_for_its_record_is_found() -> None:
    """Not judged yet, and said so."""
    book = RequestBook()
    book.take_load("i", load(line(1)), 0.0)
    for wanted in ("req-1", "req-1-abc", None):
        found = book.find(wanted)
        assert found is not None
        assert (True, None) == (found.pending, found.verdict)


def test_the_record_is_one_flat_object() -> None:
    """The line, what the engine measured, the objective and the verdict; never a word of the request."""
    book = RequestBook()
    book.take_records("a", [record(1)])
    book.take_load("i", load(line(1, stream=False, first_byte_s=None)), 0.0)
    (found,) = settled(book)
    fields = as_fields(found)
    expected = {
        "id": "req-1",
        "ingress": "i",
        "prompt_tokens": 5,
        "generated_tokens": 9,
        "finish_reason": "stop",
        "queued_s": 0.125,
        "prefill_s": 0.125,
        "decode_s": 0.5,
        "ttft_s": 0.5,
        "tpot_s": 0.0625,
        "objective": {"ttft_s": 1.0, "tpot_s": 0.1},
        "verdict": "met",
        "pending": False,
    }
    assert expected == {name: fields[name] for name in expected}


# --- pictures


def ended(book: RequestBook, now: float, *changes: dict[str, Any], tier: Tier = STANDARD) -> None:
    """Let requests end, and the engine have its word at once."""
    for fields in changes:
        seq = sum(book.counts.requests.values())
        one = line(seq, tier=tier, **fields)
        book.take_records("a", [record(seq)])
        book.take_load("i", load(one), now)
        book.settle(now, STRICT)


def test_attainment_is_of_the_last_five_minutes() -> None:
    """Met of met and missed; one that is unknown is in neither."""
    book = RequestBook()
    assert TierPicture(None, None, None, None) == book.picture(STANDARD, 0.0, STRICT)
    ended(book, 0.0, {}, {"outcome": Outcome.FAILED})
    ended(book, 200.0, {}, {}, {"first_byte_s": None})
    assert 0.75 == book.picture(STANDARD, 200.0, STRICT).attainment
    assert 1.0 == book.picture(STANDARD, 300.0, STRICT).attainment
    assert book.picture(STANDARD, 500.0, STRICT).attainment is None
    assert book.picture(Tier.BATCH, 200.0, STRICT).attainment is None


def test_without_an_objective_there_is_no_attainment() -> None:
    """Also for what was judged while there was one."""
    book = RequestBook()
    ended(book, 0.0, {})
    assert book.picture(STANDARD, 0.0, {STANDARD: TierRules()}).attainment is None
    assert book.picture(STANDARD, 0.0, {}).attainment is None


def test_percentiles_need_twenty_complete_answers() -> None:
    """Of the tier; failed ones say nothing."""
    book = RequestBook()
    ended(book, 0.0, *[{} for _ in range(19)], {"outcome": Outcome.FAILED})
    assert book.picture(STANDARD, 0.0, STRICT).ttft_p95_s is None
    ended(book, 1.0, {})
    found = book.picture(STANDARD, 1.0, STRICT)
    assert (0.5, 0.0625) == (found.ttft_p95_s, found.tpot_p95_s)


def test_queued_is_of_ingresses_that_live() -> None:
    """Summed over those that spoke in the last 3 s; unknown when none did."""
    book = RequestBook()
    book.take_load("i", load(waiting={STANDARD: 4}), 0.0)
    book.take_load("j", load(waiting={STANDARD: 3, Tier.BATCH: 1}), 2.0)
    assert (7, 1, 0) == tuple(book.queued(tier, 2.0) for tier in (STANDARD, Tier.BATCH, Tier.INTERACTIVE))
    assert (3, None) == (book.queued(STANDARD, 4.0), book.queued(STANDARD, 5.1))


# --- counts


def test_every_counter_is_there_from_the_start() -> None:
    """At 0, with every label."""
    counts = RequestBook().counts
    assert {0} == {*counts.requests.values(), *counts.routes.values(), *counts.judged.values()}
    assert (18, 20, 9) == (len(counts.requests), len(counts.routes), len(counts.judged))


def test_a_reason_of_another_version_counts_as_other() -> None:
    """Labels stay a closed list; a request that reached no pool has no route."""
    book = RequestBook()
    ended(book, 0.0, {"reason": "by_the_moon"}, {"reason": None}, {"reason": "spill"}, {"pool": None})
    assert {("plain", "other"): 2, ("plain", "spill"): 1} == {
        key: count for key, count in book.counts.routes.items() if count
    }


def test_times_are_of_complete_answers() -> None:
    """Waits are of all that could wait."""
    book = RequestBook()
    ended(
        book,
        0.0,
        {},
        {"outcome": Outcome.FAILED},
        {"outcome": Outcome.SHED},
        {"outcome": Outcome.CALLER},
        {"outcome": Outcome.CANCELLED},
    )
    counts = book.counts
    assert (1, 1, 1, 3) == (
        counts.ttft[STANDARD, Role.PLAIN].cumulative()[-1],
        counts.tpot[STANDARD, Role.PLAIN].cumulative()[-1],
        counts.duration[STANDARD].cumulative()[-1],
        counts.waited[STANDARD].cumulative()[-1],
    )


LINES = st.builds(
    line,
    st.integers(0, 40),
    tier=st.sampled_from(Tier),
    outcome=st.sampled_from(Outcome),
    pool=st.sampled_from([*Role, None]),
    reason=st.sampled_from(["spill", "odd", None]),
    stream=st.booleans(),
    first_byte_s=st.none() | st.floats(0, 2),
    e2e_s=st.floats(0, 2000) | st.just(float("nan")),
    attempts=st.integers(0, 2),
    wider=st.booleans(),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("load"), st.sampled_from("ij"), st.lists(LINES, max_size=3), st.integers(0, 9)),
        st.tuples(st.just("record"), st.integers(0, 40), st.integers(0, 9)),
    ),
    max_size=25,
)


@given(STEPS)
def test_counters_never_go_down(steps: list[Any]) -> None:
    """Case F6: whatever comes, in whatever order; and every line ends exactly once."""
    book, now, before = RequestBook(), 0.0, [0.0]
    taken: dict[str, int] = {}
    expected = 0
    for step in steps:
        now += 1.0
        match step:
            case ("load", ingress, lines, dropped):
                book.take_load(ingress, load(*lines, lines_dropped=dropped), now)
                expected += new_lines(taken, ingress, lines)
            case ("record", seq, count):
                book.take_records("a", [record(seq, generated_tokens=count)])
        book.settle(now, STRICT)
        found = totals(book)
        before = before if len(before) == len(found) else [0.0] * len(found)
        assert all(new >= old for new, old in zip(found, before, strict=True))
        before = found
    book.settle(now + 10.0, STRICT)
    assert expected == sum(book.counts.requests.values())


def new_lines(taken: dict[str, int], ingress: str, lines: list[RequestLine]) -> int:
    """How many lines have a higher number than all before them."""
    new = 0
    for one in lines:
        if one.seq > taken.get(ingress, -1):
            taken[ingress] = one.seq
            new += 1
    return new


def totals(book: RequestBook) -> list[float]:
    """Every number that only grows."""
    counts = book.counts
    found: list[float] = [*counts.requests.values(), *counts.routes.values(), *counts.judged.values()]
    for histograms in (counts.ttft, counts.tpot, counts.duration, counts.waited):
        for one in histograms.values():
            found += [*one.cumulative(), one.total_s]
    return [*found, counts.wider_retries, counts.lines_dropped, counts.unjoined, counts.unwritten]
