"""The whole decision: route, refusal and the closed sets of words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.candidates import Candidate
from app.routing.ask import Ask
from app.routing.replicas import Pick
from app.routing.route import Refusal, refusal_of, route_of
from app.routing.verdicts import PASSING, Verdict
from autoscaling.request_words import POOLS, REPLICAS, ROUTES
from autoscaling.route_reasons import RouteReason
from autoscaling.types import Role, Tier
from tests.app.routing.worlds import MEASURED, decided, plain, spec

INTERACTIVE = Ask(Tier.INTERACTIVE)
MIN_P = frozenset({"min_p"})


def test_a_route_names_pool_and_reason() -> None:
    """And carries the decision with the rules that it was made by."""
    decision = decided(Ask(Tier.BATCH), [plain()], MEASURED)
    found = route_of(decision)

    assert found is not None
    assert (found.pool, found.reason) == (Role.PLAIN, RouteReason.TIER_BATCH)
    assert found.decision is decision
    assert decision.rules is MEASURED


@pytest.mark.parametrize(
    ("ask", "candidates", "expected"),
    [
        (INTERACTIVE, [], Refusal.NO_REPLICA),
        (INTERACTIVE, [spec(accepting=False)], Refusal.NO_REPLICA),
        (INTERACTIVE, [spec(8), plain(32)], Refusal.NO_ROOM),
        (INTERACTIVE, [spec(hard_room=False)], Refusal.NO_ROOM),
        (Ask(Tier.STANDARD), [spec(6), plain(32)], Refusal.NO_ROOM),
        (replace(INTERACTIVE, parameters=MIN_P), [spec(refuses="min_p"), plain(32)], Refusal.NO_ROOM),
        # A plain replica, when it is back, can serve this.
        (replace(INTERACTIVE, parameters=MIN_P), [spec(refuses="min_p")], Refusal.NO_REPLICA),
        (replace(INTERACTIVE, pin=Role.PLAIN), [spec()], Refusal.NO_REPLICA),
        (replace(INTERACTIVE, pin=Role.PLAIN), [spec(), plain(32)], Refusal.NO_ROOM),
        (
            replace(INTERACTIVE, pin=Role.SPECULATIVE, parameters=MIN_P),
            [spec(refuses="min_p"), plain()],
            Refusal.CAPABILITY,
        ),
        (replace(INTERACTIVE, pin=Role.SPECULATIVE, parameters=MIN_P), [plain()], Refusal.NO_REPLICA),
    ],
)
def test_why_there_is_no_route(ask: Ask, candidates: list[Candidate], expected: Refusal) -> None:
    """Nobody there, nobody with room, or nobody in the named pool who takes the parameters."""
    decision = decided(ask, candidates)

    assert route_of(decision) is None
    assert expected is refusal_of(decision)


def test_reasons_are_a_closed_set() -> None:
    """Reasons are metric labels: this list and no other."""
    assert [
        "tier_interactive",
        "tier_standard",
        "tier_batch",
        "draftable",
        "spill",
        "backfill",
        "pool_unavailable",
        "capability",
        "pinned_by_caller",
    ] == [reason.value for reason in RouteReason]
    assert ["no_replica", "no_room", "capability"] == [refusal.value for refusal in Refusal]


def test_every_word_has_a_sentence() -> None:
    """`twinpool why` tells each verdict, choice and reason."""
    assert set(Verdict) <= set(POOLS)
    assert set(Pick) == set(REPLICAS)
    assert set(RouteReason) == set(ROUTES)


def test_what_waiting_cannot_change() -> None:
    """A pool without replicas, a refused parameter, and what was decided well."""
    assert set(Verdict) - PASSING == {
        Verdict.CHOSEN,
        Verdict.NOT_PREFERRED,
        Verdict.SLOWER,
        Verdict.PINNED_ELSEWHERE,
        Verdict.NO_REPLICA,
        Verdict.REFUSES_PARAMETER,
    }
