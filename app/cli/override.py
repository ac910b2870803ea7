"""`twinpool override set|list|clear`: force a pool's size or bounds for a time."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from app.cli.client import address, call, get, operator, quoted, told
from app.cli.hold import Who, seconds, stated
from app.cli.output import (
    AsJson,
    Output,
    Url,
    fail,
    print_json,
    print_table,
    printable,
    printable_values,
    show,
    show_time,
    wants_json,
)
from autoscaling.overrides import LONGEST_S
from autoscaling.types import Role

override = typer.Typer(help="Force a pool's size or bounds for a time.", no_args_is_help=True)
COLUMNS = ("id", "pool", "replicas", "min", "max", "until", "by", "reason")


@override.command("set")
def set_(
    pool: Annotated[Role, typer.Argument(metavar="speculative|plain", help="The pool that is forced.")],
    for_: Annotated[str, typer.Option("--for", help="How long, such as 90s, 15m, 2h, 1d.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; status and the log show it.")],
    replicas: Annotated[int | None, typer.Option("--replicas", min=0, help="Exactly so many.")] = None,
    low: Annotated[int | None, typer.Option("--min", min=0, help="Never fewer.")] = None,
    high: Annotated[int | None, typer.Option("--max", min=1, help="Never more.")] = None,
    who: Who = None,
    output: Output = "text",
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Force a pool to exactly N replicas, or to bounds, until the time is over.

    Exit codes: 0 set, 1 refused, 2 wrong usage or no answer.
    """
    wanted_json = wants_json(output, as_json)
    if (replicas is None) == (low is None and high is None):
        fail("an override is either a size or bounds", "give --replicas N, or --min N, --max N or both")
    if low is not None and high is not None and low > high:
        fail(f"--min {low} is above --max {high}", "correct one of the two")
    body = {
        "pool": pool.value,
        "replicas": replicas,
        "min_replicas": low,
        "max_replicas": high,
        "for_s": seconds(for_, LONGEST_S),
        "reason": stated(reason),
        "who": operator(who),
    }
    with told():
        found = call(address(url), "POST", "/admin/overrides", body)
    if wanted_json:
        print_json(found)
        return
    one = printable_values(found["override"])
    print(f"override {one['id']}: {forced(one)} until {show_time(one['until'])}: {one['reason']}")
    print(f"to end it sooner: twinpool override clear {one['id']}")


@override.command("list")
def list_(output: Output = "text", as_json: AsJson = False, url: Url = None) -> None:
    """Show the overrides that were set by command; `status` has those of the policy file too.

    Exit codes: 0 shown, 1 refused, 2 wrong usage or no answer.
    """
    wanted_json = wants_json(output, as_json)
    with told():
        found = get(address(url), "/admin/overrides")
    if wanted_json:
        print_json(found)
    elif not found["overrides"]:
        print("no overrides")
    else:
        print_table(COLUMNS, [row(item) for item in found["overrides"]])


@override.command("clear")
def clear(
    which: Annotated[str, typer.Argument(metavar="ID|all", help="One of `override list`, or all.")],
    who: Who = None,
    output: Output = "text",
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """End one override now, or all that were set by command.

    Those of the policy file end with an edit of the file.
    Exit codes: 0 cleared, 1 there is none of this id, 2 wrong usage or no answer.
    """
    wanted_json = wants_json(output, as_json)
    with told():
        path = f"/admin/overrides/{quoted(which)}?who={quoted(operator(who))}"
        found = call(address(url), "DELETE", path)
    if wanted_json:
        print_json(found)
    else:
        cleared = ", ".join(map(printable, found["cleared"]))
        print(f"cleared {cleared}" if cleared else "there was none to clear")


def row(item: dict[str, Any]) -> tuple[str, ...]:
    """One override as cells of COLUMNS."""
    return (
        item["id"],
        item["pool"],
        *(show(item[key]) for key in ("replicas", "min_replicas", "max_replicas")),
        show_time(item["until"]),
        show(item["by"]),
        item["reason"],
    )


def forced(item: dict[str, Any]) -> str:
    """Such as `plain at exactly 3 replicas` or `plain at least 2, at most 4 replicas`."""
    if item["replicas"] is not None:
        return f"{item['pool']} at exactly {item['replicas']} replicas"
    words = [
        f"at {bound} {item[key]}"
        for bound, key in (("least", "min_replicas"), ("most", "max_replicas"))
        if item[key] is not None
    ]
    return f"{item['pool']} {', '.join(words)} replicas"
