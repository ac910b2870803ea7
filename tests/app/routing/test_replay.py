"""A recorded decision is made again from the record alone, with the same result."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.candidates import Candidate
from app.routing.ask import Ask
from app.routing.replay import Replayed, recorded, replay
from app.routing.route import decide, record, route_of
from app.routing.verdicts import Verdict
from autoscaling.route_reasons import RouteReason
from autoscaling.routing_rules import RoutingRules
from autoscaling.types import Role, Tier
from tests.app.routing import worlds
from tests.app.routing.worlds import MEASURED, PROFILED, decided, plain, spec


@settings(deadline=None)
@given(worlds.asks, worlds.replicas(), worlds.rules, worlds.names_tried, st.integers(0, 2**32))
def test_a_decision_is_reproduced(
    ask: Ask, candidates: tuple[Candidate, ...], rules: RoutingRules, tried: frozenset[str], seed: int
) -> None:
    """Pool, reason, verdicts and replica, of a refusal too, after a way through JSON."""
    decision = decide(ask, candidates, rules, tried=tried, choose=Random(seed).randrange)
    found = json.loads(json.dumps(record(decision), allow_nan=False))
    route = route_of(decision)
    expected = Replayed(
        None if route is None else route.pool,
        None if route is None else route.reason,
        decision.choice.verdicts,
        None if route is None else route.replica.replica_id,
    )

    assert expected == replay(found)
    assert expected == recorded(found)


def test_what_a_record_says() -> None:
    """The pools, the objective and the compared replicas in plain numbers, as the pages name them."""
    ask = Ask(Tier.BATCH, max_tokens=128)
    found = record(decided(ask, [spec(5), spec(7, "s2"), plain(32)], MEASURED))

    assert found["reason"] == "backfill"
    assert found["objective"] == {"ttft_s": 60.0, "tpot_s": None}
    shown = {key: found["pools"]["speculative"][key] for key in list(found["pools"]["speculative"])[:-1]}
    assert shown == {
        "accepting": 2,
        "able": 2,
        "open": 2,
        "load": 5,
        "limit": 8,
        "free": 3,
        "reserve": 2,
        "predicted_ttft_s": 0.3,
        "predicted_tpot_s": 0.03,
        "from": "recent",
        "verdict": "chosen",
    }
    assert (found["pools"]["plain"]["verdict"], found["pools"]["plain"]["reserve"]) == ("full", 0)
    assert found["replicas"] == [{"id": "s", "load": 5, "work": 500.0, "chosen": True, "why": "only_one"}]


def test_both_compared_replicas_are_in_the_record() -> None:
    """Also the one that was not taken."""
    found = record(decided(Ask(Tier.BATCH), [plain(3, "p1"), plain(2, "p2"), plain(1, "p3")]))

    assert found["replicas"] == [
        {"id": "p1", "load": 3, "work": 300.0, "chosen": False, "why": None},
        {"id": "p2", "load": 2, "work": 200.0, "chosen": True, "why": "less_work"},
    ]


def test_an_altered_record_comes_to_something_else() -> None:
    """A limit that was lower would have let the request spill."""
    found = record(decided(Ask(Tier.INTERACTIVE), [spec(5), plain()], PROFILED))
    for one in found["pools"]["speculative"]["candidates"]:
        one["limit"], one["own_free"] = 5, 0

    assert recorded(found) == Replayed(
        Role.SPECULATIVE,
        RouteReason.TIER_INTERACTIVE,
        {Role.SPECULATIVE: Verdict.CHOSEN, Role.PLAIN: Verdict.NOT_PREFERRED},
        "s",
    )
    again = replay(found)
    assert (again.pool, again.reason) == (Role.PLAIN, RouteReason.SPILL)


@pytest.mark.parametrize("part", ["ask", "rules", "pools", "draw", "objective"])
def test_a_record_that_holds_too_little_is_refused(part: str) -> None:
    """As one of an older version does; never a wrong answer."""
    found = record(decided(Ask(Tier.INTERACTIVE), [spec(), plain()]))
    del found[part]

    with pytest.raises(ValueError, match=f"cannot be replayed: KeyError: '{part}'"):
        replay(found)


@pytest.mark.parametrize(
    "ask",
    [
        Ask(Tier.INTERACTIVE),
        Ask(Tier.STANDARD, conversation="0123456789abcdef"),
        Ask(Tier.BATCH, among=frozenset(f"s{number}" for number in range(500))),
    ],
)
def test_a_record_is_small_in_a_large_fleet(ask: Ask) -> None:
    """The same few replicas are in it, with 1000 as with ten."""
    fleet = [
        *(spec(number % 8, f"s{number}") for number in range(500)),
        *(plain(number % 30, f"p{number}") for number in range(500)),
    ]
    found = record(decided(replace(ask, max_tokens=128), fleet, PROFILED))

    assert len(json.dumps(found)) < 4000
    assert max(len(pool["candidates"]) for pool in found["pools"].values()) <= 5
