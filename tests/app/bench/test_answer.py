"""One streamed answer: times by text, tokens by usage."""

from __future__ import annotations

import json

import pytest

from app.bench.answer import Answer, AnswerReader
from app.bench.steps import mean


def event(**found) -> bytes:
    return b"data: " + json.dumps(found).encode() + b"\n\n"


def text(words: str) -> bytes:
    return event(choices=[{"delta": {"content": words}}])


ROLE = event(choices=[{"delta": {"role": "assistant", "content": ""}}])
USAGE = event(choices=[], usage={"prompt_tokens": 5, "completion_tokens": 17})
DONE = b"data: [DONE]\n\n"


def answer_with_several_tokens_per_chunk() -> Answer:
    """A role at once, the first text after 200 ms, then four tokens every 40 ms: 17 in all."""
    reader = AnswerReader(began=10.0)
    reader.feed(ROLE, 10.0)
    reader.feed(text("one"), 10.2)
    for step in range(1, 5):
        reader.feed(text("four tokens at once"), 10.2 + 0.04 * step)
    reader.feed(USAGE + DONE, 10.37)
    return reader.answer()


def test_time_to_first_token_is_that_of_the_first_text():
    """Case F8: a chunk that holds only a role is no token."""
    assert pytest.approx(0.2) == answer_with_several_tokens_per_chunk().ttft_s


def test_time_per_token_is_by_usage_and_without_the_first():
    """Case F8: chunks of four tokens every 40 ms are 10 ms per token, and the wait for the first is apart."""
    assert pytest.approx(0.010) == answer_with_several_tokens_per_chunk().tpot_s


def test_a_stream_that_fails_is_in_no_average():
    """Case F8: an error event or an early end makes an answer that has no time per token."""
    broken = AnswerReader(began=0.0)
    broken.feed(ROLE + text("x") + event(error={"message": "the engine died"}), 0.5)
    early = AnswerReader(began=0.0)
    early.feed(ROLE + text("x"), 9.0)
    found = [answer_with_several_tokens_per_chunk(), broken.answer(), early.answer()]
    assert [True, False, False] == [one.ok for one in found]
    assert [None, "the engine died", "the stream ended early"] == [one.error for one in found]
    assert pytest.approx(0.010) == mean([one.tpot_s for one in found])


def test_an_answer_without_usage_is_not_counted():
    """Tokens are never counted by chunks."""
    reader = AnswerReader(began=0.0)
    reader.feed(text("x") + DONE, 1.0)
    assert reader.answer().error == "no usage in the answer"


def test_bytes_may_be_cut_anywhere():
    """The same answer, one byte at a time."""
    reader = AnswerReader(began=0.0)
    for byte in ROLE + text("naïve") + USAGE + DONE:
        reader.feed(bytes([byte]), 0.3)
    found = reader.answer()
    assert (True, 17, 5, 0.3) == (found.ok, found.tokens, found.prompt_tokens, found.ttft_s)


def test_one_token_has_no_time_per_token():
    """There is none after the first."""
    reader = AnswerReader(began=0.0)
    reader.feed(text("x") + event(choices=[], usage={"prompt_tokens": 1, "completion_tokens": 1}) + DONE, 1.0)
    assert reader.answer().tpot_s is None


def test_drafts_are_read_by_step():
    """With the detailed metrics each draft's length and its accepted tokens are known."""
    metrics = {"speculative_decoding": {"per_step_drafted": [4, 2], "per_step_accepted": [4, 0]}}
    reader = AnswerReader(began=0.0)
    usage = event(choices=[], usage={"prompt_tokens": 1, "completion_tokens": 7}, metrics=metrics)
    reader.feed(text("x") + usage + DONE, 1.0)
    assert ((4, 2), (4, 0)) == (reader.answer().drafted_by_step, reader.answer().accepted_by_step)


@pytest.mark.parametrize(("drafted", "expected"), [(6, ((2, 2, 2), (0, 0, 2))), (5, ((), ()))])
def test_a_histogram_tells_the_drafts_where_all_had_one_length(drafted, expected):
    """Otherwise which draft ended where is not known, and nothing is made up."""
    metrics = {
        "speculative_decoding": {
            "acceptance_histogram": [2, 0, 1],
            "num_spec_steps": 3,
            "num_draft_tokens": drafted,
        }
    }
    reader = AnswerReader(began=0.0)
    usage = event(choices=[], usage={"prompt_tokens": 1, "completion_tokens": 7}, metrics=metrics)
    reader.feed(text("x") + usage + DONE, 1.0)
    assert expected == (reader.answer().drafted_by_step, reader.answer().accepted_by_step)
