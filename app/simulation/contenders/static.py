"""Contenders with two pools whose sizes never change: what a careful operator without a controller has."""

from __future__ import annotations

from app.simulation.contenders.scene import Scene, without_moves
from app.simulation.setup import Setup
from autoscaling.decisions import Sizes
from autoscaling.types import Role


def static_split(scene: Scene, share: float) -> Setup:
    """Our routing over a fixed share of speculative replicas; the best one is found by trying several."""
    return without_moves(scene, split_by(share, scene.replicas))


def split_by(share: float, replicas: int) -> Sizes:
    """The nearest whole replicas to a share that speculates, at least one in each pool."""
    speculative = max(1, min(replicas - 1, round(share * replicas)))
    return {Role.SPECULATIVE: speculative, Role.PLAIN: replicas - speculative}
