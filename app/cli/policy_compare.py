"""`twinpool policy diff`: what an edit of the policy file would change, in meaning."""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from app.cli import policy_text, problem_lines
from app.cli.client import address, get, told
from app.cli.output import FINDING, OK, AsJson, Output, Url, fail, print_json, printable, wants_json
from autoscaling.policy import CapacityPolicy
from autoscaling.policy_diff import differences, render
from autoscaling.policy_file import read_policy


def diff(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A policy file, a folder with one, or -.")],
    other: Annotated[
        Path | None,
        typer.Argument(
            metavar="[OTHER]", help="The newer file; without it FILE is compared with the service."
        ),
    ] = None,
    output: Output = "text",
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Show what changes from FILE to OTHER, or from the running service's active revision to FILE.

    Every line says what the change would do; spelling, comments and written defaults are no difference.
    Exit codes: 0 no difference, 1 differences, 2 a policy is not valid or the service does not answer.
    """
    wanted_json = wants_json(output, as_json)
    new = _file(file if other is None else other)
    old = _active(address(url)) if other is None else _file(file)
    found = differences(old, new)
    if wanted_json:
        print_json([dataclasses.asdict(item) for item in found])
    else:
        print(printable(render(found), lines=True), end="")
    raise typer.Exit(FINDING if found else OK)


def _file(path: Path) -> CapacityPolicy:
    try:
        found = policy_text.read(path)
    except policy_text.UnreadableError as error:
        fail(str(error), error.mend)
    return _valid(found.file, found.text)


def _active(service: str) -> CapacityPolicy:
    with told():
        revision = get(service, "/admin/policy")["active_revision"]
        if revision is None:
            fail("the service has no active policy yet", "compare two files: twinpool policy diff OLD NEW")
        text = get(service, f"/admin/policy/{revision}")["text"]
    return _valid(f"revision {revision}", text)


def _valid(name: str, text: str) -> CapacityPolicy:
    found = read_policy(text, time.time())
    if found.policy is None:
        for problem in found.problems:
            print(problem_lines.line(name, problem), file=sys.stderr)
        fail(
            f"{name} is no valid policy",
            "mend what is listed above; `twinpool policy validate` shows it again",
        )
    return found.policy
