"""A whole run against a service on loopback, in a fraction of a second: what is sent, and how it ends."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from app.demo.answers import Phase
from app.demo.client import open_session
from app.demo.plan import Load
from app.demo.run import Ended, Run
from app.samples import samples
from autoscaling.types import Role, Tier
from tests.app.demo.fake import STATUS, Fake, refusal, serving, whole

LOAD = Load({Tier.INTERACTIVE: 1, Tier.STANDARD: 2, Tier.BATCH: 3}, plain_room=2)
LENGTHS = dict.fromkeys((Phase.QUIET, Phase.MIXED, Phase.BUSY, Phase.FALL_OFF), 0.1)


def new(lengths: dict[Phase, float] = LENGTHS, *, both_pools: bool = True) -> Run:
    return Run(LOAD, lengths, samples(), 7, STATUS, both_pools=both_pools)


async def run(fake: Fake, found: Run) -> Run:
    async with serving(fake), open_session(fake.url) as session:
        await found.go(session)
    return found


async def test_a_run_sends_every_tier_and_keeps_every_answer() -> None:
    """Each in its own phases; every request that was sent is an answer, under an id of its own."""
    fake = Fake()
    found = await run(fake, new())

    assert Ended.COMPLETE is found.ended
    assert set(Tier) == {one.tier for one in found.answers}
    assert {Phase.BUSY} == {one.phase for one in found.answers if one.tier is Tier.BATCH}
    assert {Phase.MIXED, Phase.BUSY} == {one.phase for one in found.answers if one.tier is Tier.STANDARD}
    sent = [headers["x-request-id"] for _, headers, _ in fake.asked]
    assert [f"demo-7-{number}" for number in range(1, len(sent) + 1)] == sorted(
        sent, key=lambda one: int(one.rpartition("-")[2])
    )
    assert {one.id for one in found.answers} <= set(sent)
    assert all(one.answered for one in found.answers)


async def test_the_copying_task_alternates_between_the_pools() -> None:
    """One at a time, before anything else; the first round warms up and does not count."""
    fake = Fake()
    found = await run(fake, new())
    asked = [headers["x-twinpool-pool"] for path, headers, _ in fake.asked if path == "/v1/completions"]

    assert ["speculative", "plain", "plain", "speculative"] == asked[:4]
    assert [Role.PLAIN, Role.SPECULATIVE] == [one.pool for one in found.copies[:2]]
    assert len(asked) - 2 == len(found.copies)
    assert not [one for one in found.answers if one.sample == "copy"]


async def test_one_pool_alone_has_nothing_to_compare() -> None:
    """No copying task is sent."""
    fake = Fake()
    found = await run(fake, new(both_pools=False))

    assert [] == found.copies
    assert {"/v1/chat/completions"} == {path for path, _, _ in fake.asked}


async def test_a_refused_batch_request_is_sent_again() -> None:
    """After Retry-After, under a new id; the refusal stays an answer of its own, and the others give up."""
    first: dict[str, str] = {}  # tier -> the id that was refused

    async def generate(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        tier = request.headers["x-twinpool-tier"]
        if tier != "interactive" and tier not in first:
            first[tier] = request.headers["x-request-id"]
            return refusal(503, "no_capacity", retry_after="1")
        return await whole(request, body)

    found = await run(Fake(generate), new())
    refused = {one.tier: one for one in found.answers if one.refused}

    assert {Tier.STANDARD: False, Tier.BATCH: True} == {tier: one.again for tier, one in refused.items()}
    assert first == {tier.value: one.id for tier, one in refused.items()}
    sample = refused[Tier.BATCH].sample
    assert sample in [one.sample for one in found.answers if one.tier is Tier.BATCH and one.answered]


async def test_a_cancelled_run_keeps_what_it_has() -> None:
    """What was open is noted as cut, and the run as interrupted."""
    hanging = asyncio.Event()

    async def generate(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if request.headers["x-twinpool-tier"] == "batch":
            hanging.set()
            await asyncio.Event().wait()
        return await whole(request, body)

    found = new()
    async with serving(Fake(generate)) as fake, open_session(fake.url) as session:
        task = asyncio.create_task(found.go(session))
        await hanging.wait()
        assert found.view().tiers[2].in_flight > 0
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert (True, Ended.INTERRUPTED) == (task.cancelled(), found.ended)
    batch = [one for one in found.answers if one.tier is Tier.BATCH]
    assert batch
    assert all(one.cut for one in batch)
    assert 0 == found.view().tiers[2].in_flight


async def test_only_moves_of_its_own_time_are_told() -> None:
    """Those that the status had before the run are not."""
    move = {"id": "m1", "from": "plain", "to": "speculative", "count": 1, "reason": "r", "state": "done"}
    found = Run(LOAD, LENGTHS, samples(), 7, STATUS | {"moves": [move]}, both_pools=False)
    fake = Fake()
    fake.status = STATUS | {"moves": [move | {"id": "m2"}, move]}
    await run(fake, found)

    assert ["m2"] == [one.id for one in found.moves]


async def test_a_service_that_is_gone_ends_the_run() -> None:
    """When no status came for ten looks, nothing more is sent."""
    fake = Fake()
    fake.status = None
    found = new(dict.fromkeys(LENGTHS, 600.0), both_pools=False)
    found.look_every_s = 0.0
    await run(fake, found)

    assert Ended.SERVICE_LOST is found.ended
    assert not found.view().looks
