"""Who gets a seat, who waits for one, and with which answer waiting ends."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from app.admission import desk as desk_module
from app.admission.deadlines import NO_REPLICA_S
from app.admission.refusals import NoSeatError
from app.routing.verdicts import Verdict
from autoscaling.routing_rules import RoutingRules, StepCost, TierRules
from autoscaling.types import Role, Tier
from tests.app.admission.world import PATIENT, RULES, SHORT, World, now, plain, settle, timeless
from tests.app.views import view

INTERACTIVE, STANDARD, BATCH = Tier.INTERACTIVE, Tier.STANDARD, Tier.BATCH


def answer(error: NoSeatError) -> tuple[int, str, int | None]:
    return error.status, error.code.value, error.answer.retry_after_s


# --- with room


@timeless
async def test_a_free_seat_is_taken_at_once() -> None:
    """No moment passes, and the seat is counted until it is given back, once."""
    world = World(plain())
    await world.fill(1)
    with await world.take(sequences=2) as seat:
        assert (0.0, 3, None) == (world.passed_s, world.members.inflight("a"), seat.waited_for)
    seat.release()
    assert 1 == world.members.total_inflight


@timeless
async def test_predicted_work_is_counted_down() -> None:
    """Tokens that have come are no longer ahead; what a request did not use goes with it."""
    world = World(plain())
    seat = await world.take(max_tokens=100, sequences=2)
    assert 200 == world.members.candidates_view(now())[0].work
    seat.advance(50)
    assert 150 == world.members.candidates_view(now())[0].work
    other = await world.take(max_tokens=30)
    other.release()
    other.advance(1)
    assert 150 == world.members.candidates_view(now())[0].work
    seat.advance(5000)
    assert 0 == world.members.candidates_view(now())[0].work
    seat.release()
    assert 0 == world.members.candidates_view(now())[0].work


# --- waiting


@timeless
async def test_the_freed_seat_goes_to_the_highest_tier() -> None:
    """Interactive before standard before batch, whoever came first; then the order of arrival."""
    world = World(plain(soft=1), rules=PATIENT)
    (held,) = await world.fill(1)
    got: list[str] = []

    async def one(name: str, tier: Tier) -> None:
        with await world.take(tier):
            got.append(name)

    tasks = []
    for name, tier in [("b1", BATCH), ("s1", STANDARD), ("i1", INTERACTIVE), ("s2", STANDARD)]:
        tasks.append(asyncio.create_task(one(name, tier)))
        await settle()
    assert [1, 2, 1] == [world.desk.waiting(tier) for tier in (INTERACTIVE, STANDARD, BATCH)]
    held.release()
    await asyncio.gather(*tasks)
    assert ["i1", "s1", "s2", "b1"] == got
    assert 0.0 == world.passed_s


@timeless
async def test_a_released_seat_is_given_on_at_once() -> None:
    """Nobody waits for the next look when a seat is given back, or when a snapshot brings room."""
    world = World(plain(soft=1), rules=PATIENT)
    (held,) = await world.fill(1)
    first, second = world.ask(), world.ask()
    await settle()
    held.release()
    seat = await first
    assert {Role.PLAIN: Verdict.FULL, Role.SPECULATIVE: Verdict.NO_REPLICA} == seat.waited_for
    world.know(plain(soft=1, inflight=1), plain("b"))
    await second
    assert 0.0 == world.passed_s


@timeless
async def test_room_that_nobody_speaks_of_is_found() -> None:
    """Others' load expires after 3 s without a word; the next look finds the room."""
    world = World(plain(soft=2, inflight=2), rules=PATIENT)
    await world.take()
    assert 3.0 <= world.passed_s <= 3.1


@timeless
async def test_nobody_overtakes_those_who_wait() -> None:
    """Room that a newcomer finds first goes to those who wait, also when they are of another lane."""
    world = World(plain(soft=1, inflight=1), rules=PATIENT)
    waiting = world.ask(pin=Role.PLAIN)
    await settle()
    world.know(plain(soft=1), wake=False)
    newcomer = world.ask(BATCH)
    await settle()
    assert (True, False) == (waiting.done(), newcomer.done())
    (await waiting).release()
    assert {Verdict.FULL, Verdict.NO_REPLICA} == set(((await newcomer).waited_for or {}).values())


@timeless
async def test_batch_work_gets_its_share_of_a_flood() -> None:
    """Under a flood of interactive and standard requests every tenth freed seat is for batch work."""
    world = World(plain(soft=1), rules=PATIENT)
    (held,) = await world.fill(1)
    order: list[Tier] = []

    async def one(tier: Tier) -> None:
        with await world.take(tier):
            order.append(tier)

    tasks = [asyncio.create_task(one(tier)) for tier in [INTERACTIVE] * 95 + [STANDARD] * 5 + [BATCH] * 10]
    await settle()
    held.release()
    await asyncio.gather(*tasks)
    assert [9 + 10 * index for index in range(10)] == [
        at for at, tier in enumerate(order[:100]) if tier is BATCH
    ]
    assert 0.0 == world.passed_s


@timeless
async def test_lanes_do_not_bar_each_other() -> None:
    """Who waits for another pool holds up nobody; of those who wait for the same, the longest comes first."""
    world = World(plain(soft=1), view("s", Role.SPECULATIVE, soft_share=1), rules=PATIENT)
    speculative = await world.take(pin=Role.SPECULATIVE)
    held = await world.take(pin=Role.PLAIN)
    pinned = world.ask(pin=Role.SPECULATIVE)
    await asyncio.sleep(1.0)
    biased = world.ask(pin=Role.PLAIN, parameters=frozenset({"logit_bias"}))
    await asyncio.sleep(1.0)
    ordinary = world.ask(pin=Role.PLAIN)
    await settle()
    held.release()
    seat = await biased
    assert (False, False) == (pinned.done(), ordinary.done())
    seat.release()
    await ordinary
    assert not pinned.done()
    speculative.release()
    await pinned
    assert 2.0 == world.passed_s


@timeless
async def test_large_requests_at_the_head_do_not_stop_a_lane() -> None:
    """More sequences than there is room for wait, and single ones behind them go on."""
    world = World(plain(soft=4), rules=PATIENT)
    held = await world.fill(3)
    large = [world.ask(sequences=4) for _ in range(6)]
    await settle()
    with await world.take():
        assert 0.0 == world.passed_s
    for seat in held:
        seat.release()
    (await large[0]).release()
    assert 0.0 == world.passed_s
    for task in large:
        task.cancel()


@timeless
async def test_more_than_any_replica_takes_waits_for_an_idle_one() -> None:
    """What could never fit is taken when the replica is empty."""
    world = World(plain(soft=4), rules=PATIENT)
    held = await world.fill(2)
    large = world.ask(sequences=100)
    await settle()
    held[0].release()
    await settle()
    assert not large.done()
    held[1].release()
    (await large).release()
    assert 0 == world.members.total_inflight


# --- the end of waiting


@timeless
async def test_the_deadline() -> None:
    """503 no_capacity with a whole number of seconds when the tier's deadline has passed."""
    world = World(plain(soft=1))
    await world.fill(1)
    error = await world.refused()
    assert (503, "no_capacity", 1) == answer(error)
    assert 0.2 <= world.passed_s <= 0.26
    assert 0 == world.desk.waiting(STANDARD)
    assert Verdict.FULL is error.decision.choice.verdicts[Role.PLAIN]


@timeless
async def test_everyone_has_a_deadline_of_his_own() -> None:
    """One that came later waits longer, also when a repeated search has put it first."""
    world = World(plain(soft=1), rules=RoutingRules(tiers={STANDARD: TierRules(deadline_s=1.0)}))
    await world.fill(1)
    early = asyncio.create_task(world.refused())
    await asyncio.sleep(0.5)
    late = asyncio.create_task(world.refused(again=True))
    await early
    assert 1.0 <= world.passed_s <= 1.06
    await late
    assert 1.5 <= world.passed_s <= 1.56


@timeless
async def test_the_refusal_shows_the_request_itself() -> None:
    """What is kept with the error was decided for this request, not for the first of its lane."""
    world = World(plain(soft=1))
    await world.fill(1)
    errors = await asyncio.gather(*(world.refused(prompt_tokens=count) for count in (1, 2, 3)))
    assert [1, 2, 3] == [error.decision.ask.prompt_tokens for error in errors]


@timeless
async def test_a_full_queue() -> None:
    """429 when as many sequences of the tier wait as may; another tier still may."""
    world = World(plain(soft=1))
    await world.fill(1)
    tasks = [world.ask(sequences=4), world.ask(sequences=4)]
    await settle()
    error = await world.refused()
    assert (429, "rate_limit_exceeded", 80) == answer(error)
    assert 0.0 == world.passed_s
    assert (503, "no_capacity", 1) == answer(await world.refused(BATCH))
    await asyncio.gather(*tasks, return_exceptions=True)


@timeless
async def test_a_full_queue_bars_nobody_from_free_room() -> None:
    """Those who wait need more than there is: one that can use it has it, and nothing is lost."""
    world = World(plain(soft=4))
    held = await world.fill(3)
    large = [world.ask(sequences=4), world.ask(sequences=4)]
    await settle()
    (await world.take()).release()
    assert (0.0, 3) == (world.passed_s, world.members.total_inflight)
    for seat in held:
        seat.release()
    await asyncio.gather(*large, return_exceptions=True)


@timeless
async def test_the_queue_is_shared_by_the_ingresses() -> None:
    """With two ingresses half of the tier's queue is here."""
    world = World(plain(soft=1), ingresses=2)
    await world.fill(1)
    tasks = [world.ask() for _ in range(4)]
    await settle()
    assert "rate_limit_exceeded" == (await world.refused()).code
    await asyncio.gather(*tasks, return_exceptions=True)


@timeless
async def test_the_first_may_wait_whatever_its_size() -> None:
    """A request larger than the queue is no reason to refuse when nobody else waits."""
    world = World(plain(soft=4))
    await world.fill(1)
    assert "no_capacity" == (await world.refused(sequences=100)).code
    assert world.passed_s >= 0.2


@pytest.mark.parametrize("rules", [TierRules(max_waiting=0), TierRules(deadline_s=0.0)])
def test_a_tier_that_may_not_wait(rules: TierRules) -> None:
    """No queue or no deadline: 503 at once when there is no room, and a seat when there is."""

    @timeless
    async def scenario() -> None:
        world = World(plain(soft=1), rules=RoutingRules(tiers={STANDARD: rules}))
        await world.fill(1)
        assert (503, "no_capacity", 1) == answer(await world.refused())
        assert 0.0 == world.passed_s

    scenario()


@pytest.mark.parametrize("tier", list(Tier))
@pytest.mark.parametrize(
    "rules", [SHORT, TierRules(max_waiting=0), TierRules(deadline_s=0.0), TierRules(deadline_s=300.0)]
)
def test_no_replica(rules: TierRules, tier: Tier) -> None:
    """503 not_ready after 2 s, whatever the tier may wait for room."""

    @timeless
    async def scenario() -> None:
        world = World(view("a", accepting=False), rules=RoutingRules(tiers={tier: rules}))
        assert (503, "not_ready", 1) == answer(await world.refused(tier))
        assert 2.0 <= world.passed_s <= 2.06

    assert 2.0 == NO_REPLICA_S
    scenario()


@timeless
async def test_a_replica_that_is_back_in_time() -> None:
    """Whoever has waited long for room is not refused in the moment in which the replica is replaced."""
    world = World(plain(soft=1), rules=PATIENT)
    await world.fill(1)
    waiting = world.ask()
    await asyncio.sleep(60.0)
    world.know()
    await asyncio.sleep(1.5)
    assert not waiting.done()
    world.know(plain("b"))
    await waiting
    assert 61.5 == world.passed_s


@timeless
async def test_a_replica_that_is_not_back_in_time() -> None:
    """Whoever has waited long is told 2 s after the last replica went."""
    world = World(plain(soft=1), rules=PATIENT)
    await world.fill(1)
    waiting = asyncio.create_task(world.refused())
    await asyncio.sleep(60.0)
    world.know()
    assert "not_ready" == (await waiting).code
    assert 62.0 <= world.passed_s <= 62.1


@timeless
async def test_few_wait_without_a_replica() -> None:
    """The queue is bounded then, too: who finds it full is told at once."""
    world = World(view("a", accepting=False))
    tasks = [world.ask() for _ in range(8)]
    await settle()
    assert (503, "not_ready", 1) == answer(await world.refused())
    assert 0.0 == world.passed_s
    await asyncio.gather(*tasks, return_exceptions=True)


@timeless
async def test_a_refused_parameter() -> None:
    """A pinned pool that refuses a parameter is a 400 at once, whoever waits there."""
    world = World(view("s", Role.SPECULATIVE, soft_share=1, refuses=("min_p",)), plain())
    await world.take(pin=Role.SPECULATIVE)
    waiting = world.ask(pin=Role.SPECULATIVE)
    await settle()
    error = await world.refused(pin=Role.SPECULATIVE, parameters=frozenset({"min_p"}))
    assert (400, "parameter_not_supported") == (error.status, error.code)
    assert 0.0 == world.passed_s
    waiting.cancel()


@timeless
async def test_a_parameter_that_the_new_replica_refuses() -> None:
    """A wait ends when it has become vain."""
    world = World(view("s", Role.SPECULATIVE, soft_share=1), rules=PATIENT)
    await world.fill(1)
    waiting = asyncio.create_task(world.refused(pin=Role.SPECULATIVE, parameters=frozenset({"min_p"})))
    await settle()
    world.know(view("t", Role.SPECULATIVE, refuses=("min_p",)))
    assert "parameter_not_supported" == (await waiting).code
    assert world.passed_s <= 0.06


# --- callers that leave


@timeless
async def test_a_caller_that_leaves_frees_its_place() -> None:
    """The queue has room again, and nobody gets a seat for one that has left."""
    world = World(plain(soft=1), rules=PATIENT)
    (held,) = await world.fill(1)
    first, second = world.ask(sequences=3), world.ask()
    await settle()
    first.cancel()
    await settle()
    assert 1 == world.desk.waiting(STANDARD)
    held.release()
    (await second).release()
    assert 0 == world.members.total_inflight


@pytest.mark.parametrize("steps", range(4))
def test_a_caller_that_leaves_in_the_moment_of_its_turn(steps: int) -> None:
    """The seat is given back and goes to the next one, however close the two moments are."""

    @timeless
    async def scenario() -> None:
        world = World(plain(soft=1), rules=PATIENT)
        (held,) = await world.fill(1)
        leaving, following = world.ask(), world.ask()
        await settle()
        held.release()
        for _ in range(steps):
            await asyncio.sleep(0)
        leaving.cancel()
        await settle()
        if leaving.cancelled():
            (await following).release()
        else:
            (await leaving).release()
            (await following).release()
        assert 0 == world.members.total_inflight
        assert 0.0 == world.passed_s

    scenario()


@timeless
async def test_a_turn_and_a_cancel_in_one_step() -> None:
    """A seat that was given to a task which is cancelled before it runs is not lost."""
    world = World(plain(soft=1), rules=PATIENT)
    (held,) = await world.fill(1)
    leaving = world.ask()
    await settle()
    held.release()
    world.desk._look()  # the turn comes now, and the caller leaves before it knows
    assert 1 == world.members.total_inflight
    leaving.cancel()
    await settle()
    assert (True, 0) == (leaving.cancelled(), world.members.total_inflight)


@timeless
async def test_a_caller_that_leaves_in_the_moment_of_its_refusal() -> None:
    """Nothing is left behind, and no error that nobody reads."""
    world = World(plain(soft=1))
    await world.fill(1)
    seen: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: seen.append(context))
    leaving = world.ask()
    await settle()
    world.desk._expire(now() + 1.0)
    leaving.cancel()
    await settle()
    del leaving
    assert ([], 0) == (seen, world.desk.waiting(STANDARD))


# --- attempts again


@timeless
async def test_a_second_attempt_keeps_the_first_place() -> None:
    """Who had a seat that was not accepted is the first of its lane, and not refused for a full queue."""
    world = World(plain(soft=1), rules=PATIENT)
    (held,) = await world.fill(1)
    got: list[str] = []

    async def one(name: str, again: bool) -> None:
        with await world.take(again=again):
            got.append(name)

    tasks = []
    for name, again in (("a", False), ("b", False), ("again", True)):
        tasks.append(asyncio.create_task(one(name, again)))
        await settle()
    held.release()
    await asyncio.gather(*tasks)
    assert ["again", "a", "b"] == got


@timeless
async def test_a_second_attempt_finds_no_queue_full() -> None:
    """Whoever was admitted once is not sent away for those who came later."""
    world = World(plain(soft=1))
    (held,) = await world.fill(1)
    others = [world.ask(sequences=4), world.ask(sequences=4)]
    await settle()
    again = world.ask(again=True)
    await settle()
    held.release()
    await again
    await asyncio.gather(*others, return_exceptions=True)


@timeless
async def test_a_replica_that_did_not_accept_may_at_the_next_look() -> None:
    """A tried replica is passed over now; when it is all there is, it is asked again later."""
    world = World(plain(soft=1), rules=PATIENT)
    seat = await world.take(again=True, tried=frozenset({"a"}))
    assert {Role.PLAIN: Verdict.TRIED, Role.SPECULATIVE: Verdict.NO_REPLICA} == seat.waited_for
    assert 0.0 < world.passed_s <= 0.05


@timeless
async def test_an_untried_replica_comes_first() -> None:
    """With another one free, no moment passes."""
    world = World(plain(), plain("b"))
    seat = await world.take(again=True, tried=frozenset({"a"}))
    assert ("b", 0.0) == (seat.route.replica.replica_id, world.passed_s)


@timeless
async def test_a_second_attempt_after_the_deadline() -> None:
    """The deadline counts from when the request came, all attempts together."""
    world = World(plain(soft=1))
    await world.fill(1)
    assert "no_capacity" == (await world.refused(again=True, since=now() - 1.0)).code
    assert 0.0 == world.passed_s


# --- failures and cost


@timeless
async def test_one_request_that_fails_stops_nobody() -> None:
    """What cannot be decided on ends with its own error; those behind it get their seats."""
    world = World(plain(soft=1), rules=PATIENT)
    (held,) = await world.fill(1)
    broken, fine = world.ask(prompt_tokens="x"), world.ask()
    await settle()
    priced = replace(PATIENT, costs={Role.PLAIN: StepCost(0.01, 0.001)})
    world.know(plain(soft=1), rules=priced)
    held.release()
    with pytest.raises(TypeError):
        await broken
    (await fine).release()
    assert (0, 0) == (world.members.total_inflight, world.desk.waiting(STANDARD))


@timeless
async def test_one_that_fails_at_its_end_stops_nobody() -> None:
    """The same when time runs out."""
    world = World(plain(soft=1))
    await world.fill(1)
    broken, fine = world.ask(prompt_tokens="x"), asyncio.create_task(world.refused())
    await settle()
    priced = replace(RULES, costs={Role.PLAIN: StepCost(0.01, 0.001)})
    world.know(plain(soft=1), rules=priced, wake=False)
    world.desk._expire(now() + 1.0)
    with pytest.raises(TypeError):
        await broken
    assert "no_capacity" == (await fine).code


@timeless
async def test_many_whose_time_is_over_are_refused_in_slices() -> None:
    """A hundred in one step; the rest follow 5 ms apart, each with its own decision."""
    world = World(plain(soft=1), rules=RoutingRules(tiers={STANDARD: TierRules(1.0, 1.0, 1.0, 10_000)}))
    await world.fill(1)
    tasks = [asyncio.create_task(world.refused(prompt_tokens=count)) for count in range(250)]
    left = []
    while world.desk.waiting(STANDARD) or not left:
        await asyncio.sleep(0.0025)
        if world.desk.waiting(STANDARD) not in left:
            left.append(world.desk.waiting(STANDARD))
    errors = await asyncio.gather(*tasks)
    assert [250, 150, 50, 0] == left
    assert world.passed_s <= 1.1
    assert list(range(250)) == [error.decision.ask.prompt_tokens for error in errors]


@timeless
async def test_room_that_nobody_else_can_use_is_taken_by_a_newcomer() -> None:
    """Those who wait need more than there is; a tier that may not wait is no reason to refuse."""
    world = World(plain(soft=4), rules=PATIENT)
    await world.fill(3)
    large = [world.ask(sequences=4 + count) for count in range(40)]
    await settle()
    world.know(
        plain(soft=4, inflight=3), rules=RoutingRules(tiers={STANDARD: TierRules(max_waiting=0)}, reserve=0)
    )
    with await world.take() as seat:
        assert (0.0, Verdict.CHOSEN) == (
            world.passed_s,
            seat.route.decision.choice.verdicts[Role.PLAIN],
        )
    for task in large:
        task.cancel()


def test_a_thousand_that_wait_cost_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look without room decides once per lane and demand, however many wait."""
    calls = 0
    plain_decide = desk_module.decide

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        return plain_decide(*args, **kwargs)

    monkeypatch.setattr(desk_module, "decide", counted)

    @timeless
    async def scenario() -> None:
        nonlocal calls
        world = World(plain(soft=1), rules=PATIENT)
        (held,) = await world.fill(1)
        tasks = [world.ask(tier) for tier in Tier for _ in range(1000)]
        await settle()
        assert calls == 1 + 3000  # each once, when it came
        calls = 0
        world.desk._look()
        assert calls == 3
        calls = 0
        held.release()
        await settle()
        assert calls == 1 + 3  # one seat, and a look that finds no other
        for task in tasks:
            task.cancel()

    scenario()


@timeless
async def test_the_looking_ends_when_nobody_waits() -> None:
    """No task is left behind, and the next one that waits starts it again."""
    world = World(plain(soft=1))
    await world.fill(1)
    for _ in range(2):
        await world.refused()
        await asyncio.sleep(1.0)
        assert 1 == len(asyncio.all_tasks())


@timeless
async def test_retry_after_at_three_times_the_capacity() -> None:
    """The answer is about what a newcomer would have waited: 50 ahead at 10 a second are 5 s."""
    rules = RoutingRules(tiers={STANDARD: TierRules(deadline_s=30.0, max_waiting=50)}, reserve=0)
    world = World(plain(soft=5), rules=rules)
    told: list[tuple[int, str, int | None]] = []

    async def one() -> None:
        try:
            with await world.take():
                await asyncio.sleep(0.5)
        except NoSeatError as error:
            told.append(answer(error))

    tasks = []
    for _ in range(900):
        tasks.append(asyncio.create_task(one()))
        await asyncio.sleep(1 / 30)
    await asyncio.gather(*tasks)
    assert 500 <= len(told) <= 600
    assert {(429, "rate_limit_exceeded", seconds) for seconds in (5, 6)} >= set(told[-400:])
