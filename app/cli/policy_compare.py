"""`twinpool policy diff`: what an edit of the policy file changes, in meaning and on recorded decisions."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from app.cli import policy_compare_log, policy_compare_view, valid_policy
from app.cli.client import address, get, told
from app.cli.output import FINDING, OK, AsJson, Output, Url, fail, print_json, printable, wants_json
from app.cli.simulation_options import LogOption, ProfileOption
from autoscaling.policy_diff import differences, render


def diff(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A policy file, a folder with one, or -.")],
    other: Annotated[
        Path | None,
        typer.Argument(
            metavar="[OTHER]", help="The newer file; without it FILE is compared with the service."
        ),
    ] = None,
    log: LogOption = None,
    profile: ProfileOption = None,
    output: Output = "text",
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Show what changes from FILE to OTHER, or from the running service's active revision to FILE.

    Every line says what the change would do; spelling, comments and written defaults are no difference.
    With --log every recorded decision is made again under both policies, and those that differ are shown;
    with --profile as well, the recorded requests are simulated under both.
    Exit codes: 0 no difference, 1 differences, 2 a policy is not valid, the log cannot be read, or the
    service does not answer.
    """
    wanted_json = wants_json(output, as_json)
    if profile is not None and log is None:
        fail("--profile is of the simulation of a log", "add --log, or leave --profile out")
    newer = file if other is None else other
    new = policy_compare_log.Named(str(newer), valid_policy.of_file(newer))
    old = (
        _active(address(url))
        if other is None
        else policy_compare_log.Named(str(file), valid_policy.of_file(file))
    )
    found = differences(old.policy, new.policy)
    on_log = None if log is None else policy_compare_log.on_log(log, old, new, profile)
    listed = [dataclasses.asdict(item) for item in found]
    if not wanted_json:
        print(printable(render(found), lines=True), end="")
        if on_log is not None:
            policy_compare_view.show(on_log)
    elif on_log is None:
        print_json(listed)
    else:
        print_json({"differences": listed, "log": on_log.document()})
    differ = bool(found) or (on_log is not None and on_log.difference.is_any)
    raise typer.Exit(FINDING if differ else OK)


def _active(service: str) -> policy_compare_log.Named:
    with told():
        revision = get(service, "/admin/policy")["active_revision"]
        if revision is None:
            fail("the service has no active policy yet", "compare two files: twinpool policy diff OLD NEW")
        text = get(service, f"/admin/policy/{revision}")["text"]
    name = f"revision {revision}"
    return policy_compare_log.Named(name, valid_policy.of_text(name, text))
