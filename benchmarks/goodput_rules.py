"""The rules and limits that our routing obeys over two engine slots, from this run's own profile; pure.

Slot 0 has the role speculative and slot 1 the role plain, whatever engines lie there: so a single pool is
routed with regard to tiers, too, which makes it the strongest rival.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from autoscaling.profiling.findings import PoolAnswer
from autoscaling.routing_rules import LimitsFrom, PoolSpeed, RoutingRules, StepCost, TierRules
from autoscaling.step_cost import at_length, per_token, tpot_s
from autoscaling.types import Role, Tier
from benchmarks.goodput_plan import (
    BATCH_DEADLINE_S,
    BATCH_SLOT_LIMIT,
    BATCH_TOKENS,
    INTERACTIVE_DEADLINE_S,
    INTERACTIVE_TOKENS,
    MAX_NUM_SEQS,
    RESERVE,
    TABLE_AT,
    TTFT_S,
    UNMEASURED_LIMIT,
    Configuration,
)
from benchmarks.goodput_requests import prompt_tokens

MEAN: Final = "mean"
SLOT_ROLES: Final = (Role.SPECULATIVE, Role.PLAIN)


@dataclass(frozen=True, slots=True)
class Predicted:
    """What the profile says of one objective, written down before the first load."""

    tpot_s: float
    answer: PoolAnswer
    margin: float  # its goodput over that of the best other kind of configuration
    goodput: Mapping[PoolAnswer, float]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What was measured of a method's engines before the load."""

    costs: Mapping[Role, StepCost]
    gains: Mapping[str, Mapping[int, float]]  # class -> K -> tokens per step; has `MEAN`
    context_tokens: float
    table: tuple[int, ...]  # K while so many sequences run; index 0 is unused
    longest: int  # K at most
    predicted: tuple[Predicted, ...]
    errors: Mapping[Role, float | None]  # of the fits, mean share

    def gain(self, length: int, workload: str = MEAN) -> float:
        """Tokens of a sequence per step at K; of a K that was not measured that of the next shorter one."""
        known = self.gains[workload]
        shorter = [measured for measured in known if measured <= length]
        return max(1.0, known[max(shorter)]) if shorter else 1.0


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot as our rules know it."""

    role: Role
    lies: Role  # the kind of engine that really lies there
    lengths: Sequence[int]  # K by the number of sequences; all 0 for a plain engine
    limit: int  # sequences up to which new work is welcome


def lengths_of(configuration: Configuration, slot: int, found: Calibrated) -> tuple[int, ...] | None:
    """The draft lengths of the engine at a slot by the number of sequences; None for a plain engine."""
    if configuration is Configuration.ALL_PLAIN or (configuration is Configuration.TWO_POOLS and slot == 1):
        return None
    if configuration is Configuration.ALL_SPECULATIVE:
        return (0, *(found.longest for _ in range(MAX_NUM_SEQS)))
    return found.table


def slots(configuration: Configuration, found: Calibrated, in_force_s: float) -> tuple[Slot, Slot]:
    """Both slots of a configuration while our rules obey an objective."""
    made = []
    for index, role in enumerate(SLOT_ROLES):
        lengths = lengths_of(configuration, index, found)
        lies = Role.PLAIN if lengths is None else Role.SPECULATIVE
        slot = Slot(role, lies, lengths or (0,) * (MAX_NUM_SEQS + 1), BATCH_SLOT_LIMIT)
        made.append(replace(slot, limit=_limit(slot, found, in_force_s)) if index == 0 else slot)
    return made[0], made[1]


def rules_of(configuration: Configuration, found: Calibrated, in_force_s: float) -> RoutingRules:
    """The rules: the objective in force, and what engines as these cost and gain."""
    both = slots(configuration, found, in_force_s)
    batch, interactive = prompt_tokens(Tier.BATCH), prompt_tokens(Tier.INTERACTIVE)
    speeds = {
        Role.SPECULATIVE: PoolSpeed(answer_tokens=INTERACTIVE_TOKENS, prompt_tokens=interactive),
        Role.PLAIN: PoolSpeed(answer_tokens=BATCH_TOKENS, prompt_tokens=batch),
    }
    length = both[0].lengths[TABLE_AT[0]]
    return RoutingRules(
        tiers={
            Tier.INTERACTIVE: TierRules(TTFT_S, in_force_s, INTERACTIVE_DEADLINE_S, max_waiting=64),
            Tier.BATCH: TierRules(deadline_s=BATCH_DEADLINE_S, max_waiting=1024),
        },
        reserve=RESERVE,
        limits_from=LimitsFrom.PROFILE,
        costs={slot.role: _cost(slot, at, found) for slot, at in zip(both, TABLE_AT, strict=True)},
        tokens_per_step={name: found.gain(length, name) for name in found.gains} if length else {},
        speeds=speeds,
    )


def _limit(slot: Slot, found: Calibrated, in_force_s: float) -> int:
    """The largest batch that keeps the objective in force with the mean gain, as a profile sets it."""
    cost = found.costs[slot.lies]
    kept = []
    for size in range(1, MAX_NUM_SEQS + 1):
        length = slot.lengths[size]
        if tpot_s(at_length(cost, length), size, found.context_tokens, found.gain(length)) <= in_force_s:
            kept.append(size)
    return max(kept, default=UNMEASURED_LIMIT)


def _cost(slot: Slot, sequences: int, found: Calibrated) -> StepCost:
    """What a step costs there; in the role plain, to which the rules credit no gain, over that gain."""
    length = slot.lengths[sequences]
    cost = at_length(found.costs[slot.lies], length)
    return cost if slot.role is Role.SPECULATIVE else per_token(cost, found.gain(length))
