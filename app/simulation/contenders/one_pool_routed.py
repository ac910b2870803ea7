"""The strongest rival: one kind of engine with a K table, under our tiers, limits, reserve, queue and moves.

The same engine lies in both pools, so a pool is a label: a move changes it at once, and nothing drains or
starts.  What our rules believe of the pools is what engines with the table cost and bring there.
"""

from __future__ import annotations

from dataclasses import replace

from app.simulation.belief import believed_gains, believed_profile, scaled
from app.simulation.contenders.one_pool import k_table
from app.simulation.contenders.scene import UNMEASURED_LIMIT, Scene, two_pools
from app.simulation.control import Believed
from app.simulation.replica import Lies
from app.simulation.setup import Setup
from autoscaling.policy_in_force import pool_objective
from autoscaling.profile import MEAN, Profile
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import at_length, per_token, tpot_s
from autoscaling.types import Role


def one_pool_k_table_our_routing(scene: Scene) -> Setup:
    """Replicas with the table in both roles, our routing, and our controller, whose moves take no time."""
    table = k_table(scene.engines)
    lies = {role: Lies(Role.SPECULATIVE, table) for role in Role}
    believed = Believed(scene.policy, table_profile(scene, table))
    return two_pools(scene, believed=believed, lies=lies, changes_roles=True)


def table_profile(scene: Scene, table: tuple[int, ...]) -> Profile:
    """Both pools as engines with a table: in each role at the K of the most sequences in its objective.

    There a table and that one K have the same largest batch, for no other K is faster at it.  To the role
    plain our rules credit no gain, so its cost is that of a token.
    """
    engines, error = scene.engines, scene.believed_error
    cost = scaled(engines.cost_of(Role.SPECULATIVE), error.cost)
    found: dict[Role, StepCost] = {}
    gains: dict[Role, dict[str, float]] = {}
    for role, without in ((Role.SPECULATIVE, UNMEASURED_LIMIT), (Role.PLAIN, engines.max_num_seqs)):
        objective = pool_objective(scene.policy, role).tpot_seconds
        length = table[min(len(table) - 1, _most(scene, table, cost, objective) or without)]
        gains[role] = believed_gains(engines, length, error)
        found[role] = _at(cost, length, engines.k0_tax)
    found[Role.PLAIN] = without_drafts(found[Role.PLAIN], gains[Role.PLAIN][MEAN])
    return replace(
        believed_profile(engines, error),
        costs=found,
        tokens_per_step=gains[Role.SPECULATIVE],
        kv_cache_tokens=dict.fromkeys(Role, engines.kv_tokens[Role.SPECULATIVE]),
    )


def without_drafts(cost: StepCost, gain: float) -> StepCost:
    """The cost of an engine that drafts nothing and takes as long for each token as this one at its K.

    Past the hinge a prompt's tokens count for somewhat more than they cost.
    """
    taken = per_token(cost, gain)
    if cost.draft_length == 0:
        return taken
    decoded = 1.0 + (cost.draft_length if cost.drafted is None else cost.drafted)
    return StepCost(
        base_s=taken.base_s + taken.draft_s + taken.per_draft_s * cost.draft_length,
        per_token_s=(taken.per_token_s + taken.draft_per_token_s) * decoded,
        per_context_s=taken.per_context_s + taken.draft_per_context_s,
        per_prefill_s=taken.per_prefill_s,
        hinge_tokens=taken.hinge_tokens / decoded,
        past_hinge_s=taken.past_hinge_s * decoded,
    )


def _most(scene: Scene, table: tuple[int, ...], cost: StepCost, objective_s: float | None) -> int | None:
    """The most sequences in time with the table; None without an objective, and where none is in time."""
    if objective_s is None:
        return None
    engines = scene.engines
    gain = {length: believed_gains(engines, length, scene.believed_error)[MEAN] for length in set(table)}
    at = {length: _at(cost, length, engines.k0_tax) for length in set(table)}
    in_time = [
        sequences
        for sequences, length in enumerate(table)
        if sequences and tpot_s(at[length], sequences, engines.context_tokens, gain[length]) <= objective_s
    ]
    return max(in_time, default=None)


def _at(cost: StepCost, length: int, k0_tax: float) -> StepCost:
    there = at_length(cost, length)
    return there if length else scaled(there, k0_tax)
