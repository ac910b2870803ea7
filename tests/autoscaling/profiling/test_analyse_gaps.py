"""Measurements that lack something: what is left is analysed, or refused with what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from autoscaling.profiling.analyse import analyse
from autoscaling.profiling.cost_fit import FitError
from autoscaling.profiling.findings import Findings, TableRow, Verdict
from autoscaling.profiling.measured import CellRun, Drafting, Measurement
from autoscaling.profiling.profile_text import profile_text
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role, Tier
from tests.autoscaling.profiling.measurements import Kind, Truth, measured

PLAIN = StepCost(base_s=0.020, per_token_s=0.001, per_context_s=2e-6, per_prefill_s=0.001)
DRAFTS = replace(PLAIN, base_s=0.024, draft_s=0.002, per_draft_s=0.001, draft_length=4)
TRUTH = Truth(
    PLAIN,
    DRAFTS,
    {
        "chat": Kind((0.4, 0.2, 0.1, 0.05), context=150.0),
        "copy": Kind((0.8, 0.7, 0.6, 0.5), draft_rate=0.8, context=400.0),
    },
)
OBJECTIVES = {Tier.INTERACTIVE: 0.030, Tier.STANDARD: 0.060}
NOTHING = Drafting(0, 0, 0, 0, 0)


def found_in(measurement: Measurement) -> Findings:
    """Without a prior and a stated load."""
    return analyse(measurement, None, OBJECTIVES, None)


def without(measurement: Measurement, lacks: Callable[[CellRun], bool]) -> Measurement:
    """Cells in which every answer failed: listed, and nothing known of them."""
    return replace(
        measurement,
        runs=tuple(
            replace(
                run,
                steps=None,
                drafting=NOTHING,
                tokens_per_s=None,
                tpot_s=None,
                ttft_s=None,
                answers=0,
                failed=run.answers,
            )
            if lacks(run)
            else run
            for run in measurement.runs
        ),
    )


def test_without_prefills_a_prompts_token_costs_as_any_other() -> None:
    """Both fits stand, and pools are predicted."""
    found = found_in(replace(measured(TRUTH, noise=0.02), prefills=()))

    assert [None, None] == [one.cost.per_prefill_s for one in found.fits.values()]
    assert all(one.accepted for one in found.fits.values())
    assert found.pools
    assert profile_text(found)


def test_without_any_step_the_measurement_is_refused() -> None:
    """No cell had all sequences at once: the message says what to do."""
    made = measured(TRUTH)
    none = replace(made, runs=tuple(replace(run, steps=None) for run in made.runs))

    with pytest.raises(FitError, match="measure longer answers"):
        found_in(none)
    with pytest.raises(FitError, match="measure longer answers"):
        found_in(replace(made, runs=()))


@pytest.mark.parametrize("role", list(Role))
def test_without_steps_of_one_engine_the_measurement_is_refused(role: Role) -> None:
    """The other alone says nothing about drafting; the message names the engine that lacks steps."""
    made = measured(TRUTH)
    none = replace(
        made,
        runs=tuple(replace(run, steps=None) if run.cell.engine is role else run for run in made.runs),
    )

    with pytest.raises(FitError, match=f"no step of the {role} engine"):
        found_in(none)


def test_with_one_kind_of_prompts_the_mean_is_that_kind() -> None:
    """Everything is said twice, and alike."""
    found = found_in(measured(replace(TRUTH, kinds={"chat": TRUTH.kinds["chat"]}), noise=0.02))

    assert ["chat", "mean"] == list(found.survivals)
    assert found.survivals["chat"].tokens_per_step == found.survivals["mean"].tokens_per_step
    values = {
        name: [one.sequences and one.sequences.value for one in found.crossovers if one.workload == name]
        for name in ("chat", "mean")
    }
    assert 2 == len(values["chat"])
    assert values["chat"] == values["mean"]
    assert found.pools
    assert profile_text(found)


def test_an_engine_that_only_ran_at_k_0_has_nothing_to_say_of_drafts() -> None:
    """No speed-up, crossover or break-even; the tax of K = 0, a table without drafts and the limits stand."""
    found = found_in(measured(TRUTH, lengths=(0,)))

    assert ((), (), ()) == (found.speed_ups, found.crossovers, found.break_evens)
    assert found.draft_s is None
    assert (TableRow(1, 32, 0),) == found.table
    assert [1, 2, 4, 8, 16] == [size for size, _ in found.k0_tax]
    assert {0} == {one.draft_length for one in found.capacities}
    assert 2 == len([one for one in found.policy if one.path.endswith("softInflight")])
    assert () == found.notes
    assert profile_text(found)


def test_an_engine_that_never_found_a_draft_never_gains() -> None:
    """K = 4 was in force and nothing matched: one token per step, no acceptance rate and no break-even."""
    nobody = {name: replace(kind, draft_rate=0.0) for name, kind in TRUTH.kinds.items()}
    found = found_in(measured(replace(TRUTH, kinds=nobody)))

    assert found.survivals["mean"].acceptance_rate is None
    assert () == found.break_evens
    assert {Verdict.NEVER_PAYS} == {one.verdict for one in found.crossovers}
    assert (TableRow(1, 32, 0),) == found.table
    assert 0.0 == found.survivals["chat"].draft_rate


def test_cells_in_which_all_answers_failed_are_left_out() -> None:
    """Those of 16 sequences at K = 4 on one engine: everything else is as without them."""
    made = measured(TRUTH, noise=0.02)

    def failed(run: CellRun) -> bool:
        cell = run.cell
        return cell.engine is Role.SPECULATIVE and cell.draft_length == 4 and cell.sequences == 16

    found = found_in(without(made, failed))

    assert found == replace(
        found_in(replace(made, runs=tuple(run for run in made.runs if not failed(run)))),
        measurement=found.measurement,
    )
    assert (16, 4) not in {(one.sequences, one.draft_length) for one in found.speed_ups}
    assert (16, 2) in {(one.sequences, one.draft_length) for one in found.speed_ups}


def test_a_kind_of_prompts_of_which_every_answer_failed_has_no_gains() -> None:
    """It is listed and nothing is claimed of it; the other kind stands."""
    found = found_in(without(measured(TRUTH, noise=0.02), lambda run: run.cell.workload == "copy"))

    assert {0} == set(found.survivals["copy"].tokens_per_step)
    assert {"chat", "mean"} == {one.workload for one in found.crossovers}
    assert {"chat"} == {one.workload for one in found.speed_ups}
    assert pytest.approx(150.0) == found.context_tokens
    assert profile_text(found)


def test_a_k_of_which_every_answer_failed_is_not_in_the_table() -> None:
    """K = 4 crashed the engine: 2 is the largest that is known."""
    found = found_in(without(measured(TRUTH, noise=0.02), lambda run: run.cell.draft_length == 4))

    assert {0, 2} == set(found.survivals["mean"].tokens_per_step)
    assert {2} == {one.draft_length for one in found.crossovers}
    assert {row.draft_length for row in found.table} <= {0, 2}
    assert 2 == found.fits[Role.SPECULATIVE].cost.draft_length


def test_batches_that_were_cut_from_one_engine_have_no_speed_up() -> None:
    """16 sequences were cut from the plain engine, and its fit has too little to be relied on."""
    made = measured(TRUTH, noise=0.02)
    found = found_in(without(made, lambda run: run.cell.engine is Role.PLAIN and run.cell.sequences == 16))

    assert {1, 2, 4, 8} == {one.sequences for one in found.speed_ups}
    assert [1, 2, 4, 8] == [size for size, _ in found.k0_tax]
    assert not found.fits[Role.PLAIN].accepted
    assert ((), ()) == (found.pools, found.crossovers)


def test_one_round_has_values_and_no_bounds() -> None:
    """How sure a single round is is not known, and not claimed."""
    found = found_in(measured(TRUTH, rounds=1, noise=0.02))

    assert {None} == {one.measured.low for one in found.speed_ups}
    assert {None} == {one.sequences.low for one in found.crossovers if one.sequences is not None}
    assert found.pools


def test_rounds_that_were_cut_short_are_taken_as_far_as_they_went() -> None:
    """Only one sequence was measured in the third round, and nothing of K = 4 in the second."""
    made = measured(TRUTH, noise=0.02)
    found = found_in(
        replace(
            made,
            runs=tuple(
                run
                for run in made.runs
                if not (run.round == 2 and run.cell.sequences > 1)
                and not (run.round == 1 and run.cell.draft_length == 4)
            ),
        )
    )

    bounds = {(one.sequences, one.draft_length): one.measured.low for one in found.speed_ups}
    assert bounds[16, 2] is not None
    assert bounds[16, 4] is None
    assert all(fit.accepted for fit in found.fits.values())
    assert found.pools


@pytest.mark.parametrize(
    ("unpriced", "longest"),
    [
        (lambda run: run.cell.draft_length == 4, 2),
        (lambda run: run.cell.draft_length > 0, 0),
        # What is held out judges the fit, and is no part of it.
        (lambda run: run.cell.draft_length == 4 and not run.cell.hold_out, 2),
    ],
)
def test_a_k_of_which_no_step_was_fitted_is_not_recommended(
    unpriced: Callable[[CellRun], bool], longest: int
) -> None:
    """Drafts of K = 4 were counted, but no step had all sequences: what it costs is not known."""
    made = measured(TRUTH, noise=0.02)
    found = found_in(
        replace(made, runs=tuple(replace(run, steps=None) if unpriced(run) else run for run in made.runs))
    )

    assert longest == found.fits[Role.SPECULATIVE].cost.draft_length
    assert {0, 2, 4} == set(found.survivals["mean"].tokens_per_step)
    assert max(row.draft_length for row in found.table) <= longest
    assert {one.draft_length for one in (*found.crossovers, *found.speed_ups)} <= {2, longest}
    assert max(one.draft_length for one in found.capacities) <= longest
    assert profile_text(found)


def test_a_single_round_has_a_frontier_without_bounds_on_both_engines() -> None:
    """The plain engine ran beside each of three K: that is still one round."""
    found = found_in(measured(TRUTH, rounds=1, noise=0.02)).frontier

    assert set(Role) == {one.engine for one in found}
    assert {None} == {one.tokens_per_s.low for one in found if one.draft_length == 0}
