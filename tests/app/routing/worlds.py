"""Replicas, requests and rules for the tests of routing, stated and random."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from app.candidates import Candidate
from app.routing.ask import Ask
from app.routing.route import Decision, decide, route_of
from autoscaling.routing_rules import PoolSpeed, RoutingRules, StepCost, TierRules
from autoscaling.types import Role, Tier
from tests.app.views import view

# One step of a pool of 1 sequence with nothing in its context: plain 20.5 ms, speculative 26.5 ms;
# of 8 sequences: 24 and 44 ms; of 32: 36 and 104 ms.
COSTS = {
    Role.PLAIN: StepCost(base_s=0.02, per_token_s=0.0005),
    Role.SPECULATIVE: StepCost(base_s=0.02, per_token_s=0.0005, draft_s=0.004, draft_length=4),
}
TIERS = {
    Tier.INTERACTIVE: TierRules(ttft_s=1.0, tpot_s=0.05, deadline_s=5.0, max_waiting=64),
    Tier.STANDARD: TierRules(ttft_s=5.0, tpot_s=0.1, deadline_s=30.0, max_waiting=256),
    Tier.BATCH: TierRules(ttft_s=60.0, deadline_s=300.0, max_waiting=1024),
}
FAST = PoolSpeed(ttft_p50_s=0.1, ttft_p95_s=0.3, tpot_p50_s=0.02, tpot_p95_s=0.03, answer_tokens=100.0)
SLOW = PoolSpeed(ttft_p50_s=0.2, ttft_p95_s=0.4, tpot_p50_s=0.06, tpot_p95_s=0.2, answer_tokens=100.0)
UNMEASURED = RoutingRules(tiers=TIERS)
MEASURED = RoutingRules(tiers=TIERS, speeds={Role.SPECULATIVE: FAST, Role.PLAIN: FAST})
PROFILED = RoutingRules(tiers=TIERS, costs=COSTS, speeds={Role.SPECULATIVE: FAST, Role.PLAIN: FAST})


def replica(
    role: Role,
    name: str,
    load: int = 0,
    *,
    limit: int,
    own: int | None = None,
    ingresses: int = 1,
    work: float | None = None,
    accepting: bool = True,
    hard_room: bool = True,
    refuses: str = "",
) -> Candidate:
    """One replica; without `own` all of its load is this ingress's."""
    return Candidate(
        view(name, role, accepting=accepting, refuses=tuple(refuses.split())),
        load,
        limit=limit,
        own_free=-(-limit // ingresses) - (load if own is None else own),
        hard_room=accepting and hard_room,
        work=100.0 * load if work is None else work,
        ingresses=ingresses,
    )


def spec(
    load: int = 0,
    name: str = "s",
    *,
    limit: int = 8,
    accepting: bool = True,
    hard_room: bool = True,
    refuses: str = "",
) -> Candidate:
    """A speculative replica with a limit of 8."""
    return replica(
        Role.SPECULATIVE,
        name,
        load,
        limit=limit,
        accepting=accepting,
        hard_room=hard_room,
        refuses=refuses,
    )


def plain(
    load: int = 0,
    name: str = "p",
    *,
    limit: int = 32,
    accepting: bool = True,
    hard_room: bool = True,
    refuses: str = "",
) -> Candidate:
    """A plain replica with a limit of 32."""
    return replica(
        Role.PLAIN, name, load, limit=limit, accepting=accepting, hard_room=hard_room, refuses=refuses
    )


def first(_count: int) -> int:
    """Draw the first."""
    return 0


def decided(
    ask: Ask,
    candidates: Iterable[Candidate],
    rules: RoutingRules = UNMEASURED,
    tried: frozenset[str] = frozenset(),
) -> Decision:
    """The decision, with the first two replicas drawn."""
    return decide(ask, tuple(candidates), rules, tried=tried, choose=first)


def taken(
    ask: Ask,
    candidates: Iterable[Candidate],
    rules: RoutingRules = UNMEASURED,
    tried: frozenset[str] = frozenset(),
) -> tuple[str, str] | None:
    """The replica and the reason; None where there is no route."""
    found = route_of(decided(ask, candidates, rules, tried))
    return None if found is None else (found.replica.replica_id, found.reason.value)


def words(decision: Decision) -> tuple[str, str]:
    """The verdicts on the speculative and the plain pool."""
    verdicts = decision.choice.verdicts
    return verdicts[Role.SPECULATIVE].value, verdicts[Role.PLAIN].value


# --- random worlds

PARAMETERS = ("min_p", "logit_bias")
NAMES = "abcdefghij"
seconds = st.none() | st.sampled_from([0.001, 0.03, 0.05, 0.1, 1.0, 60.0])


@st.composite
def replicas(draw: st.DrawFn) -> tuple[Candidate, ...]:
    """Up to ten replicas of both pools, seen by one of up to three ingresses."""
    ingresses = draw(st.integers(1, 3))
    found = []
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=10, unique=True)):
        limit, load = draw(st.integers(1, 12)), draw(st.integers(0, 14))
        found.append(
            replica(
                draw(st.sampled_from(Role)),
                name,
                load,
                limit=limit,
                own=draw(st.integers(0, load)),
                ingresses=ingresses,
                work=draw(st.floats(0, 5000)),
                accepting=draw(st.sampled_from([True, True, True, False])),
                hard_room=draw(st.sampled_from([True, True, True, False])),
                refuses=draw(st.sampled_from(["", "", "min_p", "min_p logit_bias"])),
            )
        )
    return tuple(found)


asks = st.builds(
    Ask,
    tier=st.sampled_from(Tier),
    pin=st.sampled_from([None, None, None, *Role]),
    parameters=st.sampled_from([frozenset(), frozenset(), frozenset({"min_p"}), frozenset(PARAMETERS)]),
    sequences=st.sampled_from([1, 1, 1, 2, 4, 9, 40]),
    prompt_tokens=st.integers(0, 4000),
    max_tokens=st.none() | st.integers(1, 2000),
    tokens_per_step=st.none() | st.floats(1, 5),
    draftable=st.booleans(),
    among=st.none() | st.frozensets(st.sampled_from(NAMES)),
    conversation=st.none() | st.sampled_from(["conversation-1", "conversation-2", "conversation-3"]),
)
costs = st.builds(
    StepCost,
    base_s=st.floats(0.001, 0.05),
    per_token_s=st.floats(0, 0.002),
    per_context_s=st.sampled_from([0.0, 1e-7]),
    draft_s=st.floats(0, 0.01),
    draft_length=st.integers(0, 5),
)
speeds = st.builds(
    PoolSpeed,
    ttft_p50_s=seconds,
    ttft_p95_s=seconds,
    tpot_p50_s=seconds,
    tpot_p95_s=seconds,
    answer_tokens=st.none() | st.floats(1, 500),
)
rules = st.builds(
    RoutingRules,
    tiers=st.fixed_dictionaries(
        {tier: st.builds(TierRules, ttft_s=seconds, tpot_s=seconds) for tier in Tier}
    ),
    reserve=st.integers(0, 4),
    backfill=st.booleans(),
    backfill_residence_s=st.sampled_from([1.0, 15.0]),
    costs=st.one_of(st.just({}), st.dictionaries(st.sampled_from(Role), costs)),
    tokens_per_step=st.sampled_from([{}, {"mean": 1.7}]),
    speeds=st.dictionaries(st.sampled_from(Role), speeds),
)
names_tried = st.frozensets(st.sampled_from(NAMES), max_size=2)
