"""What `benchmarks.goodput` sends, how it routes, and that a run can be interrupted and gone on with."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from autoscaling.routing_rules import StepCost
from autoscaling.types import Role, Tier
from benchmarks.errors import BenchError
from benchmarks.goodput_engines import Drafts, Fleet, speculation
from benchmarks.goodput_figures import comparisons, figures
from benchmarks.goodput_load import run_load
from benchmarks.goodput_plan import (
    CONDITIONS,
    FULL,
    Condition,
    Configuration,
    Method,
    Plan,
    Window,
    order,
    ours_at,
)
from benchmarks.goodput_plan import RoutingKind as Kind
from benchmarks.goodput_records import Found, Records
from benchmarks.goodput_requests import Wanted, arrivals, batch_stream, interactive_decks
from benchmarks.goodput_routing import LeastLoaded, Ours, Place
from benchmarks.goodput_rules import Calibrated, lengths_of, per_token, rules_of, slots
from benchmarks.goodput_run import Bench, expected_s
from tests.benchmarks.goodput_fake import TABLE, Fakes, calibrate, calibrated, capabilities

TWO = ours_at(Configuration.TWO_POOLS, 0.05)
TINY = Plan(
    rounds=2,
    window=Window(warm_s=0.2, measured_s=0.5, tail_s=0.2, rate_per_s=8.0),
    methods=(Method.NGRAM,),
    conditions=(
        TWO,
        Condition(Configuration.ALL_PLAIN, Kind.LEAST_LOADED),
        ours_at(Configuration.ONE_POOL_TABLE, 0.05),
    ),
)


def chat(tier: Tier, number: int = 0) -> Wanted:
    """A short request of a tier."""
    tokens = 64 if tier is Tier.INTERACTIVE else 96
    return Wanted(
        tier, "a", {"messages": [{"role": "user", "content": f"Hi {number}"}], "max_tokens": tokens}
    )


def ours(configuration: Configuration = Configuration.TWO_POOLS) -> Ours:
    """Our routing over a configuration's slots, at 50 ms."""
    found = calibrated()
    lies = [slot.lies for slot in slots(configuration, found, 0.05)]
    engines = [capabilities(role) for role in lies]
    return Ours(slots(configuration, found, 0.05), engines, rules_of(configuration, found, 0.05), "seed")


# --- plan and requests


def test_every_two_rounds_each_condition_has_the_same_mean_place() -> None:
    """What drifts from the beginning of a round to its end hits all alike."""
    for first in (0, 2, 4):
        places = Counter[str]()
        for index in (first, first + 1):
            for place, one in enumerate(order(CONDITIONS, index)):
                places[one.name] += place
        assert {15} == set(places.values())


def test_over_32_rounds_each_condition_is_twice_at_each_place() -> None:
    """And in the even ones of them once after each other one."""
    places = Counter((one, at) for index in range(32) for at, one in enumerate(order(CONDITIONS, index)))
    rounds = [order(CONDITIONS, index) for index in range(0, 32, 2)]
    after = Counter(pair for found in rounds for pair in pairwise(found))

    assert (256, {2}) == (len(places), set(places.values()))
    assert (240, {1}) == (len(after), set(after.values()))


def test_arrivals_of_a_round_differ_only_in_what_is_cached() -> None:
    """Times and prompts are the same in every condition; another round has others."""
    one, other = arrivals(FULL.window, 0, "a"), arrivals(FULL.window, 0, "b")
    bare = [
        [(found.at_s, found.wanted.sample, {**found.wanted.body, "cache_salt": ""}) for found in some]
        for some in (one, other)
    ]

    assert bare[0] == bare[1]
    assert "a.i0" == one[0].wanted.body["cache_salt"]
    assert "b.i0" == other[0].wanted.body["cache_salt"]
    assert [found.at_s for found in one] != [found.at_s for found in arrivals(FULL.window, 1, "a")]


def test_half_of_the_interactive_requests_give_back_what_they_hold() -> None:
    """Of every two arrivals one is an edit and one is chat."""
    edits = {one.id for one in interactive_decks()[0]}
    found = [one.wanted.sample in edits for one in arrivals(Window(3, 200), 0, "a")]

    assert {1} == {sum(found[at : at + 2]) for at in range(0, len(found) - 1, 2)}


def test_requests_have_one_length_each_and_share_no_prefix() -> None:
    """64 tokens for interactive, 96 for batch, greedy; every request has a cache salt of its own."""
    source = batch_stream(0, 3, "x")
    batch = [next(source).body for _ in range(40)]
    body = arrivals(FULL.window, 0, "x")[0].wanted.body

    assert 40 == len({one["cache_salt"] for one in batch})
    assert {96} == {one["max_tokens"] for one in batch}
    assert (64, True, 0) == (body["max_tokens"], body["ignore_eos"], body["temperature"])
    assert {"include_usage": True} == body["stream_options"]


def test_only_the_draft_model_has_prescribed_acceptance(tmp_path: Path) -> None:
    """Its rates stand in its settings; every method begins with a table, so that K can be changed."""
    drafts = Drafts(tmp_path / "draft", tmp_path / "head")
    found = {method: speculation(method, drafts) for method in Method}

    assert [0.7, 0.49, 0.343] == found[Method.DRAFT_MODEL]["synthetic_acceptance_rates"]
    assert "rejection_sample_method" not in found[Method.NGRAM] | found[Method.EAGLE]
    assert str(tmp_path / "head") == found[Method.EAGLE]["model"]
    assert {"ngram": 4, "draft_model": 3, "eagle": 1} == {
        method: one["num_speculative_tokens"] for method, one in found.items()
    }
    assert [[1, 16, 3]] == found[Method.DRAFT_MODEL]["num_speculative_tokens_per_batch_size"]


# --- rules


def test_configurations_lay_plain_and_speculative_engines() -> None:
    """None is a plain engine; a fixed K is the longest at every batch."""
    found = calibrated()
    laid = {one: [lengths_of(one, slot, found) for slot in (0, 1)] for one in Configuration}

    assert [None, None] == laid[Configuration.ALL_PLAIN]
    assert [(0, *(4,) * 16)] * 2 == laid[Configuration.ALL_SPECULATIVE]
    assert [TABLE, TABLE] == laid[Configuration.ONE_POOL_TABLE]
    assert [TABLE, None] == laid[Configuration.TWO_POOLS]


def test_the_limit_of_slot_0_is_what_its_own_engine_keeps_at_50_ms() -> None:
    """Plain: 30 + 1 ms each, K = 4: (18 + 1.5 ms each) / 2, so all 16 of both.

    Where a step takes 45 + 1 ms each, five fit; at 20 ms not even one, so that the default limit stands.
    """
    found = calibrated()
    slow = replace(found, costs={**found.costs, Role.PLAIN: StepCost(0.045, 0.001)})

    assert 16 == slots(Configuration.ALL_PLAIN, found, 0.05)[0].limit
    assert 16 == slots(Configuration.ALL_SPECULATIVE, found, 0.05)[0].limit
    assert 5 == slots(Configuration.ALL_PLAIN, slow, 0.05)[0].limit
    assert 8 == slots(Configuration.ALL_PLAIN, slow, 0.02)[0].limit
    assert [16, 16] == [
        slots(one, found, 0.05)[1].limit for one in (Configuration.TWO_POOLS, Configuration.ALL_PLAIN)
    ]


def test_the_rules_know_the_engine_that_really_lies_at_a_slot() -> None:
    """Two plain engines cost and gain as such; a fixed K at slot 1 costs what its token costs."""
    plain = rules_of(Configuration.ALL_PLAIN, calibrated(), 0.05)
    fixed = rules_of(Configuration.ALL_SPECULATIVE, calibrated(), 0.05)

    assert {0.03} == {plain.costs[role].base_s for role in Role}
    assert {} == plain.tokens_per_step
    assert {"mean": 2.0, "code": 2.5} == fixed.tokens_per_step
    assert (0.008, 0.001, 4) == (
        fixed.costs[Role.PLAIN].base_s,
        fixed.costs[Role.PLAIN].draft_s,
        fixed.costs[Role.PLAIN].draft_length,
    )
    assert 0.016 == fixed.costs[Role.SPECULATIVE].base_s


def test_a_prompt_costs_the_same_whatever_a_step_brings() -> None:
    """Drafts make tokens cheaper, never prompts."""
    assert 0.001 == per_token(StepCost(0.03, 0.001), 2.0).per_prefill_s


# --- routing


@pytest.mark.parametrize("configuration", list(Configuration))
async def test_interactive_goes_to_slot_0_and_batch_to_slot_1(configuration: Configuration) -> None:
    """Whatever engines lie there."""
    router = ours(configuration)
    places = [await router.place(chat(tier)) for tier in (Tier.INTERACTIVE, Tier.BATCH)]

    assert [(0, "tier_interactive"), (1, "tier_batch")] == [(one.slot, one.reason) for one in places]


async def seat_batch(router: Ours, count: int) -> tuple[list[Place], list[asyncio.Task[Place]]]:
    """Send so many batch requests; those that have a place, and those that wait."""
    asked = [asyncio.create_task(router.place(chat(Tier.BATCH, number))) for number in range(count)]
    await asyncio.wait(asked, timeout=0.05)
    return [one.result() for one in asked if one.done()], [one for one in asked if not one.done()]


async def test_batch_takes_slot_0_only_above_the_reserve() -> None:
    """Sixteen at slot 1, then guests at slot 0 up to its limit of 16 less the two that are kept."""
    router = ours()
    places, waiting = await seat_batch(router, 40)
    late = await router.place(chat(Tier.INTERACTIVE))
    for one in waiting:
        one.cancel()

    assert {(1, "tier_batch"): 16, (0, "backfill"): 14} == Counter((one.slot, one.reason) for one in places)
    assert (0, "tier_interactive") == (late.slot, late.reason)


async def test_a_place_that_is_given_back_goes_to_who_waits() -> None:
    """The desk gives each request its replica when its turn comes."""
    router = ours()
    places, waiting = await seat_batch(router, 40)
    freed = places[0].slot

    places[0].release()
    done, left = await asyncio.wait(waiting, timeout=5.0, return_when=asyncio.FIRST_COMPLETED)
    for one in left:
        one.cancel()

    assert [freed] == [one.result().slot for one in done]


async def test_least_loaded_takes_the_slot_with_fewest_open() -> None:
    """Ties are broken at random, the same for the same seed."""
    router, again = LeastLoaded("a"), LeastLoaded("a")
    places = [await router.place(chat(Tier.BATCH)) for _ in range(6)]
    places[0].release()
    after = await router.place(chat(Tier.INTERACTIVE))

    assert {0: 3, 1: 3} == Counter(one.slot for one in places)
    assert places[0].slot == after.slot
    assert [one.slot for one in places] == [(await again.place(chat(Tier.BATCH))).slot for _ in range(6)]


# --- a run


def bench(plan: Plan, fakes: Fakes, records: Records) -> Bench:
    """A run over fake engines."""
    fleet = Fleet(fakes.start, Path("unused"), lambda _: None, ((0,), (1,)))
    return Bench(plan, Drafts(), fleet, calibrate, records, lambda _text, _s: None)


async def stop_all(fakes: Fakes) -> None:
    for engine in fakes.engines:
        if not engine.stopped:
            await engine.stop()


@pytest.mark.long
async def test_a_run_measures_every_condition_of_every_round(tmp_path: Path) -> None:
    """Four engines, two at a core; each condition uses those of its configuration alone."""
    fakes, records = Fakes(), Records(tmp_path / "kept.jsonl", TINY)
    records.begin()
    try:
        await bench(TINY, fakes, records).run()
    finally:
        await stop_all(fakes)
    found = records.found
    values = figures(found.blocks, comparisons(found.blocks, found.calibrated))

    assert [
        (Role.PLAIN, (0,)),
        (Role.PLAIN, (1,)),
        (Role.SPECULATIVE, (0,)),
        (Role.SPECULATIVE, (1,)),
    ] == [(one.role, one.cores) for one in fakes.engines]
    assert {TABLE} == {table for one in fakes.engines for table in one.tables}
    assert 6 == len(found.blocks) == len(found.whole_rounds(Method.NGRAM, TINY.conditions))
    assert values["predicted_wins"] == 1.0
    assert values["ngram_two_pools_ours_50_ms_at_100_ms_attainment"] == 1.0
    assert values["ngram_two_pools_ours_50_ms_batch_tokens_per_s"] > 100
    plain = [block for block in found.blocks if block.condition.configuration is Configuration.ALL_PLAIN]
    assert {0, 1} == {one.slot for block in plain for one in block.sent}


async def test_a_table_that_never_changes_k_is_measured_once(tmp_path: Path) -> None:
    """It is the fixed K by another name: both have the same answers, and only one was sent."""
    always = replace(calibrated(), table=(0, *(4 for _ in TABLE[1:])))

    async def found(*_: object) -> Calibrated:
        return always

    pair = tuple(ours_at(one, 0.05) for one in (Configuration.ALL_SPECULATIVE, Configuration.ONE_POOL_TABLE))
    plan = replace(TINY, rounds=1, conditions=pair)
    fakes, records = Fakes(), Records(tmp_path / "kept.jsonl", plan)
    records.begin()
    fleet = Fleet(fakes.start, Path("unused"), lambda _: None, ((0,), (1,)))
    try:
        await Bench(plan, Drafts(), fleet, found, records, lambda _text, _s: None).run()
    finally:
        await stop_all(fakes)
    first, second = records.found.blocks

    assert set(pair) == {first.condition, second.condition}
    assert first.sent == second.sent
    salts = {body["cache_salt"].split(".")[1] for one in fakes.engines for body in one.bodies}
    assert 1 == len(salts)


@pytest.mark.long
async def test_a_run_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    """What was measured is not measured again, also when the last line was cut."""
    path = tmp_path / "kept.jsonl"
    plan = replace(TINY, rounds=1, conditions=TINY.conditions[:2])
    fakes, records = Fakes(), Records(path, plan)
    records.begin()
    try:
        await bench(plan, fakes, records).run()
    finally:
        await stop_all(fakes)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]) + lines[3][:100])

    again = Records(path, plan)
    again.resume()
    assert records.found.blocks[:1] == again.found.blocks
    assert records.found.calibrations == again.found.calibrations
    fakes = Fakes()
    try:
        await bench(plan, fakes, again).run()
    finally:
        await stop_all(fakes)

    assert [one.condition for one in records.found.blocks] == [one.condition for one in again.found.blocks]
    assert 4 == len(path.read_bytes().splitlines())
    assert 0.0 == expected_s(plan, again.found)


def test_a_run_of_another_plan_is_refused(tmp_path: Path) -> None:
    """Rounds of different loads are never put together."""
    Records(tmp_path / "kept.jsonl", TINY).begin()

    with pytest.raises(BenchError, match="another plan"):
        Records(tmp_path / "kept.jsonl", FULL).resume()


def test_no_record_is_told_apart_from_an_empty_one(tmp_path: Path) -> None:
    """A missing file, an empty one and one of something else are refused with words."""
    (tmp_path / "empty").touch()
    (tmp_path / "other").write_text("hello\n")

    for name, words in (("missing", "begins anew"), ("empty", "is empty"), ("other", "no record")):
        with pytest.raises(BenchError, match=words):
            Records(tmp_path / name, TINY).resume()


async def test_a_method_without_its_draft_is_left_out(tmp_path: Path) -> None:
    """EAGLE needs a head; the run says so and starts no engine for it."""
    fakes, records = Fakes(), Records(tmp_path / "kept.jsonl", replace(TINY, methods=(Method.EAGLE,)))
    records.begin()

    await bench(replace(TINY, methods=(Method.EAGLE,)), fakes, records).run()

    assert [] == fakes.engines
    assert "no EAGLE head was given with --eagle-head" == records.found.left_out[Method.EAGLE].words


async def test_a_run_in_which_requests_fail_is_void() -> None:
    """Nobody answers at these addresses."""
    with pytest.raises(BenchError, match="requests failed, first"):
        await run_load(["http://127.0.0.1:9"] * 2, ["m"] * 2, LeastLoaded("a"), TINY.window, 0, "a")


def test_only_whole_rounds_are_compared() -> None:
    """A round that was interrupted has conditions without a partner."""
    assert [] == Found().whole_rounds(Method.NGRAM, CONDITIONS)


def test_a_gain_that_was_not_measured_is_that_of_the_next_shorter_k() -> None:
    """Never below one token per step, which every step gives."""
    found = replace(calibrated(), gains={"mean": {2: 1.5, 4: 1.4}, "chat": {1: 0.9}})

    assert [1.0, 1.0, 1.5, 1.5, 1.4] == [found.gain(length) for length in range(5)]
    assert 1.0 == found.gain(4, "chat")
