"""Contenders of one kind of engine: plain, speculative at a fixed K, and K by running sequences."""

from __future__ import annotations

from app.simulation.belief import scaled
from app.simulation.contenders.scene import Scene, without_moves
from app.simulation.engine_profile import EngineProfile
from app.simulation.ingress import Routing
from app.simulation.replica import Lies
from app.simulation.setup import Setup
from autoscaling.goodput import best_draft_length
from autoscaling.profile import MEAN
from autoscaling.types import Role


def all_plain(scene: Scene) -> Setup:
    """Plain replicas alone, least loaded: an ordinary vLLM service behind an ordinary balancer."""
    sizes = {Role.SPECULATIVE: 0, Role.PLAIN: scene.replicas}
    return without_moves(scene, sizes, routing=Routing.LEAST_LOADED)


def all_speculative(scene: Scene) -> Setup:
    """Speculative replicas alone, at the profile's own K, least loaded: `num_speculative_tokens` of vLLM."""
    return without_moves(scene, _all_speculative(scene), routing=Routing.LEAST_LOADED)


def one_pool_k_table(scene: Scene) -> Setup:
    """Speculative replicas alone, K by the best table, least loaded.

    As vLLM's `num_speculative_tokens_per_batch_size` does it, and TurboSpec and SmartSpec (Liu et al., 2024)
    propose: fewer draft tokens the more sequences run, none where they no longer pay.
    """
    lies = {role: Lies(Role.SPECULATIVE, k_table(scene.engines)) for role in Role}
    return without_moves(scene, _all_speculative(scene), lies=lies, routing=Routing.LEAST_LOADED)


def k_table(engines: EngineProfile) -> tuple[int, ...]:
    """The K with most tokens per second while so many sequences run; place 0 stands for one.

    In closed form, at the mean acceptance and the profile's context.  K goes as far as acceptance is known,
    and K = 0 still pays the tax of a speculative engine that drafts nothing.
    """
    cost, mean = engines.cost_of(Role.SPECULATIVE), engines.acceptance[MEAN]
    idle_drafter = scaled(cost, engines.k0_tax)
    longest = max(cost.draft_length, len(mean.survival))
    found = [
        best_draft_length(
            cost, idle_drafter, mean.survival, sequences, engines.context_tokens, longest, mean.draft_rate
        )
        for sequences in range(1, engines.max_num_seqs + 1)
    ]
    return (found[0], *found)


def _all_speculative(scene: Scene) -> dict[Role, int]:
    return {Role.SPECULATIVE: scene.replicas, Role.PLAIN: 0}
