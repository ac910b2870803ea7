"""`twinpool hold` and `twinpool release`: keep the targets as they are, whatever the demand."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from app.cli import durations
from app.cli.client import address, call, operator, told
from app.cli.output import AsJson, Output, Url, fail, print_json, printable_values, show_time, wants_json
from autoscaling.one_line import one_line

Who = Annotated[
    str | None, typer.Option("--who", help="Who asks for it; the user of this machine otherwise.")
]


def hold(
    reason: Annotated[str, typer.Option("--reason", help="Why; status and the log show it.")],
    for_: Annotated[
        str | None,
        typer.Option("--for", help="How long, such as 90s, 15m, 2h, 1d; without it until a release."),
    ] = None,
    who: Who = None,
    output: Output = "text",
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Hold the pools' targets until `twinpool release`, or for a time.

    A new hold replaces the one before.
    Requests are served, lost replicas are replaced, and a move that has begun ends.
    Exit codes: 0 held, 1 refused, 2 wrong usage or no answer.
    """
    wanted_json = wants_json(output, as_json)
    body = {"reason": stated(reason), "for_s": seconds(for_), "who": operator(who)}
    with told():
        found = call(address(url), "POST", "/admin/hold", body)
    if wanted_json:
        print_json(found)
    else:
        print(_held(printable_values(found["hold"])))
    if found["hold"]["expires"] is None:
        print(
            "warning: this hold has NO END: capacity stays where it is until `twinpool release`; "
            "`--for 2h` would end it by itself",
            file=sys.stderr,
        )


def release(who: Who = None, output: Output = "text", as_json: AsJson = False, url: Url = None) -> None:
    """End an operator's hold; holds of the policy and of missing knowledge end with their cause.

    Exit codes: 0 released, or there was none; 1 refused, 2 wrong usage or no answer.
    """
    wanted_json = wants_json(output, as_json)
    with told():
        found = call(address(url), "POST", "/admin/release", {"who": operator(who)})
    if wanted_json:
        print_json(found)
    else:
        print("released: capacity may move again" if found["released"] else "there was no operator's hold")


def seconds(text: str | None, longest_s: float = durations.LONGEST_S) -> float | None:
    """Seconds of a duration; ends the command when it is none, or longer than `longest_s`."""
    if text is None:
        return None
    try:
        return durations.parse(text, longest_s)
    except durations.DurationError as error:
        fail(f"--for {error}", error.mend)


def stated(reason: str) -> str:
    """A reason that says something; ends the command for an empty one."""
    if not reason.strip():
        fail("--reason is empty", "say in a few words why, for whoever looks at the status later")
    try:
        return one_line(reason.strip())
    except ValueError as error:
        fail(f"--reason {error}", "write it as plain words on one line")


def _held(found: dict[str, Any]) -> str:
    until = "until a release" if found["expires"] is None else f"until {show_time(found['expires'])}"
    return (
        f"held by {found['who'] or found['by']} since {show_time(found['since'])}, {until}: {found['reason']}"
    )
