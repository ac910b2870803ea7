"""The routing rule: which pool serves a request; pure and total.

interactive  the speculative pool while it has room and keeps the objective, else the plain pool if that does
standard     the speculative pool where drafts pay and the reserve stays, else the plain pool,
             else the speculative pool above the reserve
batch        the plain pool, else what the speculative pool has above the reserve, for a short stay; by the
             cost models of both pools, that room also while the plain pool is slowed by its load and slower

A pool that has no replica, or refuses a parameter, leaves its place to the other one.  Whoever finds no
pool waits, and is refused at the deadline of its tier.  `options` has the order, `judge` what is demanded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final

from app.candidates import Candidate
from app.routing.ask import Ask
from app.routing.judge import Judgement, judge
from app.routing.options import OWN_POOL, Option, Views, options
from app.routing.predict import Prediction
from app.routing.verdicts import Verdict
from autoscaling.routing_rules import RoutingRules
from autoscaling.types import Role, Tier

# Time per token over that of an idle replica from which a pool counts as slowed by its load: below, batch
# work has no reason to slow interactive requests, however well they may bear it.
SLOWED: Final = 1.25


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
    ways = options(ask, views)
    for option, following in zip_longest(ways, ways[1:]):
        found = judged[option.role] = _judged(option, ask, views, rules)
        if found.verdict is Verdict.CHOSEN:
            taken = option
            if option.yields and following is not None and _is_slowed(found.prediction, rules):
                taken = _of_two(option, following, judged, ask, views, rules)
            return PoolChoice(taken, _verdicts(ask, views, judged), judged, judged[taken.role].roomy)
    return PoolChoice(None, _verdicts(ask, views, judged), judged)


def _of_two(
    own: Option,
    guest: Option,
    judged: dict[Role, Judgement],
    ask: Ask,
    views: Views,
    rules: RoutingRules,
) -> Option:
    """The own pool, which would do, or the way that relieves it where that would too and is sooner."""
    found = judged[guest.role] = _judged(guest, ask, views, rules)
    if found.verdict is not Verdict.CHOSEN:
        return own
    own_s, guest_s = judged[own.role].prediction.tpot_s, found.prediction.tpot_s
    sooner = own_s is not None and guest_s is not None and guest_s < own_s
    taken, left = (guest, own) if sooner else (own, guest)
    judged[left.role] = replace(judged[left.role], verdict=Verdict.SLOWER)
    return taken


def _judged(option: Option, ask: Ask, views: Views, rules: RoutingRules) -> Judgement:
    other = bool(views[option.role.other].able)
    return judge(option, views[option.role], ask, rules, alternative=other)


def _is_slowed(prediction: Prediction, rules: RoutingRules) -> bool:
    """Whether the cost models of both pools are known, and by its own a pool is slowed by its load."""
    if set(rules.costs) != set(Role) or prediction.tpot_s is None or prediction.best_tpot_s is None:
        return False
    return prediction.tpot_s > SLOWED * prediction.best_tpot_s


def _verdicts(ask: Ask, views: Views, judged: Mapping[Role, Judgement]) -> dict[Role, Verdict]:
    """A verdict on each pool, also on one that was not judged."""
    return {role: judged[role].verdict if role in judged else _passed_over(ask, views, role) for role in Role}


def _passed_over(ask: Ask, views: Views, role: Role) -> Verdict:
    if ask.pin is not None:
        return Verdict.PINNED_ELSEWHERE
    if not views[role].able:
        return Verdict.REFUSES_PARAMETER if views[role].accepting else Verdict.NO_REPLICA
    return Verdict.NOT_PREFERRED
