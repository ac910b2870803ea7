"""What the control loop holds in memory, and the document of it that a successor reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from autoscaling.decisions import Decision, Hold, Memory, Move, Observation, PolicyInForce
from autoscaling.moves import in_flight
from autoscaling.overrides import Override
from autoscaling.profile import Profile
from autoscaling.profile_match import Served
from deployments.kept_state import MOVES_KEPT, State
from deployments.policy_book import PolicyBook

HOLD = "hold"


@dataclass(slots=True)
class ControlState:
    """Changed by the loop and by an operator's orders, both on one event loop."""

    book: PolicyBook
    memory: Memory = field(default_factory=Memory)
    shadow_memory: Memory | None = None
    hold: Hold | None = None  # an operator's
    overrides: tuple[Override, ...] = ()  # operators'
    moves: list[dict[str, Any]] = field(default_factory=list)  # oldest first
    observation: Observation | None = None
    policy: PolicyInForce | None = None
    profile: Profile | None = None  # the last good one, of whatever was measured
    served: Served = field(default_factory=Served)  # by the reports of this tick
    decision: Decision | None = None
    shadow: Decision | None = None  # of the revision that is only evaluated
    moves_ended: dict[str, int] = field(default_factory=dict)  # by state, since this life began
    ticks: int = 0
    ticked_wall: float | None = None
    failures: int = 0  # ticks that ended in an error
    # By the monotonic clock: before it neither a hold nor an override is forgotten, whatever the wall clock
    # says.  By "hold", or by the id of an override.
    ends: dict[str, float] = field(default_factory=dict)

    def set_hold(self, hold: Hold | None, now: float, wall: float) -> None:
        """Have an operator's hold from this moment on, or none."""
        self.hold = hold
        self.ends.pop(HOLD, None)
        if hold is not None and hold.expires is not None:
            self.ends[HOLD] = now + max(0.0, hold.expires - wall)

    def set_overrides(self, overrides: tuple[Override, ...], now: float, wall: float) -> None:
        """Have these overrides from this moment on; those that were there keep their ends."""
        known = {HOLD: self.ends[HOLD]} if HOLD in self.ends else {}
        left = {one.id: now + max(0.0, one.until - wall) for one in overrides}
        self.overrides = overrides
        self.ends = known | {key: self.ends.get(key, left[key]) for key in left}

    def drop_ended(self, now: float, wall: float) -> None:
        """Forget the hold and the overrides that are past by the wall clock and by the time that has passed.

        A wall clock that is hours ahead for a moment only suspends them; one that was set right for good
        ends them, and they are forgotten when their length has passed.
        """
        hold = self.hold
        if hold is not None and hold.expires is not None and wall >= hold.expires and self._passed(HOLD, now):
            self.set_hold(None, now, wall)
        left = tuple(one for one in self.overrides if wall < one.until or not self._passed(one.id, now))
        if left != self.overrides:
            self.set_overrides(left, now, wall)

    def _passed(self, key: str, now: float) -> bool:
        return now >= self.ends.get(key, now)

    def note_move(self, move: Move | None) -> None:
        """Keep the newest word on a move, and count its end once."""
        if move is None:
            return
        known = next((old["state"] for old in reversed(self.moves) if old["id"] == move.id), None)
        if not in_flight(move) and known != move.state.value:
            self.moves_ended[move.state.value] = self.moves_ended.get(move.state.value, 0) + 1
        plain = msgspec.to_builtins(move)
        self.moves = [*(old for old in self.moves if old["id"] != move.id), plain][-MOVES_KEPT:]

    def document(self, now: float, wall: float) -> State:
        """Everything that must outlive this controller."""
        active = self.book.active
        return State(
            saved_wall=wall,
            saved_now=now,
            memory=msgspec.to_builtins(self.memory),
            shadow_memory=None if self.shadow_memory is None else msgspec.to_builtins(self.shadow_memory),
            holds=() if self.hold is None else (msgspec.to_builtins(self.hold),),
            overrides=tuple(msgspec.to_builtins(override) for override in self.overrides),
            revisions=self.book.revisions,
            active_revision=None if active is None else active.number,
            seen_revision=self.book.seen_revision,
            move_log=tuple(self.moves),
        )


def tells_more(
    decision: Decision, before: Decision, policy: PolicyInForce, former_policy: PolicyInForce
) -> bool:
    """Whether a decision differs from the one before in anything that a person or a successor needs."""
    move, moved = decision.move, before.move
    return (
        (decision.reason, decision.targets, decision.plan, decision.revision)
        != (before.reason, before.targets, before.plan, before.revision)
        or (decision.hold and decision.hold.by) != (before.hold and before.hold.by)
        or (move and (move.id, move.state)) != (moved and (moved.id, moved.state))
        or decision.ended is not None
        or policy.budget_max != former_policy.budget_max
    )
