"""Bursts: what many requests at once do to replicas that are all seen as they were before."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from app.membership import Membership
from app.routing.ask import Ask
from app.routing.route import decide, route_of
from autoscaling.types import Role, Tier
from tests.app.routing.worlds import MEASURED
from tests.app.views import snapshot, view

DRAFTABLE = Ask(Tier.STANDARD, draftable=True, tokens_per_step=1.6)
LIMITS = {Role.SPECULATIVE: 8, Role.PLAIN: 32}
SPECULATIVE = [f"s{number}" for number in range(4)]
PLAIN = [f"p{number}" for number in range(4)]


def ingress(pools: dict[Role, list[str]], ingresses: int) -> Membership:
    """One ingress's view of idle replicas, with its share of their limits."""
    views = [
        view(
            name,
            role,
            soft_share=LIMITS[role] // ingresses,
            hard_share=64 // ingresses,
            models=("m",),
            age_s=0.1,
        )
        for role, names in pools.items()
        for name in names
    ]
    found = Membership(lambda: 100.0)
    found.accept(replace(snapshot(*views, ingresses=ingresses), routing=MEASURED), 100.0)
    return found


def burst(ask: Ask, count: int, views: list[Membership], seed: int) -> tuple[Counter[str], int]:
    """Requests by replica, and those that wait; the ingresses take turns and hear nothing of each other."""
    choose = Random(seed).randrange
    placed: Counter[str] = Counter()
    waiting = 0
    for number in range(count):
        membership = views[number % len(views)]
        candidates = membership.candidates_view(100.0)
        route = route_of(decide(ask, candidates, membership.rules, choose=choose))
        if route is None:
            waiting += 1
            continue
        membership.started(
            route.replica.replica_id, ask.sequences, ask.answer_tokens(membership.answer_tokens(route.pool))
        )
        placed[route.replica.replica_id] += ask.sequences
    return placed, waiting


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ingresses", [1, 2])
@pytest.mark.parametrize("ask", [Ask(Tier.INTERACTIVE), DRAFTABLE], ids=["interactive", "draftable"])
def test_a_burst_is_spread_over_both_pools(ask: Ask, ingresses: int, seed: int) -> None:
    """Case B10: 64 requests at once on 4 + 4 idle replicas: within a factor of 2, and not all drafted.

    Interactive requests fill the speculative pool to its limit, others leave its reserve: then comes plain.
    """
    views = [ingress({Role.SPECULATIVE: SPECULATIVE, Role.PLAIN: PLAIN}, ingresses) for _ in range(ingresses)]
    placed, waiting = burst(ask, 64, views, seed)

    assert (len(placed), waiting) == (8, 0)
    assert max(placed.values()) <= 2 * min(placed.values())
    drafted = sum(placed[name] for name in SPECULATIVE)
    assert drafted == (32 if ask.tier is Tier.INTERACTIVE else 24)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ingresses", [1, 2])
def test_a_burst_is_spread_inside_a_pool(ingresses: int, seed: int) -> None:
    """Case B10: 64 batch requests on 8 idle plain replicas: within a factor of 2."""
    views = [ingress({Role.PLAIN: PLAIN + SPECULATIVE}, ingresses) for _ in range(ingresses)]
    placed, waiting = burst(Ask(Tier.BATCH), 64, views, seed)

    assert (len(placed), waiting) == (8, 0)
    assert max(placed.values()) <= 2 * min(placed.values())


@pytest.mark.parametrize(
    ("ask", "limits", "waiting"),
    [
        (Ask(Tier.INTERACTIVE), (8, 32), 200 - 4 * 40),
        (DRAFTABLE, (6, 32), 200 - 4 * 38),
        (Ask(Tier.STANDARD), (6, 32), 200 - 4 * 38),
        (Ask(Tier.BATCH, max_tokens=64), (6, 32), 200 - 4 * 38),
    ],
    ids=["interactive", "draftable", "standard", "batch"],
)
@pytest.mark.parametrize("ingresses", [1, 2])
def test_ingresses_that_hear_nothing_of_each_other_keep_the_limits(
    ask: Ask, limits: tuple[int, int], waiting: int, ingresses: int
) -> None:
    """Each has its share, and its part of the reserve: all room is used, and not one sequence more."""
    views = [ingress({Role.SPECULATIVE: SPECULATIVE, Role.PLAIN: PLAIN}, ingresses) for _ in range(ingresses)]
    placed, found = burst(ask, 200, views, 1)

    assert {limits[0]} == {placed[name] for name in SPECULATIVE}
    assert {limits[1]} == {placed[name] for name in PLAIN}
    assert waiting == found


@pytest.mark.parametrize(
    ("limit", "ingresses", "others", "everyone"),
    [(8, 16, 6, 8), (8, 5, 6, 8), (8, 3, 6, 8), (4, 3, 2, 4), (1, 16, 0, 1)],
)
def test_many_ingresses_with_fresh_numbers_keep_limit_and_reserve(
    limit: int, ingresses: int, others: int, everyone: int
) -> None:
    """Shares are rounded up, and their sum is no limit: standard stops at the reserve, all at the limit."""
    fleet = [Membership(lambda: 100.0) for _ in range(ingresses)]
    taken = seq = 0

    def fill(ask: Ask) -> None:
        nonlocal taken, seq
        for one in fleet * limit:
            seq += 1
            share = -(-limit // ingresses)
            seen = view("s", Role.SPECULATIVE, seq=seq, inflight=taken, soft_share=share, soft_limit=limit)
            for each in fleet:
                each.accept(snapshot(seen, view("p", inflight=99), seq=seq, ingresses=ingresses), 100.0)
            route = route_of(decide(ask, one.candidates_view(100.0), one.rules, choose=lambda _: 0))
            if route is not None:
                one.started(route.replica.replica_id)
                taken += 1

    fill(DRAFTABLE)
    assert others == taken
    fill(Ask(Tier.INTERACTIVE))
    assert everyone == taken
