"""The rules of attainment, one by one."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaling.request_line import Outcome
from autoscaling.request_record import Measured, RequestRecord, Verdict, measured
from autoscaling.request_verdict import judge
from autoscaling.routing_rules import TierRules
from tests.autoscaling.request_lines import line, record

BOTH = TierRules(ttft_s=1.0, tpot_s=0.1)
TTFT = TierRules(ttft_s=1.0)
TPOT = TierRules(tpot_s=0.1)
NEITHER = TierRules()
FAST = measured([record()])
SLOW_TOKENS = measured([record(decode_s=1.6)])
ONE_TOKEN = measured([record(generated_tokens=1, decode_s=9.0)])
MET, MISSED, UNKNOWN = Verdict.MET, Verdict.MISSED, Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("changes", "found", "rules", "expected"),
    [
        ({"first_byte_s": 1.0}, FAST, BOTH, MET),  # at the objective is inside it
        ({"first_byte_s": 1.01}, FAST, BOTH, MISSED),
        ({}, SLOW_TOKENS, BOTH, MISSED),
        ({"first_byte_s": 9.0}, SLOW_TOKENS, TPOT, MISSED),
        ({"first_byte_s": 9.0}, FAST, TPOT, MET),
        ({}, SLOW_TOKENS, TTFT, MET),
    ],
)
def test_a_complete_answer_meets_both_objectives_or_misses(
    changes: dict[str, Any], found: Measured, rules: TierRules, expected: Verdict
) -> None:
    """Both that are set must be met; one that is not set is met by every complete answer."""
    assert expected == judge(line(**changes), found, rules)


@pytest.mark.parametrize(
    ("changes", "found", "rules", "expected"),
    [
        ({}, None, BOTH, UNKNOWN),  # no record: no time per token
        ({}, None, TTFT, MET),  # a stream's first byte is enough
        ({"first_byte_s": 9.0}, None, BOTH, UNKNOWN),  # else only misses of lost records would count
        ({"first_byte_s": None}, FAST, TTFT, UNKNOWN),
        ({"stream": False}, None, TTFT, UNKNOWN),
        ({"stream": False}, None, TPOT, UNKNOWN),
    ],
)
def test_what_cannot_be_known_of_a_complete_answer_is_unknown(
    changes: dict[str, Any], found: Measured | None, rules: TierRules, expected: Verdict
) -> None:
    """It is neither met nor missed, whichever of the two is missing."""
    assert expected == judge(line(**changes), found, rules)


@pytest.mark.parametrize("rules", [BOTH, TPOT])
def test_an_answer_of_one_token_is_judged_by_its_first(rules: TierRules) -> None:
    """There is no time between tokens."""
    assert MET == judge(line(), ONE_TOKEN, rules)
    assert (MISSED if rules is BOTH else MET) == judge(line(first_byte_s=1.5), ONE_TOKEN, rules)


def test_without_a_stream_the_engine_says_when_the_first_token_came() -> None:
    """The wait in the ingress counts, and the time at which the whole answer came does not."""
    for waited_s, expected in ((0.75, MET), (0.76, MISSED)):
        assert expected == judge(
            line(stream=False, first_byte_s=5.0, e2e_s=5.0, waited_s=waited_s), FAST, TTFT
        )


@pytest.mark.parametrize("outcome", [Outcome.SHED, Outcome.NO_CAPACITY, Outcome.FAILED])
@pytest.mark.parametrize("rules", [BOTH, TTFT, TPOT])
def test_shed_timed_out_and_failed_requests_are_missed(outcome: Outcome, rules: TierRules) -> None:
    """However fast they were refused."""
    assert MISSED == judge(line(outcome=outcome, e2e_s=0.001), None, rules)
    assert MISSED == judge(line(outcome=outcome), FAST, rules)


def test_the_callers_own_mistake_does_not_count() -> None:
    """A 4xx of the caller's making."""
    assert judge(line(outcome=Outcome.CALLER, status=400, first_byte_s=9.0), None, BOTH) is None


@pytest.mark.parametrize("outcome", Outcome)
def test_a_tier_without_objectives_is_not_judged(outcome: Outcome) -> None:
    """Nothing was promised, so nothing was met."""
    assert judge(line(outcome=outcome), FAST, NEITHER) is None


@pytest.mark.parametrize(
    ("changes", "found", "rules", "expected"),
    [
        # Before any byte: what had passed by then counts.
        ({"first_byte_s": None, "e2e_s": 0.9}, None, BOTH, None),
        ({"first_byte_s": None, "e2e_s": 1.1}, None, BOTH, MISSED),
        ({"first_byte_s": None, "e2e_s": 9.0}, None, TPOT, None),
        # In the answer: the first token was late, or the tokens so far were.
        ({"first_byte_s": 1.1}, None, BOTH, MISSED),
        ({"first_byte_s": 0.5, "e2e_s": 9.0}, FAST, BOTH, None),
        ({"first_byte_s": 0.5, "e2e_s": 9.0}, SLOW_TOKENS, BOTH, MISSED),
        ({"first_byte_s": 0.5, "e2e_s": 9.0}, None, BOTH, None),
        # Without a stream the engine knows whether a token was there.
        ({"stream": False, "first_byte_s": None, "e2e_s": 9.0}, FAST, BOTH, None),
        ({"stream": False, "first_byte_s": None, "e2e_s": 9.0}, None, BOTH, UNKNOWN),
        ({"stream": False, "first_byte_s": None, "e2e_s": 0.9}, None, BOTH, None),
        (
            {"stream": False, "first_byte_s": None, "e2e_s": 9.0},
            measured([record(generated_tokens=0)]),
            BOTH,
            MISSED,
        ),
        # It never left the queue of the ingress.
        ({"stream": False, "first_byte_s": None, "e2e_s": 9.0, "attempts": 0}, None, BOTH, MISSED),
    ],
)
def test_a_caller_who_left_counts_only_after_a_miss(
    changes: dict[str, Any], found: Measured | None, rules: TierRules, expected: Verdict | None
) -> None:
    """Who leaves before the objective had passed does not count."""
    assert expected == judge(line(outcome=Outcome.CANCELLED, **changes), found, rules)


def test_several_sequences_are_one_request() -> None:
    """The first token of any, the slowest's time per token, each prompt once, all tokens."""
    found = measured(
        [
            record(queued_s=0.5, prefill_s=0.5, decode_s=0.4, generated_tokens=5),
            record(queued_s=0.25, prefill_s=0.125, decode_s=1.5, generated_tokens=4),
            record(request_id="other-prompt", prompt_tokens=7, generated_tokens=1, queued_s=2.0),
        ]
    )
    assert Measured(12, 10, "stop", 0.25, 0.125, 1.5, 0.5) == found
    assert 0.375 == found.first_token_s


def test_sequences_that_end_differently_have_a_mixed_reason() -> None:
    """One word, also for three ends."""
    assert "mixed" == measured([record(), record(finish_reason="length")]).finish_reason


def test_a_sequence_without_a_token_has_no_first_one() -> None:
    """Another sequence's counts; alone it is unknown."""
    none = record(generated_tokens=0, queued_s=0.0, prefill_s=0.0)
    assert measured([none]).first_token_s is None
    assert 0.25 == measured([none, record()]).first_token_s


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -5.0])
def test_a_time_that_is_none_cannot_be_judged(odd: float) -> None:
    """Negative or not finite: unknown, where an objective asks for it."""
    slow = measured([record(decode_s=odd), record(generated_tokens=3)])
    assert UNKNOWN == judge(line(first_byte_s=odd), FAST, BOTH)
    assert MET == judge(line(first_byte_s=odd), FAST, TPOT)
    assert UNKNOWN == judge(line(stream=False, waited_s=odd), FAST, TTFT)
    assert UNKNOWN == judge(line(stream=False), measured([record(prefill_s=odd)]), TTFT)
    assert UNKNOWN == judge(line(), slow, BOTH)
    assert MET == judge(line(), slow, TTFT)
    assert UNKNOWN == judge(line(outcome=Outcome.CANCELLED, first_byte_s=odd, e2e_s=9.0), None, BOTH)
    assert UNKNOWN == judge(line(outcome=Outcome.CANCELLED, first_byte_s=None, e2e_s=odd), None, BOTH)
    assert MISSED == judge(line(outcome=Outcome.FAILED, first_byte_s=odd), None, BOTH)


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -5.0])
def test_a_time_that_is_none_is_shown_as_unknown(odd: float) -> None:
    """In records and pictures."""
    found = RequestRecord(line(first_byte_s=odd), "i", measured([record(decode_s=odd)]))
    assert (None, None) == (found.ttft_s, found.tpot_s)
