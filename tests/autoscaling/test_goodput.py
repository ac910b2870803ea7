"""When drafting pays, how much to draft, and what a replica can sell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.goodput import (
    Crossing,
    Sellable,
    best_draft_length,
    break_even,
    capacity,
    crossover,
    effective_alpha,
    leviathan,
    marginal_draft_length,
    rule_of_thumb,
    speed_up,
    tokens_per_step,
)
from autoscaling.profiling.findings import Verdict
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import tpot_s

SETS = 10_000

# An H100 with Llama-3.1-8B as published: 5.886 ms and 1.207 ms per step, 21.01 us per token, 0.03926 us per
# context token; EAGLE-3 drafts three tokens in 2.135 ms.
H100 = StepCost(base_s=0.0070927, per_token_s=21.01e-6, per_context_s=0.03926e-6)
H100_EAGLE = replace(H100, draft_length=3, per_draft_s=0.002135 / 3)
# Tokens per step of chat at K = 1..5 are 1.66, 2.037, 2.252, 2.388, 2.476: these are their differences.
CHAT = (0.66, 0.377, 0.215, 0.136, 0.088)


def brute_step_s(cost: StepCost, sequences: float, context: float, draft_length: float) -> float:
    """The step written out once more, for costs whose steps all draft fully."""
    tokens = sequences * (1 + draft_length)
    drafts = float(draft_length > 0)
    return (
        cost.base_s
        + (cost.per_token_s + drafts * cost.draft_per_token_s) * tokens
        + (cost.per_context_s + drafts * cost.draft_per_context_s) * sequences * context
        + cost.past_hinge_s * max(0.0, tokens - cost.hinge_tokens)
        + drafts * cost.draft_s
        + cost.per_draft_s * draft_length
    )


def brute_best(
    cost: StepCost, plain: StepCost, survival: list[float], sequences: float, context: float, rate: float
) -> int:
    """K of most tokens per second over all lengths that survival is known for."""
    goodputs = [sequences / brute_step_s(plain, sequences, context, 0)]
    for length in range(1, len(survival) + 1):
        tokens = 1 + rate * sum(survival[:length])
        goodputs.append(sequences * tokens / brute_step_s(cost, sequences, context, length))
    return int(np.argmax(goodputs))


def random_survival(draw: np.random.Generator) -> list[float]:
    """One to eight positions that never rise."""
    return [float(share) for share in np.cumprod(draw.uniform(0.05, 1.0, draw.integers(1, 9)))]


def random_plain(draw: np.random.Generator) -> StepCost:
    """From small models on fast devices to large ones on slow ones; a third without a price of context."""
    return StepCost(
        base_s=float(10 ** draw.uniform(-3.5, -1)),
        per_token_s=float(10 ** draw.uniform(-5.5, -3)),
        per_context_s=float(10 ** draw.uniform(-8.5, -6)) * int(draw.integers(0, 3) > 0),
    )


def test_the_closed_forms_are_the_argmax_where_drafts_come_one_after_the_other() -> None:
    """10,000 random sets: the best K is that of trying all, and theta* has the right sign."""
    draw = np.random.default_rng(5)
    chosen = []
    for _ in range(SETS):
        plain = random_plain(draw)
        cost = replace(plain, draft_length=4, per_draft_s=float(10 ** draw.uniform(-5, -2)))
        survival = random_survival(draw)
        sequences, context = int(2 ** draw.uniform(0, 9)), float(draw.uniform(0, 8000))
        best = best_draft_length(cost, plain, survival, sequences, context, len(survival))
        chosen.append(best)
        assert brute_best(cost, plain, survival, sequences, context, 1.0) == best
        assert best == marginal_draft_length(cost, plain, survival, sequences, context, len(survival))

        for length in range(1, len(survival) + 1):
            gained = sum(survival[:length])
            pays = (1 + gained) * brute_step_s(plain, sequences, context, 0) > brute_step_s(
                cost, sequences, context, length
            )
            assert pays == (gained / length > break_even(cost, plain, sequences, context, length))
        # Where the costs are linear, s_1 > theta* alone decides whether to draft at all.
        assert (best > 0) == (survival[0] > break_even(cost, plain, sequences, context, 1))

    assert set(range(9)) == set(chosen)  # the sets reach every answer


def test_the_best_draft_length_is_the_argmax_with_fixed_costs_hinges_and_two_engines() -> None:
    """10,000 sets more: drafting that costs the same at any K, dear tokens past a hinge, rare drafts."""
    draw = np.random.default_rng(26)
    chosen = []
    for _ in range(SETS):
        plain = random_plain(draw)
        plain = replace(
            plain,
            hinge_tokens=float(draw.integers(0, 512)),
            past_hinge_s=plain.per_token_s * float(draw.uniform(0, 5)) * int(draw.integers(0, 2)),
        )
        cost = replace(
            plain,
            base_s=plain.base_s * float(draw.uniform(0.95, 1.3)),
            draft_length=int(draw.integers(1, 9)),
            draft_s=float(10 ** draw.uniform(-5, -1.5)) * int(draw.integers(0, 4) > 0),
            per_draft_s=float(10 ** draw.uniform(-5, -2)) * int(draw.integers(0, 2)),
            draft_per_token_s=float(10 ** draw.uniform(-7, -4)),
            draft_per_context_s=float(10 ** draw.uniform(-10, -7)),
        )
        survival, rate = random_survival(draw), float(draw.uniform(0.3, 1.0))
        sequences, context = int(2 ** draw.uniform(0, 9)), float(draw.uniform(0, 8000))
        best = best_draft_length(cost, plain, survival, sequences, context, len(survival), rate)
        chosen.append(best)
        assert brute_best(cost, plain, survival, sequences, context, rate) == best

    assert set(range(9)) == set(chosen)


def test_a_fixed_cost_that_only_a_longer_draft_earns_back_is_paid() -> None:
    """The first token alone loses, 1.9 tokens for 2.2 steps; four of them win, 4.1 for 2.5."""
    plain = StepCost(base_s=0.010, per_token_s=0.001)
    parallel = replace(plain, draft_length=4, draft_s=0.0122)
    survival = (0.9, 0.8, 0.75, 0.65)

    assert speed_up(parallel, plain, 1, 0, 1.9, 1) < 1
    assert 4 == best_draft_length(parallel, plain, survival, 1, 0, 4)
    assert 0 == best_draft_length(parallel, plain, survival, 1, 0, 1)
    # One more token at a time never gets there.
    assert 0 == marginal_draft_length(parallel, plain, survival, 1, 0, 4)


@pytest.mark.parametrize("longest", [0, -1])
def test_nothing_is_drafted_where_nothing_may_be(longest: int) -> None:
    """A longest K below 1 leaves the plain engine."""
    assert 0 == best_draft_length(H100_EAGLE, H100, CHAT, 1, 512, longest)


def test_an_unknown_or_useless_draft_is_not_taken() -> None:
    """No survival is known, none survives, or no step drafts."""
    assert 0 == best_draft_length(H100_EAGLE, H100, (), 1, 512, 5)
    assert 0 == best_draft_length(H100_EAGLE, H100, (0.0, 0.0), 1, 512, 5)
    assert 0 == best_draft_length(H100_EAGLE, H100, CHAT, 1, 512, 5, draft_rate=0.0)


def test_a_free_draft_that_gains_nothing_is_a_tie_and_the_plain_engine_wins_it() -> None:
    """Both give one token in a step of 10 ms."""
    plain = StepCost(base_s=0.010, per_token_s=0.0)

    assert 0 == best_draft_length(replace(plain, draft_length=2), plain, (0.0,), 1, 0, 2)


@pytest.mark.parametrize(
    ("sequences", "length", "gain"),
    [(1, 3, 1.72), (8, 3, 1.66), (32, 2, 1.54), (64, 2, 1.43), (128, 2, 1.32), (256, 1, 1.23)],
)
def test_the_best_length_and_its_speed_up_on_a_published_fit(
    sequences: int, length: int, gain: float
) -> None:
    """Chat on the H100 with 512 tokens of context: shorter drafts and smaller gains as the batch grows."""
    best = best_draft_length(H100_EAGLE, H100, CHAT, sequences, 512, 5)

    assert length == best
    tokens = tokens_per_step(CHAT, best)
    assert pytest.approx(gain, rel=0.05) == speed_up(H100_EAGLE, H100, sequences, 512, tokens, best)


def test_a_fixed_length_loses_what_a_large_batch_gains() -> None:
    """K = 4 at 256 sequences gives nothing, where K = 1 gives 1.23."""
    tokens = tokens_per_step(CHAT, 4)

    assert pytest.approx(1.00, abs=0.01) == speed_up(H100_EAGLE, H100, 256, 512, tokens, 4)


@pytest.mark.parametrize(
    ("context", "sequences", "theta"),
    [
        (512, 1, 0.10),
        (512, 32, 0.16),
        (512, 64, 0.21),
        (512, 256, 0.35),
        (512, 1e9, 0.51),
        (2048, 128, 0.17),
        (8192, 1, 0.10),
        (8192, 256, 0.06),
    ],
)
def test_the_break_even_on_a_published_fit(context: float, sequences: float, theta: float) -> None:
    """It rises with the batch where contexts are short, and falls where they are long."""
    assert pytest.approx(theta, abs=0.01) == break_even(H100_EAGLE, H100, sequences, context)


@pytest.mark.parametrize("length", [1, 2, 5, 8])
def test_the_break_even_does_not_depend_on_the_length_where_costs_are_linear(length: int) -> None:
    """(d + c1 B) / (c0 + c1 B + c2 B S): (2 + 0.5 x 8) / (10 + 0.5 x 8 + 0.001 x 8 x 100) = 6 / 14.8."""
    plain = StepCost(base_s=0.010, per_token_s=0.0005, per_context_s=0.000001)
    cost = replace(plain, draft_length=3, per_draft_s=0.002)

    assert pytest.approx(6 / 14.8) == break_even(cost, plain, 8, 100, length)


def test_the_break_even_counts_the_tokens_that_are_really_drafted() -> None:
    """At K = 4 one token a step is drafted: 1 ms and 1 token of 1 ms on a step of 11 ms."""
    plain = StepCost(base_s=0.010, per_token_s=0.001)
    ngram = replace(plain, draft_length=4, draft_s=0.001, drafted=1.0)

    assert pytest.approx(2 / 11) == break_even(ngram, plain, 1, 0)


@pytest.mark.parametrize(
    ("cost", "length"), [(H100, None), (H100_EAGLE, 0), (replace(H100_EAGLE, drafted=0.0), None)]
)
def test_there_is_no_break_even_without_drafts(cost: StepCost, length: int | None) -> None:
    """Zero tokens drafted have no acceptance rate."""
    with pytest.raises(ValueError, match="draft"):
        break_even(cost, H100, 1, 512, length)


# Published: Qwen2.5-7B in fp16 on an A40 with an AWQ draft of the same size (vllm-project/vllm PR 26504).
# Plain: 33.8 tok/s at B = 1, a step of 1/33.8 = 29.586 ms; 867.8 at B = 32, a step of 32/867.8 = 36.875 ms.
# Linear in B: 0.23512 ms per token, 29.351 ms base.
A40 = StepCost(base_s=0.029351, per_token_s=0.00023512)


def a40_drafts(tokens_per_s_at_1: float, accepted_at_1: float, tokens_per_s_at_32: float) -> StepCost:
    """The speculative engine from a rate at B = 1, K = 4 and one at B = 32, K = 1.

    At B = 1 a step gives 1 + 4r tokens, so it takes (1 + 4r) / rate; at B = 32 it takes 32 x 1.83 / rate.
    What either takes beyond the target's base and tokens is drafting: d K + e B (1 + K), two equations.
    """
    at_1 = (1 + 4 * accepted_at_1) / tokens_per_s_at_1 - (0.029351 + 0.00023512 * 5)  # 4 d + 5 e
    at_32 = 32 * 1.83 / tokens_per_s_at_32 - (0.029351 + 0.00023512 * 64)  # d + 64 e
    per_token = (4 * at_32 - at_1) / (4 * 64 - 5)
    return replace(A40, draft_length=4, per_draft_s=at_32 - 64 * per_token, draft_per_token_s=per_token)


@pytest.mark.parametrize("accepted", [0.86, 0.91])
@pytest.mark.parametrize(("at_32", "theta"), [(682.7, 1.33), (735.0, 1.16)])
def test_the_break_even_says_on_at_one_sequence_and_off_at_32(
    accepted: float, at_32: float, theta: float
) -> None:
    """The acceptance of .86 to .91 is the same at both batches, and pays at the first only.

    At 32 one draft token costs more than a whole plain step, so that no acceptance could pay for it.
    """
    cost = a40_drafts(56.4, accepted, at_32)
    assert cost.per_draft_s > 0
    assert cost.draft_per_token_s > 0
    # At B = 1 and K = 4 the step is 4.44 / 56.4 = 78.7 ms to 4.64 / 56.4 = 82.3 ms, 2.66 to 2.78 plain ones.
    at_one = break_even(cost, A40, 1, 0, 4)
    assert 0.41 < at_one < 0.45 < accepted

    assert pytest.approx(theta, abs=0.01) == break_even(cost, A40, 32, 0, 1)
    assert 1.1 < break_even(cost, A40, 32, 0, 1) < 1.4

    all_alike = (accepted,) * 4  # the best case for long drafts: who passes the first passes all
    assert 4 == best_draft_length(cost, A40, all_alike, 1, 0, 4)
    assert 0 == best_draft_length(cost, A40, all_alike, 32, 0, 4)
    assert 0 == best_draft_length(cost, A40, (1.0,), 32, 0, 1)


@pytest.mark.parametrize(("rate", "accepted"), [(49.2, 0.86), (46.4, 0.91)])
def test_the_break_even_at_one_sequence_holds_for_the_other_published_rates(
    rate: float, accepted: float
) -> None:
    """Even the slower runs at B = 1, 49.2 and 46.4 tok/s, are above 33.8: any acceptance of .86 pays."""
    cost = a40_drafts(rate, accepted, 682.7)

    assert break_even(cost, A40, 1, 0, 4) < accepted
    assert pytest.approx(rate / 33.8, rel=0.001) == speed_up(cost, A40, 1, 0, 1 + 4 * accepted, 4)


@pytest.mark.parametrize(
    ("survival", "length", "rate", "expected"),
    [
        ((0.6, 0.3), 0, 1.0, 1.0),
        ((0.6, 0.3), 1, 1.0, 1.6),
        ((0.6, 0.3), 2, 1.0, 1.9),
        ((0.6, 0.3), 2, 0.5, 1.45),
        ((0.6, 0.3), 4, 1.0, 1 + 0.6 + 0.3 + 0.15 + 0.075),  # half of them go on
        ((0.9, 0.9), 4, 1.0, 1 + 0.9 + 0.9 + 0.72 + 0.576),  # all went on; no more than .8 is believed
        ((0.5,), 3, 1.0, 1 + 0.5 + 0.25 + 0.125),
        ((0.5, 0.0), 4, 1.0, 1.5),
        ((), 4, 1.0, 1.0),
    ],
)
def test_tokens_per_step_are_one_and_what_survives(
    survival: tuple[float, ...], length: int, rate: float, expected: float
) -> None:
    """The first K survivals, of the steps that draft; beyond the known depth the last loss goes on."""
    assert pytest.approx(expected) == tokens_per_step(survival, length, rate)


def test_a_speed_up_at_zero_is_what_an_idle_draft_costs() -> None:
    """A speculative engine whose step takes 11 ms without drafts, where the plain one takes 10 ms."""
    plain, idle = StepCost(0.009, 0.001), StepCost(0.010, 0.001, draft_length=4, draft_s=0.005)

    assert pytest.approx(10 / 11) == speed_up(idle, plain, 1, 0, 1.0, 0)


def test_capacity_in_numbers() -> None:
    """Steps of 10 ms and 1 ms per token, drafts of 2 ms; within 20.5 ms per token.

    K = 0: 10 sequences, 500 tokens/s.  K = 1 with 1.5 tokens: steps up to 30.75 ms, so 12 + 2 x 9.
    K = 2 with 1.9: steps up to 38.95 ms, so 12 + 3 x 8 = 36 ms and 8 x 1.9 / 0.036 = 422 tokens/s.
    """
    cost = StepCost(0.010, 0.001, draft_s=0.002, draft_length=2)

    assert Sellable(0, 10, pytest.approx(500), False) == capacity(
        cost, 0.0205, 0, {0: 1, 1: 1.5, 2: 1.9}, 99, None
    )
    assert Sellable(1, 9, pytest.approx(450), False) == capacity(cost, 0.0205, 0, {2: 1.9, 1: 1.5}, 99, None)
    assert Sellable(2, 8, pytest.approx(8 * 1.9 / 0.036), False) == capacity(
        cost, 0.0205, 0, {2: 1.9}, 99, None
    )


def test_capacity_is_what_really_comes_out_at_another_limit() -> None:
    """Four sequences at 14 ms per token give 286 tokens/s, not the 200 of four at the objective of 20 ms."""
    cost = StepCost(0.010, 0.001)

    assert Sellable(0, 4, pytest.approx(4 / 0.014), False) == capacity(cost, 0.020, 100, {0: 1}, 4, None)
    assert Sellable(0, 4, pytest.approx(4 / 0.014), True) == capacity(cost, 0.020, 100, {0: 1}, 99, 499)
    assert Sellable(0, 10, pytest.approx(500), False) == capacity(cost, 0.020, 100, {0: 1}, 99, 1000)
    assert Sellable(0, 10, pytest.approx(500), False) == capacity(cost, 0.020, 0, {0: 1}, 99, 0)


def test_capacity_says_when_nothing_can_be_sold() -> None:
    """A step of 11 ms is not within 10, and one token of memory holds no sequence."""
    cost = StepCost(0.010, 0.001)

    assert Sellable(0, 0, 0.0, False) == capacity(cost, 0.010, 100, {0: 1.0}, 99, None)
    assert Sellable(0, 0, 0.0, True) == capacity(cost, 0.020, 100, {0: 1.0}, 99, 1)


@pytest.mark.parametrize(
    ("objective_ms", "plain", "length", "speculative"),
    [(6, 0, 2, 6017), (8, 1852, 2, 9453), (10, 4749, 2, 11515), (15, 8612, 2, 14264)],
)
def test_capacity_on_a_published_fit(
    objective_ms: int, plain: float, length: int, speculative: float
) -> None:
    """Chat on the H100, contexts of 1,000 tokens: the tighter the objective, the more drafting is worth."""
    gains = {k: tokens_per_step(CHAT, k) for k in range(6)}
    found = capacity(H100_EAGLE, objective_ms / 1000, 1000, gains, 10_000, None)

    assert length == found.draft_length
    assert pytest.approx(speculative, rel=0.03) == found.tokens_per_s
    alone = capacity(H100, objective_ms / 1000, 1000, {0: 1.0}, 10_000, None)
    assert pytest.approx(plain, rel=0.03) == alone.tokens_per_s


@given(
    st.floats(0.001, 0.2),
    st.dictionaries(st.integers(0, 6), st.floats(1.0, 7.0), min_size=1),
    st.integers(1, 60),
    st.one_of(st.none(), st.integers(0, 20_000)),
    st.one_of(st.none(), st.floats(0.0, 3.0)),
)
def test_capacity_is_that_of_trying_all(
    objective: float, gains: dict[int, float], most: int, kv: int | None, drafted: float | None
) -> None:
    """No batch and no K within the objective and the memory gives more."""
    cost = StepCost(
        0.004, 0.0005, 0.000001, draft_s=0.001, draft_length=3, per_draft_s=0.002, drafted=drafted
    )
    kept = [0.0]
    for length, gain in gains.items():
        at_k = replace(cost, draft_length=length, drafted=None if drafted is None else drafted * length / 3)
        for batch in range(1, most + 1):
            tpot = tpot_s(at_k, batch, 300, gain)
            if tpot <= objective and (kv is None or batch * 300 <= kv):
                kept.append(batch / tpot)

    assert pytest.approx(max(kept)) == capacity(cost, objective, 300, gains, most, kv).tokens_per_s


def test_the_crossover_in_numbers() -> None:
    """1.5 tokens for 12 + 2 B ms against one for 10 + B: 15 + 1.5 B = 12 + 2 B at B = 6.

    With 1.55 tokens it is 1.55 x 17 / 26 = 1.01346 at 7 and 1.55 x 18 / 28 = 0.99643 at 8: 1 at 7.79.
    """
    plain = StepCost(0.010, 0.001)
    cost = replace(plain, draft_s=0.002, draft_length=1)

    found = crossover(cost, plain, 0, 1.5, 1, 64)
    assert Crossing(Verdict.PAYS_BELOW, pytest.approx(6.0)) == found
    assert pytest.approx(7.790, abs=0.001) == crossover(cost, plain, 0, 1.55, 1, 64).at


def test_no_crossover_where_drafting_always_or_never_pays() -> None:
    """2.1 tokens for at most two steps, and 1.05 for at least 1.2."""
    plain = StepCost(0.010, 0.001)
    cost = replace(plain, draft_s=0.002, draft_length=1)

    assert Crossing(Verdict.PAYS_ALWAYS, None) == crossover(cost, plain, 0, 2.1, 1, 64)
    assert Crossing(Verdict.PAYS_ALWAYS, None) == crossover(cost, plain, 0, 1.5, 1, 5)
    assert Crossing(Verdict.NEVER_PAYS, None) == crossover(cost, plain, 0, 1.05, 1, 64)


def test_drafting_that_pays_from_some_batch_on_is_mixed() -> None:
    """With 8,192 tokens of context each sequence makes the step longer, and a draft a smaller part of it."""
    cost = replace(H100_EAGLE, per_draft_s=0.003)

    assert speed_up(cost, H100, 1, 8192, 1.4, 1) < 1 < speed_up(cost, H100, 64, 8192, 1.4, 1)
    assert Crossing(Verdict.MIXED, None) == crossover(cost, H100, 8192, 1.4, 1, 64)


def test_the_rule_of_thumb_is_far_from_the_exact_formula() -> None:
    """2.105 for 2.773 tokens at K = 4 and 0.7; with a draft of 0.05 steps 2.31; nothing at all at K = 1."""
    assert pytest.approx(2.105, abs=0.001) == rule_of_thumb(0.7, 4)
    assert pytest.approx(2.773, abs=0.001) == leviathan(0.7, 4, 0.0)
    assert pytest.approx(2.31, abs=0.005) == leviathan(0.7, 4, 0.05)
    assert pytest.approx(1.54, abs=0.005) == leviathan(0.7, 4, 0.2)
    assert pytest.approx(1.0) == rule_of_thumb(0.7, 1)
    assert pytest.approx(1.7) == leviathan(0.7, 1, 0.0)
    # Where nothing is accepted drafting loses, and only one of the two says so.
    assert pytest.approx(1.0) == rule_of_thumb(0.0, 4)
    assert pytest.approx(1 / 1.8) == leviathan(0.0, 4, 0.2)
    assert pytest.approx(5.0) == leviathan(1.0, 4, 0.0)


@given(st.floats(0.0, 1.0), st.integers(1, 8))
def test_the_effective_alpha_undoes_the_exact_formula(alpha: float, length: int) -> None:
    """The tokens of alpha have that alpha."""
    tokens = leviathan(alpha, length, 0.0)

    assert pytest.approx(tokens) == leviathan(effective_alpha(tokens, length), length, 0.0)
    assert pytest.approx(alpha, abs=1e-6) == effective_alpha(tokens, length)


def test_the_effective_alpha_stays_within_0_and_1() -> None:
    """No tokens beyond the first, more than there can be, and no K."""
    assert pytest.approx(0.0, abs=1e-9) == effective_alpha(1.0, 4)
    assert pytest.approx(0.0, abs=1e-9) == effective_alpha(0.9, 4)
    assert pytest.approx(1.0, abs=1e-9) == effective_alpha(5.5, 4)
    with pytest.raises(ValueError, match="1 or more"):
        effective_alpha(1.0, 0)
