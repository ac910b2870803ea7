"""What the controller tells the ingresses about routing and admission; read `types` first.

Made from the policy, the profile where there is one, and what finished of late.  Times are seconds;
`None` is unknown or not promised, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from autoscaling.roles import Role, Tier


class LimitsFrom(StrEnum):
    """What the limits per replica rest on."""

    UNMEASURED = "unmeasured"  # the settings' and the policy's: at most 8 per speculative replica
    PROFILE = "profile"  # the largest batch that keeps the objective, by the profile's cost model


@dataclass(frozen=True, slots=True)
class TierRules:
    """What a tier is promised, and how it waits when there is no room."""

    ttft_s: float | None = None  # objective, queueing included
    tpot_s: float | None = None  # objective, per output token after the first
    deadline_s: float = 30.0  # longest wait for room; then 503
    max_waiting: int = 200  # sequences that wait, all ingresses together; above it 429


@dataclass(frozen=True, slots=True)
class StepCost:
    """Seconds of one engine step of a pool.

    With N = B * (1 + drafted) tokens, P prefill tokens that share the step, and B * S context tokens:
    base + per_token * N + per_prefill * P + per_context * B * S + past_hinge * max(0, N + P - hinge),
    and where something is drafted
    draft + per_draft * K + draft_per_token * N + draft_per_context * B * S.
    """

    base_s: float
    per_token_s: float
    per_context_s: float = 0.0
    draft_s: float = 0.0
    draft_length: int = 0  # K
    per_draft_s: float = 0.0  # of each draft token in turn: a drafter that works one after the other
    draft_per_token_s: float = 0.0
    draft_per_context_s: float = 0.0
    drafted: float | None = None  # mean draft tokens per sequence and step; None: K, every step drafts fully
    per_prefill_s: float | None = None  # of a prompt's token; None: as any other
    hinge_tokens: float = 0.0  # tokens per step from which more of them cost more
    past_hinge_s: float = 0.0  # of each token beyond, on top of the others


@dataclass(frozen=True, slots=True)
class PoolSpeed:
    """How fast a pool answered in the last minute; None for fewer than 20 requests."""

    ttft_p50_s: float | None = None
    ttft_p95_s: float | None = None
    tpot_p50_s: float | None = None
    tpot_p95_s: float | None = None
    answer_tokens: float | None = None  # mean length of an answer
    prompt_tokens: float | None = None  # mean length of a prompt


def _default_tiers() -> dict[Tier, TierRules]:
    return {
        Tier.INTERACTIVE: TierRules(deadline_s=5.0, max_waiting=64),
        Tier.STANDARD: TierRules(deadline_s=30.0, max_waiting=256),
        Tier.BATCH: TierRules(deadline_s=300.0, max_waiting=1024),
    }


@dataclass(frozen=True, slots=True)
class RoutingRules:
    """Everything that routing and admission obey; the defaults stand in for an older controller."""

    tiers: Mapping[Tier, TierRules] = field(default_factory=_default_tiers)
    reserve: int = 2  # sequences per speculative replica that only interactive requests may take
    backfill: bool = True  # whether batch may use what the speculative pool has above the reserve
    backfill_residence_s: float = 15.0  # longest predicted stay of a batch request there
    classify: bool = True  # whether the workload counts, or the tier alone
    batch_share: float = 0.1  # of the freed room that waiting batch requests get at least
    limits_from: LimitsFrom = LimitsFrom.UNMEASURED
    costs: Mapping[Role, StepCost] = field(default_factory=dict)  # by the profile; empty without
    tokens_per_step: Mapping[str, float] = field(default_factory=dict)  # class -> by the profile
    speeds: Mapping[Role, PoolSpeed] = field(default_factory=dict)
