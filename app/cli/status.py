"""`twinpool status`: what the service says about itself."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer
from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from app.cli.client import MEND, NotReachableError, RefusedError, address, get, told
from app.cli.output import (
    FINDING,
    OK,
    AsJson,
    Output,
    Url,
    fail,
    print_json,
    printable,
    printable_values,
    wants_json,
)
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
        Console().print(_shown(found))
    raise typer.Exit(OK if found["ready"] else FINDING)


def fetch(url: str) -> dict[str, Any]:
    """GET the status; raises NotReachableError or RefusedError."""
    found = get(url, "/admin/status")
    if "pools" not in found:
        raise NotReachableError(url, "this is not a twinpool status")
    return found


def _watch(url: str) -> None:
    console = Console()
    if not console.is_interactive:
        fail("--watch needs a terminal that it can redraw; the output is none", "leave --watch out")
    with Live(Text(f"asking {printable(url)} ..."), console=console, refresh_per_second=4) as live:
        try:
            while True:
                live.update(picture(url), refresh=True)
                time.sleep(1)
        except KeyboardInterrupt:
            return


def picture(url: str) -> RenderableType:
    """The status, or why there is none; the service is asked again all the same."""
    try:
        return _shown(fetch(url))
    except NotReachableError as error:
        return Text(f"{printable(str(error))}; asked again every second\nmend: {MEND}", style="red")
    except RefusedError as error:
        return Text(f"{printable(str(error))}; asked again every second", style="red")


def _shown(found: dict[str, Any]) -> RenderableType:
    return render(printable_values(found))
