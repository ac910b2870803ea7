"""Write the tables of `docs/routes.md` with the routing code itself: `python docs/generate_routes.py`.

Only the part between the two marks is written; the words around it are kept.
`tests/test_routes_docs.py` fails when the page and the code differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.membership import Membership
from app.routing.ask import Ask
from app.routing.route import decide, route_of
from app.tiers import TIER_HEADER, choose_tier
from app.workload.acceptance import DRAFTABLE, draftable, tokens_per_step
from app.workload.classify import Reason, Workload, WorkloadClass
from app.workload.features import Features
from autoscaling.routing_rules import PoolSpeed, RoutingRules, StepCost, TierRules
from autoscaling.types import Capabilities, ReplicaView, Role, Snapshot, Tier

PAGE = Path(__file__).parent / "routes.md"
BEGIN = "<!-- tables: written by docs/generate_routes.py -->"
END = "<!-- end of tables -->"

METHOD = "ngram"
REPLICAS = 2  # of each pool
LIMITS = {Role.SPECULATIVE: 8, Role.PLAIN: 32}
PROMPT_TOKENS, ANSWER_TOKENS, TEMPERATURE = 200, 128, 0.0
STALE_S = 4.0  # load numbers expire after 3 s
TIERS = {
    Tier.INTERACTIVE: TierRules(ttft_s=1.0, tpot_s=0.05, deadline_s=5.0, max_waiting=64),
    Tier.STANDARD: TierRules(ttft_s=5.0, tpot_s=0.1, deadline_s=30.0, max_waiting=256),
    Tier.BATCH: TierRules(ttft_s=60.0, deadline_s=300.0, max_waiting=1024),
}
SPEED = PoolSpeed(ttft_p50_s=0.1, ttft_p95_s=0.4, tpot_p50_s=0.03, tpot_p95_s=0.045, answer_tokens=120.0)
COSTS = {
    Role.SPECULATIVE: StepCost(base_s=0.03, per_token_s=0.0008, draft_s=0.004, draft_length=4),
    Role.PLAIN: StepCost(base_s=0.03, per_token_s=0.0003),
}
UNMEASURED = RoutingRules(tiers=TIERS)
RECENT = replace(UNMEASURED, speeds={Role.SPECULATIVE: SPEED, Role.PLAIN: SPEED})
PROFILE = replace(RECENT, costs=COSTS, tokens_per_step={"mean": 1.5})
# A title, the rules, and those under which a cell may say something else.
BASES = (("Without a profile", UNMEASURED, RECENT), ("With a profile", PROFILE, PROFILE))


@dataclass(frozen=True)
class Situation:
    """Sequences at each replica of a pool, None where the pool is gone; `own` are this ingress's."""

    name: str
    speculative: int | None
    plain: int | None
    own: int = 0
    age_s: float = 0.0


SITUATIONS = (
    Situation("idle", 0, 0),
    Situation("half load", 4, 16),
    Situation("speculative pool busy up to its reserve", 6, 16),
    Situation("speculative pool saturated", 8, 16),
    Situation("plain pool saturated", 4, 32),
    Situation("both saturated", 8, 32),
    Situation(
        "both saturated by a snapshot that is too old, 1 open request of ours at each",
        8,
        32,
        own=1,
        age_s=STALE_S,
    ),
    Situation("speculative pool gone", None, 16),
    Situation("plain pool gone", 4, None),
    Situation("plain pool gone, the other busy up to its reserve", 6, None),
)


@dataclass(frozen=True)
class Group:
    """Tiers, as callers name them, and classes that go the same way in every situation."""

    tiers: tuple[str, ...]
    classes: tuple[WorkloadClass, ...]
    cells: tuple[str, ...]  # one for each situation


def tables() -> str:
    """All tables as Markdown."""
    parts = [_world(), _classes(), *(_routes(*basis) for basis in BASES)]
    return "\n\n".join(parts)


def outcome(tier: Tier, kind: WorkloadClass, situation: Situation, rules: RoutingRules) -> str:
    """The pool and the reason, or what each pool's verdict was: speculative first."""
    membership = _membership(situation, rules)
    candidates = membership.candidates_view(situation.age_s)
    decision = decide(_ask(tier, kind, rules), candidates, membership.rules, choose=lambda _n: 0)
    route = route_of(decision)
    if route is not None:
        return f"{route.pool}, `{route.reason}`"
    first, second = (decision.choice.verdicts[role].value for role in Role)
    return f"waits: `{first}`, `{second}`"


def _membership(situation: Situation, rules: RoutingRules) -> Membership:
    loads = {Role.SPECULATIVE: situation.speculative, Role.PLAIN: situation.plain}
    views = tuple(
        _view(role, f"{role}-{number}", load)
        for role, load in loads.items()
        if load is not None
        for number in range(REPLICAS)
    )
    found = Membership(lambda: 0.0)
    found.accept(Snapshot(1, 1, partial=False, ingresses=1, replicas=views, routing=rules), 0.0)
    for view in views:
        if situation.own:
            found.started(view.replica_id, situation.own)
    return found


def _view(role: Role, replica_id: str, load: int) -> ReplicaView:
    drafts = role is Role.SPECULATIVE
    capabilities = Capabilities(
        role=role,
        engine="vllm",
        engine_version="",
        method=METHOD if drafts else None,
        runner=None,
        draft_length_max=4 if drafts else 0,
        draft_length_adjustable=False,
        max_model_len=2048,
        max_num_seqs=64,
        refuses=("logit_bias", "min_p") if drafts else (),
        per_request_metrics=drafts,
        models=("m",),
        fingerprint="",
    )
    return ReplicaView(
        replica_id=replica_id,
        boot_id="1",
        seq=1,
        pool=role.value,
        role=role,
        node_id="1",
        host="127.0.0.1",
        port=1,
        token="",
        accepting=True,
        age_s=0.0,
        inflight=load,
        running=None,
        waiting=None,
        soft_share=LIMITS[role],
        hard_share=64,
        capabilities=capabilities,
    )


def _ask(tier: Tier, kind: WorkloadClass, rules: RoutingRules) -> Ask:
    predicted = _predicted(kind, rules)
    return Ask(
        tier=tier,
        prompt_tokens=PROMPT_TOKENS,
        max_tokens=ANSWER_TOKENS,
        tokens_per_step=predicted,
        draftable=rules.classify and draftable(predicted),
    )


def _predicted(kind: WorkloadClass, rules: RoutingRules) -> float | None:
    """For a prompt of ordinary length; code is a program that came along."""
    reason = Reason.CODE_GIVEN if kind is WorkloadClass.CODE else Reason.FREE_TEXT
    features = Features(max_tokens=ANSWER_TOKENS, temperature=TEMPERATURE)
    return tokens_per_step(METHOD, Workload(kind, reason), features, rules.tokens_per_step)


def _world() -> str:
    limits = ", ".join(f"{role} {limit}" for role, limit in LIMITS.items())
    speed, cost = SPEED, COSTS
    rows = [
        ("replicas", f"{REPLICAS} of each pool, one ingress"),
        ("limit of a replica, sequences", limits),
        ("reserve, sequences", UNMEASURED.reserve),
        *((f"objective of {tier}", _objective(found)) for tier, found in TIERS.items()),
        ("longest stay of backfill", f"{UNMEASURED.backfill_residence_s:g} s"),
        (
            "request",
            f"1 sequence, prompt {PROMPT_TOKENS} tokens, answer {ANSWER_TOKENS}, temperature {TEMPERATURE:g}",
        ),
        ("drafts", f"method `{METHOD}`, {cost[Role.SPECULATIVE].draft_length} per step"),
        (
            "last minute, both pools",
            f"TTFT p95 {speed.ttft_p95_s} s, TPOT p50 {speed.tpot_p50_s} s, p95 {speed.tpot_p95_s} s",
        ),
        *((f"profile, step of {role}", _step(found)) for role, found in cost.items()),
        ("profile, mean tokens per step", PROFILE.tokens_per_step["mean"]),
    ]
    return _table("### The world", ("what", "how much"), rows)


def _objective(tier: TierRules) -> str:
    tpot = "none" if tier.tpot_s is None else f"{tier.tpot_s} s"
    return f"TTFT {tier.ttft_s} s, TPOT {tpot}"


def _step(cost: StepCost) -> str:
    base = cost.base_s + (cost.draft_s if cost.draft_length else 0)
    each = cost.per_token_s * (1 + cost.draft_length)
    return f"{base * 1000:g} ms and {each * 1000:g} ms for each sequence"


def _classes() -> str:
    rows = []
    for kind in WorkloadClass:
        predicted = _predicted(kind, UNMEASURED)
        rows.append((f"`{kind}`", predicted, "yes" if draftable(predicted) else "no"))
    return _table(
        "### The classes",
        ("class", "tokens per step", f"draftable, from {DRAFTABLE:g} on"),
        rows,
    )


def _routes(title: str, rules: RoutingRules, later: RoutingRules) -> str:
    """A row for each situation, a column for each group."""
    groups = groups_of(rules, later)
    rows = [(_named(one), *(group.cells[at] for group in groups)) for at, one in enumerate(SITUATIONS)]
    return _table(f"### {title}", ("situation", *map(_heading, groups)), rows)


def groups_of(rules: RoutingRules, later: RoutingRules) -> list[Group]:
    """Every tier, a caller who names none included, with every class."""
    found: dict[tuple[tuple[str, ...], tuple[WorkloadClass, ...]], list[str]] = {}
    for word in (*(tier.value for tier in Tier), None):
        headers = () if word is None else ((TIER_HEADER, word.encode()),)
        tier = choose_tier(headers, None, "m", ("m",)).tier
        alike: dict[tuple[str, ...], list[WorkloadClass]] = {}
        for kind in WorkloadClass:
            cells = tuple(_cell(tier, kind, one, rules, later) for one in SITUATIONS)
            alike.setdefault(cells, []).append(kind)
        for cells, kinds in alike.items():
            found.setdefault((cells, tuple(kinds)), []).append(word or "no tier")
    return [Group(tuple(words), kinds, cells) for (cells, kinds), words in found.items()]


def _cell(
    tier: Tier, kind: WorkloadClass, situation: Situation, rules: RoutingRules, later: RoutingRules
) -> str:
    first, then = outcome(tier, kind, situation, rules), outcome(tier, kind, situation, later)
    return first if first == then else f"{first}; once measured {then}"


def _heading(group: Group) -> str:
    tiers = " or ".join(group.tiers)
    every = len(group.classes) == len(WorkloadClass)
    return tiers if every else f"{tiers}: {', '.join(group.classes)}"


def _named(situation: Situation) -> str:
    loads = ", ".join("-" if load is None else str(load) for load in (situation.speculative, situation.plain))
    return f"{situation.name} ({loads})"


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [f"| {' | '.join(str(cell) for cell in line)} |" for line in (head, *rows)]
    return "\n".join([title, "", lines[0], "|---" * len(head) + "|", *lines[1:]])


def page(old: str) -> str:
    """The page with its tables written anew."""
    before, _, rest = old.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
