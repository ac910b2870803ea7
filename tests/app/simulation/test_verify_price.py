"""What a draft token costs for the context before it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.simulation.engine_check import compare, fitted
from app.simulation.verify_price import verify_price, without
from autoscaling.profiling.measured import Cell, Measurement
from autoscaling.types import Role
from tests.app.bench.findings_sample import CONTEXT, PLAIN, measurement

PRICE = 2e-6
LONG = 1500.0  # context of the copying prompts here
ANSWERS = 256


def held_out(cell: Cell) -> bool:
    """Two of the five batches."""
    return cell.sequences in (2, 8)


def long_prompts(price: float) -> Measurement:
    """The sample with long contexts to copy, whose every draft token costs so much for each context token."""
    found = measurement()
    runs = []
    for run in found.runs:
        assert run.steps is not None
        sequences = run.cell.sequences
        context = LONG if run.cell.workload == "copy" else CONTEXT
        drafted = run.steps.tokens - sequences
        more = PLAIN.per_context_s * sequences * (context - CONTEXT) + price * drafted * context
        steps = replace(
            run.steps,
            step_s=run.steps.step_s + more,
            tokens=sequences + drafted,
            context_tokens=sequences * context,
        )
        runs.append(
            replace(run, cell=replace(run.cell, hold_out=False), steps=steps, tokens_per_s=None, tpot_s=None)
        )
    return replace(found, runs=tuple(runs))


@pytest.mark.parametrize(("price", "within"), [(0.0, 2e-7), (PRICE, 3e-7)])
def test_the_price_is_found(price: float, within: float) -> None:
    """From steps that are off by 2 %: none where there is none."""
    assert pytest.approx(price, abs=within) == verify_price(long_prompts(price))


def test_an_engine_that_never_drafts_has_no_such_price() -> None:
    """Of runs at K = 0 nothing can be said, and nothing is taken away from them."""
    found = long_prompts(PRICE)
    idle = replace(found, runs=tuple(run for run in found.runs if run.cell.draft_length == 0))

    assert 0.0 == verify_price(idle)
    assert idle == without(idle, PRICE)


def test_what_the_price_explains_is_taken_from_the_steps() -> None:
    """4 sequences, .78 x 4 draft tokens each, 1,500 tokens of context, 2 us: 37 ms."""
    found = long_prompts(PRICE)
    cell = Cell(Role.SPECULATIVE, 4, 4, "copy")
    before, after = (
        next(run.steps for run in one.runs if run.cell == cell) for one in (found, without(found, PRICE))
    )

    assert before is not None
    assert after is not None
    assert pytest.approx(0.03744) == before.step_s - after.step_s


def test_simulated_engines_have_it() -> None:
    """Held-out cells with long prompts and drafts come out as measured."""
    found = long_prompts(PRICE)
    right = compare(found, held_out, answers=ANSWERS)

    assert pytest.approx(PRICE, abs=3e-7) == fitted(found, held_out).verify_s
    assert all(abs(one.error) < 0.08 for one in right)
