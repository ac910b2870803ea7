"""The routing rule by tables: which pool serves which tier in which state of the pools."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.candidates import Candidate
from app.routing.ask import Ask
from app.routing.rule import preferred_role
from autoscaling.routing_rules import RoutingRules, StepCost, TierRules
from autoscaling.types import Role, Tier
from tests.app.routing.worlds import (
    FAST,
    MEASURED,
    PROFILED,
    SLOW,
    TIERS,
    UNMEASURED,
    decided,
    plain,
    replica,
    spec,
    taken,
    words,
)

INTERACTIVE, STANDARD, BATCH = Ask(Tier.INTERACTIVE), Ask(Tier.STANDARD), Ask(Tier.BATCH, max_tokens=128)
DRAFTABLE = Ask(Tier.STANDARD, draftable=True, tokens_per_step=1.6)
MIN_P = frozenset({"min_p"})


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (INTERACTIVE, ("s", "tier_interactive")),
        (STANDARD, ("p", "tier_standard")),
        (DRAFTABLE, ("s", "draftable")),
        (BATCH, ("p", "tier_batch")),
        (replace(BATCH, draftable=True), ("p", "tier_batch")),
    ],
)
def test_each_tier_has_its_pool(ask: Ask, expected: tuple[str, str]) -> None:
    """With both pools idle; only a standard request goes where drafts pay."""
    assert expected == taken(ask, [spec(), plain()])


@pytest.mark.parametrize(
    ("speculative", "other", "expected"),
    [
        (7, 0, ("s", "tier_interactive")),
        (8, 0, ("p", "spill")),
        (8, 31, ("p", "spill")),
        (8, 32, None),
        (7, 32, ("s", "tier_interactive")),
    ],
)
def test_interactive_takes_the_reserve_and_then_spills(
    speculative: int, other: int, expected: tuple[str, str] | None
) -> None:
    """The speculative pool to its whole limit, then the plain pool to its own, then it waits."""
    assert expected == taken(INTERACTIVE, [spec(speculative), plain(other)])


@pytest.mark.parametrize(
    ("ask", "speculative", "other", "expected", "verdicts"),
    [
        (STANDARD, 5, 31, ("p", "tier_standard"), ("not_preferred", "chosen")),
        (STANDARD, 5, 32, ("s", "spill"), ("chosen", "full")),
        (STANDARD, 6, 32, None, ("reserve_kept", "full")),
        (STANDARD, 8, 32, None, ("full", "full")),
        (DRAFTABLE, 5, 0, ("s", "draftable"), ("chosen", "not_preferred")),
        (DRAFTABLE, 6, 0, ("p", "tier_standard"), ("reserve_kept", "chosen")),
        (DRAFTABLE, 6, 32, None, ("reserve_kept", "full")),
        (BATCH, 0, 31, ("p", "tier_batch"), ("not_preferred", "chosen")),
        (BATCH, 5, 32, ("s", "backfill"), ("chosen", "full")),
        (BATCH, 6, 32, None, ("reserve_kept", "full")),
    ],
)
def test_the_reserve_is_left(
    ask: Ask, speculative: int, other: int, expected: tuple[str, str] | None, verdicts: tuple[str, str]
) -> None:
    """Standard and batch requests leave two sequences of each speculative replica free."""
    decision = decided(ask, [spec(speculative), plain(other)], MEASURED)

    assert expected == taken(ask, [spec(speculative), plain(other)], MEASURED)
    assert verdicts == words(decision)


@pytest.mark.parametrize(
    ("rules", "max_tokens", "expected", "verdict"),
    [
        (MEASURED, 128, ("s", "backfill"), "chosen"),  # 0.1 + 128 * 0.02 = 2.7 s
        (MEASURED, 745, ("s", "backfill"), "chosen"),  # 15.0 s
        (MEASURED, 746, None, "stay_too_long"),
        (MEASURED, None, ("s", "backfill"), "chosen"),  # the mean answer: 100 tokens
        (UNMEASURED, 128, None, "stay_unknown"),
        (replace(MEASURED, backfill=False), 128, None, "backfill_off"),
        (replace(MEASURED, speeds={Role.PLAIN: FAST}), 128, ("s", "backfill"), "chosen"),
        (replace(MEASURED, speeds={Role.SPECULATIVE: SLOW}), 128, None, "would_miss_tpot"),
        (PROFILED, 128, None, "would_miss_tpot"),  # 8 + 1 + the reserve of 2 take 0.0515 s
        (replace(PROFILED, tokens_per_step={"mean": 1.2}), 128, ("s", "backfill"), "chosen"),
    ],
)
def test_backfill(
    rules: RoutingRules, max_tokens: int | None, expected: tuple[str, str] | None, verdict: str
) -> None:
    """Only for a short stay, and only while interactive requests keep their time per token."""
    rules = replace(rules, reserve=2)
    ask = Ask(Tier.BATCH, max_tokens=max_tokens)
    candidates = [spec(8, limit=16), plain(32)]

    assert expected == taken(ask, candidates, rules)
    assert (verdict, "full") == words(decided(ask, candidates, rules))


@pytest.mark.parametrize(
    ("rules", "load", "expected", "verdict"),
    [
        (MEASURED, 5, ("p", "spill"), "chosen"),
        (replace(MEASURED, speeds={Role.PLAIN: SLOW}), 5, None, "would_miss_tpot"),
        (replace(MEASURED, speeds={Role.PLAIN: SLOW}), 0, ("p", "spill"), "chosen"),  # idle: its best
        (replace(MEASURED, speeds={Role.PLAIN: replace(FAST, ttft_p95_s=2.0)}), 5, None, "would_miss_ttft"),
        (PROFILED, 31, ("p", "spill"), "chosen"),
        (UNMEASURED, 31, ("p", "spill"), "chosen"),
    ],
)
def test_a_spill_is_in_time(
    rules: RoutingRules, load: int, expected: tuple[str, str] | None, verdict: str
) -> None:
    """A saturated speculative pool sends on only what the plain pool is predicted to serve in time."""
    assert expected == taken(INTERACTIVE, [spec(8), plain(load)], rules)
    assert ("full", verdict) == words(decided(INTERACTIVE, [spec(8), plain(load)], rules))


def test_without_a_cost_model_the_own_pool_is_taken_by_its_limits_alone() -> None:
    """The last minute's times would turn a whole tier away for a minute."""
    rules = RoutingRules(tiers=TIERS, speeds={Role.SPECULATIVE: SLOW, Role.PLAIN: SLOW})

    assert taken(INTERACTIVE, [spec(3), plain(3)], rules) == ("s", "tier_interactive")
    assert taken(STANDARD, [spec(3), plain(3)], rules) == ("p", "tier_standard")


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        ([plain()], ("p", "pool_unavailable")),
        ([spec(accepting=False), plain()], ("p", "pool_unavailable")),
        ([spec(hard_room=False), plain()], ("p", "spill")),
        ([], None),
        ([spec(accepting=False)], None),
    ],
)
def test_a_missing_pool(candidates: list[Candidate], expected: tuple[str, str] | None) -> None:
    """A pool that has no replica taking work is unavailable; one that has and is full spills."""
    assert expected == taken(INTERACTIVE, candidates)


@pytest.mark.parametrize(
    ("ask", "load", "expected"),
    [
        (STANDARD, 5, ("s", "pool_unavailable")),
        (STANDARD, 6, None),
        (BATCH, 5, ("s", "pool_unavailable")),
        (BATCH, 6, None),
        (replace(BATCH, max_tokens=10_000), 5, ("s", "pool_unavailable")),
        (replace(STANDARD, sequences=7), 0, ("s", "pool_unavailable")),
        (replace(STANDARD, sequences=7), 1, None),
        (replace(STANDARD, sequences=6), 0, ("s", "pool_unavailable")),
    ],
)
def test_where_nothing_else_can_serve_only_the_reserve_stands_against_it(
    ask: Ask, load: int, expected: tuple[str, str] | None
) -> None:
    """Without the plain pool no stay and no objective counts, and an idle replica takes what is larger."""
    rules = replace(PROFILED, backfill=False)
    tight = replace(rules, tiers={**TIERS, Tier.INTERACTIVE: TierRules(tpot_s=0.03)})

    assert expected == taken(ask, [spec(load)], rules)
    assert expected == taken(ask, [spec(load)], tight)


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        ([spec(refuses="min_p logit_bias"), plain()], ("p", "capability")),
        ([spec(refuses="logit_bias"), plain()], ("s", "tier_interactive")),
        ([spec(0, "s1", refuses="min_p"), spec(0, "s2"), plain()], ("s2", "tier_interactive")),
        ([spec(0, "s1", refuses="min_p"), spec(8, "s2"), plain()], ("p", "spill")),
        ([spec(refuses="min_p"), plain(32)], None),
        ([spec(refuses="min_p")], None),
    ],
)
def test_capabilities(candidates: list[Candidate], expected: tuple[str, str] | None) -> None:
    """Case D7: a replica that refuses a parameter is not considered, replica by replica."""
    assert expected == taken(replace(INTERACTIVE, parameters=MIN_P), candidates)


def test_what_one_pool_refuses_the_other_takes_although_it_prefers_neither() -> None:
    """Case D7: a draftable request with a parameter that drafting excludes is served by the plain pool."""
    ask = replace(DRAFTABLE, parameters=MIN_P)

    assert taken(ask, [spec(refuses="min_p"), plain()]) == ("p", "tier_standard")
    assert words(decided(ask, [spec(refuses="min_p"), plain()])) == ("refuses_parameter", "chosen")


def test_a_wider_replica_is_asked_alone() -> None:
    """After a 400 only such replicas count as take more than the one that gave it."""
    ask = replace(INTERACTIVE, among=frozenset({"p2"}))

    assert taken(ask, [spec(), plain(), plain(3, "p2")]) == ("p2", "capability")


@pytest.mark.parametrize(
    ("ask", "pin", "candidates", "expected"),
    [
        (INTERACTIVE, Role.PLAIN, [spec(), plain()], ("p", "pinned_by_caller")),
        (INTERACTIVE, Role.SPECULATIVE, [spec(7), plain()], ("s", "pinned_by_caller")),
        (INTERACTIVE, Role.PLAIN, [spec(), plain(32)], None),
        (INTERACTIVE, Role.PLAIN, [spec()], None),
        (BATCH, Role.SPECULATIVE, [spec(5), plain()], ("s", "pinned_by_caller")),
        (BATCH, Role.SPECULATIVE, [spec(6), plain()], None),
        (STANDARD, Role.SPECULATIVE, [spec(6), plain()], None),
        (STANDARD, Role.SPECULATIVE, [spec(0, limit=1), plain()], ("s", "pinned_by_caller")),
    ],
)
def test_a_pin_stays_in_its_pool(
    ask: Ask, pin: Role, candidates: list[Candidate], expected: tuple[str, str] | None
) -> None:
    """A pinned request is served by its pool or not at all, and its tier decides on the reserve."""
    assert expected == taken(replace(ask, pin=pin), candidates, PROFILED)


def test_tried_replicas_are_left_out() -> None:
    """A retry goes elsewhere: in the pool first, then as a spill, then nowhere."""
    candidates = [spec(0, "s1"), spec(0, "s2"), plain()]

    assert taken(INTERACTIVE, candidates, tried=frozenset({"s1"})) == ("s2", "tier_interactive")
    assert taken(INTERACTIVE, candidates, tried=frozenset({"s1", "s2"})) == ("p", "spill")
    assert taken(INTERACTIVE, candidates, tried=frozenset({"s1", "s2", "p"})) is None
    assert words(decided(INTERACTIVE, candidates, tried=frozenset({"s1", "s2", "p"}))) == ("tried", "tried")


@pytest.mark.parametrize("ask", [INTERACTIVE, replace(STANDARD, draftable=True), STANDARD])
@pytest.mark.parametrize("tpot_s", [0.001, 0.0001])
def test_an_objective_that_nobody_can_keep_counts_for_nothing(ask: Ask, tpot_s: float) -> None:
    """Even an idle replica would miss it: no waiting helps, so nobody waits for it."""
    hopeless = {tier: TierRules(ttft_s=tpot_s, tpot_s=tpot_s) for tier in Tier}

    for candidates in ([spec(5), plain(31)], [spec(8), plain(31)], [spec(5), plain(32)]):
        expected = taken(ask, candidates, replace(PROFILED, tiers={}))
        assert expected is not None
        assert expected == taken(ask, candidates, replace(PROFILED, tiers=hopeless))


@pytest.mark.parametrize(
    ("sequences", "loads", "expected"),
    [
        (9, (0, 0), ("s", "tier_interactive")),
        (9, (1, 0), ("p", "spill")),
        (33, (1, 0), ("p", "spill")),
        (33, (1, 1), None),
        (8, (0, 1), ("s", "tier_interactive")),
        (8, (1, 1), ("p", "spill")),
    ],
)
def test_a_request_larger_than_a_limit_is_taken_by_an_idle_replica(
    sequences: int, loads: tuple[int, int], expected: tuple[str, str] | None
) -> None:
    """It would never fit, and alone it does no harm to others."""
    ask = Ask(Tier.INTERACTIVE, sequences=sequences)

    assert expected == taken(ask, [spec(loads[0]), plain(loads[1])])


def test_a_request_larger_than_our_share_is_taken_by_an_idle_replica() -> None:
    """With two ingresses the share is 4 of 8: six sequences fit no share, and one replica serves them."""
    idle = replica(Role.SPECULATIVE, "s", limit=8, ingresses=2)
    busy = replica(Role.SPECULATIVE, "s", 1, own=0, limit=8, ingresses=2)

    assert taken(Ask(Tier.INTERACTIVE, sequences=6), [idle]) == ("s", "tier_interactive")
    assert taken(Ask(Tier.INTERACTIVE, sequences=6), [busy]) is None
    assert taken(Ask(Tier.STANDARD, sequences=4), [idle]) == ("s", "pool_unavailable")


def test_a_guest_larger_than_the_room_takes_no_idle_replica() -> None:
    """What others may use of the speculative pool is the room above the reserve, idle or not."""
    ask = Ask(Tier.BATCH, sequences=9, max_tokens=16)
    rules = replace(MEASURED, reserve=0)

    assert taken(ask, [spec(), plain(32)], rules) is None
    assert words(decided(ask, [spec(), plain(32)], rules)) == ("full", "full")


def test_the_prediction_is_of_a_replica_that_has_room() -> None:
    """The emptiest one may have none of our share: what counts is the emptiest of those that do."""
    ours = replica(Role.SPECULATIVE, "ours", 4, own=4, limit=8, ingresses=2)
    others = replica(Role.SPECULATIVE, "others", 7, own=0, limit=8, ingresses=2)
    rules = replace(PROFILED, tiers={Tier.INTERACTIVE: TierRules(tpot_s=0.04)})  # 6 sequences take 0.039 s

    assert words(decided(INTERACTIVE, [ours, others], rules)) == ("would_miss_tpot", "no_replica")


def test_no_replica_that_would_miss_is_drawn() -> None:
    """A pool is taken for those of its replicas that keep the objective, not for its emptiest alone."""
    rules = replace(PROFILED, tiers={Tier.INTERACTIVE: TierRules(tpot_s=0.04)})
    candidates = [spec(7, "s1"), spec(6, "s2"), spec(5, "s3")]  # 6 sequences take 0.039 s, 7 0.0415 s

    assert taken(INTERACTIVE, candidates, rules) == ("s3", "tier_interactive")


def test_preferred_role() -> None:
    """What a request counts as demand for: its pin, else the pool of its tier."""
    assert preferred_role(Tier.INTERACTIVE, None) is Role.SPECULATIVE
    assert preferred_role(Tier.STANDARD, None) is Role.PLAIN
    assert preferred_role(Tier.BATCH, None) is Role.PLAIN
    assert preferred_role(Tier.INTERACTIVE, Role.PLAIN) is Role.PLAIN


def test_a_pool_that_never_keeps_the_objective_is_not_excused_where_the_other_one_does() -> None:
    """A request without gain misses 45 ms even on an idle speculative replica; the plain pool keeps it."""
    costs = {
        Role.SPECULATIVE: StepCost(base_s=0.045, per_token_s=0.0005, draft_length=4),
        Role.PLAIN: StepCost(base_s=0.03, per_token_s=0.0005),
    }
    rules = RoutingRules(tiers={Tier.INTERACTIVE: TierRules(tpot_s=0.045)}, costs=costs)
    slow = replace(INTERACTIVE, tokens_per_step=1.02)
    assert ("p", "spill") == taken(slow, [spec(load=3), plain()], rules)
    assert ("s", "tier_interactive") == taken(slow, [spec(load=3)], rules)


def test_an_objective_that_no_pool_keeps_stands_against_none() -> None:
    """Waiting would not help: the request goes where its tier prefers."""
    costs = {role: StepCost(base_s=0.09, per_token_s=0.0005) for role in Role}
    rules = RoutingRules(tiers={Tier.INTERACTIVE: TierRules(tpot_s=0.045)}, costs=costs)
    assert ("s", "tier_interactive") == taken(INTERACTIVE, [spec(load=3), plain()], rules)


# Plain 20.5 ms alone and 36 ms with 32; speculative 30.2 ms with 3 and with half as much per token.
RELIEVED = replace(PROFILED, tokens_per_step={"mean": 2.0})
GAINS = replace(BATCH, tokens_per_step=2.0)


@pytest.mark.parametrize(
    ("ask", "speculative", "other", "expected", "verdicts"),
    [
        (GAINS, 0, 0, ("p", "tier_batch"), ("not_preferred", "chosen")),  # 20.5 ms: nothing is slowed
        (GAINS, 0, 10, ("p", "tier_batch"), ("not_preferred", "chosen")),  # 25.5 ms of 25.6
        (GAINS, 0, 11, ("s", "backfill"), ("chosen", "slower")),  # 26 ms, and there 13.3
        (GAINS, 5, 11, ("s", "backfill"), ("chosen", "slower")),  # 6 sequences: 19.5 ms
        (GAINS, 6, 11, ("p", "tier_batch"), ("reserve_kept", "chosen")),
        (replace(BATCH, tokens_per_step=1.0), 0, 11, ("p", "tier_batch"), ("slower", "chosen")),  # 26.5 ms
        (replace(BATCH, tokens_per_step=1.0), 0, 31, ("s", "backfill"), ("chosen", "slower")),  # 36 ms
        (replace(GAINS, max_tokens=2000), 0, 11, ("p", "tier_batch"), ("stay_too_long", "chosen")),
        (STANDARD, 0, 31, ("p", "tier_standard"), ("not_preferred", "chosen")),
    ],
)
def test_batch_relieves_a_plain_pool_that_is_slower(
    ask: Ask, speculative: int, other: int, expected: tuple[str, str], verdicts: tuple[str, str]
) -> None:
    """From a quarter more time per token than alone, where the other pool takes less and all else stands."""
    found = decided(ask, [spec(speculative), plain(other)], RELIEVED)

    assert verdicts == words(found)
    assert expected == taken(ask, [spec(speculative), plain(other)], RELIEVED)


def test_batch_relieves_no_pool_where_interactive_requests_would_be_late() -> None:
    """With a guest and the reserve filled 3 sequences take 15.75 ms, of which 15 are promised."""
    tight = replace(RELIEVED, tiers={**TIERS, Tier.INTERACTIVE: TierRules(tpot_s=0.015)})

    assert ("would_miss_tpot", "chosen") == words(decided(GAINS, [spec(), plain(31)], tight))


def test_batch_relieves_only_where_both_costs_are_known() -> None:
    """Last minute's times compare other requests; backfill off is off."""
    for rules in (
        MEASURED,
        replace(RELIEVED, costs={Role.PLAIN: RELIEVED.costs[Role.PLAIN]}),
        replace(RELIEVED, backfill=False),
    ):
        assert ("p", "tier_batch") == taken(GAINS, [spec(), plain(31)], rules)


def test_an_objective_that_a_mean_request_misses_alone_turns_nobody_away_at_home() -> None:
    """12 ms, of which 13.25 are predicted alone with the mean gain of 2: with 3 it is 8 ms alone, 15 among 8.

    Such a request would wait for a load that guests, whom no limit keeps out, never let fall.
    """
    rules = replace(RELIEVED, tiers={**TIERS, Tier.INTERACTIVE: TierRules(ttft_s=1.0, tpot_s=0.012)})
    gains = replace(INTERACTIVE, tokens_per_step=3.0)

    assert ("s", "tier_interactive") == taken(gains, [spec(7), plain(31)], rules)
    kept = replace(rules, tokens_per_step={"mean": 2.3})  # 11.5 ms alone: now it is a promise
    assert ("would_miss_tpot", "would_miss_tpot") == words(decided(gains, [spec(7), plain(31)], kept))


def test_a_mean_request_that_misses_at_home_goes_where_it_is_in_time() -> None:
    """The plain pool keeps 25 ms, and the speculative one does not, even alone and with the mean gain."""
    rules = replace(
        RELIEVED,
        tiers={**TIERS, Tier.INTERACTIVE: TierRules(tpot_s=0.025)},
        tokens_per_step={"mean": 1.0},
    )

    assert ("p", "spill") == taken(replace(INTERACTIVE, tokens_per_step=1.0), [spec(), plain()], rules)
