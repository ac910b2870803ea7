"""`twinpool why`: the reasons of a decision, a move or a request, step by step."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from app.cli.client import RefusedError, address, get, quoted, told
from app.cli.output import FINDING, AsJson, Output, Url, fail, print_json, printable_values, wants_json
from autoscaling.request_book import MOST
from autoscaling.why import explain_decision, explain_move
from autoscaling.why_request import explain_request


class Kind(StrEnum):
    """What can be explained."""

    DECISION = "decision"
    MOVE = "move"
    REQUEST = "request"


WORDS = {Kind.DECISION: explain_decision, Kind.MOVE: explain_move, Kind.REQUEST: explain_request}

# What to do about an id that nothing has, and while there is nothing at all.
NEWEST = {
    Kind.DECISION: "`twinpool why decision` shows the newest; of older ones only changes are kept",
    Kind.MOVE: "`twinpool why move` shows the newest, `twinpool status` the last ones",
    Kind.REQUEST: (
        f"`twinpool why request` shows the newest; the newest {MOST:,} are kept while the controller lives, "
        "and older ones with `twinpool serve --record FOLDER`"
    ),
}
NONE_YET = {
    Kind.DECISION: "ask again in a few seconds",
    Kind.MOVE: "look at `twinpool status` for what the pools wait for",
    Kind.REQUEST: "send a request, and ask again a second after its end",
}
UNREADABLE = "look whether the service is of this version of twinpool; `twinpool status` shows how it is"


def why(
    what: Annotated[
        str, typer.Argument(metavar="[decision|move|request]", help="What to explain, or a request's id.")
    ] = Kind.DECISION.value,
    id_: Annotated[str | None, typer.Argument(metavar="[ID]", help="Its id; the newest otherwise.")] = None,
    output: Output = "text",
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Say why capacity moved or stayed, or why a request went where it went.

    Exit codes: 0 explained, 1 there is no such record, 2 wrong usage, or no answer that can be read.
    """
    wanted_json = wants_json(output, as_json)
    kind, wanted = _asked(what, id_)
    path = f"/admin/why/{kind.value}"
    with told():
        try:
            found = get(address(url), path if wanted is None else f"{path}?id={quoted(wanted)}")
        except RefusedError as error:
            if error.code != "not_found":
                raise
            fail(str(error), NEWEST[kind] if wanted is not None else NONE_YET[kind], FINDING)
    record = found.get("record")
    if found.get("kind", kind.value) != kind.value or not isinstance(record, dict):
        fail(f"the answer holds no {kind.value} that can be read", UNREADABLE)
    if not wanted_json:
        print(WORDS[kind](printable_values(record)), end="")
        return
    try:
        print_json(found)
    except ValueError as error:
        fail(f"the answer cannot be written as JSON: {error}", UNREADABLE)


def _asked(what: str, id_: str | None) -> tuple[Kind, str | None]:
    """A kind and an id; a word alone that is no kind is a request's id."""
    if what in set(Kind):
        return Kind(what), id_
    if id_ is not None:
        fail(
            f"{what} is none of {', '.join(Kind)}", f"write `twinpool why request {id_}`, or another of them"
        )
    return Kind.REQUEST, what
