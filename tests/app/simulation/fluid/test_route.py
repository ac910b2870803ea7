"""How much of each kind each pool takes, by the ingress's own rule."""

from __future__ import annotations

import pytest

from app.routing.ask import Ask
from app.routing.predict import predict
from app.simulation.fluid.level import Level
from app.simulation.fluid.load import FluidLoad, load_of
from app.simulation.fluid.route import Router
from app.simulation.replica import Limits
from autoscaling.routing_rules import RoutingRules, TierRules
from autoscaling.types import Role, Tier
from tests.app.routing.worlds import MEASURED as FAST
from tests.app.simulation.services import ENGINES, profile_of, steady, together

LOAD = load_of(together(steady(Tier.INTERACTIVE, 1, 5), steady(Tier.BATCH, 1, 5)))
INTERACTIVE, BATCH = 0, 1
LIMITS = {Role.SPECULATIVE: Limits(8, 64), Role.PLAIN: Limits(32, 64)}
ONE_EACH = dict.fromkeys(Role, 1)
SEEN = dict.fromkeys(Role, 1.0)
PROFILE = profile_of(ENGINES)
MEASURED = RoutingRules(
    tiers={Tier.INTERACTIVE: TierRules(tpot_s=0.012)},
    costs=PROFILE.costs,
    tokens_per_step=PROFILE.tokens_per_step,
)


RULES = RoutingRules()


def router(
    rules: RoutingRules = RULES, replicas: dict[Role, int] = ONE_EACH, load: FluidLoad = LOAD
) -> Router:
    made = Router(load)
    made.renew(rules, LIMITS, replicas, SEEN)
    return made


def levels(
    speculative: float = 0.0, plain: float = 0.0, replicas: int = 1, staying: float = 1.0
) -> list[Level]:
    return [Level(load, load, replicas, [staying] * 2) for load in (speculative, plain)]


def test_a_tier_goes_to_its_pool_and_spills_at_the_limit() -> None:
    """Ten interactive requests: eight fit, two spill."""
    there = levels()

    assert (8.0, 2.0) == router().fill(INTERACTIVE, 10.0, there)
    assert (8.0, 2.0) == (there[0].load, there[1].load)


def test_the_rest_waits() -> None:
    """Room for 8 and 32, and 50 come."""
    assert (8.0, 32.0) == router().fill(INTERACTIVE, 50.0, levels())


def test_a_load_between_whole_sequences_is_filled_up() -> None:
    """Two replicas with 7.25 sequences each have room for 1.5."""
    assert (1.5, 8.5) == router().fill(INTERACTIVE, 10.0, levels(speculative=7.25, replicas=2))


def test_who_leaves_within_the_tick_takes_less_room() -> None:
    """Half of those let in are gone at its end: twice as many fit."""
    assert (16.0, 4.0) == router().fill(INTERACTIVE, 20.0, levels(staying=0.5))


def test_a_closed_pool_takes_nothing() -> None:
    """Its requests go to the other one, or wait."""
    assert (0.0, 3.0) == router(RULES, {Role.SPECULATIVE: 0, Role.PLAIN: 1}).fill(INTERACTIVE, 3.0, levels())
    assert (0.0, 0.0) == router(RULES, dict.fromkeys(Role, 0)).fill(INTERACTIVE, 3.0, levels())


def test_the_choice_is_the_rule_s_own() -> None:
    """At the load at which the rule finds that interactive requests would miss their objective."""
    made = router()
    made.renew(MEASURED, dict.fromkeys(Role, Limits(256, 256)), ONE_EACH, SEEN)
    ask = Ask(Tier.INTERACTIVE, prompt_tokens=500, tokens_per_step=PROFILE.tokens_per_step["chat"])
    objective = MEASURED.tiers[Tier.INTERACTIVE]
    edge = next(
        load
        for load in range(256)
        if predict(Role.SPECULATIVE, load + 1, ask, MEASURED).miss(objective, at_home=True) is not None
    )

    assert 100 < edge < 200
    assert [0, 1] == [made.choose(INTERACTIVE, load, 0) for load in (edge - 1, edge)]
    assert (float(edge), 10.0) == made.fill(INTERACTIVE, edge + 10.0, levels())


def test_other_rules_are_obeyed_at_once() -> None:
    """What was known of routes is forgotten with the rules it rested on."""
    made = router()
    made.fill(INTERACTIVE, 10.0, levels())
    made.renew(RULES, {Role.SPECULATIVE: Limits(4, 64), Role.PLAIN: Limits(32, 64)}, ONE_EACH, SEEN)

    assert (4.0, 6.0) == made.fill(INTERACTIVE, 10.0, levels())


def test_equals_of_a_tier_go_together() -> None:
    """Documents of both lengths bear a plain replica as full as its limit: none of them is first."""
    load = load_of(
        together(
            steady(Tier.INTERACTIVE, 1, 5),
            steady(Tier.BATCH, 1, 5, prompt=4000),
            steady(Tier.BATCH, 1, 5, prompt=100),
        )
    )

    assert [[1, 2], [0]] == router(load=load).by_tolerance([0, 1, 2], levels(speculative=7.0))


def test_whoever_stays_at_home_is_no_guest() -> None:
    """Room for 8 where these requests belong: none of the others spills."""
    assert (8.0, 0.0) == router().fill(INTERACTIVE, 10.0, levels(), at_home=True)


def test_guests_find_the_room_of_single_replicas() -> None:
    """Beside a reserve of 2 six of eight places are theirs at each, however far apart many replicas are."""
    many = dict.fromkeys(Role, 24)
    there = levels(plain=64.0, replicas=24)
    taken, _ = router(FAST, many).fill(BATCH, 1000.0, there)

    assert 24 * 6 == pytest.approx(taken)


def test_who_bears_fuller_replicas_comes_first() -> None:
    """Short prompts are in time at a load at which long ones are not: they keep the pool so full."""
    load = load_of(
        together(
            steady(Tier.INTERACTIVE, 1, 5, prompt=4000),
            steady(Tier.INTERACTIVE, 1, 5, prompt=100),
            steady(Tier.BATCH, 1, 5),
        )
    )
    made = Router(load)
    made.renew(MEASURED, dict.fromkeys(Role, Limits(256, 256)), ONE_EACH, SEEN)
    short, long, batch = 0, 1, 2

    assert [100.0, 4000.0, 500.0] == [one.prompt_tokens for one in load.kinds]
    assert [[batch], [short], [long]] == made.by_tolerance([short, long, batch], levels())
    assert [[short], [long]] == made.by_tolerance([long, short], levels())
    assert made.choose(long, 100, 0) != 0 == made.choose(short, 100, 0)
