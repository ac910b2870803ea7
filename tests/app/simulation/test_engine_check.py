"""The simulated engine held against measured cells that its profile has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from app.simulation.engine_cell import Pace
from app.simulation.engine_check import Checked, compare, fitted, settled, spreads
from autoscaling.profile import MEAN
from autoscaling.profiling.measured import Cell, CellRun, Drafting, Measurement, Steps
from autoscaling.types import Role
from tests.app.bench.findings_sample import measurement

ANSWERS = 256  # simulated: enough for the tolerances here
HELD_OUT = (2, 8)
CELL = Cell(Role.SPECULATIVE, 4, 2, "chat")


def held_out(cell: Cell) -> bool:
    """Two of the five batches."""
    return cell.sequences in HELD_OUT


def changed(found: Measurement, cells: Callable[[Cell], bool], factor: float) -> Measurement:
    """The measurement with the steps of some cells so many times as long."""
    runs = []
    for run in found.runs:
        assert run.steps is not None
        steps = replace(run.steps, step_s=run.steps.step_s * (factor if cells(run.cell) else 1.0))
        runs.append(replace(run, steps=steps))
    return replace(found, runs=tuple(runs))


def run(
    round_: int = 0,
    step_s: float | None = 0.02,
    cell: Cell = CELL,
    tokens: int = 30,
    answers: int = 2,
) -> CellRun:
    """A run of 20 steps of its sequences that brought so many tokens."""
    steps = None if step_s is None else Steps(20, step_s, 0.0, 3.0, 200.0)
    drafting = Drafting(20, tokens, 10, 40, tokens - 20, (10, 5), (5, 2))
    return CellRun(cell, round_, steps, drafting, None, step_s, None, answers, 0)


def test_cells_that_the_fit_has_not_seen_come_out_as_measured() -> None:
    """Steps that follow the cost model within 2 %: each of 16 cells within 6 %, at every K and kind."""
    found = compare(measurement(), held_out, answers=ANSWERS)

    expected = {
        Cell(role, length, sequences, kind, hold_out=True)
        for kind in ("chat", "copy")
        for sequences in HELD_OUT
        for role, length in (
            (Role.PLAIN, 0),
            (Role.SPECULATIVE, 0),
            (Role.SPECULATIVE, 2),
            (Role.SPECULATIVE, 4),
        )
    }
    assert expected == {one.cell for one in found}
    assert all(abs(one.error) < 0.06 for one in found)
    assert all(one.tpot_error is not None and abs(one.tpot_error) < 0.15 for one in found)


def test_a_draft_length_that_was_not_seen_is_between_its_neighbours() -> None:
    """K = 2 held out of 0, 2 and 4: survival says how far its drafts get."""
    found = compare(measurement(), lambda cell: cell.draft_length == 2, answers=ANSWERS)

    assert {2} == {one.cell.draft_length for one in found}
    assert 10 == len(found)
    assert all(abs(one.error) < 0.06 for one in found)


def test_held_out_cells_are_not_in_the_fit() -> None:
    """Whatever they took, the simulated engines are the same."""
    assert fitted(measurement(), held_out) == fitted(changed(measurement(), held_out, 3.0), held_out)


def test_what_the_engines_are_off_is_the_error() -> None:
    """Held-out steps that took a quarter longer: the simulated tokens per second are a quarter too many."""
    right = compare(measurement(), held_out, answers=ANSWERS)
    slow = compare(changed(measurement(), held_out, 1.25), held_out, answers=ANSWERS)

    assert [pytest.approx(1.25 * (1 + one.error) - 1) for one in right] == [one.error for one in slow]


def test_the_simulated_engines_are_those_of_the_measurement() -> None:
    """Their memory, their prices, the tokens per step of their kinds at each K."""
    found = fitted(measurement(), held_out)

    assert {Role.SPECULATIVE: 23000, Role.PLAIN: 24000} == found.kv_tokens
    assert 16 == found.max_num_seqs
    assert pytest.approx(0.030, rel=0.05) == found.cost_of(Role.PLAIN).base_s
    assert {"chat", "copy", MEAN} == set(found.acceptance)
    # .78 x (.38 + .28) and .78 x (.38 + .28 + .20 + .17)
    assert pytest.approx(1.515, abs=0.005) == found.acceptance["copy"].tokens_per_step(2)
    assert pytest.approx(1.803, abs=0.005) == found.acceptance["copy"].tokens_per_step(4)
    assert pytest.approx(0.78, abs=0.005) == found.acceptance["copy"].draft_rate


def test_a_round_that_was_disturbed_does_not_count() -> None:
    """Steps of 20, 21 and 60 ms: 21; of four rounds the two in the middle; tokens are those of all."""
    three = [run(0, 0.020, tokens=30), run(1, 0.060, tokens=36), run(2, 0.021, tokens=24)]
    found = settled(replace(measurement(), runs=tuple(three))).runs
    more = settled(replace(measurement(), runs=(*three, run(3, 0.025)))).runs

    assert 1 == len(found) == len(more)
    assert found[0].steps is not None
    assert more[0].steps is not None
    assert (pytest.approx(0.021), pytest.approx(0.021)) == (found[0].steps.step_s, found[0].tpot_s)
    assert pytest.approx(0.023) == more[0].steps.step_s
    assert Drafting(60, 90, 30, 120, 30, (30, 15), (15, 6)) == found[0].drafting
    # 2 sequences x 1.5 tokens
    assert pytest.approx(3 / 0.021) == found[0].tokens_per_s
    assert (6, 0) == (found[0].answers, found[0].round)


def test_runs_of_one_cell_in_one_round_count_as_one() -> None:
    """Twice 20 and 40 ms in one round, 31 ms in two others: 31, and not 20 or 40."""
    runs = (run(0, 0.020), run(0, 0.040), run(1, 0.031), run(2, 0.031), run(2, 0.031))
    (found,) = settled(replace(measurement(), runs=runs)).runs

    assert found.steps is not None
    assert pytest.approx(0.031) == found.steps.step_s


def test_a_cell_without_a_full_step_is_left_out() -> None:
    """In no round; where one of them had some, that one counts."""
    other = Cell(Role.SPECULATIVE, 2, 2, "chat")
    runs = (run(0, None), run(0, None, other), run(1, 0.02, other))
    found = settled(replace(measurement(), runs=runs)).runs

    assert [other] == [one.cell for one in found]
    assert 40 == found[0].drafting.request_steps


def test_answers_differ_by_what_the_smallest_runs_say() -> None:
    """Tokens per step of 1.5, 2.0 and 2.5 over two answers each: 0.5 x the root of 2; K = 2 does not say."""
    short = Cell(Role.SPECULATIVE, 2, 2, "chat")
    one = Cell(Role.SPECULATIVE, 4, 2, "copy")
    runs = [
        *(run(tokens=tokens) for tokens in (30, 40, 50)),
        *(run(tokens=tokens, answers=8) for tokens in (30, 90)),
        *(run(cell=short, tokens=tokens) for tokens in (20, 60)),
        run(cell=one),
    ]

    assert {"chat": pytest.approx(0.5 * 2**0.5)} == spreads(runs)


def test_errors_are_shares_of_what_was_measured() -> None:
    """Above 0 where the simulated engine has more tokens per second; unknown without a time per token."""
    cell = Cell(Role.PLAIN, 0, 1, "chat")
    pace = Pace(100.0, 0.01, 1.0, 1.0, 0.010)
    found = Checked(cell, pace, replace(pace, tokens_per_s=110.0, tpot_s=0.008))

    assert pytest.approx(0.1) == found.error
    assert pytest.approx(-0.2) == found.tpot_error
    assert Checked(cell, replace(pace, tpot_s=None), pace).tpot_error is None
