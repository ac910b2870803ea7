"""One kind of engine with a K table: the table, and what our rules believe of such engines."""

from __future__ import annotations

import pytest

from app.simulation.acceptance import Acceptance
from app.simulation.contenders.one_pool import k_table
from app.simulation.contenders.one_pool_routed import table_profile, without_drafts
from app.simulation.contenders.scene import limits_in_force
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import at_length, step_s, tpot_s
from autoscaling.types import Role
from tests.app.simulation.contenders.scenes import scene
from tests.app.simulation.engines import engine_profile
from tests.app.simulation.services import ENGINES, policy
from tests.app.simulation.table import ROWS

HINGED = StepCost(
    base_s=0.01,
    per_token_s=0.001,
    per_context_s=1e-6,
    draft_s=0.002,
    draft_length=3,
    per_draft_s=0.0005,
    draft_per_token_s=1e-4,
    draft_per_context_s=1e-7,
    drafted=1.5,
    hinge_tokens=60.0,
    past_hinge_s=0.003,
)


def test_the_table_has_the_best_k_of_each_batch() -> None:
    """Those of the published speed-ups for chat; the longest are found where few sequences run."""
    table = k_table(ENGINES)

    assert 257 == len(table)
    assert {batch: length for batch, (length, _) in ROWS[0].best.items()} == {
        batch: table[batch] for batch in ROWS[0].best
    }
    assert table[0] == table[1]


def test_without_acceptance_nothing_is_drafted() -> None:
    """K = 0 wherever drafts bring nothing."""
    assert {0} == set(k_table(engine_profile(Acceptance((0.0, 0.0)), max_num_seqs=4)))


def test_a_tax_makes_short_drafts_pay_for_longer() -> None:
    """Steps of 10 ms and 2 ms for drafting: 1.15 tokens a step lose against 1 for nothing, not at a tax."""
    free, taxed = (
        k_table(engine_profile(Acceptance((0.15, 0.0)), max_num_seqs=1, k0_tax=tax)) for tax in (1.0, 1.2)
    )
    assert ((0, 0), (1, 1)) == (free, taxed)


@pytest.mark.parametrize("sequences", [1, 20, 30, 200])
def test_a_cost_without_drafts_takes_as_long_for_each_token(sequences: int) -> None:
    """On both sides of the hinge, which lies at 24 sequences of two and a half tokens."""
    folded = without_drafts(HINGED, 1.8)

    assert 0 == folded.draft_length
    assert pytest.approx(step_s(HINGED, sequences, 500.0) / 1.8) == step_s(folded, sequences, 500.0)


def test_a_cost_without_drafts_computes_prompts_as_before() -> None:
    """A token of a prompt takes what it took; only the base is divided."""
    folded = without_drafts(HINGED, 1.8)
    assert pytest.approx(0.001 * 10) == step_s(folded, 0, 0, 10) - step_s(folded, 0, 0, 0)


def test_limits_believed_of_a_table_are_those_of_the_table() -> None:
    """The most sequences whose time per token, with the K that the table has for them, is in time."""
    given = scene(policy=policy(4, tpot_s=0.009))
    table = k_table(ENGINES)
    cost, chat = ENGINES.costs[Role.SPECULATIVE], ENGINES.acceptance["chat"]

    def most(objective_s: float) -> int:
        return max(
            sequences
            for sequences in range(1, 257)
            if tpot_s(
                at_length(cost, table[sequences]), sequences, 512.0, chat.tokens_per_step(table[sequences])
            )
            <= objective_s
        )

    assert {Role.SPECULATIVE: most(0.009), Role.PLAIN: most(0.03)} == limits_in_force(
        given, table_profile(given, table)
    )
