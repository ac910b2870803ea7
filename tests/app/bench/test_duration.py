"""How long a measurement is expected to take."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.bench.asked import Asked
from app.bench.duration import about, prefills_s, round_s, rounds_s, run_s
from app.bench.plan import QUICK, full
from app.bench.prompts import for_workloads
from app.cli.bench_options import FULL_WORKLOADS
from deployments.local_config import default_settings

TINY = replace(QUICK, batches=(1, 4), hold_out=(), workloads=("chat",), long_context=None, lengths=(0, 4))


def asked(plan, *, live=True, **engine) -> Asked:
    pools = default_settings(engine="vllm")
    speculative, plain = (
        one.model_copy(update={"engine": one.engine.model_copy(update=engine)})
        for one in (pools.speculative, pools.plain)
    )
    return Asked(speculative, plain, plan, for_workloads(plan.all_workloads), Path("x"), live)


def test_a_round_is_its_cells_and_its_documents():
    """Two answers one after the other at a batch of one: 3.64 s, and 2.48 s of four; each with two K."""
    assert pytest.approx(2 * (3.64 + 2.48) + 0.002 * 2140) == round_s(TINY, 0, TINY.lengths)
    assert pytest.approx(0.002 * 2140) == prefills_s(TINY)


def test_rounds_are_counted():
    """All of them, or the first ones: those after the second have no held-out batches."""
    rounds = [round_s(QUICK, number, QUICK.lengths) for number in range(4)]

    assert pytest.approx(sum(rounds)) == rounds_s(QUICK, QUICK.lengths)
    assert pytest.approx(sum(rounds[:2])) == rounds_s(QUICK, QUICK.lengths, 2)
    assert rounds[0] > rounds[2]


def test_a_quick_measurement_takes_as_long_as_it_says():
    """Eight minutes were measured on a quiet machine with two cores, and 10 are promised."""
    assert 440 < run_s(asked(QUICK)) < 600


def test_what_the_kv_cache_does_not_hold_takes_no_time():
    """With 16 times as much of it the large batches are measured too."""
    plan = full(4, FULL_WORKLOADS)

    assert 4 * run_s(asked(plan)) < run_s(asked(plan, kv_cache_memory_bytes=16 * 256 << 20))


def test_an_engine_for_each_k_is_another_start():
    """Three starts and a move, against one and a move; K = 0 is not measured then."""
    plan = replace(TINY, lengths=(0, 1, 2, 4))
    once, each = run_s(asked(plan)), run_s(asked(plan, live=False))

    assert 2 * 45.0 < each - once + 4 * (3.64 + 2.48)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (70.0, "about 10 minutes"),
        (1900.0, "about 40 minutes"),
        (3000.0, "about 1 to 2 hours"),
        (7500.0, "about 2 to 3 hours"),
    ],
)
def test_it_is_told_no_more_exactly_than_it_is_known(seconds, words):
    """Ten minutes, or hours."""
    assert words == about(seconds)
