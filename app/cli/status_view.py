"""The status as text: what hinders first, then policy and capacity, then pools, replicas and moves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from app.cli import durations
from app.cli.output import UNKNOWN, labelled, show, show_clock, show_time, table
from app.cli.status_changes import changes
from app.conditions import INFORMATION, at_fault
from autoscaling.profile import ProfileState

SHORTEST_ID = 6  # characters of a replica id; more only where two begin alike
# Their own lines say the same and more.
SAID_ABOVE = ("PolicyAccepted", "CapacityFree")

Row = tuple[str, Text]  # label and words; without a label it belongs to the row above


def render(found: dict[str, Any]) -> RenderableType:
    """The status as lines and tables; unknown is a dash, and a part that there is none of is left out."""
    head = labelled([*_policy(found), *_capacity(found), *_conditions(found["conditions"])])
    tiers = _tiers(found["tiers"] or {})
    return Group(*_gone(found), _service(found), head, *tiers, *_pools(found["pools"]), *changes(found))


def _gone(found: dict[str, Any]) -> Iterator[RenderableType]:
    """Before anything else: the controller does not answer, so all of it is old."""
    if found["controller"]["reachable"]:
        return
    age = found["pools_age_seconds"]
    picture = "nothing is known of it yet" if age is None else f"the picture is {durations.show(age)} old"
    yield Text(
        f"controller NOT reachable: {picture}; requests are served, capacity does not move", style="bold red"
    )


def _service(found: dict[str, Any]) -> Text:
    controller = found["controller"]
    tick = show_clock(controller["last_tick"], found["generated_at"])
    # The line says once that the times below are UTC; one of another day says so itself.
    zone = "" if tick == UNKNOWN or tick.endswith("UTC") else " UTC"
    return Text(
        f"{found['url']}  {'ready' if found['ready'] else 'NOT READY'}"
        f"  snapshot {show(controller['snapshot_age_seconds'])} s old, last tick {tick}{zone}"
    )


def _policy(found: dict[str, Any]) -> Iterator[Row]:
    policy = found["policy"]
    if policy is None:
        yield "policy", Text(UNKNOWN)
    else:
        words = f"{show(policy['name'])}  revision {show(policy['active_revision'])}"
        words += f"  mode {show(policy['mode'])}  {show(policy['state'])}  {show(policy['path'])}"
        yield "policy", Text(words)
        yield from _other_revisions(policy)
    if found.get("precedence"):
        change = found.get("next_schedule_change")
        until = "" if change is None else f"; the schedules change next at {show_time(change)}"
        yield "in force", Text(f"{found['precedence']}{until}")
    profile = found.get("profile")
    if profile and profile.get("path"):
        yield "profile", Text(f"{show(profile.get('state'))}  {profile['path']}")
        # What a stale one differs in is told by its condition.
        if profile.get("error") and profile.get("state") != ProfileState.STALE:
            yield "", Text(profile["error"], style="yellow")


def _other_revisions(policy: dict[str, Any]) -> Iterator[Row]:
    """The one in shadow, and the newest content of the file when it is wrong."""
    if policy.get("shadow_revision") is not None:
        words = f"revision {policy['shadow_revision']} is in shadow: it decides, and nothing acts on it"
        yield "", Text(words)
    error = policy["last_error"]
    if error is not None:
        where = "" if error.get("line") is None else f"line {error['line']}: "
        field = f"{error['field']}: " if error.get("field") else ""
        seen = policy["seen_revision"]
        # A file that is gone or unreadable is no revision.
        what = "the file" if seen in (None, policy["active_revision"]) else f"revision {seen} of the file"
        yield "", Text(f"{what} is not in force: {where}{field}{error['message']}", style="red")


def _capacity(found: dict[str, Any]) -> Iterator[Row]:
    """Who holds, the budget, who is short, and the last decision."""
    today, hold, budget = found["generated_at"], found["hold"], found["budget"]
    if hold is not None:
        by = f"{hold['by']} ({hold['who']})" if hold.get("who") else hold["by"]
        end = "until it is released or its cause is gone"
        if hold["expires"] is not None:
            end = f"until {show_clock(hold['expires'], today)}"
        words = f"by {by} since {show_clock(hold['since'], today)}, {end}: {hold['reason']}"
        yield "HOLD", Text(words, style="yellow")
    used = UNKNOWN
    if budget is not None:
        used = f"{show(budget['used'])} of {show(budget['accelerators'])} accelerators"
    yield "budget", Text(used)
    for name, pool in (found["pools"] or {}).items():
        if pool["short_seconds"] is not None:
            words = f"{name} for {durations.show(pool['short_seconds'])}: demand {_count(pool['demand'])}"
            yield "short", Text(f"{words}, can serve {_count(pool['capacity'])}", style="yellow")
    last = found["last_decision"]
    said = UNKNOWN if last is None else f"{last['id']} at {show_clock(last['at'], today)}: {last['summary']}"
    yield "decided", Text(said)


def _conditions(conditions: list[dict[str, Any]]) -> Iterator[Row]:
    listed = [item for item in conditions if item["type"] not in SAID_ABOVE]
    for item in listed:
        words = f"{item['type']}: {item['message'] or item['reason']}"
        if at_fault(item["type"], item["status"]):
            yield "not true" if item["status"] is False else "true", Text(words, style="yellow")
        elif item["type"] in INFORMATION and item["status"]:
            yield "note", Text(words)
    unknown = [item["type"] for item in listed if item["status"] is None and item["type"] not in INFORMATION]
    if unknown:
        yield "unknown", Text(", ".join(unknown))


def _tiers(tiers: dict[str, Any]) -> Iterator[RenderableType]:
    """How the tiers did in the last five minutes; nothing while nothing is known of any."""
    if all(value is None for tier in tiers.values() for value in tier.values()):
        return
    yield table(
        ("tier", "attained", "TTFT p95 s", "TPOT p95 s", "queued"),
        (
            (
                name,
                UNKNOWN if tier["attainment"] is None else f"{tier['attainment']:.1%}",
                _short(tier["ttft_p95_seconds"]),
                _short(tier["tpot_p95_seconds"]),
                show(tier["queued"]),
            )
            for name, tier in tiers.items()
        ),
    )


def _pools(pools: dict[str, Any] | None) -> Iterator[RenderableType]:
    if pools is None:
        yield Text("pools: not known yet")
        return
    counts = ("target", "running", "starting", "draining")
    yield table(
        ("pool", *counts, "demand", "can serve", "util"),
        (
            (
                name,
                *(show(pool[key]) for key in counts),
                _count(pool["demand"]),
                _count(pool["capacity"]),
                show(pool["utilization"]),
            )
            for name, pool in pools.items()
        ),
    )
    clamps = [(name, pool["clamped_by"]) for name, pool in pools.items() if pool["clamped_by"]]
    if clamps:
        yield labelled(("clamped", Text(f"{name} by {by}")) for name, by in clamps)
    yield table(
        ("pool", "in flight", "waiting", "K", "tokens/draft", "acceptance"),
        (
            (
                name,
                show(pool["inflight"]),
                show(pool["waiting"]),
                _span(pool["draft_length"]),
                show(pool["mean_acceptance_length"]),
                show(pool["draft_acceptance_rate"]),
            )
            for name, pool in pools.items()
        ),
    )
    replicas = [(name, item) for name, pool in pools.items() for item in pool["replicas"]]
    length = _telling(item["id"] for _, item in replicas)
    yield table(
        ("replica", "pool", "state", "run", "limit", "wait", "KV", "finished", "age s", "cores"),
        (_replica(name, item, length) for name, item in replicas),
    )


def _telling(ids: Iterable[str]) -> int:
    """How many characters tell the ids apart."""
    every = set(ids)
    longest = max(map(len, every), default=SHORTEST_ID)
    lengths = range(SHORTEST_ID, longest)
    return next((size for size in lengths if len({one[:size] for one in every}) == len(every)), longest)


def _replica(pool: str, item: dict[str, Any], length: int) -> tuple[str, ...]:
    cores = ",".join(map(str, item["cores"])) or UNKNOWN
    numbers = ("running", "soft_limit", "waiting", "kv_cache_usage", "finished", "report_age_seconds")
    return (
        item["id"][:length],
        pool,
        item["state"],
        *(show(item[key]) for key in numbers),
        f"{cores} (shared)" if item["oversubscribed"] else cores,
    )


def _count(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:g}"


def _short(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else f"{seconds:.3g}"


def _span(length: dict[str, int] | None) -> str:
    if length is None:
        return UNKNOWN
    low, high = length["min"], length["max"]
    return str(low) if low == high else f"{low}-{high}"
