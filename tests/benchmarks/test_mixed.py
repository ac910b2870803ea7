"""What `benchmarks.mixed` sends, under which policies, and what it makes of its calibration."""

from __future__ import annotations

import pytest

from app.demo.answers import Answer, Drafts, Phase
from autoscaling.policy_file import read_policy
from autoscaling.profile import read_profile
from autoscaling.request_line import Outcome
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role, Tier
from benchmarks.errors import BenchError
from benchmarks.mixed_fit import (
    Cost,
    Drafting,
    Point,
    draft_length,
    drafting,
    fit,
    point,
    profile_text,
    request_cost,
    standard_rate,
    steps_of,
)
from benchmarks.mixed_plan import SWITCHES, USUAL, Condition, Window, order, policy_text
from benchmarks.mixed_requests import (
    LONGEST,
    arrivals,
    editing,
    known_samples,
    looped,
    measuring,
    some_of_each,
    stepping,
    talking,
)


def answer(tokens: int | None, stream_s: float | None = 1.0, **changes: object) -> Answer:
    """A complete answer of the speculative pool."""
    fields: dict[str, object] = {
        "id": "a",
        "tier": Tier.INTERACTIVE,
        "sample": "code-1",
        "phase": Phase.MIXED,
        "outcome": Outcome.OK,
        "began_s": 0.0,
        "e2e_s": 1.0,
    }
    return Answer(tokens=tokens, stream_s=stream_s, **(fields | changes))  # type: ignore[arg-type]


# --- conditions and policies


def test_each_condition_is_first_and_last_as_often_in_six_rounds() -> None:
    """A round is the one before backwards, or turned by one."""
    a, b, c = USUAL
    rounds = [order(USUAL, index) for index in range(6)]

    assert [(a, b, c), (c, b, a), (b, c, a), (a, c, b), (c, a, b), (b, a, c)] == rounds


@pytest.mark.parametrize(
    ("condition", "classify", "backfill", "reserve"),
    [
        (Condition.TIER_ONLY, False, False, 2),
        (Condition.CLASSES, True, False, 2),
        (Condition.CLASSES_BACKFILL, True, True, 2),
        (Condition.NO_RESERVE, True, True, 0),
    ],
)
def test_the_policies_differ_in_what_is_compared(
    condition: Condition, classify: bool, backfill: bool, reserve: int
) -> None:
    """Each is a valid policy with the objectives, and without moves."""
    read = read_policy(policy_text("a-1", SWITCHES[condition]))

    assert () == read.problems
    assert read.policy is not None
    spec = read.policy.spec
    assert classify is spec.workload.classify
    assert (backfill, reserve) == (spec.backfill.enabled, spec.backfill.reserve)
    assert (2.0, 0.06) == (spec.objectives.interactive.ttft_seconds, spec.objectives.interactive.tpot_seconds)
    assert (4.0, 0.12) == (spec.objectives.standard.ttft_seconds, spec.objectives.standard.tpot_seconds)
    assert spec.objectives.batch.tpot_seconds is None
    assert "Disabled" == spec.behavior.scale_up.select_policy == spec.behavior.scale_down.select_policy
    assert 16 == spec.pools.speculative.limits.soft_inflight == spec.pools.plain.limits.soft_inflight


def test_without_a_profile_the_policy_keeps_the_usual_limit() -> None:
    """Calibration needs a larger one of the replica's own."""
    read = read_policy(policy_text("a-1", SWITCHES[Condition.CLASSES], 8))

    assert read.policy is not None
    assert 8 == read.policy.spec.pools.speculative.limits.soft_inflight
    assert 16 == read.policy.spec.pools.plain.limits.soft_inflight


def test_loops_count_by_their_end_and_the_open_loop_by_its_arrivals() -> None:
    """The warm-up is left out of both, the tail of arrivals only."""
    window = Window(40.0, 5.0, 5.0)

    assert [False, True, True, False] == [window.ends_in(at) for at in (4.9, 5.0, 39.9, 40.0)]
    assert [False, True, True, False] == [window.arrives_in(at) for at in (4.9, 5.0, 34.9, 35.0)]
    assert (35.0, 30.0) == (window.closed_s, window.open_s)


# --- requests


def test_every_tier_sends_what_it_is_for() -> None:
    """Edits are interactive, chat is batch; samples with tools are sent by nobody."""
    known = known_samples()

    assert ["code-1", "code-2", "code-3", "code-4", "code-6", "code-8", "summarize-4"] == [
        one.sample.id for one in editing(known)
    ]
    assert {"chat", "creative"} == {one.sample.workload for one in talking(known)}
    assert {"structured-3", "structured-6"}.isdisjoint(one.sample.id for one in known)
    assert ["code-1"] == [one.sample.id for one in known if one.sample.id.startswith("code-")][:1]
    assert "code-1" not in [one.sample.id for one in known_samples(without=["code-1"])]


def test_what_measures_steps_is_short_and_free_of_grammars() -> None:
    """A grammar ends an answer, and a long prompt is mostly prefill."""
    found = stepping(known_samples())

    assert found
    assert all(one.prompt_tokens <= 150 and "response_format" not in one.sample.body for one in found)
    requests = measuring(found, "s")
    first, second = next(requests).body, next(requests).body
    assert (32, True) == (first["max_tokens"], first["ignore_eos"])
    assert first["cache_salt"] != second["cache_salt"]


def test_a_few_of_each_class_are_enough_for_a_quick_run() -> None:
    """Every class stays."""
    known = known_samples()
    some = some_of_each(known, 3)

    assert {one.workload.kind for one in known} == {one.workload.kind for one in some}
    assert 16 == len(some)
    assert list(known) == some_of_each(known, None)


def test_requests_are_greedy_streams_of_limited_length() -> None:
    """Their salt keeps the prefixes of conditions apart; a sample's own lower limit stays."""
    bulk = [one for one in known_samples() if one.sample.workload == "bulk"]
    body = next(looped(Tier.STANDARD, bulk, "1", "classes-1")).body

    assert (0, True, "classes-1", 4) == (
        body["temperature"],
        body["stream"],
        body["cache_salt"],
        body["max_tokens"],
    )
    assert {"include_usage": True} == body["stream_options"]
    source = looped(Tier.BATCH, talking(known_samples()), "1", "x")
    assert all(64 <= next(source).body["max_tokens"] <= LONGEST for _ in range(30))


def test_arrivals_are_the_same_in_every_condition() -> None:
    """Times and prompts come from the seed; only the salt differs."""
    known = known_samples()
    one = arrivals(known, 2.0, 40.0, "1/0", "tier-only-1")
    other = arrivals(known, 2.0, 40.0, "1/0", "classes-1")

    assert [(shot.at_s, shot.wanted.sample) for shot in one] == [
        (shot.at_s, shot.wanted.sample) for shot in other
    ]
    assert 50 < len(one) < 110
    assert all(0 < shot.at_s < 40 for shot in one)
    assert one[0].at_s != arrivals(known, 2.0, 40.0, "1/1", "x")[0].at_s


def test_a_loop_without_samples_is_refused() -> None:
    """It would look for one for ever."""
    with pytest.raises(ValueError, match="no sample is left for batch"):
        next(looped(Tier.BATCH, [], "1", "x"))


# --- calibration


def test_a_step_gives_one_token_beside_those_it_accepts() -> None:
    """Without drafts tokens are steps; without usage nothing is known."""
    assert 20 == steps_of(answer(32, drafts=Drafts(steps=10, drafted=40, accepted=12)))
    assert 32 == steps_of(answer(32))
    assert 0 == steps_of(answer(None))


def test_a_point_counts_drafts_and_the_prompts_of_the_other_streams() -> None:
    """Two streams, 21 steps each of which 20 follow the first token: 2 drafted a step, 42-token prompts."""
    one = answer(33, 2.0, drafts=Drafts(steps=10, drafted=40, accepted=12))

    found = point(2, [one, one, answer(None), answer(9, None)], {"code-1": 42})

    assert 2 == found.streams
    assert pytest.approx(0.1) == found.step_s
    assert pytest.approx(2 * (1 + 2) + 1 * 84 / 42) == found.tokens
    with pytest.raises(BenchError, match="no complete answer at 2 streams"):
        point(2, [answer(9, outcome=Outcome.FAILED)], {"code-1": 42})


def test_the_fit_finds_a_line() -> None:
    """And neither a negative cost of a token nor of a step."""
    line = fit([Point(1, 1.0, 0.0365), Point(4, 4.0, 0.041), Point(16, 16.0, 0.059)])
    assert pytest.approx(0.035) == line.base_s
    assert pytest.approx(0.0015) == line.per_token_s

    assert StepCost(0.035, 0.0) == fit([Point(1, 1.0, 0.04), Point(4, 4.0, 0.03)])
    steep = fit([Point(1, 1.0, 0.01), Point(4, 4.0, 0.1)])
    assert 0.0 == steep.base_s
    assert pytest.approx((0.01 + 0.4) / 17) == steep.per_token_s
    with pytest.raises(BenchError, match="steps of one size"):
        fit([Point(1, 1.0, 0.04), Point(1, 1.0, 0.05)])


def test_drafts_are_pooled_by_class_and_few_answers_make_none() -> None:
    """Tokens per step after the first, which comes with the prompt."""
    good = answer(21, drafts=Drafts(steps=10, drafted=20, accepted=10))
    poor = answer(11, sample="chat-1", drafts=Drafts(steps=0, drafted=0, accepted=0))

    found = drafting([good, good, good, poor, answer(9)], {"code-1": "code", "chat-1": "chat"})

    assert {"code": 2.0, "mean": pytest.approx(70 / 40)} == found.tokens_per_step
    assert pytest.approx(60 / 40) == found.drafted
    with pytest.raises(BenchError, match="no answer of the speculative pool tells of drafts"):
        drafting([answer(9)], {"code-1": "code"})


def test_the_draft_length_of_the_profile_is_what_is_drafted_on_average() -> None:
    """At least what the best class gains, at most what the engine drafts, never 0."""
    assert 2 == draft_length(Drafting({"mean": 1.4}, 1.6), 4)
    assert 3 == draft_length(Drafting({"mean": 1.4, "code": 3.2}, 1.6), 4)
    assert 1 == draft_length(Drafting({"mean": 1.0}, 0.1), 4)
    assert 4 == draft_length(Drafting({"mean": 5.5}, 7.0), 4)


def test_the_profile_can_be_read_back() -> None:
    """Its format is that of docs/concepts/profile.md."""
    costs = {Role.SPECULATIVE: StepCost(0.036, 0.0012), Role.PLAIN: StepCost(0.035, 0.0014)}
    text = profile_text(
        "abc", "2026-11-30T08:00:00Z", 321.04, costs, Drafting({"mean": 1.4, "code": 3.4}, 1.6), 2
    )

    found = read_profile(text, "profile.json")

    assert ("abc", 321.0) == (found.fingerprint, found.context_tokens)
    assert {
        Role.SPECULATIVE: StepCost(0.036, 0.0012, draft_length=2),
        Role.PLAIN: StepCost(0.035, 0.0014),
    } == found.costs
    assert {"mean": 1.4, "code": 3.0} == found.tokens_per_step


def test_a_request_costs_the_plain_pool_what_the_bases_of_its_steps_leave() -> None:
    """Eight streams, 12 answers of 40 tokens in 8 s, half an answer each still open: 0.5 s a request."""
    plain = StepCost(0.04, 0.001)
    ended = [answer(40, began_s=1.0, e2e_s=5.0)] * 12
    late = answer(40, began_s=5.0, e2e_s=5.0)

    found = request_cost([*ended, late], 8, 8.0, plain)

    assert 12 == found.answers
    assert pytest.approx(8.0 / 16 - 0.04 * 40 / 8) == found.request_s
    assert pytest.approx(0.04) == request_cost(ended, 8, 8.0, StepCost(0.4, 0.001)).request_s
    with pytest.raises(BenchError, match="no answer of the plain pool"):
        request_cost([late], 8, 8.0, plain)


def test_the_rate_leaves_the_plain_pool_a_fifth_of_the_objective() -> None:
    """A step of 35 + 12 x 1.5 x 1.5 = 62 ms with batch alone grows to 96 ms with the standard requests."""
    rate = standard_rate(StepCost(0.035, 0.0015), Cost(0.25, 30), 12, 0.5, 0.12)

    assert pytest.approx((1 - 0.062 / 0.096) / 0.25) == rate
    assert 0.2 == standard_rate(StepCost(0.2, 0.0015), Cost(0.25, 30), 12, 0.5, 0.12)
    assert 20.0 == standard_rate(StepCost(0.001, 0.0), Cost(0.001, 30), 12, 0.5, 0.12)
    assert 20.0 == standard_rate(StepCost(0.0, 0.0), Cost(0.0, 30), 12, 0.5, 0.12)
