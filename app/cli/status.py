"""`twinpool status`: what the service says about itself."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request
from typing import Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table

DEFAULT_URL = "http://127.0.0.1:8000"
OK, FINDING, CANNOT_TELL = 0, 1, 2
UNKNOWN = "-"


def status(
    output: Annotated[str, typer.Option("--output", "-o", help="text or json.")] = "text",
    as_json: Annotated[bool, typer.Option("--json", help="The same as -o json.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every second until Ctrl-C.")] = False,
    url: Annotated[str | None, typer.Option(help="Service address; TWINPOOL_URL otherwise.")] = None,
) -> None:
    """Show pools, replicas and readiness.

    Exit codes: 0 ready, 1 not ready, 2 the service does not answer.
    """
    if output not in ("text", "json"):
        print(f"error: -o is text or json, not {output}", file=sys.stderr)
        raise typer.Exit(CANNOT_TELL)
    address = (url or os.environ.get("TWINPOOL_URL") or DEFAULT_URL).rstrip("/")
    if "://" not in address:
        address = f"http://{address}"
    if watch and not as_json and output == "text":
        _watch(address)
        return
    found = _fetch_or_exit(address)
    if as_json or output == "json":
        print(json.dumps(found, indent=2))
    else:
        Console().print(render(found))
    raise typer.Exit(OK if found["ready"] else FINDING)


def fetch(url: str) -> dict[str, Any]:
    """GET the status; raises OSError or ValueError."""
    with urllib.request.urlopen(f"{url}/admin/status", timeout=10) as answer:  # noqa: S310  # the user's address
        found = json.load(answer)
    if not isinstance(found, dict) or "pools" not in found:
        raise ValueError("this is not a twinpool status")
    return found


def _fetch_or_exit(url: str) -> dict[str, Any]:
    try:
        return fetch(url)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        print(
            f"error: no status from {url}: {reason}\n"
            "mend: start the service with `twinpool serve`, or name its address with TWINPOOL_URL or --url",
            file=sys.stderr,
        )
        raise typer.Exit(CANNOT_TELL) from error


def _watch(url: str) -> None:
    with Live(console=Console(), refresh_per_second=4) as live:
        try:
            while True:
                try:
                    live.update(render(fetch(url)))
                except (OSError, ValueError) as error:
                    live.update(f"no status from {url}: {getattr(error, 'reason', None) or error}")
                time.sleep(1)
        except KeyboardInterrupt:
            return


def render(found: dict[str, Any]) -> RenderableType:
    """The status as tables; unknown is a dash."""
    age = found["controller"]["snapshot_age_seconds"]
    reachable = "reachable" if found["controller"]["reachable"] else "NOT reachable, last known picture"
    head = (
        f"{found['url']}  {'ready' if found['ready'] else 'NOT READY'}"
        f"  controller {reachable}, snapshot {_show(age)} s old"
    )
    findings = [
        f"  {item['type']}: {item['message']}" for item in found["conditions"] if item["status"] is False
    ]
    parts: list[RenderableType] = [head, *findings]
    if found["pools"] is None:
        parts.append("pools: not known yet")
    else:
        parts += [_pools(found["pools"]), _replicas(found["pools"])]
    return Group(*parts)


def _pools(pools: dict[str, Any]) -> Table:
    table = Table("pool", "replicas", "in flight", "waiting", "K", "tokens/draft", "acceptance", box=None)
    for name, pool in pools.items():
        length = pool["draft_length"]
        table.add_row(
            name,
            _replica_counts(pool),
            _show(pool["inflight"]),
            _show(pool["waiting"]),
            UNKNOWN if length is None else _span(length),
            _show(pool["mean_acceptance_length"]),
            _show(pool["draft_acceptance_rate"]),
        )
    return table


def _replica_counts(pool: dict[str, Any]) -> str:
    """Such as `1 running, 1 starting`; what is zero is left out, what is unknown is a dash."""
    if pool["running"] is None:
        return UNKNOWN
    words = [f"{pool['running']} running"]
    words += [f"{pool[key]} {key}" for key in ("starting", "draining") if pool[key]]
    return ", ".join(words)


def _replicas(pools: dict[str, Any]) -> Table:
    table = Table("replica", "pool", "state", "run", "wait", "KV", "finished", "age s", "cores", box=None)
    for name, pool in pools.items():
        for item in pool["replicas"]:
            cores = ",".join(map(str, item["cores"])) or UNKNOWN
            table.add_row(
                item["id"],
                name,
                item["state"],
                *(_show(item[key]) for key in ("running", "waiting", "kv_cache_usage", "finished")),
                _show(item["report_age_seconds"]),
                f"{cores} (oversubscribed)" if item["oversubscribed"] else cores,
            )
    return table


def _span(length: dict[str, int]) -> str:
    low, high = length["min"], length["max"]
    return str(low) if low == high else f"{low}-{high}"


def _show(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return str(value) if isinstance(value, int) else f"{value:.2f}"
