"""What `benchmarks.engine_check` measures and holds out, and what it writes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from app.bench.engine_process import EngineProcess
from app.bench.measure import SINGLE_ANSWERS
from app.bench.plan import Pair
from app.bench.progress import Showing
from app.bench.prompts import Prompt, built_in, cells_of
from app.simulation.engine_cell import Pace
from app.simulation.engine_check import Checked
from autoscaling.profiling.measured import Cell, Measurement
from autoscaling.types import Role
from benchmarks.engine_check import bench, write
from benchmarks.engine_check_plan import FULL, PROMPTS, QUICK, Plan, calls, held_out, nearest
from benchmarks.engine_check_report import figures, rows
from benchmarks.engine_check_run import missing, pools, repeated, rounds
from benchmarks.errors import BenchError
from deployments.config import SimulationSettings
from deployments.local_config import default_settings
from tests.app.bench.findings_sample import measurement

QUIET = Console(quiet=True)
TINY = Plan(("chat-32",), (1, 2), (4,), rounds=2, answer_tokens=8)


def cells(plan: Plan) -> list[Cell]:
    """Every cell of both engines."""
    drafts = [
        Cell(Role.SPECULATIVE, length, size, kind)
        for kind in plan.kinds
        for length in plan.lengths
        for size in plan.batches
    ]
    return drafts + [Cell(Role.PLAIN, 0, size, kind) for kind in plan.kinds for size in plan.batches]


def checked(measured: float, simulated: float, tpot_s: float | None = None) -> Checked:
    """A cell with so many tokens per second."""
    pace = Pace(measured, 0.01, 1.0, 1.0, tpot_s)
    there = replace(pace, tokens_per_s=simulated, tpot_s=0.011)
    return Checked(Cell(Role.PLAIN, 0, 1, "chat-32"), pace, there)


def found_by(plan: Plan, rounds_: int) -> Measurement:
    """A measurement with the cells of a plan in so many rounds."""
    sample = measurement()
    one = sample.runs[0]
    return replace(
        sample,
        runs=tuple(
            replace(one, cell=cell, round=round_) for round_ in range(rounds_) for cell in cells(plan)
        ),
    )


@pytest.mark.parametrize("plan", [FULL, QUICK])
def test_every_cell_answers_the_same_prompts(plan: Plan) -> None:
    """Each of the eight once in a round, and twice in a batch of 16."""
    kind = plan.kinds[0]
    chosen = [replace(prompt, workload=kind) for prompt in built_in(["chat"])[:PROMPTS]]
    prompts = repeated(kind, chosen, max(plan.batches))
    seen: dict[Pair, Counter[str]] = {}
    for call in calls(plan, 0):
        size = call.pair.sequences
        count = size * (SINGLE_ANSWERS if size == 1 else 1)
        for prompt in cells_of(prompts, kind, count, call.part * size):
            seen.setdefault(call.pair, Counter())[str(prompt.body)] += 1

    texts = {str(prompt.body) for prompt in chosen}
    assert len(plan.kinds) * len(plan.lengths) * len(plan.batches) == len(seen)
    for pair, counted in seen.items():
        assert dict.fromkeys(texts, 2 if pair.sequences == 16 else 1) == dict(counted)


def test_each_round_has_an_order_of_its_own() -> None:
    """The same calls in another order, and the same order in another run."""
    first, second = list(calls(FULL, 0)), list(calls(FULL, 1))

    assert first != second
    assert Counter(first) == Counter(second)
    assert first == list(calls(FULL, 0))


def test_what_is_held_out_is_known_in_other_combinations() -> None:
    """Each batch, K and kind of prompts is fitted and held out, and each pair of batch and K in some kind."""
    held, fitted = ([cell for cell in cells(FULL) if held_out(cell) is out] for out in (True, False))

    for one in (held, fitted):
        assert set(FULL.batches) == {cell.sequences for cell in one}
        assert set(FULL.lengths) == {cell.draft_length for cell in one}
        assert set(FULL.kinds) == {cell.workload for cell in one}
    drafts = [{(cell.sequences, cell.draft_length) for cell in one} for one in (held, fitted)]
    assert drafts[0] == drafts[1]
    assert (37, 38) == (len(held), len(fitted))


def test_the_prompts_nearest_to_a_length_are_taken() -> None:
    """As many as a round needs, in their order."""
    counted = [(tokens, Prompt(str(tokens), "copy", {}, "long")) for tokens in range(600, 400, -10)]

    assert [f"{tokens}" for tokens in range(550, 470, -10)] == [prompt.id for prompt in nearest(counted, 512)]


def test_engines_differ_only_by_their_drafts() -> None:
    """One core and as much memory each."""
    found = pools()
    plain = found[Role.PLAIN].engine

    assert plain == found[Role.SPECULATIVE].engine.model_copy(update={"speculative_config": None})
    assert {1} == {pool.cores_per_replica for pool in found.values()}
    assert 2 << 30 == plain.kv_cache_memory_bytes


def test_whole_rounds_are_not_measured_again() -> None:
    """Of three rounds one is there; of a measurement of another plan nothing is taken."""
    assert [0, 1, 2] == missing(FULL, None)
    assert [1, 2] == missing(FULL, found_by(FULL, 1))
    assert [] == missing(QUICK, found_by(QUICK, 1))
    with pytest.raises(BenchError, match="round 1 of what was kept is of another plan"):
        missing(FULL, found_by(QUICK, 1))


def test_nothing_is_started_where_nothing_is_missing(tmp_path: Path) -> None:
    """A folder that is no measurement is refused before that."""
    with pytest.raises(BenchError, match=r"measurement\.json: cannot be read"):
        bench(FULL, tmp_path, tmp_path, QUIET, resumed=True)


@pytest.mark.long
async def test_a_round_is_kept_with_its_number(tmp_path: Path) -> None:
    """Two simulated engines: four calls of each cell, two answers each, handed over once they are whole."""
    settings = default_settings(engine="simulated")
    prompts = repeated("chat-32", built_in(["chat"])[:PROMPTS], 2)
    engines: dict[Role, EngineProcess] = {}
    kept: list[Measurement] = []
    try:
        for role, pool in ((Role.SPECULATIVE, settings.speculative), (Role.PLAIN, settings.plain)):
            quick = SimulationSettings(step_base_s=0.002, step_per_token_s=0.00001)
            fast = pool.model_copy(update={"engine": pool.engine.model_copy(update={"simulation": quick})})
            log = tmp_path / f"{role}.log"
            engines[role] = await EngineProcess.start(fast, (), lambda _text: None, log)
        found = await rounds(TINY, engines, prompts, None, kept.append, Showing(QUIET), [1])
    finally:
        for engine in engines.values():
            await engine.stop()

    assert [found] == kept
    assert {1} == {run.round for run in found.runs}
    assert dict.fromkeys(cells(TINY), 4) == Counter(run.cell for run in found.runs)
    assert {(2, 0)} == {(run.answers, run.failed) for run in found.runs}
    assert {*Role} == {one.role for one in found.engines}
    assert [0] == missing(TINY, found)


def test_figures_are_of_the_size_of_errors() -> None:
    """Too fast by 10 % and too slow by 20 %; a time per token that is not known is in no mean."""
    found = figures([checked(100.0, 110.0, 0.010), checked(50.0, 40.0)])

    assert {
        "engine_check_worst_error": pytest.approx(0.2),
        "engine_check_mean_error": pytest.approx(0.15),
        "engine_check_cells": 2.0,
        "engine_check_mean_tpot_error": pytest.approx(0.1),
    } == found


def test_a_row_has_both_sides_of_a_cell() -> None:
    """Tokens per second with their error, steps, tokens per step, and the time per token."""
    expected = ["plain", "chat-32", "0", "1", "100.0", "110.0", "+10.0%", "10.0", "10.0"]
    assert [[*expected, "1.00", "1.00", "-", "11.0"]] == rows([checked(100.0, 110.0)])


@pytest.mark.long
@pytest.mark.parametrize(("factor", "expected"), [(1.0, 0), (1.4, 1)])
def test_the_exit_status_says_whether_the_target_holds(tmp_path: Path, factor: float, expected: int) -> None:
    """Steps as the cost model has them; then one held-out cell takes so many times as long."""
    sample = measurement()
    cell = Cell(Role.PLAIN, 0, 8, "chat-32", hold_out=True)
    kinds = {"chat": "chat-32", "copy": "copy-512"}
    runs = []
    for one in sample.runs:
        run = replace(one, cell=replace(one.cell, workload=kinds[one.cell.workload]))
        assert run.steps is not None
        steps = replace(run.steps, step_s=run.steps.step_s * (factor if run.cell == cell else 1.0))
        runs.append(replace(run, steps=steps))
    found = replace(sample, runs=tuple(runs))

    assert expected == write(replace(FULL, answer_tokens=40), found, tmp_path, QUIET)
    assert ["engine-check.svg", "engine.json", "engine.md"] == sorted(one.name for one in tmp_path.iterdir())
    values = json.loads((tmp_path / "engine.json").read_text())["figures"]
    # Half of 5 batches, 2 kinds of prompts and 4 rows: the plain engine, and three K.
    assert 20 == values["engine_check_cells"]
    page = (tmp_path / "engine.md").read_text()
    assert "(engine-check.svg)" in page
    assert "1 of 5 rounds: no time was left" in page
