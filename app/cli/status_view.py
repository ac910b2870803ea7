"""The status as text: what hinders first, then policy and capacity, then pools, replicas and moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from app.cli import durations
from app.cli.output import UNKNOWN, show, show_time, table
from app.cli.override import COLUMNS as OVERRIDE_COLUMNS
from app.cli.override import row as override_row

FREE = "budget"  # where a move's replicas come from or go to when it is no pool


def render(found: dict[str, Any]) -> RenderableType:
    """The status as lines and tables; unknown is a dash, and a part that there is none of is left out."""
    return Group(*_gone(found), *_head(found), *_conditions(found), *_pools(found), *_changes(found))


def _gone(found: dict[str, Any]) -> Iterator[RenderableType]:
    """Before anything else: the controller does not answer, so all of it is old."""
    if found["controller"]["reachable"]:
        return
    age = found["pools_age_seconds"]
    picture = "nothing is known of it yet" if age is None else f"the picture is {durations.show(age)} old"
    yield Text(
        f"controller NOT reachable: {picture}; requests are served, capacity does not move", style="bold red"
    )


def _head(found: dict[str, Any]) -> Iterator[RenderableType]:
    controller = found["controller"]
    age = controller["snapshot_age_seconds"]
    yield Text(
        f"{found['url']}  {'ready' if found['ready'] else 'NOT READY'}"
        f"  snapshot {show(age)} s old, last tick {show_time(controller['last_tick'])}"
    )
    yield from _policy(found["policy"])
    if found.get("precedence"):
        yield Text(f"wins    {found['precedence']}")
    hold = found["hold"]
    if hold is not None:
        by = f"{hold['by']} ({hold['who']})" if hold.get("who") else hold["by"]
        end = "until it is released or its cause is gone"
        if hold["expires"] is not None:
            end = f"until {show_time(hold['expires'])}"
        words = f"HOLD    by {by} since {show_time(hold['since'])}, {end}: {hold['reason']}"
        yield Text(words, style="yellow")
    budget = found["budget"]
    used = (
        UNKNOWN
        if budget is None
        else f"{show(budget['used'])} of {show(budget['accelerators'])} accelerators"
    )
    yield Text(f"budget  {used}")
    last = found["last_decision"]
    said = UNKNOWN if last is None else f"{last['id']} at {show_time(last['at'])}: {last['summary']}"
    yield Text(f"decided {said}")


def _policy(policy: dict[str, Any] | None) -> Iterator[RenderableType]:
    if policy is None:
        yield Text(f"policy  {UNKNOWN}")
        return
    yield Text(
        f"policy  {show(policy['name'])}  revision {show(policy['active_revision'])}"
        f"  mode {show(policy['mode'])}  {show(policy['state'])}  {show(policy['path'])}"
    )
    if policy.get("shadow_revision") is not None:
        yield Text(
            f"        revision {policy['shadow_revision']} is in shadow: it decides, and nothing acts on it"
        )
    error = policy["last_error"]
    if error is not None:
        where = "" if error.get("line") is None else f"line {error['line']}: "
        field = f"{error['field']}: " if error.get("field") else ""
        seen = policy["seen_revision"]
        # A file that is gone or unreadable is no revision.
        what = "the file" if seen in (None, policy["active_revision"]) else f"revision {seen} of the file"
        yield Text(f"        {what} is not in force: {where}{field}{error['message']}", style="red")


def _conditions(found: dict[str, Any]) -> Iterator[RenderableType]:
    for item in found["conditions"]:
        if item["status"] is None:
            yield Text(f"  {item['type']}: {UNKNOWN}")
        elif not item["status"]:
            yield Text(f"  {item['type']}: {item['message'] or item['reason']}", style="yellow")


def _pools(found: dict[str, Any]) -> Iterator[RenderableType]:
    pools = found["pools"]
    if pools is None:
        yield Text("pools: not known yet")
        return
    keys = ("target", "running", "starting", "draining", "clamped_by")
    yield table(
        ("pool", "target", "running", "starting", "draining", "clamped by"),
        ((name, *(show(pool[key]) for key in keys)) for name, pool in pools.items()),
    )
    yield table(
        ("pool", "in flight", "waiting", "K", "tokens/draft", "acceptance"),
        (
            (
                name,
                show(pool["inflight"]),
                show(pool["waiting"]),
                UNKNOWN if pool["draft_length"] is None else _span(pool["draft_length"]),
                show(pool["mean_acceptance_length"]),
                show(pool["draft_acceptance_rate"]),
            )
            for name, pool in pools.items()
        ),
    )
    yield table(
        ("replica", "pool", "state", "run", "wait", "KV", "finished", "age s", "cores"),
        (_replica(name, item) for name, pool in pools.items() for item in pool["replicas"]),
    )


def _replica(pool: str, item: dict[str, Any]) -> tuple[str, ...]:
    cores = ",".join(map(str, item["cores"])) or UNKNOWN
    numbers = ("running", "waiting", "kv_cache_usage", "finished", "report_age_seconds")
    return (
        item["id"],
        pool,
        item["state"],
        *(show(item[key]) for key in numbers),
        f"{cores} (oversubscribed)" if item["oversubscribed"] else cores,
    )


def _changes(found: dict[str, Any]) -> Iterator[RenderableType]:
    """Overrides in force, and moves."""
    if found["overrides"]:
        head = ("override", *OVERRIDE_COLUMNS[1:])
        yield table(head, (override_row(item) for item in found["overrides"]))
    if found["moves"]:
        yield table(
            ("move", "at", "from", "to", "count", "state", "waiting for", "took", "reason"),
            (
                (
                    str(item["id"]),
                    show_time(item["at"]),
                    item["from"] or FREE,
                    item["to"] or FREE,
                    show(item["count"]),
                    item["state"],
                    item["waiting_for"] or UNKNOWN,
                    durations.show(item["duration_seconds"]),
                    item["reason"],
                )
                for item in found["moves"]
            ),
        )


def _span(length: dict[str, int]) -> str:
    low, high = length["min"], length["max"]
    return str(low) if low == high else f"{low}-{high}"
