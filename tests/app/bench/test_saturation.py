"""The batch from which a larger one shows nothing new."""

from __future__ import annotations

import pytest

from app.bench.saturation import saturated_at
from autoscaling.profiling.measured import Cell, CellRun, Drafting
from autoscaling.types import Role

NOTHING_DRAFTED = Drafting(0, 0, 0, 0, 0)


def runs(plain: dict[int, float | None], speculative: dict[int, float | None]) -> list[CellRun]:
    """One run of each batch, with its tokens per second."""
    return [
        CellRun(Cell(role, 0, size, "chat", False), 0, None, NOTHING_DRAFTED, rate, None, None, 1, 0)
        for role, rates in ((Role.PLAIN, plain), (Role.SPECULATIVE, speculative))
        for size, rate in rates.items()
    ]


@pytest.mark.parametrize(
    ("plain", "speculative", "found"),
    [
        ({1: 10.0, 4: 30.0, 16: 60.0}, {1: 20.0, 4: 40.0, 16: 41.0}, None),  # the plain engine still gains
        ({1: 10.0, 4: 30.0, 16: 30.5}, {1: 20.0, 4: 40.0, 16: 41.0}, 16),
        ({1: 10.0, 4: 10.2, 16: 30.5}, {1: 20.0, 4: 20.0, 16: 41.0}, 4),
        ({1: 10.0, 4: None}, {1: 20.0, 4: 20.0}, None),  # unknown is no end
        ({1: 10.0}, {1: 10.0}, None),
        ({}, {}, None),
    ],
)
def test_where_no_engine_gains(
    plain: dict[int, float | None], speculative: dict[int, float | None], found: int | None
) -> None:
    """Less than 3 % more on both engines than at the next smaller batch."""
    assert found == saturated_at(runs(plain, speculative))


def test_the_best_of_an_engines_runs_counts() -> None:
    """A round, a draft length or a kind of prompts that gains is a gain."""
    assert 4 == saturated_at(runs({1: 10.0, 4: 10.0}, {1: 10.0, 4: 10.0}))
    more = runs({1: 10.0, 4: 10.0}, {1: 10.0, 4: 10.0}) + runs({4: 11.0}, {})
    assert saturated_at(more) is None
