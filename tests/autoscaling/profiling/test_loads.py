"""What pools are judged for, and that a service takes from a profile what the report says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoscaling.profile import read_profile
from autoscaling.profiling.analyse import analyse, other_loads
from autoscaling.profiling.findings import Findings, PoolAnswer, PoolPrediction, PoolsAt
from autoscaling.profiling.load import Load, Mix
from autoscaling.profiling.profile_text import profile_text
from autoscaling.rules_of_policy import measured_limit
from autoscaling.types import Role, Tier
from tests.autoscaling.profiling.measurements import measured
from tests.autoscaling.profiling.test_analyse import OBJECTIVES, TRUTH

LOAD = Load(1.0, 64.0, 100.0, 16, 64.0, 100.0)


@pytest.fixture(scope="module")
def found() -> Findings:
    return analyse(measured(TRUTH, noise=0.02), None, OBJECTIVES, None)


@pytest.mark.parametrize("tpot_s", [0.018, 0.020, 0.025])
def test_a_service_takes_the_limit_that_is_recommended(tpot_s: float) -> None:
    """With one K at every batch both count the same tokens and the same drafts of a step."""
    made = replace(
        measured(TRUTH, noise=0.02, lengths=(0, 4)),
        engines=tuple(replace(one, max_num_seqs=200) for one in measured(TRUTH).engines),
    )
    found = analyse(made, None, {Tier.INTERACTIVE: tpot_s}, None)
    limits = {one.path: one.value for one in found.policy}
    limit = limits["spec.pools.speculative.limits.softInflight"]
    at_4 = max(row.last for row in found.table if row.draft_length == 4)

    assert isinstance(limit, int)
    assert limit <= at_4
    assert limit == measured_limit(Role.SPECULATIVE, tpot_s, read_profile(profile_text(found), "p"))


def test_other_numbers_of_batch_requests_are_judged_too() -> None:
    """Half, twice and four times as many; none twice, and not none at all."""
    assert [8, 32, 64] == [one.batch_streams for one in other_loads(LOAD)]
    assert [2, 4] == [one.batch_streams for one in other_loads(replace(LOAD, batch_streams=1))]
    assert () == other_loads(replace(LOAD, batch_streams=0))


def test_the_load_follows_from_what_is_said_of_it(found: Findings) -> None:
    """Without a word as many batch requests as the largest batch; every load by its number of them."""
    said = analyse(
        measured(TRUTH, noise=0.02), None, OBJECTIVES, None, Mix(interactive_at_once=1.0, batch_at_once=5)
    )

    assert found.load is not None
    assert said.load is not None
    assert [16, 5] == [found.load.batch_streams, said.load.batch_streams]
    assert [8, 16, 32, 64] == [one.load.batch_streams for one in found.loads]
    assert said.load.interactive_per_s < found.load.interactive_per_s


def test_one_pool_is_enough_for_the_profile_only_where_it_is_at_every_load(found: Findings) -> None:
    """Two pools sell more with twice the batch work at 50 ms: a service does not say that one is enough."""

    def at(answer: PoolAnswer, margin: float) -> tuple[PoolPrediction, ...]:
        return (PoolPrediction(0.05, {}, answer, margin), PoolPrediction(0.1, {}, PoolAnswer.ONE_PLAIN, 1.2))

    whole = replace(
        found,
        pools=at(PoolAnswer.ONE_PLAIN, 1.0),
        other_loads=(
            PoolsAt(LOAD, at(PoolAnswer.TWO_POOLS, 1.06)),
            PoolsAt(LOAD, at(PoolAnswer.TWO_POOLS, 1.08)),
        ),
    )
    rows = read_profile(profile_text(whole), "p").two_pools

    assert [(0.05, "two_pools", 1.08), (0.1, "one_plain_pool", 1.2)] == [
        (row.tpot_s, row.answer, row.margin) for row in rows
    ]
