"""The replicas and rules that the route benchmark decides over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from autoscaling.routing_rules import LimitsFrom, PoolSpeed, RoutingRules, StepCost, TierRules
from autoscaling.types import Capabilities, ReplicaView, Role, Snapshot, Tier

SOFT_LIMIT: Final = 8
TIERS: Final = {
    Tier.INTERACTIVE: TierRules(ttft_s=2.0, tpot_s=0.05, deadline_s=5.0, max_waiting=64),
    Tier.STANDARD: TierRules(ttft_s=10.0, tpot_s=0.1, deadline_s=30.0, max_waiting=256),
    Tier.BATCH: TierRules(deadline_s=300.0, max_waiting=1024),
}
# An 8B model on a data-centre accelerator, roughly: the amounts do not matter, that they are there does.
COSTS: Final = {
    Role.SPECULATIVE: StepCost(0.008, 3e-5, 2e-8, draft_s=0.002, draft_length=3),
    Role.PLAIN: StepCost(0.008, 3e-5, 2e-8),
}
SPEEDS: Final = {role: PoolSpeed(0.2, 0.6, 0.01, 0.02, 240.0) for role in Role}
GAINS: Final = {"mean": 1.9, "code": 2.2, "chat": 1.6, "grounded": 2.1, "structured": 2.4}


@dataclass(frozen=True, slots=True)
class Setting:
    """What one part of the requests meets."""

    name: str
    profile: bool  # whether there is a cost model
    half: bool  # whether half of all places are taken
    replicas: int = 8


SETTINGS: Final = (
    Setting("idle", profile=False, half=False),
    Setting("half", profile=False, half=True),
    Setting("idle_profile", profile=True, half=False),
    Setting("half_profile", profile=True, half=True),
)
LARGE: Final = Setting("1000_replicas", profile=True, half=True, replicas=1000)


def rules(profile: bool) -> RoutingRules:
    """With a cost model, or with the speeds of the last minute alone."""
    if not profile:
        return RoutingRules(tiers=TIERS, speeds=SPEEDS)
    return RoutingRules(
        tiers=TIERS, speeds=SPEEDS, costs=COSTS, tokens_per_step=GAINS, limits_from=LimitsFrom.PROFILE
    )


def snapshot(setting: Setting, seq: int) -> Snapshot:
    """The `seq`th picture: every replica has reported again, and nothing else has changed."""
    views = tuple(_view(index, seq) for index in range(setting.replicas))
    return Snapshot(1, seq, partial=False, ingresses=1, replicas=views, routing=rules(setting.profile))


def _view(index: int, seq: int) -> ReplicaView:
    role = Role.SPECULATIVE if index % 2 else Role.PLAIN
    return ReplicaView(
        replica_id=f"twinpool#{role.value}#{index:08x}",
        boot_id="0f3a",
        seq=seq,
        pool=role.value,
        role=role,
        node_id="node",
        host="10.0.0.1",
        port=21000 + index,
        token="token",
        accepting=True,
        age_s=0.1,
        inflight=0,
        running=None,
        waiting=None,
        soft_share=SOFT_LIMIT,
        hard_share=2 * SOFT_LIMIT,
        capabilities=Capabilities(
            role=role,
            engine="simulated",
            engine_version="0",
            method="ngram" if role is Role.SPECULATIVE else None,
            runner=None,
            draft_length_max=3 if role is Role.SPECULATIVE else 0,
            draft_length_adjustable=False,
            max_model_len=32768,
            max_num_seqs=16,
            refuses=("min_p", "logit_bias") if role is Role.SPECULATIVE else (),
            per_request_metrics=True,
            models=("m", "m:interactive", "m:batch"),
            fingerprint="f",
        ),
    )
