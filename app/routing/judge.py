"""Whether a pool satisfies what a way to serve a request demands, and which of its replicas do; pure."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace

from app.candidates import Candidate
from app.routing.ask import Ask
from app.routing.options import OWN_POOL, Option
from app.routing.predict import NO_SPEED, Prediction, predict, stay_s
from app.routing.verdicts import Verdict
from app.routing.views import PoolView, emptiest
from autoscaling.routing_rules import RoutingRules, TierRules
from autoscaling.types import Role, Tier

NO_RULES = TierRules()


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a pool is worth to one request."""

    verdict: Verdict
    prediction: Prediction  # at the emptiest replica that has room, without one at the emptiest
    witnesses: tuple[Candidate, ...]  # what the verdict rests on: with these alone it is the same
    roomy: tuple[Candidate, ...] = ()  # with CHOSEN, the replicas that satisfy everything


def judge(
    option: Option, view: PoolView, ask: Ask, rules: RoutingRules, *, alternative: bool = False
) -> Judgement:
    """Judge one way to serve a request; `alternative`: the other pool has replicas that take it."""
    least = view.emptiest
    strict = alternative and option.in_time and _kept_elsewhere(option, ask, rules)

    def at(one: Candidate | None) -> Prediction:
        return predict(option.role, ask.sequences + (0 if one is None else one.load), ask, rules)

    if not view.open:
        busy = next((one for one in view.able if not one.hard_room), None)
        return Judgement(_closed(view, busy), at(least), _both(least, busy))
    if option.guest and not rules.backfill:
        return Judgement(Verdict.BACKFILL_OFF, at(least), _both(least, None))
    alone = option.only or not option.reserved
    reserve = rules.reserve if option.reserved else 0
    roomy = view.open if ask.wider else view.roomy(ask.sequences, reserve, alone=alone)
    best = emptiest(roomy)
    if best is None:
        free = emptiest(view.roomy(ask.sequences, 0, alone=alone))
        return Judgement(Verdict.RESERVE_KEPT if free else Verdict.FULL, at(least), _both(least, free))
    prediction = at(best)
    against = _against(option, prediction, best.load, ask, rules, strict=strict)
    if against is not None:
        return Judgement(against, prediction, _both(least, best))
    good = roomy if option.room_is_enough else _good_enough(option, roomy, ask, rules, strict=strict)
    return Judgement(Verdict.CHOSEN, prediction, _both(least, best), good)


def _both(one: Candidate | None, other: Candidate | None) -> tuple[Candidate, ...]:
    return tuple(found for found in (one, None if other is one else other) if found is not None)


def _good_enough(
    option: Option, roomy: tuple[Candidate, ...], ask: Ask, rules: RoutingRules, *, strict: bool
) -> tuple[Candidate, ...]:
    """Those against which nothing stands; a fuller replica is never faster, so they are the emptier ones.

    Nothing stands against the emptiest.
    """

    def too_full(load: int) -> bool:
        prediction = predict(option.role, load + ask.sequences, ask, rules)
        return _against(option, prediction, load, ask, rules, strict=strict) is not None

    loads = sorted({one.load for one in roomy})
    if len(loads) == 1 or not too_full(loads[-1]):
        return roomy
    enough = bisect_left(loads, True, key=too_full)
    return tuple(one for one in roomy if one.load < loads[enough])


def _kept_elsewhere(option: Option, ask: Ask, rules: RoutingRules) -> bool:
    """Whether the other pool, by its cost model, keeps the objective while it is idle.

    Then a pool that never keeps it is not excused: the request goes there, or waits for it.
    """
    if not (option.role in rules.costs and option.role.other in rules.costs):
        return False
    objective = rules.tiers.get(ask.tier, NO_RULES)
    return predict(option.role.other, ask.sequences, ask, rules).miss(objective, strict=True) is None


def _against(
    option: Option, prediction: Prediction, load: int, ask: Ask, rules: RoutingRules, *, strict: bool
) -> Verdict | None:
    """What stands against a replica with room that has `load` sequences, and this prediction."""
    if option.in_time and not _own_pool_by_recent(option, ask, rules):
        at_home = option.role is OWN_POOL[ask.tier]
        objective = rules.tiers.get(ask.tier, NO_RULES)
        missed = prediction.miss(objective, strict=strict, at_home=at_home)
        # Asked only of a miss: it is a prediction of its own, and most requests miss nothing.
        late = missed is Verdict.WOULD_MISS_TPOT and at_home and not strict
        if late and _is_kept_for_nobody(option.role, objective, ask, rules):
            missed = prediction.miss(replace(objective, tpot_s=None), at_home=at_home)
        if missed is not None:
            return missed
    if option.reserved and not option.only and _hurts_interactive(option, load + ask.sequences, ask, rules):
        return Verdict.WOULD_MISS_TPOT
    if option.guest:
        stay = stay_s(option.role, prediction, ask, rules)
        if stay is None:
            return Verdict.STAY_UNKNOWN
        if stay > rules.backfill_residence_s:
            return Verdict.STAY_TOO_LONG
    return None


def _is_kept_for_nobody(role: Role, objective: TierRules, ask: Ask, rules: RoutingRules) -> bool:
    """Whether a mean request of the tier misses its time per token even alone, by the pool's cost model.

    Then it sets no limit and keeps no guest out, so that the few requests that could keep it would wait
    behind all others for a load that never falls.
    """
    if objective.tpot_s is None or role not in rules.costs:
        return False
    alone = predict(role, 1, replace(_mean_interactive(ask, rules), tier=ask.tier), rules)
    return alone.best_tpot_s is not None and alone.best_tpot_s > objective.tpot_s


def _own_pool_by_recent(option: Option, ask: Ask, rules: RoutingRules) -> bool:
    """Whether this is the tier's own pool without a cost model.

    There the limits decide alone: the last minute's times would turn a whole tier away for a minute.
    """
    return option.role is OWN_POOL[ask.tier] and option.role not in rules.costs


def _hurts_interactive(option: Option, load: int, ask: Ask, rules: RoutingRules) -> bool:
    """Whether interactive requests would miss their time per token there, with the reserve filled.

    Without a cost model the last minute's times tell; they say nothing about a replica that is idle now,
    but a guest comes with many others.
    """
    objective = TierRules(tpot_s=rules.tiers.get(Tier.INTERACTIVE, NO_RULES).tpot_s)
    if objective.tpot_s is None:
        return False
    if option.role in rules.costs:
        full = predict(option.role, load + rules.reserve, _mean_interactive(ask, rules), rules)
        return full.miss(objective) is not None
    recent = rules.speeds.get(option.role, NO_SPEED).tpot_p95_s
    late = recent is not None and recent > objective.tpot_s
    return late and (option.guest or load > ask.sequences)


def _mean_interactive(ask: Ask, rules: RoutingRules) -> Ask:
    """The interactive request that might come into the reserve: of this length, with the mean gain.

    Its length also stands for that of the prompts which come meanwhile, until their mean is known.
    """
    mean = rules.tokens_per_step.get("mean")
    return Ask(Tier.INTERACTIVE, prompt_tokens=ask.prompt_tokens, tokens_per_step=mean)


def _closed(view: PoolView, busy: Candidate | None) -> Verdict:
    if view.accepting == 0:
        return Verdict.NO_REPLICA
    if not view.able:
        return Verdict.REFUSES_PARAMETER
    return Verdict.TRIED if busy is None else Verdict.FULL
