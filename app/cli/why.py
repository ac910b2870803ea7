"""`twinpool why`: the reasons of a decision, a move or a request, step by step."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from app.cli.client import address, get, quoted, told
from app.cli.output import AsJson, Output, Url, fail, print_json, printable_values, wants_json
from autoscaling.why import explain_decision, explain_move
from autoscaling.why_request import explain_request


class Kind(StrEnum):
    """What can be explained."""

    DECISION = "decision"
    MOVE = "move"
    REQUEST = "request"


WORDS = {Kind.DECISION: explain_decision, Kind.MOVE: explain_move, Kind.REQUEST: explain_request}


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

    Exit codes: 0 explained, 1 there is no such record, 2 wrong usage or no answer.
    """
    wanted_json = wants_json(output, as_json)
    kind, wanted = _asked(what, id_)
    path = f"/admin/why/{kind.value}"
    with told():
        found = get(address(url), path if wanted is None else f"{path}?id={quoted(wanted)}")
    if wanted_json:
        print_json(found)
    else:
        print(WORDS[kind](printable_values(found["record"])), end="")


def _asked(what: str, id_: str | None) -> tuple[Kind, str | None]:
    """A kind and an id; a word alone that is no kind is a request's id."""
    if what in set(Kind):
        return Kind(what), id_
    if id_ is not None:
        fail(
            f"{what} is none of {', '.join(Kind)}", f"write `twinpool why request {id_}`, or another of them"
        )
    return Kind.REQUEST, what
