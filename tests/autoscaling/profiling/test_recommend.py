"""The engine's K table, and the limits of the policy file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.policy_file import read_policy
from autoscaling.profiling.findings import Fit, PolicyValue, TableRow
from autoscaling.profiling.gains import NO_DRAFTS, Gain, cost_at
from autoscaling.profiling.recommend import draft_table, policy_values
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import step_s
from autoscaling.types import Role, Tier

PLAIN = StepCost(base_s=0.020, per_token_s=0.001)
DRAFTS = replace(PLAIN, draft_s=0.001, per_draft_s=0.002, draft_length=4)
GAINS = {0: NO_DRAFTS, 2: Gain(1.8, 2.0), 4: Gain(2.4, 4.0)}
MOST = {Role.SPECULATIVE: 32, Role.PLAIN: 64}
FIRST_FILE = """
apiVersion: twinpool.dev/v1alpha1
kind: CapacityPolicy
metadata: {name: first}
spec:
  budget: {max: 8}
  backfill: {reserve: RESERVE}
  pools:
    speculative: {minReplicas: 1, maxReplicas: 6, limits: {softInflight: SPECULATIVE}}
    plain: {minReplicas: 1, maxReplicas: 7, limits: {softInflight: PLAIN}}
"""

seconds = st.floats(0.0, 0.02, allow_subnormal=False)
costs = st.builds(
    StepCost,
    base_s=st.floats(0.001, 0.05),
    per_token_s=seconds,
    draft_s=seconds,
    draft_length=st.just(8),
    per_draft_s=seconds,
    draft_per_token_s=seconds,
)
gains_of_any = st.dictionaries(st.integers(1, 8), st.floats(0.0, 1.0), min_size=0, max_size=4).map(
    lambda rates: {0: NO_DRAFTS, **{k: Gain(1 + r * k, float(k)) for k, r in rates.items()}}
)


def tokens_per_s(cost: StepCost, gains: Mapping[int, Gain], length: int, sequences: int) -> float:
    """Of the whole batch, at K."""
    gain = gains[length]
    return sequences * gain.tokens / step_s(cost_at(cost, length, gain), sequences, 100)


def length_at(table: tuple[TableRow, ...], sequences: int) -> int:
    """K of the one row that holds this batch."""
    (found,) = (row.draft_length for row in table if row.first <= sequences <= row.last)
    return found


def fits(error: float = 0.01, *, accepted: bool = True) -> dict[Role, Fit]:
    """Of both engines."""
    return {
        Role.PLAIN: Fit(Role.PLAIN, PLAIN, 9, error, None, 0, accepted),
        Role.SPECULATIVE: Fit(Role.SPECULATIVE, DRAFTS, 9, error, None, 0, accepted),
    }


def values(
    objectives: Mapping[Tier, float], found: Mapping[Role, Fit] | None = None
) -> dict[str, PolicyValue]:
    """By path."""
    table = draft_table(DRAFTS, GAINS, 100, MOST[Role.SPECULATIVE])
    given = policy_values(found or fits(), GAINS, table, 100, objectives, MOST)
    return {one.path: one for one in given}


def test_the_table_in_numbers() -> None:
    """K = 4 takes 29 + 5 B ms for 2.4 tokens, K = 2 25 + 3 B for 1.8, and K = 0 20 + B for one.

    K = 2 brings 3 % more than K = 4 beyond 6.06 sequences, and K = 0 so much more than K = 2 beyond 10.54.
    """
    table = draft_table(DRAFTS, GAINS, 100, 32)

    assert (TableRow(1, 6, 4), TableRow(7, 10, 2), TableRow(11, 32, 0)) == table


def test_an_engine_that_never_gains_has_one_row() -> None:
    """From 1 to the largest batch, without drafts; so does one that was not seen to draft."""
    nothing = {0: NO_DRAFTS, 4: Gain(1.02, 4.0)}

    assert (TableRow(1, 16, 0),) == draft_table(DRAFTS, nothing, 100, 16)
    assert (TableRow(1, 16, 0),) == draft_table(DRAFTS, {0: NO_DRAFTS}, 100, 16)


def test_a_neighbour_that_brings_less_than_3_percent_has_no_row() -> None:
    """Case D2: K = 2 is better than K = 4 from 6 sequences on, and never by 3 %: there is no boundary."""
    alike = {0: NO_DRAFTS, 2: Gain(2.0, 0.5), 4: Gain(2.02, 0.55)}
    free = StepCost(base_s=0.020, per_token_s=0.001, draft_length=4)

    assert tokens_per_s(free, alike, 2, 32) > tokens_per_s(free, alike, 4, 32)
    assert (TableRow(1, 32, 4),) == draft_table(free, alike, 100, 32)


@given(costs, gains_of_any, st.integers(1, 128))
def test_load_that_crosses_a_boundary_of_the_table_loses_nothing(
    cost: StepCost, gains: Mapping[int, Gain], most: int
) -> None:
    """Case D2: one more sequence never brings less, and on either side K differs for 3 % at least.

    Every batch has one K, whose row's neighbours have another, and no other K brings 3 % more there.
    """
    table = draft_table(cost, gains, 100, most)

    assert (1, most) == (table[0].first, table[-1].last)
    for before, after in pairwise(table):
        assert before.last + 1 == after.first
        assert before.draft_length != after.draft_length
        old = tokens_per_s(cost, gains, before.draft_length, after.first)
        assert tokens_per_s(cost, gains, after.draft_length, after.first) > 1.03 * old
        assert tokens_per_s(cost, gains, before.draft_length, before.last) <= old * (1 + 1e-9)
    for sequences in range(1, most + 1):
        chosen = tokens_per_s(cost, gains, length_at(table, sequences), sequences)
        best = max(tokens_per_s(cost, gains, length, sequences) for length in gains)
        assert best <= 1.03 * chosen * (1 + 1e-9)


@given(costs, gains_of_any)
def test_the_table_never_goes_back_and_forth(cost: StepCost, gains: Mapping[int, Gain]) -> None:
    """Case D2: a K that a larger batch has left is in no later row, so that load only passes it once."""
    lengths = [row.draft_length for row in draft_table(cost, gains, 100, 256)]

    assert len(set(lengths)) == len(lengths)


def test_the_limits_in_numbers() -> None:
    """20 ms: K = 4 takes (29 + 5 B) / 2.4 up to 3, which the table has up to 6; plain 20 + B is 60 at 40."""
    found = values({Tier.INTERACTIVE: 0.020, Tier.STANDARD: 0.060})

    assert {"spec.pools.speculative.limits.softInflight": 3, "spec.pools.plain.limits.softInflight": 40} == {
        path: one.value for path, one in found.items()
    }
    assert "3 sequences keep 20 ms per token of interactive, on average over all prompts" == (
        found["spec.pools.speculative.limits.softInflight"].because
    )
    assert "40 sequences keep 60 ms per token of standard, on average over all prompts" == (
        found["spec.pools.plain.limits.softInflight"].because
    )


def test_a_limit_is_that_of_the_k_that_the_table_has_there() -> None:
    """28 ms: (25 + 3 B) / 1.8 up to 8 sequences, at K = 2; K = 4 would be in time up to 7."""
    found = values({Tier.INTERACTIVE: 0.028})

    assert 8 == found["spec.pools.speculative.limits.softInflight"].value


def test_what_the_engine_runs_at_once_is_the_most() -> None:
    """Everything is in time, and it is said that more were not possible."""
    found = values({Tier.INTERACTIVE: 1.0, Tier.STANDARD: 1.0})

    assert [32, 64] == [one.value for one in found.values()]
    assert all(one.because.endswith("; the engine runs no more at once") for one in found.values())


def test_a_promise_that_cannot_be_kept_is_named() -> None:
    """10 ms: not even one, with 34 ms over 2.4 tokens by drafts and 21 ms without; no limit follows."""
    found = values({Tier.INTERACTIVE: 0.010, Tier.STANDARD: 0.010})

    assert {
        "spec.objectives.interactive.tpotSeconds": 0.015,
        "spec.objectives.standard.tpotSeconds": 0.021,
    } == {path: one.value for path, one in found.items()}
    assert (
        "not even one sequence keeps 10 ms per token of standard, so it sets no limit: "
        "this much it takes alone; promise that or more, or use a faster machine"
    ) == found["spec.objectives.standard.tpotSeconds"].because


@pytest.mark.parametrize(
    ("objective", "limit", "reserve"), [(0.0145, 1, 0), (0.0165, 2, 1), (0.020, 3, None)]
)
def test_a_reserve_stays_below_a_small_limit(objective: float, limit: int, reserve: int | None) -> None:
    """The default reserve of 2 would leave nothing of a replica that takes 2 to anybody else."""
    found = values({Tier.INTERACTIVE: objective})
    kept = found.get("spec.backfill.reserve")

    assert limit == found["spec.pools.speculative.limits.softInflight"].value
    assert reserve == (None if kept is None else kept.value)


def test_batch_sets_the_limit_of_the_plain_pool_where_standard_has_no_promise() -> None:
    """As in a running service; beside a promise of standard that of batch is not asked."""
    path = "spec.pools.plain.limits.softInflight"
    alone = values({Tier.BATCH: 0.060})
    both = values({Tier.BATCH: 0.050, Tier.STANDARD: 0.060})

    assert [40, 40] == [alone[path].value, both[path].value]
    assert "40 sequences keep 60 ms per token of batch, on average over all prompts" == alone[path].because
    assert "40 sequences keep 60 ms per token of standard, on average over all prompts" == both[path].because


def test_nothing_follows_without_a_promise_or_a_fit() -> None:
    """No objective, and a fit that is not relied on."""
    assert {} == values({})
    assert {} == values({Tier.INTERACTIVE: 0.05, Tier.STANDARD: 0.05}, fits(accepted=False))


def test_the_policy_file_takes_what_is_recommended() -> None:
    """The paths are fields of it, and the values within their bounds and without a doubt."""
    found = values({Tier.INTERACTIVE: 0.0165, Tier.STANDARD: 0.060})
    text = FIRST_FILE
    for word, path in (
        ("RESERVE", "spec.backfill.reserve"),
        ("SPECULATIVE", "spec.pools.speculative.limits.softInflight"),
        ("PLAIN", "spec.pools.plain.limits.softInflight"),
    ):
        text = text.replace(word, str(found[path].value))
    read = read_policy(text)
    policy = read.policy

    assert ((), ()) == (read.problems, read.warnings)
    assert policy is not None
    assert 2 == policy.spec.pools.speculative.limits.soft_inflight
    assert 40 == policy.spec.pools.plain.limits.soft_inflight
    assert 1 == policy.spec.backfill.reserve
