"""Recorded capacity decisions made again under two policies, each from where the service really was.

A log has what the controller saw every 5 s, and the targets that it had then.  From each such picture both
policies decide anew, as a policy in the mode `shadow` does: from the real targets, with windows and cool-down
of their own, and waiting for no move of the other.  So a window may end up to 5 s later than it would have.
Holds and overrides that operators had set are not known here and are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from app.simulation.log.read import Seen
from autoscaling.decide import decide
from autoscaling.decisions import Decision, Memory, PolicyInForce, Reason, Sizes
from autoscaling.policy import CapacityPolicy
from autoscaling.policy_in_force import in_force
from autoscaling.profile import Profile
from autoscaling.profile_match import Served
from autoscaling.rules_of_policy import with_measured_limits


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one policy decides at one moment."""

    targets: Sizes | None
    reason: Reason
    summary: str


@dataclass(frozen=True, slots=True)
class CapacityChange:
    """A time in which each policy decides the same without a break, and not like the other."""

    wall: float  # of its first observation, Unix seconds
    until: float  # of its last one
    before: Sizes | None  # the real targets at its beginning
    old: Outcome
    new: Outcome

    @property
    def moves_differ(self) -> bool:
        """Whether the targets differ, and not the reasons alone."""
        return self.old.targets != self.new.targets


@dataclass(frozen=True, slots=True)
class CapacityAgain:
    """All observations of a log, decided on again."""

    remade: int
    as_recorded: int  # of these, the old policy has the targets that the service had
    elsewhere: int  # the targets differ
    otherwise: int  # the targets are the same, the reason is not
    changes: tuple[CapacityChange, ...]  # by time


@dataclass(frozen=True, slots=True)
class _Pair:
    seen: Seen
    before: Sizes | None
    old: Outcome
    new: Outcome

    @property
    def key(self) -> tuple[object, ...]:
        """What neighbours have in common that are one stretch."""
        return (self.seen.epoch, self.old.targets, self.old.reason, self.new.targets, self.new.reason)

    @property
    def differ(self) -> bool:
        return (self.old.targets, self.old.reason) != (self.new.targets, self.new.reason)


def capacity_again(
    seen: Sequence[Seen], old: CapacityPolicy, new: CapacityPolicy, profile: Profile | None = None
) -> CapacityAgain:
    """Decide on every observation under both policies; `profile` is what was served, where it had one.

    Life by life, each in the order of its own clock: by the clock on the wall, which may be set back, two of
    them may overlap.
    """
    first, second = _Deciding(old, profile), _Deciding(new, profile)
    pairs = []
    former: Seen | None = None
    for one in sorted(seen, key=lambda look: (look.epoch, look.observation.now)):
        if former is None or former.epoch != one.epoch:
            first.begin()
            second.begin()
            former = None
        before = None if former is None else former.targets
        pairs.append(_Pair(one, before, first.decide(one, before), second.decide(one, before)))
        former = one
    return CapacityAgain(
        remade=len(pairs),
        as_recorded=sum(pair.old.targets == pair.seen.targets for pair in pairs),
        elsewhere=sum(pair.old.targets != pair.new.targets for pair in pairs),
        otherwise=sum(pair.differ and pair.old.targets == pair.new.targets for pair in pairs),
        changes=tuple(_stretches(pairs)),
    )


class _Deciding:
    """One policy's decisions, and what it remembers of its own from one to the next."""

    def __init__(self, policy: CapacityPolicy, profile: Profile | None) -> None:
        self._policy = policy
        self._profile = profile
        self._memory = Memory()

    def begin(self) -> None:
        """Forget everything: another controller's life, with a clock of its own."""
        self._memory = Memory()

    def decide(self, seen: Seen, before: Sizes | None) -> Outcome:
        """One decision from the real targets; it begins moves and waits for none."""
        policy = self._in_force(seen.observation.wall)
        memory = replace(self._memory, targets=before, plan=before, move=None)
        decision, memory = decide(seen.observation, policy, memory)
        if decision.begun:
            memory = replace(memory, cooling_until=seen.observation.now + policy.cooldown_s)
        self._memory = memory
        return _outcome(decision)

    def _in_force(self, wall: float) -> PolicyInForce:
        policy = in_force(self._policy, 1, "", overrides=(), hold=None, wall=wall)
        if self._profile is None:
            return policy
        return with_measured_limits(policy, self._profile, Served(self._profile.fingerprint))


def _outcome(decision: Decision) -> Outcome:
    return Outcome(decision.targets, decision.reason, decision.summary)


def _stretches(pairs: Sequence[_Pair]) -> list[CapacityChange]:
    found = []
    for _, group in groupby(pairs, key=lambda pair: pair.key):
        first, *rest = group
        if first.differ:
            last = rest[-1] if rest else first
            found.append(
                CapacityChange(
                    first.seen.observation.wall,
                    last.seen.observation.wall,
                    first.before,
                    first.old,
                    first.new,
                )
            )
    return found
