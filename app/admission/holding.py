"""Keeps freed room together for a request of several sequences, which single ones would overtake; pure.

The rule: the first of a lane that needs several sequences, finds no replica with so many free, and has
waited for a quarter of its deadline or 2 s, is held for.  One replica, the emptiest of those that would
serve it if they were idle, gives its room to nobody who comes after it: no lower tier, no later request of
its tier.  That ends when it is seated, refused at its deadline, or leaves.  One is held for at a time, and
between two holds another has a turn, first a tier that is owed one: no share waits for longer than that
deadline.  What no idle replica would serve is never held for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from app.admission.turns import BY_RANK
from app.candidates import Candidate
from app.routing.ask import Ask
from app.routing.route import decide
from autoscaling.routing_rules import RoutingRules
from autoscaling.types import Tier

LONGEST_PATIENCE_S: Final = 2.0
PATIENCE: Final = 0.25  # of the deadline
RANK: Final = {tier: rank for rank, tier in enumerate(BY_RANK)}


def patience_s(deadline_s: float) -> float:
    """How long a request of several sequences waits before room is held for it."""
    return min(LONGEST_PATIENCE_S, PATIENCE * deadline_s)


def replica_to_hold(ask: Ask, view: Sequence[Candidate], rules: RoutingRules) -> str | None:
    """The id of the replica that will fit soonest; None when none would if all of them were idle."""
    idle = decide(ask, [_idle(one) for one in view], rules, choose=_first)
    able = {one.replica.replica_id for one in idle.choice.roomy}
    usable = [one for one in view if one.replica.replica_id in able]
    found = min(usable, key=lambda one: (one.load, -one.own_free), default=None)
    return None if found is None else found.replica.replica_id


def comes_after(tier: Tier, entered: float, held: Tier, held_entered: float) -> bool:
    """Whether a request has to leave the room to the held one."""
    return RANK[tier] > RANK[held] or (tier is held and entered >= held_entered)


def without(replica_id: str, view: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The replicas as those see them who come after the held one: that one has no room."""
    return tuple(
        replace(one, hard_room=False) if one.replica.replica_id == replica_id else one for one in view
    )


def _idle(one: Candidate) -> Candidate:
    return replace(one, load=0, own_free=one.replica.soft_share, hard_room=one.replica.accepting, work=0.0)


def _first(_count: int) -> int:
    return 0
