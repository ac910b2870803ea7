"""The routing rule: which pool serves a request; pure and total.

interactive  the speculative pool while it has room and keeps the objective, else the plain pool if that does
standard     the speculative pool where drafts pay and the reserve stays, else the plain pool,
             else the speculative pool above the reserve
batch        the plain pool, else what the speculative pool has above the reserve, for a short stay

A pool that has no replica, or refuses a parameter, leaves its place to the other one.  Whoever finds no
pool waits, and is refused at the deadline of its tier.  `options` has the order, `judge` what is demanded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.candidates import Candidate
from app.routing.ask import Ask
from app.routing.judge import Judgement, judge
from app.routing.options import OWN_POOL, Option, Views, options
from app.routing.verdicts import Verdict
from autoscaling.routing_rules import RoutingRules
from autoscaling.types import Role, Tier


@dataclass(frozen=True, slots=True)
class PoolChoice:
    """The pool, or why none: a verdict on each, and all that is known of those that were judged."""

    option: Option | None
    verdicts: Mapping[Role, Verdict]
    judged: Mapping[Role, Judgement]
    roomy: tuple[Candidate, ...] = ()  # the replicas of the chosen pool that satisfy everything


def preferred_role(tier: Tier, pin: Role | None) -> Role:
    """Tell which pool a request is for when both have room."""
    return pin or OWN_POOL[tier]


def choose_pool(ask: Ask, views: Views, rules: RoutingRules) -> PoolChoice:
    """Take the first option that satisfies everything it has to."""
    judged: dict[Role, Judgement] = {}
    for option in options(ask, views):
        other = bool(views[option.role.other].able)
        found = judged[option.role] = judge(option, views[option.role], ask, rules, alternative=other)
        if found.verdict is Verdict.CHOSEN:
            return PoolChoice(option, _verdicts(ask, views, judged), judged, found.roomy)
    return PoolChoice(None, _verdicts(ask, views, judged), judged)


def _verdicts(ask: Ask, views: Views, judged: Mapping[Role, Judgement]) -> dict[Role, Verdict]:
    """A verdict on each pool, also on one that was not judged."""
    return {role: judged[role].verdict if role in judged else _passed_over(ask, views, role) for role in Role}


def _passed_over(ask: Ask, views: Views, role: Role) -> Verdict:
    if ask.pin is not None:
        return Verdict.PINNED_ELSEWHERE
    if not views[role].able:
        return Verdict.REFUSES_PARAMETER if views[role].accepting else Verdict.NO_REPLICA
    return Verdict.NOT_PREFERRED
