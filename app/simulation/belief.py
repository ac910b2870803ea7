"""What a measurement would say of simulated engines, and how far off it may be."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.simulation.engine_profile import EngineProfile
from autoscaling.profile import Profile
from autoscaling.profiling.measured import Fingerprint
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role


@dataclass(frozen=True, slots=True)
class BelievedError:
    """How far the controller and the ingresses are off, as factors; the engines stay as they are."""

    acceptance: float = 1.0  # of what drafts bring: tokens per step above one
    cost: float = 1.0  # of the seconds of every step


NO_ERROR = BelievedError()


def believed_profile(engines: EngineProfile, error: BelievedError = NO_ERROR) -> Profile:
    """What `twinpool bench` would have measured of these engines, off by an error."""
    length = engines.cost_of(Role.SPECULATIVE).draft_length
    return Profile(
        Fingerprint(engines.name),
        made_at=0.0,
        context_tokens=engines.context_tokens,
        costs={role: scaled(cost, error.cost) for role, cost in engines.costs.items()},
        tokens_per_step=believed_gains(engines, length, error),
        kv_cache_tokens=dict(engines.kv_tokens),
    )


def believed_gains(
    engines: EngineProfile, draft_length: int, error: BelievedError = NO_ERROR
) -> dict[str, float]:
    """Tokens per step at K by class of work, the mean among them, off by an error."""
    exact = {kind: one.tokens_per_step(draft_length) for kind, one in engines.acceptance.items()}
    return {kind: gain + (error.acceptance - 1.0) * (gain - 1.0) for kind, gain in exact.items()}


def scaled(cost: StepCost, factor: float) -> StepCost:
    """A cost whose steps take `factor` times as long, whatever is in them."""
    return replace(
        cost,
        base_s=cost.base_s * factor,
        per_token_s=cost.per_token_s * factor,
        per_context_s=cost.per_context_s * factor,
        draft_s=cost.draft_s * factor,
        per_draft_s=cost.per_draft_s * factor,
        draft_per_token_s=cost.draft_per_token_s * factor,
        draft_per_context_s=cost.draft_per_context_s * factor,
        per_prefill_s=None if cost.per_prefill_s is None else cost.per_prefill_s * factor,
        past_hinge_s=cost.past_hinge_s * factor,
    )
