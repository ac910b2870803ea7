"""The simulated engine's scheduler and token rule in virtual time: no process, no clock."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.simulated.frames import Add, Answer, Configure, Update
from deployments.simulated.scheduler import Scheduler
from deployments.simulated.tokens import Writer, answer_to, count, split


def config(**changes: Any) -> Configure:
    """A plain engine whose step costs 1 s and nothing more."""
    values: dict[str, Any] = {
        "start_s": 0.0,
        "step_base_s": 1.0,
        "step_per_token_s": 0.0,
        "step_per_context_s": 0.0,
        "acceptance": 0.7,
        "seed": 0,
        "max_prefill_tokens": 100,
        "max_num_seqs": 4,
        "max_model_len": 200,
        "kv_capacity": 1000,
        "draft_length": 0,
    }
    return Configure(**(values | changes))


def add(key: int, **changes: Any) -> Add:
    """A sequence of 10 prompt tokens that says 5."""
    values: dict[str, Any] = {
        "key": key,
        "request_id": f"r{key}",
        "index": 0,
        "prompt_tokens": 10,
        "max_tokens": 5,
        "min_tokens": 0,
        "priority": 0,
        "stop": (),
        "include_stop": False,
        "answer": Answer((), key, None),
    }
    return Add(**(values | changes))


class Virtual:
    """A scheduler with its own time, which each step moves by what it costs."""

    def __init__(self, **changes: Any) -> None:
        self.scheduler = Scheduler(config(**changes))
        self.now = 0.0

    def add(self, *adds: Add) -> None:
        for each in adds:
            self.scheduler.add(each, self.now)

    def cost(self) -> float:
        step = self.scheduler.begin(self.now)
        assert step is not None
        return step.seconds

    def step(self) -> Update | None:
        step = self.scheduler.begin(self.now)
        if step is None:
            return None
        started_at, self.now = self.now, self.now + step.seconds
        return self.scheduler.finish(step, started_at, self.now)

    def drain(self) -> list[Update]:
        updates = []
        while (update := self.step()) is not None:
            updates.append(update)
        return updates


def test_a_step_costs_base_plus_tokens_plus_context() -> None:
    """Base + per_token * (B * (1 + K) + P) + per_context * the sum of contexts."""
    virtual = Virtual(
        step_base_s=1.0, step_per_token_s=0.01, step_per_context_s=0.001, draft_length=4, acceptance=0.0
    )
    virtual.add(add(1), add(2))
    assert virtual.cost() == pytest.approx(1.0 + 0.01 * 20)  # prefill only
    virtual.step()
    assert virtual.cost() == pytest.approx(1.0 + 0.01 * 2 * 5 + 0.001 * 2 * 11)
    virtual.add(add(3))
    assert virtual.cost() == pytest.approx(1.0 + 0.01 * (2 * 5 + 10) + 0.001 * 2 * 11)


def test_a_long_prompt_is_computed_in_parts() -> None:
    """At most max_prefill_tokens of prompts share a step; the first token comes after the last part."""
    virtual = Virtual(max_prefill_tokens=100)
    virtual.add(add(1, prompt_tokens=150, max_tokens=1), add(2, max_tokens=1))
    first, second = virtual.drain()
    assert (first.outputs, first.running + first.waiting) == ([], 2)
    assert [(output.key, output.tokens) for output in second.outputs] == [(1, 1), (2, 1)]
    assert second.counters.prefill_tokens == 160


def test_no_more_than_max_num_seqs_run() -> None:
    """The rest waits, in the order of arrival."""
    virtual = Virtual(max_num_seqs=2)
    virtual.add(*(add(key, max_tokens=2) for key in (1, 2, 3)))
    updates = virtual.drain()
    assert [(update.running, update.waiting) for update in updates] == [(2, 1), (0, 1), (1, 0), (0, 0)]
    assert [o.key for update in updates for o in update.outputs if o.finish_reason] == [1, 2, 3]


def test_a_lower_priority_number_runs_first() -> None:
    """Priority goes before arrival, and does not touch what runs already."""
    virtual = Virtual(max_num_seqs=1)
    virtual.add(add(1, priority=5))
    virtual.step()
    virtual.add(add(2, priority=5), add(3, priority=-1), add(4, priority=5))
    updates = virtual.drain()
    assert [o.key for update in updates for o in update.outputs if o.finish_reason] == [1, 3, 2, 4]


def test_the_newest_is_preempted_when_the_cache_is_full() -> None:
    """It is computed again, keeps its text, and its record tells."""
    virtual = Virtual(kv_capacity=130, max_model_len=110, max_num_seqs=2)
    virtual.add(add(1, prompt_tokens=50, max_tokens=40), add(2, prompt_tokens=50, max_tokens=40))
    updates = virtual.drain()
    finished = {o.key: o for update in updates for o in update.outputs if o.finish_reason}
    assert (finished[1].record.preemptions, finished[2].record.preemptions) == (0, 1)  # type: ignore[union-attr]
    assert updates[-1].counters.preemptions == 1
    assert all(update.kv_cache_usage <= 1 for update in updates)
    alone = Virtual()
    alone.add(add(2, prompt_tokens=50, max_tokens=40))
    assert text(alone.drain(), 2) == text(updates, 2)
    assert count(text(updates, 2)) == 40


def test_a_plain_engine_says_one_token_per_step() -> None:
    """Then tokens per request-step is exactly one, and nothing is drafted."""
    virtual = Virtual()
    virtual.add(add(1, max_tokens=30))
    counters = virtual.drain()[-1].counters
    assert (
        counters.steps,
        counters.decode_tokens,
        counters.request_steps,
        counters.drafts,
    ) == (30, 29, 29, 0)


def test_acceptance_follows_the_setting() -> None:
    """Position i is accepted with probability acceptance ** (i + 1); counters and histograms agree."""
    virtual = Virtual(
        draft_length=3, acceptance=0.7, max_num_seqs=50, kv_capacity=20000, max_prefill_tokens=1000
    )
    virtual.add(*(add(key, max_tokens=180) for key in range(50)))
    updates = virtual.drain()
    counters = updates[-1].counters
    rates = [each / counters.drafts for each in counters.accepted_per_position]
    assert pytest.approx([0.7, 0.49, 0.343], abs=0.03) == rates
    assert sum(counters.accepted_per_position) == counters.accepted
    assert [counters.drafts] * 3 == counters.drafted_per_position
    records = [o.record for update in updates for o in update.outputs if o.record]
    assert counters.drafts == sum(sum(record.histogram) for record in records)
    assert counters.accepted == sum(j * times for r in records for j, times in enumerate(r.histogram))


def test_the_same_request_id_draws_the_same() -> None:
    """Chunks depend on request id, index and seed, not on what else runs."""
    alone, crowded = (Virtual(draft_length=4) for _ in range(2))
    alone.add(add(7, max_tokens=50))
    crowded.add(*(add(key, max_tokens=50) for key in (1, 2, 7)))
    assert pieces(alone.drain(), 7) == pieces(crowded.drain(), 7)
    other = Virtual(draft_length=4, seed=1)
    other.add(add(7, max_tokens=50))
    alone.add(add(7, max_tokens=50))
    assert pieces(alone.drain(), 7) != pieces(other.drain(), 7)


def test_an_aborted_sequence_gets_nothing_more() -> None:
    """Running, waiting or in the middle of a step; its record counts what it had."""
    virtual = Virtual(max_num_seqs=1)
    virtual.add(add(1), add(2))
    virtual.step()
    step = virtual.scheduler.begin(virtual.now)
    assert step is not None
    outputs = virtual.scheduler.abort((1, 2, 99), virtual.now)
    assert [
        (o.key, o.finish_reason, o.record.generated_tokens)  # type: ignore[union-attr]
        for o in outputs
    ] == [(1, "abort", 1), (2, "abort", 0)]
    update = virtual.scheduler.finish(step, virtual.now, virtual.now + 1)
    assert (update.outputs, update.running, update.waiting, update.counters.finished) == ([], 0, 0, 2)
    assert virtual.step() is None


def test_times_of_a_record_add_up() -> None:
    """Queue, prefill and decode follow each other and make the end-to-end time."""
    virtual = Virtual(max_num_seqs=1)
    virtual.add(add(1, max_tokens=3), add(2, max_tokens=4))
    records = [o.record for update in virtual.drain() for o in update.outputs if o.record]
    times = [(r.queued_s, r.prefill_s, r.decode_s, r.e2e_s) for r in records]
    assert times == [(0.0, 1.0, 2.0, 3.0), (3.0, 1.0, 3.0, 7.0)]


@pytest.mark.parametrize("stop", ["two", " two", "e tw", "three four", "o"])
def test_no_part_of_a_stop_string_leaks(stop: str) -> None:
    """Whatever the chunks, their text ends before the stop string."""
    whole = "one two three four five"
    for size in (1, 2, 5):
        writer = Writer(Answer(tuple(split(whole)), 0, 5), (stop, "absent"), include_stop=False, min_tokens=0)
        said = ""
        while not writer.ended:
            writer.write(size)
            said += writer.take(finished=writer.ended)
            assert whole[: whole.index(stop)].startswith(said)
        assert whole[: whole.index(stop)] == said
        assert stop == writer.stopped_by


def test_the_token_that_completes_a_stop_string_is_the_last_counted() -> None:
    """Tokens that speculation wrote after it do not count."""
    writer = Writer(Answer(tuple(split("a b c d")), 0, 4), ("b",), include_stop=True, min_tokens=0)
    assert writer.write(4) == 2
    assert writer.take(finished=True) == "a b"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Repeat exactly: 👩‍👩‍👧‍👦 你好\nёжик ", "👩‍👩‍👧‍👦 你好\nёжик"),
        ("repeat the following text: a  b", "a  b"),
        ("Explain:\n```python\nx = 1\n\ny = 2\n```\nplease", "x = 1\n\ny = 2"),
    ],
)
def test_a_text_to_repeat_comes_back(question: str, answer: str) -> None:
    """Every character, inner whitespace included."""
    assert answer == "".join(answer_to(question, question, "", False, 0).script)


def test_an_answer_has_a_length_of_its_own() -> None:
    """16 to 64 tokens by the prompt, never less than min_tokens; ignore_eos takes the end away."""
    lengths = {answer_to("", f"prompt {number}", "", False, 0).length for number in range(500)}
    assert set(range(16, 65)) == lengths
    assert answer_to("", "x", "", False, 100).length == 100
    assert answer_to("", "x", "", True, 0).length is None


def pieces(updates: list[Update], key: int) -> list[str]:
    """The chunks of one sequence."""
    return [output.text for update in updates for output in update.outputs if output.key == key]


def text(updates: list[Update], key: int) -> str:
    """All that one sequence said."""
    return "".join(pieces(updates, key))
