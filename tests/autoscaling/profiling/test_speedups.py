"""Measured speed-ups, what a loss consists of, and both engines' time against throughput."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.profiling.findings import Fit, FrontierPoint, SpeedUp
from autoscaling.profiling.gains import Gain, drafting_by_length, gains_of, survivals_of
from autoscaling.profiling.losses import drafting_s, kv_loss, losses
from autoscaling.profiling.measured import EngineFacts, Measurement, Steps
from autoscaling.profiling.speedups import frontier, k0_tax, modelled, speed_ups
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import step_s
from autoscaling.types import Role
from tests.autoscaling.profiling.measurements import Kind, Truth, measured

PLAIN = StepCost(base_s=0.020, per_token_s=0.001)
# 2 ms more when nothing is drafted, and 3 ms to draft.
DRAFTS = replace(PLAIN, base_s=0.022, draft_s=0.003, draft_length=2)
CHAT = Kind((0.6, 0.4))  # 1 + 0.6 + 0.4 = 2 tokens per step
TRUTH = Truth(PLAIN, DRAFTS, {"chat": CHAT})
COSTS = {Role.PLAIN: PLAIN, Role.SPECULATIVE: DRAFTS}

seconds = st.floats(0.0, 0.1, allow_subnormal=False)


def fits_of(costs: Mapping[Role, StepCost]) -> dict[Role, Fit]:
    """Fits that came out as the truth."""
    return {role: Fit(role, cost, 9, 0.0, None, 0, accepted=True) for role, cost in costs.items()}


def found_in(measurement: Measurement) -> tuple[SpeedUp, ...]:
    """Speed-ups with the true costs."""
    survivals = survivals_of(measurement)
    gains = {name: gains_of(drafting_by_length(measurement, name)) for name in survivals}
    return speed_ups(measurement, survivals, gains, fits_of(COSTS))


def frontier_in(measurement: Measurement) -> dict[tuple[Role, int], FrontierPoint]:
    """By engine and K, of a measurement of one batch, with the true costs."""
    survivals = survivals_of(measurement)
    gains = {name: gains_of(drafting_by_length(measurement, name)) for name in survivals}
    found = frontier(measurement, survivals, gains, fits_of(COSTS))
    return {(one.engine, one.draft_length): one for one in found}


def with_early_steps(measurement: Measurement, drafted: float) -> Measurement:
    """Full steps from the beginning of answers, in which so many tokens are drafted for each sequence."""
    runs = []
    for run in measurement.runs:
        assert run.steps is not None
        if run.cell.draft_length:
            tokens = run.cell.sequences * (1 + drafted)
            cost = replace(DRAFTS, draft_length=run.cell.draft_length, drafted=drafted)
            step = step_s(cost, run.cell.sequences, run.steps.context_tokens / run.cell.sequences)
            run = replace(run, steps=replace(run.steps, step_s=step, tokens=tokens))  # noqa: PLW2901
        runs.append(run)
    return replace(measurement, runs=tuple(runs))


def with_steps(measurement: Measurement, factor: Mapping[tuple[Role, int], float]) -> Measurement:
    """The steps of an engine in a round, longer by a factor."""
    return replace(
        measurement,
        runs=tuple(
            replace(
                run, steps=replace(run.steps, step_s=run.steps.step_s * factor[run.cell.engine, run.round])
            )
            if run.steps is not None and (run.cell.engine, run.round) in factor
            else run
            for run in measurement.runs
        ),
    )


def test_a_speed_up_in_numbers() -> None:
    """4 sequences: 24 ms plain, 22 + 4 x 3 + 3 = 37 ms with two draft tokens, which bring 2 tokens."""
    found = found_in(measured(TRUTH, lengths=(0, 2), batches=(4,), hold_out=()))

    assert [("chat", 4, 2)] == [(one.workload, one.sequences, one.draft_length) for one in found]
    (one,) = found
    assert pytest.approx(2 * 24 / 37) == one.measured.value
    assert pytest.approx(2 * 24 / 37) == one.modelled
    assert (pytest.approx(8 / 24), pytest.approx(3 / 24), pytest.approx(2 / 24)) == (
        one.verification,
        one.drafting,
        one.rest,
    )


def test_only_what_drafts_and_has_a_plain_pair_has_a_speed_up() -> None:
    """K = 0 has none, nor a batch that the plain engine did not run."""
    made = measured(TRUTH, lengths=(0, 2), batches=(1, 4), hold_out=(2,))
    alone = replace(
        made,
        runs=tuple(run for run in made.runs if run.cell.engine is not Role.PLAIN or run.cell.sequences != 2),
    )

    assert [1, 2, 4] == [one.sequences for one in found_in(made)]
    assert [1, 4] == [one.sequences for one in found_in(alone)]


def test_both_engines_are_compared_within_a_round() -> None:
    """A round in which both are three times slower changes nothing, and certainty neither."""
    made = measured(TRUTH, lengths=(0, 2), batches=(4,), hold_out=(), rounds=2)
    slow = with_steps(made, {(Role.PLAIN, 1): 3.0, (Role.SPECULATIVE, 1): 3.0})
    (before,), (after,) = found_in(made), found_in(slow)

    assert pytest.approx(before.measured.value) == after.measured.value
    assert pytest.approx(before.measured.value) == after.measured.low
    assert pytest.approx(before.measured.value) == after.measured.high


def test_the_interval_over_two_rounds_in_numbers() -> None:
    """Ratios that differ by 1.21: the mean is off by 1.1, half of the interval 12.706 x ln(1.21) / 2."""
    made = measured(TRUTH, lengths=(0, 2), batches=(4,), hold_out=(), rounds=2)
    (one,) = found_in(with_steps(made, {(Role.PLAIN, 1): 1.21}))
    value, half = 1.1 * 2 * 24 / 37, 12.7062 * math.log(1.21) / 2

    assert pytest.approx(value) == one.measured.value
    assert pytest.approx(value * math.exp(-half), rel=1e-4) == one.measured.low
    assert pytest.approx(value * math.exp(half), rel=1e-4) == one.measured.high


def test_a_single_round_has_no_bounds() -> None:
    """How far it can be trusted is unknown."""
    (one,) = found_in(measured(TRUTH, lengths=(0, 2), batches=(4,), hold_out=(), rounds=1))

    assert (None, None) == (one.measured.low, one.measured.high)


def test_noise_widens_the_interval_and_rounds_narrow_it() -> None:
    """Steps that are 1 % and 10 % off in 3 rounds, and 10 % off in 20."""

    def width(noise: float, rounds: int) -> float:
        made = measured(TRUTH, noise=noise, rounds=rounds, lengths=(0, 2), batches=(4,), hold_out=())
        (one,) = found_in(made)
        assert one.measured.low is not None
        assert one.measured.high is not None
        assert one.measured.low < one.measured.value < one.measured.high
        return one.measured.high - one.measured.low

    assert width(0.1, 3) > 2 * width(0.01, 3)
    assert width(0.1, 3) > 1.5 * width(0.1, 20)


def test_what_drafts_bring_is_taken_from_all_batches() -> None:
    """Half of the runs, those of one sequence, had 3 tokens per step, the others 2: all count with 2.5."""
    made = measured(TRUTH, lengths=(0, 2), batches=(1, 4), hold_out=())
    runs = tuple(
        replace(run, drafting=replace(run.drafting, tokens=1200))
        if run.cell.draft_length == 2 and run.cell.sequences == 1
        else run
        for run in made.runs
    )
    one, four = found_in(replace(made, runs=runs))

    assert pytest.approx(2.5 * 21 / 28) == one.measured.value
    assert pytest.approx(2.5 * 24 / 37) == four.measured.value
    # The tokens per step of these runs are far apart, and so is then what is known of the speed-up.
    assert four.measured.low is not None
    assert four.measured.low < 0.95 * four.measured.value


@pytest.mark.parametrize("broken", [None, Steps(0, 0.0, 0.0, 0.0, 0.0), Steps(3, math.nan, 0.0, 8.0, 8.0)])
def test_cells_without_full_steps_are_left_out(broken: Steps | None) -> None:
    """No step, none in the mean, or one without a time: the other rounds stand."""
    made = measured(TRUTH, lengths=(0, 2), batches=(4,), hold_out=())
    less = replace(made, runs=tuple(replace(r, steps=broken) if r.round == 0 else r for r in made.runs))
    none = replace(made, runs=tuple(replace(run, steps=broken) for run in made.runs))

    assert found_in(made)[0].measured.value == pytest.approx(found_in(less)[0].measured.value)
    assert ((), (), ()) == (found_in(none), k0_tax(none), frontier(none, survivals_of(none), {}, {}))


def test_the_tax_of_drafting_nothing_in_numbers() -> None:
    """22 ms for 20 and so on: (22 + B) / (20 + B), over both kinds of prompts and all rounds."""
    truth = replace(TRUTH, kinds={"chat": CHAT, "copy": Kind((0.9, 0.8))})
    found = k0_tax(measured(truth, lengths=(0, 2), batches=(1, 4), hold_out=(16,)))

    assert [1, 4, 16] == [size for size, _ in found]
    assert pytest.approx([23 / 21, 26 / 24, 38 / 36]) == [tax.value for _, tax in found]
    assert all(tax.holds(tax.value) for _, tax in found)


def test_the_tax_is_unknown_without_a_cell_that_drafts_nothing() -> None:
    """A speculative engine that was measured at K = 2 alone."""
    assert () == k0_tax(measured(TRUTH, lengths=(2,)))


def test_the_frontier_has_every_cell_of_both_engines() -> None:
    """4 sequences: 24 ms per token and 167 per second plain; 18.5 ms and 216 with two draft tokens."""
    made = measured(TRUTH, lengths=(0, 2), batches=(4,), hold_out=())
    found = frontier_in(made)

    assert {(Role.PLAIN, 0), (Role.SPECULATIVE, 0), (Role.SPECULATIVE, 2)} == set(found)
    plain, drafted = found[Role.PLAIN, 0], found[Role.SPECULATIVE, 2]
    assert (pytest.approx(0.024), pytest.approx(4 / 0.024)) == (plain.tpot_s.value, plain.tokens_per_s.value)
    assert pytest.approx(0.037 / 2) == drafted.tpot_s.value
    assert pytest.approx(4 * 2 / 0.037) == drafted.tokens_per_s.value
    for one in found.values():
        assert one.tpot_s.low is not None
        assert one.tpot_s.high is not None
        assert one.tpot_s.low <= one.tpot_s.value * (1 + 1e-9)
        assert one.tpot_s.value <= one.tpot_s.high * (1 + 1e-9)


def test_steps_that_draft_less_than_whole_answers_are_priced_as_those() -> None:
    """33 ms while one token is drafted for each, 37 ms with the two of which whole answers tell."""
    made = measured(TRUTH, lengths=(0, 2), batches=(4,), hold_out=())
    early = with_early_steps(made, 1.0)

    assert {0.024, 0.026, 0.033} == {round(run.steps.step_s, 6) for run in early.runs if run.steps}
    assert pytest.approx(2 * 24 / 37) == found_in(early)[0].measured.value
    assert pytest.approx(4 * 2 / 0.037) == frontier_in(early)[Role.SPECULATIVE, 2].tokens_per_s.value
    assert pytest.approx(4 / 0.026) == frontier_in(early)[Role.SPECULATIVE, 0].tokens_per_s.value


def test_without_a_fitted_cost_steps_stay_as_measured() -> None:
    """Nothing says what the draft tokens would take that were not in them."""
    early = with_early_steps(measured(TRUTH, lengths=(0, 2), batches=(4,), hold_out=()), 1.0)
    survivals = survivals_of(early)
    gains = {name: gains_of(drafting_by_length(early, name)) for name in survivals}

    assert pytest.approx(2 * 24 / 33) == speed_ups(early, survivals, gains, {})[0].measured.value


def test_a_speed_up_is_modelled_with_both_cost_models_only() -> None:
    """Without the plain one there is nothing to compare with."""
    gain = CHAT.gain(2)

    assert pytest.approx(2 * 24 / 37) == modelled(COSTS, 4, 0, 2, gain)
    assert modelled({Role.SPECULATIVE: DRAFTS}, 4, 0, 2, gain) is None
    assert losses({Role.SPECULATIVE: DRAFTS}, 4, 0, 2, gain) is None


@given(
    st.builds(StepCost, base_s=st.floats(0.001, 0.1), per_token_s=seconds, per_context_s=st.floats(0, 1e-5)),
    st.builds(
        StepCost,
        base_s=seconds,
        per_token_s=seconds,
        per_context_s=st.floats(0, 1e-5),
        draft_s=seconds,
        draft_length=st.integers(1, 8),
        per_draft_s=seconds,
        draft_per_token_s=seconds,
        draft_per_context_s=st.floats(0, 1e-5),
        per_prefill_s=st.none() | seconds,
        hinge_tokens=st.floats(0, 200),
        past_hinge_s=seconds,
    ),
    st.integers(1, 128),
    st.integers(1, 8),
    st.floats(0, 8),
)
def test_the_parts_of_a_loss_add_up(
    plain: StepCost, speculative: StepCost, sequences: int, length: int, drafted: float
) -> None:
    """Verification, drafting and the rest are t(K) / t0 - 1, with the hinge and whatever a prompt costs."""
    found = losses(
        {Role.PLAIN: plain, Role.SPECULATIVE: speculative}, sequences, 300, length, Gain(1.5, drafted)
    )
    whole = step_s(replace(speculative, draft_length=length, drafted=drafted), sequences, 300)

    assert found is not None
    assert pytest.approx(whole / step_s(plain, sequences, 300) - 1, abs=1e-6) == (
        found.verification + found.drafting + found.rest
    )
    assert found.verification >= -1e-9
    assert found.drafting >= -1e-9


def test_verification_past_the_hinge_is_dear() -> None:
    """4 sequences and 8 draft tokens, of which 6 lie beyond the 6th: 8 x 1 + 6 x 2 ms of 24."""
    bent = replace(DRAFTS, hinge_tokens=6, past_hinge_s=0.002)
    found = losses({Role.PLAIN: PLAIN, Role.SPECULATIVE: bent}, 4, 0, 2, CHAT.gain(2))

    assert found is not None
    assert pytest.approx(20 / 24) == found.verification
    assert pytest.approx(3 / 24) == found.drafting


def test_what_drafting_costs_one_sequence() -> None:
    """3 ms, and 1 for each of 2 draft tokens in turn, and 0.5 for each of 3 tokens."""
    cost = replace(DRAFTS, per_draft_s=0.001, draft_per_token_s=0.0005)

    assert pytest.approx(0.0065) == drafting_s(cost, {0: Gain(1, 0), 2: CHAT.gain(2)}, 100)
    assert drafting_s(cost, {0: Gain(1, 0)}, 100) is None


@pytest.mark.parametrize(
    ("speculative", "plain", "expected"),
    [(9_000, 10_000, 0.1), (10_000, 10_000, 0.0), (None, 10_000, None), (9_000, None, None), (9, 0, None)],
)
def test_the_kv_cache_that_the_draft_takes(
    speculative: int | None, plain: int | None, expected: float | None
) -> None:
    """The share of the plain engine's tokens; unknown when either is."""
    engines = {
        Role.SPECULATIVE: EngineFacts(Role.SPECULATIVE, 8, speculative, None, None),
        Role.PLAIN: EngineFacts(Role.PLAIN, 8, plain, None, None),
    }

    assert (None if expected is None else pytest.approx(expected)) == kv_loss(engines)
    assert kv_loss({Role.PLAIN: engines[Role.PLAIN]}) is None
