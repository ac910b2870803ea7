"""`twinpool status`: what the service says about itself."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live

from app.cli.client import NotReachableError, RefusedError, address, get, told
from app.cli.output import FINDING, OK, AsJson, Output, Url, print_json, wants_json
from app.cli.status_view import render


def status(
    output: Output = "text",
    as_json: AsJson = False,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every second until Ctrl-C.")] = False,
    url: Url = None,
) -> None:
    """Show policy, holds, budget, pools, replicas, moves and readiness.

    Exit codes: 0 ready, 1 not ready, 2 the service does not answer.
    """
    wanted_json = wants_json(output, as_json)
    service = address(url)
    if watch and not wanted_json:
        _watch(service)
        return
    with told():
        found = fetch(service)
    if wanted_json:
        print_json(found)
    else:
        Console().print(render(found))
    raise typer.Exit(OK if found["ready"] else FINDING)


def fetch(url: str) -> dict[str, Any]:
    """GET the status; raises NotReachableError or RefusedError."""
    found = get(url, "/admin/status")
    if "pools" not in found:
        raise NotReachableError(url, "this is not a twinpool status")
    return found


def _watch(url: str) -> None:
    with Live(console=Console(), refresh_per_second=4) as live:
        try:
            while True:
                try:
                    live.update(render(fetch(url)))
                except (NotReachableError, RefusedError) as error:
                    live.update(str(error))
                time.sleep(1)
        except KeyboardInterrupt:
            return
