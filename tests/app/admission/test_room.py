"""No room is given out twice, and what is given back is given back whole."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from app.admission.refusals import NoSeatError
from autoscaling.routing_rules import PoolSpeed, RoutingRules, TierRules
from autoscaling.types import Role, Tier
from tests.app.admission.world import PATIENT, World, now, plain, timeless
from tests.app.views import view

SPEEDS = {role: PoolSpeed(answer_tokens=0.1 + index / 3) for index, role in enumerate(Role)}
HURRIED = RoutingRules(
    tiers={tier: TierRules(deadline_s=1.0, max_waiting=60) for tier in Tier}, reserve=1, speeds=SPEEDS
)


class Crowd:
    """Many callers at the desks of one service, each with a life of its own."""

    def __init__(self, *worlds: World, soft: int, seed: int) -> None:
        self.worlds = worlds
        self.soft = soft
        self.chance = Random(seed)
        self.served = 0
        self.refused = 0

    async def caller(self, world: World, tier: Tier, largest: int) -> None:
        await asyncio.sleep(self.chance.random() * 2)
        sequences = self.chance.randint(1, largest)
        again = False
        try:
            for _ in range(self.chance.randint(1, 2)):
                ask = {"sequences": sequences, "max_tokens": self.chance.choice([None, 7, 900])}
                with await world.take(tier, again=again, **ask) as seat:
                    self.check()
                    self.served += 1
                    await asyncio.sleep(self.chance.random() / 4)
                    seat.advance(self.chance.randint(0, 300))
                again = True
        except NoSeatError:
            self.refused += 1

    def check(self) -> None:
        """Never above this ingress's share, and together never above the limit."""
        for one in self.worlds[0].members.candidates_view(now()):
            own = [world.members.inflight(one.replica.replica_id) for world in self.worlds]
            assert max(own) <= one.replica.soft_share < one.replica.hard_share
            assert sum(own) <= self.soft

    async def run(self, callers: int, largest: int) -> None:
        tasks = []
        for index in range(callers):
            tier = self.chance.choice(list(Tier))
            world = self.worlds[index % len(self.worlds)]
            tasks.append(asyncio.create_task(self.caller(world, tier, largest)))
        for task in tasks:
            if self.chance.random() < 0.2:
                asyncio.get_running_loop().call_later(self.chance.random() * 2, task.cancel)
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert [] == [one for one in ended if isinstance(one, Exception)]
        for world in self.worlds:
            assert 0 == world.members.total_inflight
            assert [0] * len(Tier) == [world.desk.waiting(tier) for tier in Tier]
            assert {0.0} == {one.work for one in world.members.candidates_view(now())}
            assert {} == world.members._work


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), replicas=st.integers(1, 4), soft=st.integers(2, 6))
def test_no_room_is_given_twice(seed: int, replicas: int, soft: int) -> None:
    """However callers come, leave and come again, no replica gets more of ours than our share."""

    @timeless
    async def scenario() -> None:
        views = [
            view(str(index), list(Role)[index % 2], soft_share=soft, hard_share=2 * soft)
            for index in range(replicas)
        ]
        crowd = Crowd(World(*views, rules=HURRIED), soft=soft, seed=seed)
        await crowd.run(120, largest=min(2, soft))
        assert crowd.served > 0

    scenario()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), share=st.integers(2, 4))
def test_two_ingresses_keep_the_limit_together(seed: int, share: int) -> None:
    """Two desks on one snapshot, each with half: together they never exceed the soft limit."""

    @timeless
    async def scenario() -> None:
        views = [view(name, role, soft_share=share) for name, role in zip("ab", Role, strict=True)]
        worlds = [World(*views, rules=HURRIED, ingresses=2) for _ in range(2)]
        await Crowd(*worlds, soft=2 * share, seed=seed).run(160, largest=2)

    scenario()


@timeless
async def test_a_burst_fills_every_seat_and_no_more() -> None:
    """64 at once over 8 idle replicas of 4: 32 sit at once, evenly, and the others wait."""
    world = World(*(plain(str(index)) for index in range(8)), rules=PATIENT)
    tasks = [world.ask() for _ in range(64)]
    await asyncio.sleep(0)
    counts = [world.members.inflight(str(index)) for index in range(8)]
    assert [4] * 8 == counts
    assert 32 == world.desk.waiting(Tier.STANDARD)
    for task in tasks:
        task.cancel()


@timeless
async def test_work_does_not_drift() -> None:
    """Answers of a fractional mean length leave nothing behind while others are still open."""
    world = World(plain(soft=8), rules=RoutingRules(speeds={Role.PLAIN: PoolSpeed(answer_tokens=250.1)}))
    held = await world.take(max_tokens=10)
    for count in range(1, 500):
        seat = await world.take(sequences=1 + count % 3)
        seat.advance(count)
        seat.release()
    assert 10 == world.members.candidates_view(now())[0].work
    held.release()
    assert {} == world.members._work


@timeless
async def test_a_seat_on_a_replica_that_left() -> None:
    """It is given back as any other, and nothing is counted for a replica of the same name."""
    world = World(plain(), rules=PATIENT)
    seat = await world.take()
    world.know()
    seat.advance(3)
    seat.release()
    world.know(plain())
    found: Any = world.members.candidates_view(now())[0]
    assert (0, 0.0) == (found.load, found.work)
