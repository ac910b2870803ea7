"""One engine in virtual time: what a step costs and brings, who runs, who waits, who yields."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.simulation.acceptance import Acceptance
from app.simulation.engine import Engine
from app.simulation.sequence import Sequence
from autoscaling.profile import MEAN
from autoscaling.types import Role
from tests.app.simulation.engines import ALWAYS, DRAFTS, PLAIN, drive, engine_profile, finish, kept_full, step

CHAT = Acceptance((0.66, 0.377, 0.215, 0.136, 0.088))


def engine(role: Role = Role.PLAIN, seed: int = 1, **changes: Any) -> Engine:
    """A small engine with nothing in it."""
    return Engine(engine_profile(**changes), role, seed)


def sequence(identity: str, prompt_tokens: int = 10, answer_tokens: int = 5, **fields: int) -> Sequence:
    """A short one."""
    return Sequence(identity, "chat", prompt_tokens, answer_tokens, **fields)


def test_a_step_takes_what_the_cost_model_says() -> None:
    """A prompt of 10 tokens alone, then one token; beside a prompt of 7 tokens both share the step."""
    plain = engine()
    plain.add(sequence("a"), 0.0)
    first = step(plain, 0.0)
    second = step(plain, first[0])
    plain.add(sequence("b", 7), 0.1)

    assert (0.020, [("a", 1, False)]) == first
    assert (0.011, [("a", 1, False)]) == second
    assert (0.018, [("a", 1, False), ("b", 1, False)]) == step(plain, 0.1)


def test_drafts_cost_their_tokens_and_bring_what_is_accepted() -> None:
    """Two drafts for 2 ms, both accepted: 10 + 3 + 2 ms for three tokens, and no draft for the prompt."""
    drafts = engine(Role.SPECULATIVE)
    drafts.add(sequence("a", answer_tokens=8), 0.0)

    assert (0.020, [("a", 1, False)]) == step(drafts, 0.0)
    assert (0.015, [("a", 3, False)]) == step(drafts, 1.0)
    assert (0.015, [("a", 3, False)]) == step(drafts, 2.0)
    assert (0.015, [("a", 1, True)]) == step(drafts, 3.0)


@pytest.mark.parametrize(("draft_rate", "expected"), [(1.0, 0.015), (0.0, 0.013)])
def test_a_step_costs_the_drafts_that_are_in_it(draft_rate: float, expected: float) -> None:
    """Where not every step drafts: at K = 2 two tokens more or none, and what drafting takes in any case."""
    cost = replace(DRAFTS, drafted=1.0)
    acceptance = replace(ALWAYS, draft_rate=draft_rate)
    drafts = engine(Role.SPECULATIVE, costs={Role.SPECULATIVE: cost}, acceptance=acceptance)
    drafts.add(sequence("a"), 0.0)
    step(drafts, 0.0)

    assert pytest.approx(expected) == drafts.begin(1.0)


@pytest.mark.parametrize(("spread", "requests"), [(0.0, 600), (0.5, 4000)])
def test_tokens_per_step_are_the_profiles(spread: float, requests: int) -> None:
    """Within 1 % over more than 100,000 steps of sequences, whether requests differ or not."""
    acceptance = replace(CHAT, spread=spread)
    cost = replace(DRAFTS, draft_length=3)
    drafts = engine(Role.SPECULATIVE, acceptance=acceptance, costs={Role.SPECULATIVE: cost})
    kept_full(drafts, 32, 10, 400, "chat", requests)

    counters = drafts.counters
    assert 100_000 < counters.sequence_steps
    # 1 + .66 + .377 + .215
    assert pytest.approx(2.252, rel=0.01) == counters.decoded_tokens / counters.sequence_steps
    assert pytest.approx((0.66, 0.377, 0.215), rel=0.02) == tuple(
        found / counters.drafts for found in counters.accepted_per_position
    )


def test_a_long_prompt_is_computed_in_parts() -> None:
    """64 tokens to a step, those that decode first: 100 tokens take two steps, and 63 are left beside one."""
    plain = engine(max_batched_tokens=64)
    plain.add(sequence("a", 100), 0.0)
    parts = [step(plain, 0.0), step(plain, 1.0)]
    plain.add(sequence("b", 100), 2.0)
    shared = [step(plain, 2.0), step(plain, 3.0)]

    assert [(0.074, []), (0.046, [("a", 1, False)])] == parts
    assert [
        (0.074, [("a", 1, False)]),
        (0.048, [("a", 1, False), ("b", 1, False)]),
    ] == shared


def test_what_the_prefix_cache_holds_is_not_computed() -> None:
    """Of three prompts of 100 tokens 90 each are there: 30 tokens fit into one step of 64."""
    plain = engine(max_batched_tokens=64)
    for name in ("a", "b", "c"):
        plain.add(sequence(name, 100, cached_tokens=90), 0.0)

    assert (0.040, [("a", 1, False), ("b", 1, False), ("c", 1, False)]) == step(plain, 0.0)
    assert 30 == plain.counters.prompt_tokens
    assert 303 / 1_000_000 == plain.kv_usage


def test_a_draft_token_costs_for_its_context() -> None:
    """Two drafts after 11 tokens, 1 us for each of them together: 15 ms and 22 us."""
    drafts = engine(Role.SPECULATIVE, verify_s=1e-6)
    drafts.add(sequence("a"), 0.0)
    step(drafts, 0.0)

    assert pytest.approx(0.015022) == drafts.begin(1.0)


def test_no_more_run_than_there_are_places() -> None:
    """Of three one waits for a place; the one that came first begins first."""
    plain = engine(max_num_seqs=2)
    for name in ("a", "b", "c"):
        plain.add(sequence(name, answer_tokens=2), 0.0)
    brought = [step(plain, float(now))[1] for now in range(2)]

    assert [[("a", 1, False), ("b", 1, False)], [("a", 1, True), ("b", 1, True)]] == brought
    assert (0, 1) == (plain.running, plain.waiting)
    assert [("c", 1, False)] == step(plain, 2.0)[1]


def test_the_lower_number_of_priority_runs_first() -> None:
    """It overtakes whoever waits, and not whoever runs."""
    plain = engine(max_num_seqs=1)
    plain.add(sequence("a", answer_tokens=1), 0.0)
    step(plain, 0.0)
    plain.add(sequence("b", answer_tokens=1, priority=1), 1.0)
    plain.add(sequence("c", answer_tokens=1), 1.0)

    assert [("c", 1, True)] == step(plain, 1.0)[1]
    assert [("b", 1, True)] == step(plain, 2.0)[1]


def test_the_newest_yields_when_memory_is_full_and_is_computed_again() -> None:
    """In 30 tokens two answers of 10 to prompts of 10 do not fit: the second starts anew, and gets all."""
    plain = engine(kv_tokens={Role.PLAIN: 30})
    first, second = sequence("a", 10, 10), sequence("b", 10, 10)
    plain.add(first, 0.0)
    plain.add(second, 0.0)
    drive(plain)

    assert (0, 10) == (first.preemptions, first.generated)
    assert (1, 10) == (second.preemptions, second.generated)
    counters = plain.counters
    assert 1 == counters.preemptions
    # The second had five tokens of its own by then.
    assert 10 + 10 + 15 == counters.prompt_tokens
    assert first.finished_at is not None
    assert second.finished_at is not None
    assert first.finished_at < second.finished_at


def test_the_draft_length_follows_those_that_run() -> None:
    """K = 2 for one, 1 for two, and none for more."""
    drafts = Engine(engine_profile(), Role.SPECULATIVE, 1, draft_lengths=(0, 2, 1, 0))
    brought = []
    for name in ("a", "b", "c", "d"):
        drafts.add(sequence(name, answer_tokens=99), 0.0)
        step(drafts, 0.0)
        brought.append(step(drafts, 1.0)[1][0][1])

    assert [3, 2, 1, 1] == brought
    counters = drafts.counters
    # One draft of two alone; one of two and two of one after the second came; then none.
    assert (counters.drafts, counters.drafted, counters.accepted) == (4, 5, 5)
    assert ((4, 1), (4, 1)) == (counters.drafted_per_position, counters.accepted_per_position)


def test_a_speculative_engine_that_does_not_draft_pays_for_it() -> None:
    """A tenth more than the same step of a plain one."""
    profile = engine_profile(k0_tax=1.1)
    drafts, plain = Engine(profile, Role.SPECULATIVE, 1, (0,)), Engine(profile, Role.PLAIN, 1)
    for one in (drafts, plain):
        one.add(sequence("a"), 0.0)
        step(one, 0.0)

    assert pytest.approx(0.0121) == drafts.begin(1.0)
    assert pytest.approx(0.011) == plain.begin(1.0)


def test_a_sequence_that_is_aborted_is_gone_at_once() -> None:
    """Waiting, or in the middle of a step: the step goes on, and the others get theirs."""
    plain = engine(max_num_seqs=2)
    for name in ("a", "b", "c"):
        plain.add(sequence(name), 0.0)
    step(plain, 0.0)
    assert "c" == getattr(plain.abort("c", 1.0), "identity", None)
    assert pytest.approx(0.012) == plain.begin(1.0)
    found = plain.abort("a", 1.005)

    assert [("b", 1, False)] == finish(plain, 1.012)
    assert found is not None
    assert (1, 1.005) == (found.generated, found.finished_at)
    assert plain.abort("a", 2.0) is None
    assert (1, 0) == (plain.running, plain.waiting)
    assert 12 / 1_000_000 == plain.kv_usage


def test_a_sequence_knows_its_times() -> None:
    """When it came, was taken, wrote its first token and its last."""
    plain = engine(max_num_seqs=1)
    plain.add(sequence("a", answer_tokens=1), 0.0)
    late = sequence("b", answer_tokens=2)
    plain.add(late, 0.5)
    for now in (1.0, 2.0, 3.0):
        plain.begin(now)
        plain.finish(now + 0.25)

    assert (0.5, 2.0, 2.25, 3.25) == (
        late.arrived_at,
        late.scheduled_at,
        late.first_token_at,
        late.finished_at,
    )


def test_an_answer_ends_where_the_model_or_the_memory_does() -> None:
    """A prompt of 10 in a model of 16 tokens gets 6; in memory for 20 an engine with K = 2 writes 8."""
    short = engine(max_model_len=16)
    small = engine(Role.SPECULATIVE, kv_tokens={Role.SPECULATIVE: 20})
    ended = []
    for one in (short, small):
        ended.append(sequence("a", 10, 1000))
        one.add(ended[-1], 0.0)
        drive(one)

    assert [6, 8] == [one.generated for one in ended]


def test_jitter_keeps_the_mean() -> None:
    """Steps of 11 ms, 10 % around it; without it all are the same."""
    jittery = Engine(engine_profile(), Role.PLAIN, 3, jitter=0.1)
    jittery.add(sequence("a", answer_tokens=10_001), 0.0)
    step(jittery, 0.0)
    steps = [step(jittery, 1.0)[0] for _ in range(10_000)]

    assert pytest.approx(0.011, rel=0.005) == statistics.fmean(steps)
    assert pytest.approx(0.1, rel=0.05) == statistics.stdev(math.log(one) for one in steps)


def test_the_same_seed_gives_the_same_steps() -> None:
    """Another seed gives others, and engines of other names have other jitter."""

    def seconds(seed: int, name: str = "") -> float:
        profile = engine_profile(acceptance=CHAT)
        drafts = Engine(profile, Role.SPECULATIVE, seed, jitter=0.05, name=name)
        for number in range(8):
            drafts.add(sequence(str(number), answer_tokens=50, number=number), 0.0)
        return drive(drafts)

    assert seconds(1) == seconds(1)
    assert 3 == len({seconds(1), seconds(2), seconds(1, "b")})


def test_misuse_is_refused() -> None:
    """The message says what is wrong."""
    plain = engine(max_model_len=16)
    with pytest.raises(RuntimeError, match="no step is in progress"):
        plain.finish(0.0)
    plain.add(sequence("a"), 0.0)
    with pytest.raises(ValueError, match="a: is in this engine already"):
        plain.add(sequence("a"), 0.0)
    with pytest.raises(ValueError, match="b: a prompt of 16 tokens: give fewer than 16"):
        plain.add(sequence("b", 16), 0.0)
    plain.begin(0.0)
    assert plain.busy
    with pytest.raises(RuntimeError, match="a step is in progress"):
        plain.begin(0.0)
    with pytest.raises(ValueError, match="c: 0 prompt and 5 answer tokens"):
        sequence("c", 0)
    with pytest.raises(ValueError, match="d: 10 of 10 prompt tokens cached"):
        sequence("d", 10, cached_tokens=10)
    with pytest.raises(ValueError, match=r"draft_lengths: \(\)"):
        Engine(engine_profile(), Role.PLAIN, 1, ())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 60), st.integers(1, 40), st.integers(0, 2), st.integers(0, 30), st.booleans()
        ),
        min_size=1,
        max_size=25,
    ),
    st.integers(64, 300),
    st.integers(8, 64),
    st.lists(st.integers(0, 4), min_size=1, max_size=5),
)
def test_whoever_comes_gets_the_whole_answer(
    requests: list[tuple[int, int, int, int, bool]], kv: int, budget: int, lengths: list[int]
) -> None:
    """At any memory, budget and K: never more than fits, and an engine that is empty at the end."""
    profile = engine_profile(
        acceptance=CHAT,
        kv_tokens={Role.SPECULATIVE: kv + 40},
        max_batched_tokens=budget + 20,
        max_num_seqs=4,
    )
    drafts = Engine(profile, Role.SPECULATIVE, 1, lengths)
    begun: dict[str, tuple[Sequence, int]] = {}
    aborted: set[str] = set()
    brought: dict[str, int] = {}
    now, turn = 0.0, 0
    while turn <= 30 or drafts.running or drafts.waiting:
        for index, (prompt, answer, priority, at, stopped) in enumerate(requests):
            name = str(index)
            if at == turn:
                found = sequence(name, prompt, answer, number=index, priority=priority)
                drafts.add(found, now)
                begun[name] = (found, found.left)
            if stopped and at + 3 == turn and drafts.abort(name, now) is not None:
                aborted.add(name)
        seconds = drafts.begin(now)
        turn += 1
        if seconds is None:
            assert 0 == drafts.waiting
            continue
        assert drafts.running <= 4
        now += seconds
        for name, tokens, last in finish(drafts, now):
            brought[name] = brought.get(name, 0) + tokens
            assert last == (begun[name][0].generated == begun[name][1])
        assert drafts.kv_usage <= 1.0

    assert 0.0 == drafts.kv_usage
    for name, (found, whole) in begun.items():
        assert found.generated == brought.get(name, 0)
        assert found.finished_at is not None
        assert name in aborted or whole == found.generated


def test_classes_that_are_not_known_fare_as_the_mean() -> None:
    """Code accepts nothing, everything else both drafts."""
    profile = engine_profile()
    known = replace(profile, acceptance={MEAN: profile.acceptance[MEAN], "code": Acceptance((0.0, 0.0))})
    drafts = Engine(known, Role.SPECULATIVE, 1)
    drafts.add(Sequence("a", "code", 10, 9), 0.0)
    drafts.add(Sequence("b", "poems", 10, 9), 0.0)
    step(drafts, 0.0)

    assert [("a", 1, False), ("b", 3, False)] == step(drafts, 1.0)[1]
    assert PLAIN == profile.cost_of(Role.PLAIN)
