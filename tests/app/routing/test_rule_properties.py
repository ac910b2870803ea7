"""The routing rule by properties, in random worlds."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from app.candidates import Candidate
from app.routing.ask import Ask
from app.routing.judge import _is_kept_for_nobody
from app.routing.predict import predict, stay_s
from app.routing.route import Decision, Refusal, decide, refusal_of, route_of
from app.routing.rule import SLOWED, choose_pool
from app.routing.verdicts import PASSING, Verdict
from app.routing.views import PoolView
from autoscaling.route_reasons import RouteReason
from autoscaling.routing_rules import RoutingRules, TierRules
from autoscaling.types import Role, Tier
from tests.app.routing import worlds

WORLD = (worlds.asks, worlds.replicas(), worlds.rules, worlds.names_tried, st.integers(0, 2**32))


def made(
    ask: Ask, candidates: tuple[Candidate, ...], rules: RoutingRules, tried: frozenset[str], seed: int
) -> Decision:
    return decide(ask, candidates, rules, tried=tried, choose=Random(seed).randrange)


def with_room(view: PoolView, ask: Ask, reserve: int) -> list[Candidate]:
    return [one for one in view.open if one.free_for(reserve) >= ask.sequences]


@settings(deadline=None)
@given(*WORLD)
def test_the_rule_is_total(
    ask: Ask, candidates: tuple[Candidate, ...], rules: RoutingRules, tried: frozenset[str], seed: int
) -> None:
    """A verdict on each pool; a route exactly when one is chosen, and else a reason to wait or to refuse."""
    decision = made(ask, candidates, rules, tried, seed)
    choice, route = decision.choice, route_of(decision)

    assert set(Role) == set(choice.verdicts)
    assert (route is None) == (choice.option is None) == (choice.roomy == ()) == (decision.replica is None)
    chosen = [role for role, verdict in choice.verdicts.items() if verdict is Verdict.CHOSEN]
    assert chosen == ([] if route is None else [route.pool])
    if route is None:
        waits = refusal_of(decision) is Refusal.NO_ROOM
        assert waits == any(verdict in PASSING for verdict in choice.verdicts.values())
    else:
        assert route.replica.role is route.pool
        assert (route.reason is RouteReason.PINNED_BY_CALLER) == (ask.pin is not None)


@settings(deadline=None)
@given(*WORLD)
def test_only_a_replica_that_may_serve_is_taken(
    ask: Ask, candidates: tuple[Candidate, ...], rules: RoutingRules, tried: frozenset[str], seed: int
) -> None:
    """It takes work and all parameters, was not tried, is in the pinned pool, and has room or is idle."""
    replica = made(ask, candidates, rules, tried, seed).replica
    if replica is None:
        return
    taken = replica.taken

    assert taken.replica.accepting
    assert taken.hard_room
    assert ask.parameters.isdisjoint(taken.replica.capabilities.refuses)
    assert taken.replica.replica_id not in tried
    assert ask.among is None or taken.replica.replica_id in ask.among
    assert ask.pin in (None, taken.replica.role)
    assert taken.free >= ask.sequences or (taken.load == 0 and taken.free > 0)


@settings(deadline=None)
@given(*WORLD)
def test_the_reserve_is_left_to_interactive_requests(
    ask: Ask, candidates: tuple[Candidate, ...], rules: RoutingRules, tried: frozenset[str], seed: int
) -> None:
    """Others leave it, unless nothing else can serve them and the replica is idle."""
    decision = made(ask, candidates, rules, tried, seed)
    route, replica = route_of(decision), decision.replica
    if route is None or replica is None or ask.tier is Tier.INTERACTIVE or route.pool is Role.PLAIN:
        return
    taken, plain = replica.taken, decision.views[Role.PLAIN]

    left = taken.limit - taken.load - ask.sequences
    if ask.pin is None and plain.able:
        assert left >= rules.reserve
    else:
        assert left >= rules.reserve or taken.load == 0


@settings(deadline=None)
@given(*WORLD)
def test_interactive_waits_only_where_no_pool_keeps_its_objective(
    ask: Ask, candidates: tuple[Candidate, ...], rules: RoutingRules, tried: frozenset[str], seed: int
) -> None:
    """Every replica with room is predicted to miss; in its own pool only a cost model may say that.

    One that misses even while it is idle is no way out while the other pool would keep the objective.
    """
    ask = replace(ask, tier=Tier.INTERACTIVE, pin=None)
    decision = made(ask, candidates, rules, tried, seed)
    if decision.choice.option is not None:
        return
    for role, view in decision.views.items():
        for one in with_room(view, ask, 0):
            prediction = predict(role, one.load + ask.sequences, ask, rules)

            assert role in rules.costs or role is Role.PLAIN
            assert prediction.miss(rules.tiers[Tier.INTERACTIVE], strict=True) is not None


@settings(deadline=None)
@given(*WORLD)
def test_interactive_is_sent_only_where_it_is_in_time(
    ask: Ask, candidates: tuple[Candidate, ...], rules: RoutingRules, tried: frozenset[str], seed: int
) -> None:
    """Whatever replica is drawn, while there are two pools and the speculative one has a cost model.

    At home a time per token that is kept for nobody turns nobody away.
    """
    ask = replace(ask, tier=Tier.INTERACTIVE, pin=None)
    decision = made(ask, candidates, rules, tried, seed)
    route, replica = route_of(decision), decision.replica
    if route is None or replica is None or not decision.views[Role.SPECULATIVE].able:
        return
    at_home, objective = route.pool is Role.SPECULATIVE, rules.tiers[Tier.INTERACTIVE]
    if at_home and Role.SPECULATIVE not in rules.costs:
        return
    if at_home and _is_kept_for_nobody(Role.SPECULATIVE, objective, ask, rules):
        objective = replace(objective, tpot_s=None)
    prediction = predict(route.pool, replica.taken.load + ask.sequences, ask, rules)

    assert prediction.miss(objective, at_home=at_home) is None


@settings(deadline=None)
@given(*WORLD)
def test_backfill_hurts_nobody(
    ask: Ask, candidates: tuple[Candidate, ...], rules: RoutingRules, tried: frozenset[str], seed: int
) -> None:
    """Plain has no room or is slower; with the reserve filled the objective holds; the stay is short."""
    ask = replace(ask, tier=Tier.BATCH, pin=None)
    decision = made(ask, candidates, rules, tried, seed)
    route, replica = route_of(decision), decision.replica
    if route is None or replica is None or route.reason is not RouteReason.BACKFILL:
        return
    load = replica.taken.load + ask.sequences
    assert rules.backfill
    if with_room(decision.views[Role.PLAIN], ask, 0):
        plain, guest = (decision.choice.judged[role].prediction for role in (Role.PLAIN, Role.SPECULATIVE))
        assert set(Role) == set(rules.costs)
        assert plain.tpot_s is not None
        assert plain.best_tpot_s is not None
        assert guest.tpot_s is not None
        assert plain.tpot_s > max(guest.tpot_s, SLOWED * plain.best_tpot_s)
        assert decision.choice.verdicts[Role.PLAIN] is Verdict.SLOWER
    stay = stay_s(Role.SPECULATIVE, predict(Role.SPECULATIVE, load, ask, rules), ask, rules)
    assert stay is not None
    assert stay <= rules.backfill_residence_s
    if Role.SPECULATIVE in rules.costs:
        visitor = Ask(
            Tier.INTERACTIVE,
            prompt_tokens=ask.prompt_tokens,
            tokens_per_step=rules.tokens_per_step.get("mean"),
        )
        full = predict(Role.SPECULATIVE, load + rules.reserve, visitor, rules)
        assert full.miss(TierRules(tpot_s=rules.tiers[Tier.INTERACTIVE].tpot_s)) is None


@settings(deadline=None)
@given(*WORLD)
def test_standard_work_that_does_not_draft_goes_to_plain(
    ask: Ask, candidates: tuple[Candidate, ...], rules: RoutingRules, tried: frozenset[str], seed: int
) -> None:
    """While the plain pool has room; its objective only decides about the other pool."""
    ask = replace(ask, tier=Tier.STANDARD, pin=None, draftable=False)
    decision = made(ask, candidates, rules, tried, seed)
    if not with_room(decision.views[Role.PLAIN], ask, 0):
        return
    route = route_of(decision)

    assert route is not None
    assert (route.pool, route.reason) == (Role.PLAIN, RouteReason.TIER_STANDARD)


@settings(deadline=None)
@given(*WORLD)
def test_an_objective_that_nobody_can_keep_makes_nobody_wait(
    ask: Ask, candidates: tuple[Candidate, ...], rules: RoutingRules, tried: frozenset[str], seed: int
) -> None:
    """With cost models: below what an idle replica gives, an objective decides as none at all does."""
    costs = {role: rules.costs.get(role, replace(worlds.COSTS[role])) for role in Role}
    hopeless = {tier: TierRules(ttft_s=1e-6, tpot_s=1e-6) for tier in Tier}
    without = replace(rules, costs=costs, tiers={})
    decision = made(ask, candidates, replace(without, tiers=hopeless), tried, seed)

    assert made(ask, candidates, without, tried, seed).choice.verdicts == decision.choice.verdicts


@settings(deadline=None)
@given(*WORLD)
def test_an_idle_replica_makes_no_interactive_request_wait(
    ask: Ask, candidates: tuple[Candidate, ...], rules: RoutingRules, tried: frozenset[str], seed: int
) -> None:
    """Nothing better can come of waiting, unless idle it misses the objective that the other pool keeps."""
    ask = replace(ask, tier=Tier.INTERACTIVE, pin=None)
    decision = made(ask, candidates, rules, tried, seed)
    objective, both = rules.tiers[Tier.INTERACTIVE], set(Role) == set(rules.costs)

    def kept(role: Role) -> bool:
        return predict(role, ask.sequences, ask, rules).miss(objective, strict=True) is None

    idle = [
        one
        for role, view in decision.views.items()
        for one in view.open
        if one.load == 0 and one.free > 0
        if not (both and decision.views[role.other].able and kept(role.other) and not kept(role))
    ]

    assert idle == [] or decision.choice.option is not None


@settings(deadline=None)
@given(*WORLD)
def test_the_witnesses_alone_give_the_same_verdict(
    ask: Ask, candidates: tuple[Candidate, ...], rules: RoutingRules, tried: frozenset[str], seed: int
) -> None:
    """What a record keeps of a pool is what its verdict rests on, and what was predicted there."""
    decision = made(ask, candidates, rules, tried, seed)
    views = {
        role: PoolView(
            role,
            view.accepting,
            able=decision.choice.judged[role].witnesses,
            open=decision.choice.judged[role].witnesses if view.open else (),
            emptiest=view.emptiest,
        )
        if role in decision.choice.judged
        else view
        for role, view in decision.views.items()
    }
    again = choose_pool(ask, views, rules)

    assert decision.choice.verdicts == again.verdicts
    assert {role: found.prediction for role, found in decision.choice.judged.items()} == {
        role: found.prediction for role, found in again.judged.items()
    }
