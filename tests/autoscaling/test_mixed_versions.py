"""Messages of a newer or an older version: what is understood, and what is left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.left_out import MOST_TOLD, Told
from autoscaling.mixed_versions import UnreadableError, read_load, read_snapshot
from autoscaling.request_line import Outcome
from autoscaling.routing_rules import LimitsFrom, PoolSpeed, RoutingRules, StepCost, TierRules
from autoscaling.types import IngressLoad, Role, Snapshot, Tier
from tests.app.views import snapshot, view
from tests.autoscaling.request_lines import line

RULES = RoutingRules(
    tiers=RoutingRules().tiers | {Tier.BATCH: TierRules(tpot_s=0.5, deadline_s=60.0, max_waiting=9)},
    reserve=3,
    limits_from=LimitsFrom.PROFILE,
    costs={Role.PLAIN: StepCost(0.01, 0.001), Role.SPECULATIVE: StepCost(0.02, 0.001, draft_length=4)},
    tokens_per_step={"mean": 1.5, "code": 2.5},
    speeds={Role.PLAIN: PoolSpeed(0.1, 0.2, 0.01, 0.02, 100.0)},
)
WHOLE = replace(snapshot(view("a"), view("b", Role.SPECULATIVE), seq=7), routing=RULES)
LOAD = IngressLoad(
    wanted={Role.PLAIN: 3},
    refused={Role.PLAIN: 1},
    epoch=4,
    waiting={Tier.BATCH: 2},
    lines=(line(1, outcome=Outcome.SHED), line(2, outcome=Outcome.SHED)),
    lines_dropped=5,
)


def sent(change: Callable[[dict[str, Any]], Any] = lambda _message: None) -> dict[str, Any]:
    """The whole snapshot as it travels, with a change."""
    message: dict[str, Any] = msgspec.to_builtins(WHOLE)
    change(message)
    return message


def put(value: Any, *path: Any) -> Callable[[dict[str, Any]], None]:
    """A change that writes `value` at a place."""

    def change(message: dict[str, Any]) -> None:
        here: Any = message
        for part in path[:-1]:
            here = here[part]
        here[path[-1]] = value

    return change


def test_a_snapshot_of_this_version_is_read_whole() -> None:
    """And there is nothing to tell."""
    found = read_snapshot(sent())
    assert (WHOLE, ()) == (found.snapshot, found.problems)


def test_unknown_fields_are_ignored() -> None:
    """At every depth, without a word."""
    message = sent(put(1, "news"))
    for path in (("routing",), ("routing", "tiers", "batch"), ("routing", "costs", "plain"), ("replicas", 0)):
        put("x", *path, "news")(message)
    found = read_snapshot(message)
    assert (WHOLE, ()) == (found.snapshot, found.problems)


@pytest.mark.parametrize(
    ("change", "expected", "place"),
    [
        (put("learned", "routing", "limits_from"), {"limits_from": LimitsFrom.UNMEASURED}, "limits_from"),
        (put({"ttft_s": 1.0}, "routing", "tiers", "background"), {}, "tiers"),
        (put({"base_s": 1.0, "per_token_s": 0.1}, "routing", "costs", "prefill"), {}, "costs"),
        (put({}, "routing", "speeds", "prefill"), {}, "speeds"),
        (
            put({"base_s": 1.0}, "routing", "costs", "plain"),
            {"costs": {Role.SPECULATIVE: RULES.costs[Role.SPECULATIVE]}},
            "costs.plain",
        ),
        (put(None, "routing", "reserve"), {"reserve": 2}, "reserve"),
        (put(float("nan"), "routing", "batch_share"), {"batch_share": 0.1}, "batch_share"),
        (
            put(None, "routing", "tokens_per_step", "code"),
            {"tokens_per_step": {"mean": 1.5}},
            "tokens_per_step.code",
        ),
        (
            put(None, "routing", "tiers", "batch", "deadline_s"),
            {"tiers": RULES.tiers | {Tier.BATCH: TierRules(tpot_s=0.5, deadline_s=300.0, max_waiting=9)}},
            "tiers.batch.deadline_s",
        ),
        (
            put("fast", "routing", "tiers", "batch"),
            {"tiers": RULES.tiers | {Tier.BATCH: TierRules(deadline_s=300.0, max_waiting=1024)}},
            "tiers.batch",
        ),
        (
            put("fast", "routing", "speeds", "plain", "ttft_p50_s"),
            {"speeds": {Role.PLAIN: PoolSpeed(None, 0.2, 0.01, 0.02, 100.0)}},
            "speeds.plain.ttft_p50_s",
        ),
        (put([1], "routing", "costs"), {"costs": {}}, "costs"),
    ],
)
def test_a_part_of_the_routing_costs_itself_only(
    change: Callable[[dict[str, Any]], None], expected: dict[str, Any], place: str
) -> None:
    """An unknown word or key, a null, a lacking field: the default of that part, and one word on it."""
    found = read_snapshot(sent(change))
    assert replace(WHOLE, routing=replace(RULES, **expected)) == found.snapshot
    (problem,) = found.problems
    assert problem.startswith(f"routing.{place} is left out: ")


def test_parts_of_the_routing_that_are_absent_have_their_defaults() -> None:
    """As with an older controller."""
    assert RoutingRules() == read_snapshot(sent(put({}, "routing"))).snapshot.routing
    assert read_snapshot(sent(lambda message: message.pop("routing"))).snapshot.routing is None


def test_routing_that_is_no_object_is_left_out() -> None:
    """The ingress has its own defaults."""
    found = read_snapshot(sent(put([], "routing")))
    assert (replace(WHOLE, routing=None), ("routing is left out: expected an object, got list",)) == (
        found.snapshot,
        found.problems,
    )


@pytest.mark.parametrize(
    "change",
    [
        put("prefill", "replicas", 0, "role"),
        put("prefill", "replicas", 0, "capabilities", "role"),
        put(None, "replicas", 0, "soft_share"),
        put(float("nan"), "replicas", 0, "age_s"),
        lambda message: message.update(replicas=[None, message["replicas"][1]]),
    ],
)
def test_an_odd_replica_is_left_out(change: Callable[[dict[str, Any]], None]) -> None:
    """Alone."""
    found = read_snapshot(sent(change))
    assert replace(WHOLE, replicas=WHOLE.replicas[1:]) == found.snapshot
    assert ["replicas[] is left out"] == [one.partition(":")[0] for one in found.problems]


def test_the_rest_of_a_snapshot_has_careful_defaults() -> None:
    """One that may leave somebody out removes nobody."""
    odd = {"partial": None, "ingresses": "two", "stopping": 3, "retry_after_s": "soon"}
    found = read_snapshot(sent(lambda message: message.update(odd)))
    assert replace(WHOLE, partial=True, ingresses=1) == found.snapshot
    assert [f"{name} is left out" for name in odd] == [one.partition(":")[0] for one in found.problems]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (put(2, "schema"), "a snapshot of schema 2, known here is 1"),
        (put(None, "epoch"), "a snapshot whose epoch or seq cannot be read: "),
        (put("7", "seq"), "a snapshot whose epoch or seq cannot be read: "),
        (put(None, "replicas"), "a snapshot whose replicas are NoneType, no list"),
        (put([1, 2], "replicas"), "a snapshot of which no replica can be read: replicas[] is left out: "),
    ],
)
def test_a_snapshot_without_use_is_refused(change: Callable[[dict[str, Any]], None], reason: str) -> None:
    """The last one stays in force: another major version, no age, or nobody who can be read."""
    with pytest.raises(UnreadableError) as error:
        read_snapshot(sent(change))
    assert str(error.value).startswith(reason)


def test_a_service_without_replicas_is_no_problem() -> None:
    """A new one has none."""
    found = read_snapshot(sent(put([], "replicas")))
    assert ((), ()) == (found.snapshot.replicas, found.problems)


# --- loads


def said(**changes: Any) -> dict[str, Any]:
    """The load as it travels, with changes."""
    message: dict[str, Any] = msgspec.to_builtins(LOAD)
    return message | changes


def test_a_load_of_this_version_is_read_whole() -> None:
    """And there is nothing to tell."""
    found = read_load(said(news=1))
    assert (LOAD, (), ()) == (found.load, found.unread, found.problems)


@pytest.mark.parametrize(
    ("changes", "expected", "place"),
    [
        ({"waiting": {"batch": 2, "background": 1}}, {}, "waiting"),
        ({"wanted": {"plain": 3, "prefill": 1}}, {}, "wanted"),
        ({"wanted": {"plain": None}}, {"wanted": {}}, "wanted.plain"),
        ({"refused": None}, {"refused": {}}, "refused"),
        ({"epoch": "4"}, {"epoch": None}, "epoch"),
        ({"lines_dropped": None}, {"lines_dropped": 0}, "lines_dropped"),
    ],
)
def test_a_part_of_a_load_costs_itself_only(
    changes: dict[str, Any], expected: dict[str, Any], place: str
) -> None:
    """An unknown key or a null is left out, and the rest is taken."""
    found = read_load(said(**changes))
    assert replace(LOAD, **expected) == found.load
    (problem,) = found.problems
    assert problem.startswith(f"{place} is left out: ")


def test_counters_stay_inside_what_can_be_computed_with() -> None:
    """Zero and the largest exact number are the ends."""
    found = read_load(said(wanted={"plain": 10**400, "speculative": -3}, lines_dropped=10**400)).load
    assert ({Role.PLAIN: 2**53, Role.SPECULATIVE: 0}, 2**53) == (found.wanted, found.lines_dropped)


def test_lines_that_are_not_understood_are_numbered() -> None:
    """With their number where they have one, so that nothing counts them twice."""
    lines = msgspec.to_builtins([line(1), line(2), line(3), line(4)])
    lines[0]["outcome"] = "evaporated"
    lines[2] = None
    lines[3]["seq"] = 10**400
    found = read_load(said(lines=lines))
    assert ((line(2),), (1, None, None)) == (found.load.lines, found.unread)
    assert ((), ()) == (read_load(said(lines=None)).load.lines, read_load(said(lines=None)).unread)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just(10**400),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["plain", "batch", "mean", "base_s", "deadline_s", "tiers", "costs", "seq", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([one for one in msgspec.to_builtins(WHOLE) if one != "schema"]), JSON))
def test_no_snapshot_is_a_surprise(changes: dict[str, Any]) -> None:
    """Whatever is in it, it is read or refused."""
    try:
        found = read_snapshot(sent(lambda message: message.update(changes)))
    except UnreadableError:
        assert {"epoch", "seq", "replicas"} & set(changes)
    else:
        assert isinstance(found.snapshot, Snapshot)


@given(st.dictionaries(st.sampled_from([one for one in msgspec.to_builtins(LOAD) if one != "schema"]), JSON))
def test_no_load_is_a_surprise(changes: dict[str, Any]) -> None:
    """Whatever is in it, it is read."""
    assert isinstance(read_load(said(**changes)).load, IngressLoad)


def test_each_cause_is_told_once() -> None:
    """And no more causes than anybody would read."""
    told = Told()
    assert ("a", "b") == told.fresh(["a", "b", "a"])
    assert ("c",) == told.fresh(["b", "c"])
    assert MOST_TOLD - 3 == len(told.fresh(str(number) for number in range(1000)))
