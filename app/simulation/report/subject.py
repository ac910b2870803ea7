"""What a report of a simulation is made from, besides the numbers themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.simulation.score import objective_of
from app.simulation.scores import Scores
from app.simulation.traces.rates import Rate
from autoscaling.policy import CapacityPolicy
from autoscaling.types import Tier

if TYPE_CHECKING:
    from app.simulation.report.match import Match


@dataclass(frozen=True, slots=True)
class Promise:
    """What a tier is promised, in seconds; None: nothing."""

    ttft_s: float | None = None
    tpot_s: float | None = None

    @property
    def is_any(self) -> bool:
        """Whether anything is promised."""
        return self.ttft_s is not None or self.tpot_s is not None


@dataclass(frozen=True, slots=True)
class Subject:
    """One trace, and what each of at least one policy brought on it."""

    title: str
    about: tuple[str, ...]  # trace, engines, size and model: the parts of one line
    scores: Mapping[str, Scores]  # by name; the first is the one that was asked about, unless `chosen` is
    promises: Mapping[Tier, Promise]
    rates: tuple[Rate, ...] = ()  # requests a second of the trace
    own_promises: Mapping[str, Mapping[Tier, Promise]] = field(default_factory=dict)  # by name, where others
    words: Mapping[str, str] = field(default_factory=dict)  # what a name stands for, as a sentence
    notes: tuple[str, ...] = ()  # sentences about what is not as it might be expected
    foresight: frozenset[str] = frozenset()  # names that know the trace beforehand: bounds, no advice
    recorded: frozenset[str] = frozenset()  # names of what really happened and was not simulated
    price_per_hour: float | None = None  # of one accelerator, in any currency
    sizes: Mapping[str, int] = field(default_factory=dict)  # replicas by name, where one policy has several
    chosen: str | None = None  # the name that is asked about, where it is not the first
    match: Match | None = None  # how near the simulation comes to a record

    @property
    def asked(self) -> str:
        """The name that was asked about."""
        return self.chosen or next(iter(self.scores))

    @property
    def kind(self) -> str:
        """What stands side by side."""
        return "size" if self.sizes else "policy"

    def promise(self, tier: Tier, name: str | None = None) -> Promise:
        """What a tier is promised, by the policy of a name where that promises something of its own."""
        own = self.promises if name is None else self.own_promises.get(name, self.promises)
        return own.get(tier, Promise())

    def tiers(self) -> tuple[Tier, ...]:
        """The tiers of which any policy saw a request, in their order."""
        seen = {
            tier for one in self.scores.values() for tier, score in one.tiers.items() if score.arrived > 0
        }
        return tuple(tier for tier in Tier if tier in seen)

    def cost(self, scores: Scores) -> float | None:
        """What the accelerator-hours cost; None without a price."""
        return None if self.price_per_hour is None else self.price_per_hour * scores.accelerator_hours


def promises_of(policy: CapacityPolicy) -> dict[Tier, Promise]:
    """The objectives of a policy."""
    each = {tier: objective_of(policy, tier) for tier in Tier}
    return {tier: Promise(one.ttft_seconds, one.tpot_seconds) for tier, one in each.items()}
