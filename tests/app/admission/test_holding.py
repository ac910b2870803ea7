"""Room that is kept together for a request of several sequences."""

from __future__ import annotations

import asyncio

import pytest

from app.admission.holding import comes_after, patience_s, replica_to_hold, without
from app.candidates import Candidate
from app.routing.ask import Ask
from autoscaling.routing_rules import RoutingRules, TierRules
from autoscaling.types import Role, Tier
from tests.app.admission.world import PATIENT, World, plain, settle, timeless
from tests.app.routing.worlds import MEASURED, replica
from tests.app.views import view

INTERACTIVE, STANDARD, BATCH = Tier.INTERACTIVE, Tier.STANDARD, Tier.BATCH
RULES = RoutingRules(
    tiers=dict.fromkeys(Tier, TierRules(deadline_s=4.0, max_waiting=500)), reserve=0, batch_share=0.0
)


def four(name: str, load: int, *, role: Role = Role.PLAIN, refuses: str = "") -> Candidate:
    """A replica with a limit of 4, of which the test's view says the same."""
    return replica(role, name, load, limit=4, refuses=refuses)


@pytest.mark.parametrize(("deadline_s", "expected"), [(0.0, 0.0), (4.0, 1.0), (8.0, 2.0), (300.0, 2.0)])
def test_patience(deadline_s: float, expected: float) -> None:
    """A quarter of the deadline, 2 s at most."""
    assert expected == patience_s(deadline_s)


def test_the_emptiest_that_could_serve_it_is_held() -> None:
    """Not the emptiest of all: one that refuses a parameter would never do."""
    ask = Ask(BATCH, sequences=4, pin=Role.SPECULATIVE, parameters=frozenset({"min_p"}))
    found = [
        four("p", 0),
        four("s1", 1, role=Role.SPECULATIVE, refuses="min_p"),
        four("s2", 3, role=Role.SPECULATIVE),
        four("s3", 2, role=Role.SPECULATIVE),
    ]
    assert "s3" == replica_to_hold(ask, found, RULES)


def test_what_fits_nowhere_is_held_an_idle_replica() -> None:
    """Larger than the limit: it is taken by a replica that is idle, so one is emptied for it."""
    assert "b" == replica_to_hold(Ask(STANDARD, sequences=9), [four("a", 4), four("b", 3)], RULES)


def test_nothing_is_held_in_vain() -> None:
    """Where no idle replica would serve it no room is kept from others."""
    rules = RoutingRules(reserve=3)
    batch = Ask(BATCH, sequences=2, pin=Role.SPECULATIVE)
    assert replica_to_hold(batch, [four("p", 0)], rules) is None
    assert replica_to_hold(Ask(BATCH, sequences=2), [], rules) is None


def test_without() -> None:
    """The held one has no room; the others are as they were."""
    one, other = four("a", 1), four("b", 1)
    held, free = without("a", [one, other])
    assert (0, other) == (held.free, free)


@pytest.mark.parametrize(
    ("tier", "entered", "expected"),
    [
        (INTERACTIVE, 9.0, False),
        (STANDARD, 0.5, False),
        (STANDARD, 1.0, True),
        (STANDARD, 9.0, True),
        (BATCH, 0.0, True),
    ],
)
def test_who_comes_after(tier: Tier, entered: float, expected: bool) -> None:
    """Lower tiers, and those of the tier that came later."""
    assert expected is comes_after(tier, entered, STANDARD, 1.0)


# --- at the desk


async def stream(world: World, tier: Tier, until_s: float) -> None:
    """Callers that come every 10 ms, each for one place, and stay for 100 ms."""

    async def one() -> None:
        with await world.take(tier):
            await asyncio.sleep(0.1)

    tasks = []
    while world.passed_s < until_s:
        tasks.append(asyncio.create_task(one()))
        await asyncio.sleep(0.01)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("tier", [INTERACTIVE, STANDARD])
def test_a_large_request_is_served_beside_a_stream_of_single_ones(tier: Tier) -> None:
    """Four at once on a replica of four: after its patience of 1 s, when those that run have ended."""

    @timeless
    async def scenario() -> None:
        world = World(plain(soft=4), rules=RULES)
        flood = asyncio.create_task(stream(world, STANDARD, 3.0))
        await asyncio.sleep(0.2)
        with await world.take(tier, sequences=4):
            assert 1.2 <= world.passed_s <= 1.45
        await flood
        assert 0 == world.members.total_inflight

    scenario()


@timeless
async def test_one_replica_is_held_and_the_others_go_on() -> None:
    """Of two that are full, later requests get the room of one."""
    world = World(plain("a"), plain("b"), rules=RULES)
    held = await world.fill(8)
    large = world.ask(sequences=4)
    await asyncio.sleep(1.1)
    later = [world.ask() for _ in range(8)]
    await settle()
    of_a = [seat for seat in held if seat.route.replica.replica_id == "a"]
    of_b = [seat for seat in held if seat not in of_a]
    for seat in (*of_a[:2], *of_b[:3]):
        seat.release()
        await settle()
    inflight = (world.members.inflight("a"), world.members.inflight("b"))
    assert (False, 3, (2, 4)) == (large.done(), sum(task.done() for task in later), inflight)
    for seat in of_a[2:]:
        seat.release()
    await settle()
    assert large.done()
    for task in later:
        task.cancel()


@timeless
async def test_a_newcomer_leaves_what_is_held() -> None:
    """It waits behind; one of a higher tier does not."""
    world = World(plain(soft=4), rules=RULES)
    held = await world.fill(4)
    large = world.ask(sequences=4)
    await asyncio.sleep(1.1)
    held[0].release()
    await settle()
    lower, higher = world.ask(BATCH), world.ask(INTERACTIVE)
    await settle()
    assert (False, False, True) == (large.done(), lower.done(), higher.done())
    held[1].release()
    await settle()
    assert not lower.done()
    large.cancel()
    await lower
    assert world.passed_s <= 1.15


@timeless
async def test_what_was_held_is_free_after_a_refusal() -> None:
    """At the deadline of the held one, those who left it the room have it."""
    world = World(plain(soft=4), rules=RULES)
    held = await world.fill(4)
    large = asyncio.create_task(world.refused(sequences=4))
    await asyncio.sleep(1.1)
    batch = world.ask(BATCH)
    await settle()
    held[0].release()
    await batch
    assert 4.0 <= world.passed_s <= 4.1
    assert "no_capacity" == (await large).code


@timeless
async def test_a_tier_that_is_owed_a_turn_has_it_before_the_next_hold() -> None:
    """Large requests in a row do not keep batch work from its share."""
    rules = RoutingRules(tiers=PATIENT.tiers, reserve=0, batch_share=0.5)
    world = World(plain(soft=4), rules=rules)
    held = await world.fill(4)
    order: list[str] = []

    async def one(name: str, tier: Tier, sequences: int) -> None:
        with await world.take(tier, sequences=sequences):
            order.append(name)
            await asyncio.sleep(0.1)

    tasks = [asyncio.create_task(one("large", INTERACTIVE, 4)) for _ in range(4)]
    tasks += [asyncio.create_task(one("batch", BATCH, 1)) for _ in range(3)]
    await asyncio.sleep(3.0)
    for seat in held:
        seat.release()
    await asyncio.gather(*tasks)
    assert ["large", "batch", "large", "batch", "large", "batch"] == order[:6]


@timeless
async def test_what_could_be_backfilled_is_found_behind_what_may_not() -> None:
    """Twenty short batch requests do not wait behind long ones while the speculative pool is idle."""
    speculative = view("s", Role.SPECULATIVE, soft_share=22, hard_share=44)
    world = World(plain(inflight=8), speculative, rules=MEASURED)
    long = [world.ask(BATCH, max_tokens=100_000) for _ in range(40)]
    await settle()
    short = [await world.take(BATCH, max_tokens=10) for _ in range(10)]
    tasks = [world.ask(BATCH, max_tokens=10) for _ in range(10)]
    await asyncio.gather(*tasks)
    assert (0.0, 10, 40) == (world.passed_s, len(short), world.desk.waiting(BATCH))
    for task in long:
        task.cancel()
