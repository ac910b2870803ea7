"""Which replica serves a request, and why."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.membership import Candidate
from app.routing import Refusal, RouteReason, route, why_none
from autoscaling.types import Role, Tier
from tests.app.views import view

NONE: frozenset[str] = frozenset()
MIN_P = frozenset({"min_p"})
ROOMS = {"soft": (True, True), "hard": (False, True), "full": (False, False)}


def spec(
    name: str = "s", room: str = "soft", *, load: int = 0, accepting: bool = True, refuses: str = ""
) -> Candidate:
    soft, hard = ROOMS[room]
    refused = tuple(refuses.split())
    return Candidate(view(name, Role.SPECULATIVE, accepting=accepting, refuses=refused), load, soft, hard)


def plain(
    name: str = "p", room: str = "soft", *, load: int = 0, accepting: bool = True, refuses: str = ""
) -> Candidate:
    soft, hard = ROOMS[room]
    refused = tuple(refuses.split())
    return Candidate(view(name, Role.PLAIN, accepting=accepting, refuses=refused), load, soft, hard)


def first(_count: int) -> int:
    return 0


def taken(
    tier: Tier,
    candidates: list[Candidate],
    pin: Role | None = None,
    parameters: frozenset[str] = NONE,
    tried: frozenset[str] = NONE,
) -> tuple[str, str] | None:
    found = route(tier, pin, parameters, candidates, tried=tried, choose=first)
    return None if found is None else (found.replica.replica_id, found.reason.value)


@pytest.mark.parametrize(
    ("tier", "expected"),
    [
        (Tier.INTERACTIVE, ("s", "tier_interactive")),
        (Tier.STANDARD, ("p", "tier_standard")),
        (Tier.BATCH, ("p", "tier_batch")),
    ],
)
def test_each_tier_has_its_pool(tier: Tier, expected: tuple[str, str]) -> None:
    """Interactive prefers the speculative pool, everything else the plain one."""
    assert expected == taken(tier, [spec(), plain()])


@pytest.mark.parametrize(
    ("speculative", "other", "expected"),
    [
        ("soft", "soft", ("s", "tier_interactive")),
        ("hard", "soft", ("p", "spill")),
        ("hard", "hard", ("s", "tier_interactive")),
        ("hard", "full", ("s", "tier_interactive")),
        ("full", "hard", ("p", "spill")),
        ("full", "full", None),
    ],
)
def test_order_of_room(speculative: str, other: str, expected: tuple[str, str] | None) -> None:
    """Preferred with soft room, other with soft room, preferred with hard room, other with hard room."""
    assert expected == taken(Tier.INTERACTIVE, [spec(room=speculative), plain(room=other)])


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        ([plain()], ("p", "pool_unavailable")),
        ([spec(accepting=False), plain()], ("p", "pool_unavailable")),
        ([spec(room="full"), plain()], ("p", "spill")),
        ([], None),
        ([spec(accepting=False)], None),
    ],
)
def test_a_missing_pool(candidates: list[Candidate], expected: tuple[str, str] | None) -> None:
    """A pool that has no replica taking work is unavailable; one that has and is full spills."""
    assert expected == taken(Tier.INTERACTIVE, candidates)


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        ([spec(refuses="min_p logit_bias"), plain()], ("p", "capability")),
        ([spec(refuses="logit_bias"), plain()], ("s", "tier_interactive")),
        ([spec("s1", refuses="min_p"), spec("s2"), plain()], ("s2", "tier_interactive")),
        ([spec("s1", refuses="min_p"), spec("s2", "full"), plain()], ("p", "spill")),
        ([spec(refuses="min_p"), plain(room="full")], None),
        ([spec(refuses="min_p")], None),
    ],
)
def test_capabilities(candidates: list[Candidate], expected: tuple[str, str] | None) -> None:
    """A replica that refuses a parameter of the request is not considered, replica by replica."""
    assert expected == taken(Tier.INTERACTIVE, candidates, parameters=MIN_P)


@pytest.mark.parametrize(
    ("pin", "candidates", "expected"),
    [
        (Role.PLAIN, [spec(), plain()], ("p", "pinned_by_caller")),
        (Role.SPECULATIVE, [spec(), plain()], ("s", "pinned_by_caller")),
        (Role.PLAIN, [spec(), plain(room="hard")], ("p", "pinned_by_caller")),
        (Role.PLAIN, [spec(), plain(room="full")], None),
        (Role.PLAIN, [spec()], None),
    ],
)
def test_a_pin_stays_in_its_pool(
    pin: Role, candidates: list[Candidate], expected: tuple[str, str] | None
) -> None:
    """A pinned request is served by its pool or not at all."""
    assert expected == taken(Tier.INTERACTIVE, candidates, pin=pin)


def test_tried_replicas_are_left_out() -> None:
    """A retry goes elsewhere: in the pool first, then as a spill, then nowhere."""
    candidates = [spec("s1"), spec("s2"), plain()]
    assert taken(Tier.INTERACTIVE, candidates, tried=frozenset({"s1"})) == ("s2", "tier_interactive")
    assert taken(Tier.INTERACTIVE, candidates, tried=frozenset({"s1", "s2"})) == ("p", "spill")
    assert taken(Tier.INTERACTIVE, candidates, tried=frozenset({"s1", "s2", "p"})) is None


def test_route_names_the_pool() -> None:
    """The route carries the pool's name."""
    found = route(Tier.BATCH, None, NONE, [plain()], tried=NONE, choose=first)
    assert found is not None
    assert (found.pool, found.reason) == ("plain", RouteReason.TIER_BATCH)


@pytest.mark.parametrize(
    ("draws", "expected"),
    [((0, 0), "b"), ((0, 1), "c"), ((1, 0), "b"), ((1, 1), "b"), ((2, 0), "c"), ((2, 1), "b")],
)
def test_the_emptier_of_two(draws: tuple[int, int], expected: str) -> None:
    """Two different replicas are drawn, and the one with fewer requests in flight wins."""
    candidates = [plain("a", load=5), plain("b", load=1), plain("c", load=3)]
    left = list(draws)
    found = route(Tier.BATCH, None, NONE, candidates, tried=NONE, choose=lambda _n: left.pop(0))
    assert found is not None
    assert expected == found.replica.replica_id


def test_a_burst_is_spread() -> None:
    """Routed on one and the same view, a burst is spread within a factor of 2."""
    candidates = [plain(name) for name in "abcdefgh"]
    source = Random(7)
    counts: Counter[str] = Counter()
    for _ in range(800):
        found = route(Tier.BATCH, None, NONE, candidates, tried=NONE, choose=source.randrange)
        assert found is not None
        counts[found.replica.replica_id] += 1
    assert len(counts) == 8
    assert max(counts.values()) <= 2 * min(counts.values())


@pytest.mark.parametrize(
    ("pin", "candidates", "expected"),
    [
        (None, [], Refusal.NO_REPLICA),
        (None, [spec(accepting=False)], Refusal.NO_REPLICA),
        (None, [spec(room="full"), plain(room="full")], Refusal.FULL),
        (None, [spec(refuses="min_p"), plain(room="full")], Refusal.FULL),
        (None, [spec(refuses="min_p")], Refusal.NO_REPLICA),  # a plain replica, when back, can
        (Role.PLAIN, [spec()], Refusal.NO_REPLICA),
        (Role.PLAIN, [spec(), plain(room="full")], Refusal.POOL_PINNED_FULL),
        (Role.SPECULATIVE, [spec(refuses="min_p"), plain()], Refusal.CAPABILITY),
    ],
)
def test_why_none(pin: Role | None, candidates: list[Candidate], expected: Refusal) -> None:
    """No route has one reason: nobody there, nobody able, or nobody with room (in the pinned pool)."""
    assert route(Tier.INTERACTIVE, pin, MIN_P, candidates, tried=NONE, choose=first) is None
    assert expected is why_none(pin, MIN_P, candidates)


def test_reasons_are_a_closed_set() -> None:
    """Reasons are metric labels: this list and no other."""
    assert [reason.value for reason in RouteReason] == [
        "tier_interactive",
        "tier_standard",
        "tier_batch",
        "spill",
        "pool_unavailable",
        "capability",
        "pinned_by_caller",
    ]
    assert [refusal.value for refusal in Refusal] == ["no_replica", "full", "capability", "pool_pinned_full"]


CANDIDATES = st.lists(
    st.builds(
        lambda make, name, room, load, accepting, refuses: make(
            name, room, load=load, accepting=accepting, refuses=refuses
        ),
        st.sampled_from([spec, plain]),
        st.sampled_from("abcdef"),
        st.sampled_from(["soft", "hard", "full"]),
        st.integers(0, 9),
        st.booleans(),
        st.sampled_from(["", "min_p", "logit_bias", "min_p logit_bias"]),
    ),
    max_size=6,
    unique_by=lambda candidate: candidate.replica.replica_id,
)


@given(
    st.sampled_from(list(Tier)),
    st.none() | st.sampled_from(list(Role)),
    st.frozensets(st.sampled_from(["min_p", "logit_bias"])),
    CANDIDATES,
    st.frozensets(st.sampled_from("abcdef")),
    st.integers(-10, 10),
)
def test_route_is_total_and_safe(
    tier: Tier,
    pin: Role | None,
    parameters: frozenset[str],
    candidates: list[Candidate],
    tried: frozenset[str],
    drawn: int,
) -> None:
    """There is a route exactly when a replica may serve, and it is such a replica; else there is a reason."""
    allowed = {
        c.replica.replica_id
        for c in candidates
        if c.replica.accepting
        and c.hard_room
        and c.replica.replica_id not in tried
        and parameters.isdisjoint(c.replica.capabilities.refuses)
        and pin in (None, c.replica.role)
    }
    found = route(tier, pin, parameters, candidates, tried=tried, choose=lambda _n: drawn)
    if found is None:
        assert allowed == set()
        assert why_none(pin, parameters, candidates) in set(Refusal)
    else:
        assert found.replica.replica_id in allowed
        assert (found.reason is RouteReason.PINNED_BY_CALLER) == (pin is not None)
