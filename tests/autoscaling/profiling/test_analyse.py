"""From a measurement of engines that are known to everything that is said of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from autoscaling.goodput import break_even
from autoscaling.profile import read_profile
from autoscaling.profiling.analyse import analyse, default_load
from autoscaling.profiling.cost_fit import FitError
from autoscaling.profiling.findings import Findings, PoolAnswer, TableRow, Verdict
from autoscaling.profiling.load import Load, Mix
from autoscaling.profiling.measured import Measurement
from autoscaling.profiling.profile_text import profile_text
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role, Tier
from tests.autoscaling.profiling.measurements import Kind, Truth, measured

PLAIN = StepCost(base_s=0.020, per_token_s=0.001, per_context_s=2e-6, per_prefill_s=0.001)
# A draft model in turn, and 3 ms more even at K = 0.
DRAFTS = replace(PLAIN, base_s=0.023, draft_s=0.001, per_draft_s=0.0005, draft_length=4)
KINDS = {
    "chat": Kind((0.35, 0.15, 0.05, 0.02), context=150.0),
    "copy": Kind((0.8, 0.7, 0.6, 0.5), draft_rate=0.8, context=400.0),
}
TRUTH = Truth(PLAIN, DRAFTS, KINDS)
OBJECTIVES = {Tier.INTERACTIVE: 0.030, Tier.STANDARD: 0.060}


def found_in(measurement: Measurement, objectives: Mapping[Tier, float] = OBJECTIVES) -> Findings:
    """Without a prior and a load."""
    return analyse(measurement, None, objectives, None)


def test_everything_is_found_of_a_whole_measurement() -> None:
    """Steps that are 2 % off: the costs, the gains, the tax and where drafting pays are the true ones."""
    found = found_in(measured(TRUTH, noise=0.02))

    assert set(Role) == set(found.fits)
    assert all(one.accepted for one in found.fits.values())
    assert ["chat", "copy", "mean"] == list(found.survivals)
    assert pytest.approx(1.57, rel=0.03) == found.survivals["chat"].tokens_per_step[4].value
    assert pytest.approx(1 + 0.8 * 2.6, rel=0.03) == found.survivals["copy"].tokens_per_step[4].value
    assert 2 * 5 * 2 == len(found.speed_ups)
    assert all(
        one.modelled is not None and one.modelled == pytest.approx(one.measured.value, rel=0.1)
        for one in found.speed_ups
    )
    assert 3 * 2 == len(found.crossovers)
    assert [1, 2, 4, 8, 16] == [size for size, _ in found.k0_tax]
    # 20 + 1 + context of 275 on average, and 3 more.
    assert pytest.approx(24.55 / 21.55, rel=0.05) == found.k0_tax[0][1].value
    assert pytest.approx(275.0) == found.context_tokens
    assert pytest.approx(0.1) == found.kv_loss
    assert found.draft_s is not None
    assert 0.001 < found.draft_s < 0.005
    assert [0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2] == [one.tpot_s for one in found.capacities]
    assert 2 * 5 * (3 + 1) == len(found.frontier)
    assert [(1, 32)] == [(found.table[0].first, found.table[-1].last)]
    assert ["spec.pools.speculative.limits.softInflight", "spec.pools.plain.limits.softInflight"] == [
        one.path for one in found.policy
    ]
    assert 10 == len(found.pools)


def test_kinds_of_prompts_differ_in_where_drafting_pays() -> None:
    """Chat up to some batch, and copying at all that are asked about, at the largest K."""
    found = found_in(measured(TRUTH))
    at = {one.workload: one.verdict for one in found.crossovers if one.draft_length == 4}

    assert (Verdict.PAYS_BELOW, Verdict.PAYS_ALWAYS) == (at["chat"], at["copy"])


def test_break_even_is_that_of_the_formula_at_the_largest_length() -> None:
    """(t(K) / t0 - 1) / drafted of each kind, at each batch that it was measured at."""
    found = found_in(measured(TRUTH))

    assert [(kind, batch) for kind in ("chat", "copy") for batch in (1, 2, 4, 8, 16)] == [
        (one.workload, one.sequences) for one in found.break_evens
    ]
    for one in found.break_evens:
        cost = replace(
            found.fits[Role.SPECULATIVE].cost, draft_length=4, drafted=found.survivals[one.workload].drafted
        )
        assert pytest.approx(one.theta) == break_even(
            cost, found.fits[Role.PLAIN].cost, one.sequences, one.context_tokens, 4
        )


def test_without_k_0_nothing_is_concluded_on_an_engine_that_drafts_nothing() -> None:
    """No row of the K table, no capacity and no part of a loss rests on K = 0, and it is told."""
    made = measured(TRUTH, lengths=(0, 2, 4))
    drafting = tuple(run for run in made.runs if run.cell.engine is Role.PLAIN or run.cell.draft_length > 0)
    found, whole = found_in(replace(made, runs=drafting)), found_in(made)

    assert 0 not in {row.draft_length for row in found.table}
    assert 0 not in {one.draft_length for one in found.capacities if one.speculative_sequences}
    assert {None} == {one.rest for one in found.speed_ups}
    assert None not in {one.rest for one in whole.speed_ups}
    assert any(note.startswith("K = 0 was not measured") for note in found.notes)
    assert not any(note.startswith("K = 0 was not measured") for note in whole.notes)


def test_a_prior_is_told() -> None:
    """A reader has to know where the fits began."""
    made = measured(TRUTH)
    prior = {role: fit.cost for role, fit in found_in(made).fits.items()}

    assert any("former profile" in note for note in analyse(made, prior, OBJECTIVES, None).notes)
    assert not any("former profile" in note for note in found_in(made).notes)


def test_a_prior_of_a_thousand_times_larger_model_hardly_moves_the_prices() -> None:
    """No price is more than the whole step."""
    made = measured(TRUTH, noise=0.01)
    own = found_in(made)
    far = {
        role: replace(fit.cost, base_s=1000 * fit.cost.base_s, per_token_s=1000 * fit.cost.per_token_s)
        for role, fit in own.fits.items()
    }
    found = analyse(made, far, OBJECTIVES, None)

    for role in Role:
        assert found.fits[role].accepted
        assert pytest.approx(own.fits[role].cost.base_s, rel=0.1) == found.fits[role].cost.base_s


def test_an_objective_that_no_configuration_keeps_has_no_answer() -> None:
    """Steps take 20 ms and more: 20 ms per token are kept by drafts alone, and 1 ms by nothing."""
    found = {one.tpot_s: one for one in found_in(measured(TRUTH)).pools}
    slow = measured(replace(TRUTH, plain=replace(PLAIN, base_s=0.5), speculative=replace(DRAFTS, base_s=0.5)))

    assert found[0.2].kept
    assert {False} == {one.kept for one in found_in(slow).pools if one.tpot_s <= 0.1}
    assert [] == [
        one for one in read_profile(profile_text(found_in(slow)), "p").two_pools if one.tpot_s <= 0.1
    ]


def test_capacity_is_within_the_objective_the_engine_and_its_cache() -> None:
    """60 ms plain: 20 + 1.55 B is 25; at 200 ms the engine's 32, and with 2,750 tokens of cache 10."""
    at = {one.tpot_s: one for one in found_in(measured(TRUTH)).capacities}
    assert (0, 25, 32) == (at[0.02].plain_sequences, at[0.06].plain_sequences, at[0.2].plain_sequences)
    assert pytest.approx(25 / 0.05875, rel=0.01) == at[0.06].plain_tokens_per_s
    assert at[0.03].speculative_sequences > at[0.03].plain_sequences
    assert at[0.03].draft_length > 0
    assert not at[0.2].limited_by_kv

    small = {one.tpot_s: one for one in found_in(measured(TRUTH, kv_tokens=(2_760, 2_760))).capacities}
    assert (10, 10, True) == (
        small[0.2].plain_sequences,
        small[0.2].speculative_sequences,
        small[0.2].limited_by_kv,
    )


def test_the_profile_takes_what_was_found() -> None:
    """What a running service reads of it are the fitted costs and the measured gains."""
    found = found_in(measured(TRUTH, noise=0.02))
    profile = read_profile(profile_text(found), "profile.json")

    assert found.fits[Role.PLAIN].cost == profile.costs[Role.PLAIN]
    kept = [one.tpot_s for one in found.pools if one.kept]
    assert 0.02 not in kept  # by no configuration
    assert kept == [one.tpot_s for one in profile.two_pools]


def test_the_load_decides_about_the_pools() -> None:
    """Copying to be read and chat in bulk, 12 ms more at K = 0: two pools; without the bulk one is enough."""
    made = measured(replace(TRUTH, speculative=replace(DRAFTS, base_s=0.032)))
    load = Load(1.0, 64, 300, 24, 96, 100)
    mixed = analyse(made, None, {}, load, Mix(interactive=("copy",), batch=("chat",)))
    alone = analyse(
        made, None, {}, replace(load, batch_streams=0), Mix(interactive=("copy",), batch=("chat",))
    )

    assert PoolAnswer.TWO_POOLS in {one.answer for one in mixed.pools}
    assert PoolAnswer.TWO_POOLS not in {one.answer for one in alone.pools}
    assert mixed.pools != analyse(made, None, {}, load, Mix(interactive=("chat",), batch=("chat",))).pools


def test_several_kinds_together_are_what_they_gain_together() -> None:
    """Both kinds are all kinds."""
    made = measured(TRUTH, noise=0.02)

    assert (
        found_in(made).pools
        == analyse(
            made, None, OBJECTIVES, None, Mix(interactive=("chat", "copy"), batch=("copy", "chat"))
        ).pools
    )


def test_the_load_that_nobody_stated() -> None:
    """Two answers of 64 tokens open at 22 + 1.1 ms per token; as many batch streams as were measured."""
    load = default_load(measured(TRUTH), PLAIN, context=275.0)

    assert pytest.approx(2 / (64 * 0.0231)) == load.interactive_per_s
    assert (16, 64, 243.0) == (load.batch_streams, load.batch_answer_tokens, load.batch_prompt_tokens)
    assert 275.0 == load.interactive_context == load.batch_context


def test_a_refused_fit_predicts_nothing() -> None:
    """Steps of a cell differ by a factor: what was measured stands, and nothing that a model would say."""
    found = found_in(measured(TRUTH, noise=0.8))

    assert not all(one.accepted for one in found.fits.values())
    assert ((), ()) == (found.pools, tuple(v for v in found.policy if "plain" in v.path))
    assert found.speed_ups
    assert found.table
    assert () == found.recommended_table
    assert ((), (), ()) == (found.crossovers, found.break_evens, found.capacities)
    assert found.draft_s is None
    assert {None} == {one.modelled for one in found.speed_ups} | {one.rest for one in found.speed_ups}
    assert not found.relied


def test_a_fit_that_nothing_judged_is_said() -> None:
    """No cell held out: accepted, and a note says that no unseen batch has judged it."""
    words = "is not checked on batches that it has not seen: none were held out of the fit."
    whole = measured(TRUTH, noise=0.02)
    without = replace(
        whole, runs=tuple(replace(run, cell=replace(run.cell, hold_out=False)) for run in whole.runs)
    )

    assert not [note for note in found_in(whole).notes if words in note]
    found = found_in(without)
    assert [True, True] == [fit.accepted for fit in found.fits.values()]
    assert 2 == len([note for note in found.notes if words in note])
    assert found.table == found.recommended_table


def test_a_kind_of_prompts_that_was_not_measured_is_refused() -> None:
    """By name, with those that were measured."""
    with pytest.raises(ValueError, match="no prompts of kind 'poems' were measured: name chat, copy or mean"):
        analyse(measured(TRUTH), None, OBJECTIVES, None, Mix(batch=("chat", "poems")))


def test_notes_say_what_a_reader_has_to_know() -> None:
    """That acceptance was prescribed, and that other processes disturbed it."""
    made = measured(TRUTH, synthetic=True)
    found = found_in(made).notes
    busy = replace(made, machine={"cores": "2"}, others_cores=(0.05, 0.9, 1.26))

    assert any(note.startswith("The acceptance was prescribed (synthetic)") for note in found)
    assert not any("synthetic" in note for note in found_in(measured(TRUTH)).notes)
    assert not any("Other processes" in note for note in found)
    assert (
        "Other processes used up to 1.3 of the 2 cores, in 2 of 3 rounds: stop them and measure again, since "
        "times are off by that."
    ) in found_in(busy).notes


def test_an_engine_that_did_not_draft_has_no_drafting_to_tell_of() -> None:
    """K = 0 alone: a table without drafts, no break-even and no crossover."""
    found = found_in(measured(TRUTH, lengths=(0,)))

    assert (TableRow(1, 32, 0),) == found.table
    assert ((), (), (), None) == (found.speed_ups, found.crossovers, found.break_evens, found.draft_s)
    assert {0} == {one.draft_length for one in found.capacities}


def test_what_is_not_known_of_the_engines_is_left_out() -> None:
    """Neither capacity nor KV cache; the table ends at the largest batch that was measured."""
    found = found_in(replace(measured(TRUTH), engines=()))

    assert ((), None) == (found.capacities, found.kv_loss)
    assert 16 == found.table[-1].last


def test_one_engine_alone_is_refused() -> None:
    """There is nothing to compare with."""
    made = measured(TRUTH)
    plain = replace(made, runs=tuple(run for run in made.runs if run.cell.engine is Role.PLAIN))

    with pytest.raises(FitError, match="no step of the speculative engine"):
        found_in(plain)


def test_the_prior_is_where_the_fits_begin() -> None:
    """Both kinds at one context cannot tell its price from that of a token: the prior's stands."""
    truth = Truth(PLAIN, DRAFTS, {name: replace(kind, context=200.0) for name, kind in KINDS.items()})
    prior = {Role.PLAIN: PLAIN, Role.SPECULATIVE: DRAFTS}
    made = measured(truth, noise=0.02)

    with_prior = analyse(made, prior, OBJECTIVES, None)
    assert pytest.approx(2e-6, rel=0.5) == with_prior.fits[Role.PLAIN].cost.per_context_s
    assert 0.0 == analyse(made, None, OBJECTIVES, None).fits[Role.PLAIN].cost.per_context_s
