"""`twinpool why`: the reasons of a decision or a move, step by step."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from app.cli.client import address, get, quoted, told
from app.cli.output import AsJson, Output, Url, print_json, printable_values, wants_json
from autoscaling.why import explain_decision, explain_move


class Kind(StrEnum):
    """What can be explained."""

    DECISION = "decision"
    MOVE = "move"


def why(
    kind: Annotated[Kind, typer.Argument(metavar="[decision|move]", help="What to explain.")] = Kind.DECISION,
    id_: Annotated[str | None, typer.Argument(metavar="[ID]", help="Its id; the newest otherwise.")] = None,
    output: Output = "text",
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Say why capacity moved or stayed.

    Exit codes: 0 explained, 1 there is no such record, 2 wrong usage or no answer.
    """
    wanted_json = wants_json(output, as_json)
    path = f"/admin/why/{kind.value}"
    with told():
        found = get(address(url), path if id_ is None else f"{path}?id={quoted(id_)}")
    if wanted_json:
        print_json(found)
    elif kind is Kind.MOVE:
        print(explain_move(printable_values(found["record"])), end="")
    else:
        print(explain_decision(printable_values(found["record"])), end="")
