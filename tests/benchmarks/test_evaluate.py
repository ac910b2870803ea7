"""What `benchmarks.evaluate` simulates: loads, sizes, runs; and that a run goes on where it was."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from app.simulation.built_in_profiles import built_in
from app.simulation.contenders import CONTENDERS
from app.simulation.score import scores
from app.simulation.scores import Moment, MoveMade, Scores, TierScore
from app.simulation.service import simulate
from app.simulation.setup import Setup
from autoscaling.types import Role, Tier
from benchmarks.errors import BenchError
from benchmarks.evaluate_cells import Panel
from benchmarks.evaluate_fleet import timed
from benchmarks.evaluate_load import Load, load_of, published
from benchmarks.evaluate_outcomes import outcome_of
from benchmarks.evaluate_plan import BOUNDS, OURS, RIVAL, SAME_AT_ANY_DELAY, Cell, Model, Traffic
from benchmarks.evaluate_rates import full_per_s, in_time_per_s
from benchmarks.evaluate_records import Begun, FleetRun, Found, Records
from benchmarks.evaluate_run import run, run_all, setup_of
from benchmarks.evaluate_sizes import FULL, QUICK
from tests.benchmarks.evaluate_fake import PLAN, outcome

ENGINES = built_in("h100-8b")
CELL = Cell(Model.EVENT, Traffic.CONVERSATION, "twinpool", 1, 0.05, 30.0)
DATA = Path(__file__).parents[3] / "shared" / "data"


# --- sizes and loads


def test_a_replica_in_time_has_as_many_sequences_as_keep_the_objective() -> None:
    """With prompts of 1,000 and answers of 200 tokens: 36 take 9.90 ms per token, 37 take 10.07."""
    assert 18.2 == pytest.approx(in_time_per_s(ENGINES, "chat", 1000, 200, 0.010), abs=0.05)
    assert in_time_per_s(ENGINES, "chat", 1000, 200, 0.010) < in_time_per_s(ENGINES, "chat", 1000, 200, 0.02)


def test_an_objective_that_nothing_keeps_is_refused() -> None:
    """One sequence alone takes 4.16 ms."""
    with pytest.raises(ValueError, match="give a longer objective"):
        in_time_per_s(ENGINES, "chat", 1000, 200, 0.004)


def test_a_full_replica_is_held_by_its_limit_and_by_memory() -> None:
    """Of 64 and more of 6,600 tokens, 64 fit into its memory."""
    held = full_per_s(ENGINES, "grounded", 6000, 600, 32)

    assert held < full_per_s(ENGINES, "grounded", 6000, 600, 64)
    assert full_per_s(ENGINES, "grounded", 6000, 600, 64) == full_per_s(ENGINES, "grounded", 6000, 600, 256)


@pytest.mark.parametrize("traffic", Traffic)
def test_a_load_is_the_same_for_a_seed_and_has_both_tiers(traffic: Traffic) -> None:
    """Sorted, inside its time, with a sentence for each stream; another seed has other requests."""
    one, again, other = (load_of(traffic, ENGINES, seed, 0.1) for seed in (1, 1, 2))
    times = [arrival.at_s for arrival in one.arrivals]

    assert one == again
    assert one.arrivals != other.arrivals
    assert sorted(times) == times
    assert 0.0 <= times[0] < times[-1] < 6.0
    assert {Tier.INTERACTIVE, Tier.BATCH} == {arrival.tier for arrival in one.arrivals}
    assert {Traffic.MIXED: 4}.get(traffic, 2) == len(one.words)


def test_rates_are_those_that_replicas_can_do() -> None:
    """Batch work for 38.4 plain replicas, whatever the seed: 1.2 times all 32."""
    seconds = 60.0
    expected = 38.4 * full_per_s(ENGINES, "grounded", 6000, 600, 64) * seconds
    arrivals = load_of(Traffic.CONVERSATION, ENGINES, 3, seconds / 60).arrivals
    counted = Counter(one.tier for one in arrivals)

    assert expected == pytest.approx(counted[Tier.BATCH], rel=0.1)
    assert "as much as 38.4 plain replicas can do." in load_of(Traffic.CODE, ENGINES, 1, 0.1).words[1]
    assert (
        "as much as 10 speculative replicas can do in time."
        in load_of(Traffic.CODE, ENGINES, 1, 0.1).words[0]
    )


def test_without_a_file_requests_are_made() -> None:
    """And the sentence says so, also where a folder holds other files."""
    made = load_of(Traffic.CONVERSATION, ENGINES, 1, 0.05, Path(__file__).parent)

    assert "made to fit its published statistics" in made.words[0]


@pytest.mark.long
@pytest.mark.skipif(not DATA.is_dir(), reason="the published traces are not here")
def test_published_files_are_used_where_they_are() -> None:
    """The sentence says so, and rates are the same as of what was made, but for its statistics."""
    read = load_of(Traffic.MIXED, ENGINES, 1, 0.5, DATA)

    assert all("from the published file" in words for words in read.words[:2])
    assert {"code", "chat"} == {one.workload for one in read.arrivals if one.tier is Tier.INTERACTIVE}


# --- the plan


def test_the_full_plan_has_every_contender_five_seeds_and_three_delays() -> None:
    """On three loads."""
    assert set(CONTENDERS) == set(FULL.contenders)
    assert (5, 3, 3, 9) == (len(FULL.seeds), len(FULL.delays_s), len(FULL.traffics), len(FULL.panels))
    assert {OURS, RIVAL, *BOUNDS, *SAME_AT_ANY_DELAY} <= set(CONTENDERS)
    assert set(QUICK.contenders) <= set(CONTENDERS)


def test_a_run_is_needed_once_whatever_needs_it() -> None:
    """A policy that never starts a replica is run at one delay.

    In the fluid model run 15 that the event model has run, and 8 policies over each whole trace.
    """
    cells = FULL.cells()
    pareto = {cell for cell in cells if cell.split is None and cell.model is Model.EVENT}
    at_30 = {cell for cell in pareto if cell.contender in SAME_AT_ANY_DELAY}

    assert len(cells) == len(set(cells))
    assert {30.0} == {cell.delay_s for cell in at_30}
    assert 15 + 8 * 15 == sum(cell.model is Model.FLUID for cell in cells)
    assert {(Traffic.CODE, 1)} == {(cell.traffic, cell.seed) for cell in cells[:18]}


def test_other_delays_are_tried_for_those_that_learn_by_them() -> None:
    """Ours on every load, simple rules on the mixed one, what knows the trace nowhere; all at one delay."""
    code, mixed, whole = (
        {*FULL.names(Panel(traffic, delay_s))}
        for traffic, delay_s in ((Traffic.CODE, 90.0), (Traffic.MIXED, 90.0), (Traffic.CODE, 30.0))
    )

    assert {*CONTENDERS} == whole
    assert {"hindsight"} == whole - mixed
    assert {"threshold", "hpa-like", "dynamo-like"} == mixed - code
    late = [cell.model for cell in FULL.cells() if cell.contender == OURS and cell.delay_s != 30.0]
    assert {Model.EVENT: 5 * 3 * 2, Model.FLUID: 5 * 3 * 2} == Counter(late)


def test_whole_traces_are_for_what_takes_long() -> None:
    """Ours at three delays and without backfill, and four splits, in the fluid model."""
    code = [one for one in FULL.hours() if one.traffic is Traffic.CODE]

    assert [1.0, 30.0, 90.0, 30.0, None, None, None, None] == [one.delay_s for one in code]
    assert {(Model.FLUID, 55.0)} == {(cell.model, cell.minutes) for one in code for cell in one.cells}
    assert ["twinpool"] * 3 == [one.cells[0].name for one in code[:3]]
    assert "twinpool-no-backfill" == code[3].cells[0].name


def test_a_split_that_is_a_contender_is_not_run_twice() -> None:
    """16 of 32 are static-50."""
    assert FULL.policy(Traffic.CODE, "static-50") == FULL.split(Traffic.CODE, 16)
    assert {10} == {cell.split for cell in FULL.split(Traffic.CODE, 10)}


def test_one_thing_at_a_time_is_off() -> None:
    """Of ours and of the strongest rival: two beliefs at two factors, two delays, and backfill of ours."""
    found = FULL.sensitivity()
    off = [
        (cell.acceptance != 1.0) + (cell.cost != 1.0) + (cell.snapshot_delay_s != 1.0) + (not cell.backfill)
        for cell in (one.cells[0] for one in found)
    ]

    assert [0, *[1] * 7, 0, *[1] * 6] == off
    assert {OURS, RIVAL} == {one.contender for one in found}


# --- runs


def loaded() -> Load:
    return load_of(Traffic.CONVERSATION, ENGINES, 1, CELL.minutes)


@pytest.mark.parametrize("name", CONTENDERS)
def test_every_contender_has_a_setup(name: str) -> None:
    """Of 32 replicas in all."""
    made = setup_of(replace(CELL, contender=name), loaded())

    assert isinstance(made, Setup)
    assert 32 == sum(made.sizes.values())
    assert 30.0 == made.delays.start_s


def test_a_cell_says_what_is_off() -> None:
    """Beliefs, snapshots and splits reach the setup; an unknown contender is refused."""
    right = setup_of(CELL, loaded())
    off = setup_of(replace(CELL, acceptance=0.8, cost=1.2, snapshot_delay_s=10.0), loaded())
    closed = setup_of(replace(CELL, backfill=False), loaded())
    split = setup_of(replace(CELL, contender="static-31.25", split=10), loaded())

    assert right.believed.profile is not None
    assert off.believed.profile is not None
    plain = right.believed.profile.costs[Role.PLAIN].base_s
    assert 1.2 * plain == pytest.approx(off.believed.profile.costs[Role.PLAIN].base_s)
    assert off.believed.profile.tokens_per_step["chat"] < right.believed.profile.tokens_per_step["chat"]
    assert (1.0, 10.0) == (right.snapshot_delay_s, off.snapshot_delay_s)
    assert [True, False] == [one.believed.policy.spec.backfill.enabled for one in (right, closed)]
    assert {Role.SPECULATIVE: 10, Role.PLAIN: 22} == split.sizes
    with pytest.raises(BenchError, match="is no contender"):
        setup_of(replace(CELL, contender="best"), loaded())


@pytest.mark.parametrize("model", Model)
def test_a_cell_brings_an_outcome(model: Model) -> None:
    """In both models, the same each time."""
    cell = replace(CELL, model=model)
    one = run(cell, None)

    assert one == run(cell, None)
    assert cell == one.outcome.cell
    assert 0.0 <= one.outcome.misses <= 1.0
    assert 2 == len(one.load_words)


@pytest.mark.long
def test_cells_run_side_by_side_give_what_they_give_alone() -> None:
    """In whatever order."""
    cells = [replace(CELL, seed=seed) for seed in (1, 2)]
    found = {done.outcome.cell: done for done in run_all(cells, None, 2)}

    assert {cell: run(cell, None) for cell in cells} == found


@pytest.mark.long
def test_batch_work_that_would_end_after_the_trace_changes_no_outcome() -> None:
    """A run ends with the last interactive answer; one that goes on to the end of all work tells the same."""
    load, setup = loaded(), setup_of(CELL, loaded())
    whole = scores(simulate(setup, load.arrivals), setup, 3.0)

    assert outcome_of(CELL, whole) == run(CELL, None).outcome


def test_a_fault_of_a_run_ends_all() -> None:
    """With its own words."""
    with pytest.raises(BenchError, match="best is no contender"):
        list(run_all([replace(CELL, contender="best")], None, 1))


def test_a_fleet_is_timed() -> None:
    """A few minutes of 64 replicas."""
    found = timed(64, 0.05)

    assert (64, 0.05) == (found.replicas, found.hours)
    assert 0.0 < found.attainment <= 1.0
    assert found.seconds > 0
    assert found.gib > 0


def test_an_outcome_is_the_scores_in_a_few_numbers() -> None:
    """100 interactive requests, 90 in time and 4 refused; a moment of two with too little room."""
    pools = {Role.SPECULATIVE: 2.0, Role.PLAIN: 6.0}
    none = dict.fromkeys(Role, 0.0)

    def moment(at_s: float, wanted: float) -> Moment:
        demand = {Role.SPECULATIVE: wanted, Role.PLAIN: 0.0}
        return Moment(at_s, pools, none, none, demand, dict.fromkeys(Role, 16.0), {}, {})

    there = MoveMade(0.0, Role.PLAIN, Role.SPECULATIVE, 1, "shortfall", "done", 40.0)
    back = MoveMade(60.0, Role.SPECULATIVE, Role.PLAIN, 1, "shortfall", "moving")
    made = Scores(
        seconds=120.0,
        tiers={
            Tier.INTERACTIVE: TierScore(100, 90, 5, 4, 1, tokens=12_000),
            Tier.BATCH: TierScore(50, 50, 0, 0, 0, tokens=24_000),
        },
        accelerator_hours=2.0,
        switching_hours=0.1,
        moves=(there, back),
        series=(moment(0.0, 17.0), moment(60.0, 16.0)),
        interval_s=60.0,
    )
    found = outcome_of(CELL, made)

    assert (0.9, 0.04, 0.01) == (found.attainment, found.refused, found.failed)
    assert (100.0, 200.0) == (found.interactive_tokens_per_s, found.batch_tokens_per_s)
    assert (2, 1, 60.0) == (found.moves, found.reversals, found.moves_per_h)
    assert (0.05, 0.5, 0.75) == pytest.approx((found.switching_share, found.short_share, found.plain_share))
    with pytest.raises(ValueError, match="no interactive request arrived"):
        outcome_of(CELL, replace(made, tiers={}))


# --- records


def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    """What was kept is read again, a line that was cut is not."""
    path = tmp_path / "evaluate.jsonl"
    records = Records(path, Begun({}))
    records.begin()
    records.load(Traffic.CODE, ("Interactive: code.",))
    records.load(Traffic.CODE, ("Interactive: code.",))
    records.simulated(outcome())
    records.timed(FleetRun(125, 24.0, 5.0, 0.3, 0.9))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"outcome": {"cell"')
    again = Records(path, Begun({}))
    again.resume()

    assert 4 == len(whole.splitlines())
    assert whole == path.read_bytes()
    assert records.found == again.found
    assert [] == again.found.missing([outcome().cell])
    assert [replace(outcome().cell, seed=2)] == again.found.missing([replace(outcome().cell, seed=2)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", "is empty"),
        (b"{}\n", "is no record"),
        (b"no JSON\n", "is no record"),
        (msgspec.json.encode({"begun": Begun({"conversations.csv": "another"})}) + b"\n", "another policy"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, text: bytes, expected: str) -> None:
    """Nothing of it is taken."""
    path = tmp_path / "evaluate.jsonl"
    path.write_bytes(text)

    with pytest.raises(BenchError, match=expected):
        Records(path, Begun({})).resume()


def test_published_traces_are_known_by_what_they_hold(tmp_path: Path) -> None:
    """A run goes on with the same files in another folder, and not with others of the same names."""
    for folder, text in (("one", "a"), ("two", "a"), ("three", "b")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "azure2023_code.csv").write_text(text, encoding="utf-8")
    one, two, three = (published(tmp_path / folder) for folder in ("one", "two", "three"))

    assert ["azure2023_code.csv"] == list(one)
    assert one == two
    assert one != three
    assert {} == published(tmp_path) == published(None)


def test_what_did_not_move_is_the_same_at_every_delay() -> None:
    """Not where it moved, not for what knows the trace, and not before it has run."""
    known = Found()
    late = replace(outcome().cell, delay_s=90.0)
    assert known.unmoved(late) is None
    for one in (outcome(), outcome("threshold", moves=1), outcome("hindsight")):
        known.outcomes[one.cell] = one

    assert outcome(cell=late) == known.unmoved(late)
    assert known.unmoved(replace(late, contender="threshold")) is None
    assert known.unmoved(replace(late, contender="hindsight")) is None


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A run begins anew without --resume."""
    with pytest.raises(BenchError, match="begins anew"):
        Records(tmp_path / "none.jsonl", Begun({})).resume()


def test_a_missing_run_is_named(tmp_path: Path) -> None:
    """Results need all of them."""
    records = Records(tmp_path / "evaluate.jsonl", Begun({}))

    with pytest.raises(BenchError, match=r"1 runs are missing, such as conversation, twinpool"):
        records.found.of([outcome().cell])
    assert PLAN.cells() == records.found.missing(PLAN.cells())
