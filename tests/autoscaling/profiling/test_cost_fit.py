"""The cost model of an engine from its measured steps, and when it is refused."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from autoscaling.profiling.cost_fit import FitError, Gate, fit, predicted_s, resampled
from autoscaling.profiling.measured import (
    Cell,
    CellRun,
    Drafting,
    Fingerprint,
    Measurement,
    PrefillRun,
    Steps,
)
from autoscaling.profiling.rows import Row
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import prefill_s, step_s
from autoscaling.types import Role

NOTHING = Drafting(0, 0, 0, 0, 0)
PLAIN = StepCost(base_s=0.020, per_token_s=0.0015, per_context_s=2e-6, per_prefill_s=0.0008)
DRAFTS = replace(
    PLAIN, draft_s=0.004, per_draft_s=0.003, draft_per_token_s=0.0004, draft_length=4, per_prefill_s=None
)
CONTEXTS = {"chat": 150.0, "long": 900.0}


def made(runs: Iterable[CellRun], prefills: Iterable[PrefillRun] = ()) -> Measurement:
    """A measurement of these."""
    return Measurement(
        made_at="2026-11-30T00:00:00Z",
        took_s=60,
        quick=True,
        synthetic_acceptance=False,
        fingerprint=Fingerprint("model"),
        engines=(),
        runs=tuple(runs),
        prefills=tuple(prefills),
    )


def grid(
    role: Role,
    truth: StepCost,
    *,
    noise: float = 0.02,
    lengths: Sequence[int] = (0,),
    batches: Sequence[int] = (1, 4, 16),
    held: Sequence[int] = (2, 8),
    contexts: Sequence[str] = ("chat", "long"),
    rounds: int = 3,
    drafted: float = 0.85,
    seed: int = 1,
) -> list[CellRun]:
    """Steps of a true cost with noise; drafts are ragged, `drafted` of K tokens and a little more or less."""
    draw = np.random.default_rng(seed)
    runs = []
    for round_ in range(rounds):
        for batch in sorted({*batches, *held}):
            for workload in contexts:
                for length in lengths:
                    tokens = batch * (1 + length * min(1.0, drafted * draw.uniform(0.9, 1.1)))
                    context = batch * CONTEXTS[workload] * draw.uniform(0.95, 1.05)
                    cell = Cell(role, length, batch, workload, hold_out=batch in held)
                    exact = predicted_s(truth, Row(cell, tokens, context, 1.0))
                    seconds = exact * math.exp(noise * draw.normal())
                    steps = Steps(40, float(seconds), 0.0, float(tokens), float(context))
                    runs.append(CellRun(cell, round_, steps, NOTHING, None, None, None, batch, 0))
    return runs


def prompts(role: Role, truth: StepCost, noise: float = 0.02) -> list[PrefillRun]:
    """Three prompts in three rounds."""
    draw = np.random.default_rng(9)
    return [
        PrefillRun(role, round_, tokens, float(prefill_s(truth, tokens) * math.exp(noise * draw.normal())))
        for round_ in range(3)
        for tokens in (128, 512, 1500)
    ]


def test_a_plain_engine_is_recovered() -> None:
    """Noise of 2 %: all four prices within 10 %, and batches that the fit has not seen within 3 %."""
    found = fit(Role.PLAIN, made(grid(Role.PLAIN, PLAIN), prompts(Role.PLAIN, PLAIN)), prior=None)

    assert pytest.approx(0.020, rel=0.05) == found.cost.base_s
    assert pytest.approx(0.0015, rel=0.10) == found.cost.per_token_s
    assert pytest.approx(2e-6, rel=0.10) == found.cost.per_context_s
    assert pytest.approx(0.0008, rel=0.05) == found.cost.per_prefill_s
    assert (0, None) == (found.cost.draft_length, found.cost.drafted)
    assert (3 * 3 * 2, 3 * 2 * 2) == (found.points, found.hold_out_points)
    assert found.error <= 0.03
    assert found.hold_out_error is not None
    assert found.hold_out_error <= 0.03
    assert (True, None) == (found.accepted, found.refused_because)


@pytest.mark.parametrize("seed", range(5))
def test_a_speculative_engine_is_recovered_from_ragged_drafts(seed: int) -> None:
    """K 0, 2, 4: base and each kind of step come out, those of unseen batches within 3 %."""
    runs = grid(Role.SPECULATIVE, DRAFTS, lengths=(0, 2, 4), seed=seed)
    found = fit(Role.SPECULATIVE, made(runs), None)

    assert pytest.approx(0.020, rel=0.06) == found.cost.base_s
    assert pytest.approx(2e-6, rel=0.20) == found.cost.per_context_s
    assert 4 == found.cost.draft_length
    assert pytest.approx(0.85 * 4, rel=0.05) == found.cost.drafted
    assert found.hold_out_error is not None
    assert found.hold_out_error <= 0.03
    assert found.accepted
    truth = replace(DRAFTS, drafted=0.85 * 4)
    for batch in (1, 2, 8, 16, 32):
        for length in (0, 2, 4):
            expected = step_s(truth, batch, 400, draft_length=length)
            assert pytest.approx(expected, rel=0.06) == step_s(found.cost, batch, 400, draft_length=length)


def test_full_drafts_leave_their_number_to_the_length() -> None:
    """Every step verified K tokens: `drafted` is not set."""
    runs = grid(Role.SPECULATIVE, DRAFTS, lengths=(0, 4), drafted=2.0)

    assert fit(Role.SPECULATIVE, made(runs), None).cost.drafted is None


def test_one_length_gives_one_price_of_drafting() -> None:
    """With K 0 and 4 nothing tells a price per step from one per draft token."""
    cost = fit(Role.SPECULATIVE, made(grid(Role.SPECULATIVE, DRAFTS, lengths=(0, 4))), None).cost

    assert (0.0, 0.0) == (cost.per_draft_s, cost.draft_per_token_s)
    expected = step_s(replace(DRAFTS, drafted=3.4), 8, 400)
    assert pytest.approx(expected, rel=0.06) == step_s(cost, 8, 400)


def test_one_context_gives_no_price_of_context() -> None:
    """Context then grows with the batch alone: its price is in that of a token, and predictions hold."""
    runs = [
        replace(run, steps=replace(run.steps, context_tokens=900.0 * run.cell.sequences))
        for run in grid(Role.PLAIN, PLAIN, contexts=("long",))
        if run.steps is not None
    ]
    found = fit(Role.PLAIN, made(runs), None)

    assert 0.0 == found.cost.per_context_s
    assert pytest.approx(0.0015 + 900 * 2e-6, rel=0.10) == found.cost.per_token_s
    assert found.accepted


def test_an_engine_that_always_drafts_has_no_price_of_drafting() -> None:
    """Without K = 0 that is part of the base, and nothing is negative."""
    runs = grid(Role.SPECULATIVE, DRAFTS, lengths=(4,), contexts=("chat",))
    found = fit(Role.SPECULATIVE, made(runs), None)

    assert 0.0 == found.cost.draft_s
    assert found.accepted
    assert pytest.approx(step_s(replace(DRAFTS, drafted=3.4), 8, 150), rel=0.06) == step_s(found.cost, 8, 150)


def test_a_single_batch_gives_nothing_absurd() -> None:
    """Base and token cannot be told apart: all prices stay within what was measured, and it is refused."""
    runs = grid(Role.PLAIN, PLAIN, batches=(4,), held=(), contexts=("chat",), rounds=6)
    found = fit(Role.PLAIN, made(runs), None)

    assert pytest.approx(step_s(PLAIN, 4, 150), rel=0.05) == step_s(found.cost, 4, 150)
    assert 0 < step_s(found.cost, 64, 150) <= 64 / 4 * step_s(PLAIN, 4, 150)
    assert "only batches of 4 were measured: measure at least 3 different" == found.refused_because


def test_a_prior_says_what_the_measurement_cannot() -> None:
    """One context: the price of context is the prior's, and the rest follows from it."""
    prior = replace(PLAIN, base_s=0.024, per_token_s=0.0012)
    runs = grid(Role.PLAIN, PLAIN, contexts=("chat",))
    cost = fit(Role.PLAIN, made(runs), prior).cost

    assert pytest.approx(2e-6, rel=0.2) == cost.per_context_s
    assert pytest.approx(0.020, rel=0.05) == cost.base_s
    assert pytest.approx(0.0015, rel=0.1) == cost.per_token_s
    assert 0.0008 == cost.per_prefill_s  # no prompt was measured


def test_a_wrong_prior_does_not_outweigh_a_good_measurement() -> None:
    """Twice and half of the truth: the prices are within 10 % all the same."""
    prior = StepCost(base_s=0.010, per_token_s=0.003, per_context_s=4e-6)
    cost = fit(Role.PLAIN, made(grid(Role.PLAIN, PLAIN)), prior).cost

    assert pytest.approx(0.020, rel=0.1) == cost.base_s
    assert pytest.approx(0.0015, rel=0.1) == cost.per_token_s
    assert pytest.approx(2e-6, rel=0.15) == cost.per_context_s


def test_without_a_prompt_its_token_costs_as_any_other() -> None:
    """No price of its own, which is not a price of nothing."""
    assert fit(Role.PLAIN, made(grid(Role.PLAIN, PLAIN)), None).cost.per_prefill_s is None


BATCHES = (1, 4, 16, 32, 64, 128, 256)


def test_a_hinge_is_found_where_there_is_one() -> None:
    """From 64 tokens on each costs three times as much."""
    truth = replace(PLAIN, hinge_tokens=64.0, past_hinge_s=0.003)
    found = fit(Role.PLAIN, made(grid(Role.PLAIN, truth, batches=BATCHES, held=(8, 96))), None)

    assert 48 <= found.cost.hinge_tokens <= 96
    assert pytest.approx(0.003, rel=0.15) == found.cost.past_hinge_s
    assert found.hold_out_error is not None
    assert found.hold_out_error <= 0.05


@pytest.mark.parametrize("seed", range(10))
def test_no_hinge_is_found_where_there_is_none(seed: int) -> None:
    """Noise of 5 % in every cell alike is no reason for one, with many batches or few."""
    for batches in ((1, 4, 16), BATCHES):
        runs = grid(Role.PLAIN, PLAIN, noise=0.05, batches=batches, seed=seed)
        cost = fit(Role.PLAIN, made(runs), None).cost
        assert (0.0, 0.0) == (cost.hinge_tokens, cost.past_hinge_s)


def test_a_hinge_that_prompts_refute_is_not_taken() -> None:
    """A dear batch at 128 and 256, but prompts of 1,500 tokens that cost a tenth of what it implies."""
    truth = replace(PLAIN, hinge_tokens=64.0, past_hinge_s=0.003)
    cheap = [PrefillRun(Role.PLAIN, 0, 1500, 0.3)]
    found = fit(Role.PLAIN, made(grid(Role.PLAIN, truth, batches=BATCHES, held=()), cheap), None)

    assert 0.0 == found.cost.past_hinge_s


def test_held_out_cells_only_judge() -> None:
    """Those at 2 and 8 took four times as long as the rest says: the fit is the same, and refused."""
    runs = grid(Role.PLAIN, PLAIN)
    off = [
        replace(run, steps=replace(run.steps, step_s=4 * run.steps.step_s)) if run.cell.hold_out else run
        for run in runs
        if run.steps is not None
    ]
    good, bad = (fit(Role.PLAIN, made(those), None) for those in (runs, off))

    assert good.cost == bad.cost
    assert not bad.accepted
    assert bad.refused_because is not None
    assert bad.refused_because.startswith(
        "predicted steps of 2, 8 sequences, which the fit has not seen, are 75.0% off on average, "
        "more than 15%"
    )


def test_a_bad_measurement_is_refused_in_words() -> None:
    """Steps of the same cell differ by a factor: the message says how far off and what to do."""
    found = fit(Role.PLAIN, made(grid(Role.PLAIN, PLAIN, noise=0.8)), None)

    assert not found.accepted
    assert found.error > 0.15
    assert found.refused_because == (
        f"predicted steps of the batches that were fitted are {found.error:.1%} off on average, more than "
        "15%: measure more rounds, with nothing else on the machine"
    )


@pytest.mark.parametrize(
    ("batches", "rounds", "words"),
    [
        ((1, 4, 16), 1, "only 3 cells and rounds were measured: measure at least 6"),
        ((1, 4), 3, "only batches of 1, 4 were measured: measure at least 3 different"),
    ],
)
def test_too_little_is_refused_in_words(batches: tuple[int, ...], rounds: int, words: str) -> None:
    """A few cells fit anything."""
    runs = grid(Role.PLAIN, PLAIN, batches=batches, held=(), rounds=rounds, contexts=("chat",))

    assert words == fit(Role.PLAIN, made(runs), None).refused_because


def test_without_a_hold_out_the_error_alone_decides() -> None:
    """What was not measured is unknown, not bad; a stricter gate is the caller's."""
    measurement = made(grid(Role.PLAIN, PLAIN, held=()))
    found = fit(Role.PLAIN, measurement, None)

    assert (None, 0, True) == (found.hold_out_error, found.hold_out_points, found.accepted)
    assert not fit(Role.PLAIN, measurement, None, Gate(error=0.001)).accepted


def test_cells_without_full_steps_and_the_other_engine_are_left_out() -> None:
    """A cell without steps, one without any step in it, and all of the speculative engine change nothing."""
    runs = grid(Role.PLAIN, PLAIN)
    empty = replace(runs[0], steps=None)
    none = replace(runs[0], steps=Steps(0, 0.0, 0.0, 0.0, 0.0))
    broken = [
        replace(runs[0], steps=Steps(3, *values))
        for values in ((math.nan, 0.0, 1.0, 1.0), (0.1, 0.0, math.inf, 1.0), (0.1, 0.0, 1.0, math.nan))
    ]
    other = grid(Role.SPECULATIVE, DRAFTS, lengths=(0, 4))

    assert fit(Role.PLAIN, made(runs), None) == fit(
        Role.PLAIN, made([*runs, empty, none, *broken, *other]), None
    )


@pytest.mark.parametrize("runs", [[], grid(Role.SPECULATIVE, DRAFTS), grid(Role.PLAIN, PLAIN, batches=())])
def test_without_a_step_there_is_nothing_to_fit(runs: list[CellRun]) -> None:
    """No run, none of this engine, and only such as are held out."""
    with pytest.raises(FitError, match="no step of the plain engine"):
        fit(Role.PLAIN, made(runs), None)
    with pytest.raises(FitError, match="no step of the plain engine"):
        resampled(Role.PLAIN, made(runs), None, 10, 1)


@pytest.mark.parametrize("runs", [[], grid(Role.PLAIN, PLAIN, batches=())])
def test_without_a_step_a_prior_stands_in_and_is_refused(runs: list[CellRun]) -> None:
    """No cell to fit, with or without held-out ones: the prior's cost, no points, words, and no resamples."""
    found = fit(Role.PLAIN, made(runs), PLAIN)

    assert (PLAIN, 0, None, False) == (found.cost, found.points, found.error, found.accepted)
    assert found.refused_because == (
        "no step of the plain engine was measured with all sequences in it: measure longer answers"
    )
    assert len(runs) == found.hold_out_points
    assert (found.hold_out_error is None) == (not runs)
    assert () == resampled(Role.PLAIN, made(runs), PLAIN, 10, 1)


def test_a_step_that_only_context_makes_long_is_refused() -> None:
    """Context costs more than all of a step: that of one new request would take no time."""
    runs = [
        replace(run, steps=replace(run.steps, step_s=1e-4 * run.steps.context_tokens - 0.002))
        for run in grid(Role.PLAIN, PLAIN)
        if run.steps is not None
    ]
    found = fit(Role.PLAIN, made(runs), None)

    assert (0.0, 0.0) == (found.cost.base_s, found.cost.per_token_s)
    assert found.refused_because == (
        "the fit gives a step of one token no duration: measure more rounds, of more batches"
    )


def test_a_length_that_was_not_fitted_is_predicted_by_its_real_tokens() -> None:
    """Fitted at K = 0 alone: 20 tokens that a batch of 4 verified are 20 tokens."""
    row = Row(Cell(Role.PLAIN, 4, 4, "chat"), 20.0, 600.0, 1.0)

    assert pytest.approx(0.020 + 0.0015 * 20 + 2e-6 * 600) == predicted_s(PLAIN, row)


def test_resamples_spread_about_the_truth() -> None:
    """200 costs: 95 % of their steps at 8 sequences hold the true one, and lie within 10 % of each other."""
    measurement = made(grid(Role.SPECULATIVE, DRAFTS, lengths=(0, 2, 4), rounds=6))
    costs = resampled(Role.SPECULATIVE, measurement, None, 200, 7)
    steps = [step_s(cost, 8, 400) for cost in costs]
    low, high = np.quantile(steps, [0.025, 0.975])

    assert 200 == len(costs)
    truth = step_s(replace(DRAFTS, drafted=0.85 * 4), 8, 400)
    assert 0.99 * low <= truth <= 1.01 * high
    assert low < high <= 1.1 * low
    assert costs == resampled(Role.SPECULATIVE, measurement, None, 200, 7)
    assert costs != resampled(Role.SPECULATIVE, measurement, None, 200, 8)


def test_more_rounds_leave_less_spread() -> None:
    """Nine times the rounds: half the spread at most, over five measurements."""
    widths = {4: 0.0, 36: 0.0}
    for rounds in widths:
        for seed in range(5):
            measurement = made(grid(Role.PLAIN, PLAIN, rounds=rounds, seed=seed))
            costs = resampled(Role.PLAIN, measurement, None, 200, 7)
            low, high = np.quantile([step_s(cost, 8, 400) for cost in costs], [0.025, 0.975])
            widths[rounds] += high - low

    assert 2 * widths[36] <= widths[4]


def test_a_single_round_has_no_resamples() -> None:
    """Drawn anew it is always the same, which would look certain."""
    assert () == resampled(Role.PLAIN, made(grid(Role.PLAIN, PLAIN, rounds=1)), None, 200, 1)


def test_all_resamples_have_the_hinge_of_the_fit() -> None:
    """It is chosen once."""
    truth = replace(PLAIN, hinge_tokens=64.0, past_hinge_s=0.003)
    measurement = made(grid(Role.PLAIN, truth, batches=BATCHES, held=()))

    hinge = fit(Role.PLAIN, measurement, None).cost.hinge_tokens
    assert {hinge} == {cost.hinge_tokens for cost in resampled(Role.PLAIN, measurement, None, 50, 1)}
