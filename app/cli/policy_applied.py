"""The end of `twinpool policy apply`: what became of the text, for people and for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import NoReturn

import typer
from rich.console import Console

from app.cli import config_map, durations, problem_lines
from app.cli.client import get
from app.cli.config_map import ConfigMapError
from app.cli.kubectl import Kubectl, KubectlError
from app.cli.output import FINDING, OK, fail, print_json, printable
from app.cli.policy_await import SHA_SHOWN, Outcome, Verdict, Waiting, told_on, wait
from app.cli.policy_edit import Edit
from autoscaling.policy_file import Problem

UNCHANGED, DRY_RUN = "unchanged", "dry_run"  # outcomes beside those of the controller
INTERRUPTION = "interrupted"  # before the controller has said anything
INTERRUPTED = 130


def settle(edit: Edit, kubectl: Kubectl, service: str, limit_s: float, *, as_program: bool) -> NoReturn:
    """Wait for the controller's word on what the ConfigMap has now, and end the command with it."""
    try:
        with told_on(Console(stderr=True, highlight=False, soft_wrap=True)) as telling:
            found, seen = wait(lambda: get(service, "/admin/policy"), edit.new.sha, Waiting(limit_s), telling)
    except KeyboardInterrupt:
        words = "it is in the ConfigMap and not waited for: `twinpool policy history` says what becomes of it"
        say(words)
        if as_program:
            _print(edit, INTERRUPTION, None, words)
        raise typer.Exit(INTERRUPTED) from None
    if found.outcome is Outcome.NOT_SEEN:
        _unseen(edit, kubectl, limit_s, seen, as_program=as_program)
    end(edit, found.outcome.value, found, as_program=as_program)


def end(edit: Edit, outcome: str, found: Verdict | None = None, *, as_program: bool) -> NoReturn:
    """Say the outcome, and end with its exit code."""
    if as_program:
        _print(edit, outcome, found)
    if outcome == Outcome.REFUSED:
        _refused(edit, found)
    if not as_program:
        print(printable(_words(edit, outcome, None if found is None else found.revision)))
    raise typer.Exit(OK)


def listed(file: str, problems: Iterable[Problem], kind: str = "") -> None:
    """Problems in their places, on standard error."""
    for problem in problems:
        print(problem_lines.line(file, problem, kind), file=sys.stderr)


def say(words: str) -> None:
    """One line on standard error."""
    print(printable(words), file=sys.stderr)


def _words(edit: Edit, outcome: str, revision: int | None) -> str:
    if outcome == UNCHANGED:
        return "nothing to apply: the controller runs this text"
    if outcome == DRY_RUN:
        return f"nothing was written: the cluster would take it as {edit.where}"
    if outcome == Outcome.SHADOW:
        return f"revision {revision} is in the shadow: it is decided and recorded, and nothing obeys it"
    return f"revision {revision} is active"


def _print(edit: Edit, outcome: str, found: Verdict | None, message: str | None = None) -> None:
    problem = None if found is None else found.problem
    print_json(
        edit.document()
        | {
            "outcome": outcome,
            "revision": None if found is None else found.revision,
            "message": message or (None if found is None else found.message or None),
            "problem": None if problem is None else problem_lines.as_json(problem),
        }
    )


def _refused(edit: Edit, found: Verdict | None) -> NoReturn:
    if found is not None and found.problem is not None:
        listed(edit.new.file, (found.problem,))
    elif found is not None:
        say(found.message)
    fail(
        "the controller refuses it, and the last good revision goes on acting",
        f"mend {edit.new.file} and apply it again: until then {edit.held} has the refused text",
        FINDING,
    )


def _unseen(edit: Edit, kubectl: Kubectl, limit_s: float, seen: str, *, as_program: bool) -> NoReturn:
    """Say that the text was not seen in time, and where to look."""
    sha, limit = edit.new.sha[:SHA_SHOWN], durations.show(limit_s)
    error = f"the controller has not reported sha {sha} within {limit}: {seen}"
    if as_program:
        _print(edit, Outcome.NOT_SEEN.value, None, error)
    fail(error, _where_to_look(edit, kubectl), FINDING)


def _where_to_look(edit: Edit, kubectl: Kubectl) -> str:
    try:
        now = config_map.read(kubectl, edit.held.name, edit.held.namespace)
    except (KubectlError, ConfigMapError) as error:
        return f"see what became of {edit.held}: {error}"
    if now.data.get(edit.key) != edit.new.text:
        return f"{edit.held} has another text by now: somebody, or a GitOps tool, has replaced it"
    if edit.beside is None:
        return "name the service with --url, such as the address that `kubectl port-forward` gives"
    return (
        f"see that the controller's pod mounts {edit.held} as a folder, without subPath, "
        f"at {edit.beside.path}; "
        "`twinpool policy history` shows the text when it arrives"
    )
