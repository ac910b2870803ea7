"""A controller with another rule: the rule says how many replicas should speculate, the rest is ours.

Reports, snapshots, limits, budget, bounds and "shrink first, then grow" are those of our controller, and
every change of targets is a move in its record.  Only windows, cool-down and "one move at a time" are not:
what of these a rule has is its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from app.simulation.control import Believed, Control
from app.simulation.fleet import Fleet
from autoscaling import moves
from autoscaling.decisions import Decision, Memory, Observation, PolicyInForce, Reason, Sizes, Step
from autoscaling.know import know
from autoscaling.record import record
from autoscaling.signals import Signals, read
from autoscaling.stage import keep, stage
from autoscaling.types import Role

NAME = "want"  # as the step of ours that says who should have a replica more


@dataclass(frozen=True, slots=True)
class Look:
    """What a rule decides from."""

    seen: Observation
    policy: PolicyInForce
    targets: Sizes  # as they stand
    signals: Signals
    moving: bool  # whether a move is on its way


class RuleControl(Control, ABC):
    """Asks its rule every `period_s`, the first time one period after its start."""

    period_s: ClassVar[float]

    def __init__(self, believed: Believed, fleet: Fleet, now: float) -> None:
        super().__init__(believed, fleet, now)
        self._next_at = now + self.period_s

    @abstractmethod
    def wanted(self, look: Look) -> int:
        """How many replicas should speculate; the plain pool gets the rest of the budget."""

    def decide(self, seen: Observation, policy: PolicyInForce, memory: Memory) -> tuple[Decision, Memory]:
        """The rule's targets within bounds and budget, and the next plan on the way there."""
        memory, ended = moves.follow(memory, seen, policy)
        known, hold = know(seen, policy, memory)
        start, chosen = known.targets, known
        signals = {} if start is None else read(seen, policy, start)
        if start is not None and hold is None and seen.now >= self._next_at:
            self._next_at = seen.now + self.period_s
            look = Look(seen, policy, start, signals, moves.in_flight(memory.move))
            chosen = _step(split(self.wanted(look), policy), start)
        staged = keep(known, memory) if start is None else stage(chosen, memory.plan or start, seen, policy)
        return record(
            [known, chosen, staged],
            known=known,
            chosen=chosen,
            staged=staged,
            hold=hold,
            signals=signals,
            ended=ended,
            seen=seen,
            policy=policy,
            memory=memory,
        )


def split(speculative: int, policy: PolicyInForce) -> Sizes:
    """So many speculative replicas as bounds and budget allow, and the rest of the budget plain."""
    first, second = policy.pools[Role.SPECULATIVE], policy.pools[Role.PLAIN]
    budget = policy.budget_max
    room = (budget - second.minimum * second.accelerators) // first.accelerators
    unused = (budget - second.maximum * second.accelerators) // first.accelerators  # by plain at its maximum
    most = min(first.maximum, room)
    found = min(most, max(speculative, first.minimum, unused))
    left = (budget - found * first.accelerators) // second.accelerators
    return {Role.SPECULATIVE: found, Role.PLAIN: min(left, second.maximum)}


def _step(targets: Sizes, start: Sizes) -> Step:
    if targets == start:
        return Step(NAME, Reason.STEADY, start, "the rule asks for no change")
    more = targets[Role.SPECULATIVE] > start[Role.SPECULATIVE]
    detail = f"the rule asks for {'more' if more else 'fewer'} speculative replicas"
    return Step(NAME, Reason.SHORTFALL if more else Reason.SURPLUS, targets, detail)
