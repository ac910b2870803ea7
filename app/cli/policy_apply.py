"""`twinpool policy apply`: a policy into the ConfigMap that the controller mounts, and its verdict back."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from app.cli import config_map, durations, policy_text
from app.cli.client import NotReachableError, RefusedError, address, address_note
from app.cli.config_map import UncertainError
from app.cli.kubectl import Kubectl
from app.cli.output import FINDING, AsJson, Output, Url, fail, printable, wants_json
from app.cli.policy_applied import DRY_RUN, UNCHANGED, end, listed, say, settle
from app.cli.policy_edit import Candidate, Edit, unread
from app.cli.policy_not_applied import NotAppliedError, told
from app.cli.policy_running import running
from autoscaling.policy_file import read_policy

NAMESPACE, CONFIG_MAP = "twinpool", "twinpool-policy"  # as k8s/base has them
KUBELET = "the kubelet brings a changed ConfigMap into the controller's pod within about 90 s"
LONGEST_WAIT_S = 3600.0


def apply(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A policy file, a folder with one, or -.")],
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace of the ConfigMap.")
    ] = NAMESPACE,
    name: Annotated[str, typer.Option("--config-map", help="The ConfigMap with the policy.")] = CONFIG_MAP,
    key: Annotated[
        str | None, typer.Option("--key", help="Its entry; the only one that ends in .yaml otherwise.")
    ] = None,
    context: Annotated[
        str | None, typer.Option("--context", help="Context of kubectl; its current one otherwise.")
    ] = None,
    timeout: Annotated[
        str, typer.Option("--timeout", help="How long to wait for the controller, such as 90s or 3m.")
    ] = "3m",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Apply without asking.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show and let the cluster check what would change, write nothing."),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also where Argo CD or Flux keeps the ConfigMap.")
    ] = False,
    output: Output = "text",
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Apply FILE to the policy's ConfigMap, and wait until the controller has taken or refused it.

    The file is checked, compared with the revision that the controller runs, and written through kubectl
    after a question; only that one entry is replaced, and nothing is restarted.
    The kubelet brings it into the controller's pod within about 90 s.
    With -o json one object is printed, whatever the outcome.
    Exit codes: 0 taken, 1 refused, not seen in time or not applied, 2 wrong usage or no access, 130 Ctrl-C.
    """
    as_program = wants_json(output, as_json)
    limit_s, service = _seconds(timeout), address(url)
    if note := address_note(url):
        say(f"note: {note}")
    known = unread(str(file), namespace, name, key)
    with told(known, as_program=as_program):
        new = _candidate(file)
        known |= {"file": new.file, "sha": new.sha}
        kubectl = Kubectl.found(context)
        edit = _edit(new, kubectl, (name, namespace, key), service)
        known |= edit.document()
        _refuse_ahead(edit, force=force)
        _show(edit, as_program=as_program)
        if edit.is_there and edit.is_active:
            end(edit, UNCHANGED, as_program=as_program)
        if dry_run:
            config_map.replace(kubectl, edit.held, edit.key, new.text, dry_run=True)
            end(edit, DRY_RUN, as_program=as_program)
        if not edit.is_there:
            _ask(edit, kubectl, yes=yes)
            _write(edit, kubectl)
    say(f"{'it is there already' if edit.is_there else 'applied'}: {KUBELET}")
    settle(edit, kubectl, service, limit_s, as_program=as_program)


def _seconds(text: str) -> float:
    try:
        return durations.parse(text, LONGEST_WAIT_S)
    except durations.DurationError as error:
        fail(f"--timeout {error}", error.mend)


def _candidate(file: Path) -> Candidate:
    """The file, checked as `validate` does it; a problem ends the command before the cluster is asked."""
    try:
        found = policy_text.read(file)
    except policy_text.UnreadableError as error:
        raise NotAppliedError(str(error), error.mend) from error
    read = read_policy(found.text, time.time())
    listed(found.file, read.warnings, "warning: ")
    if read.policy is None:
        words = f"{found.file} is no valid policy, nothing was applied"
        raise NotAppliedError(words, "mend what is listed above", FINDING, tuple(read.problems))
    return Candidate(found.file, found.text, read, read.policy)


def _edit(new: Candidate, kubectl: Kubectl, place: tuple[str, str, str | None], service: str) -> Edit:
    name, namespace, key = place
    held = config_map.read(kubectl, name, namespace)
    entry = config_map.policy_key(held, key)
    try:
        return Edit(new, held, entry, running(service), "")
    except (NotReachableError, RefusedError) as error:
        return Edit(new, held, entry, None, str(error))


def _refuse_ahead(edit: Edit, *, force: bool) -> None:
    """End the command for what would not last, or what the controller would not take."""
    if edit.beside is not None and edit.beside.path is None:
        raise NotAppliedError(
            "this service reads no policy file, so it would never see the ConfigMap",
            "mount the ConfigMap and name its folder as the service's policy, or name another with --url",
            FINDING,
        )
    if edit.is_there:
        return  # nothing is written: the controller's word on it is what is waited for
    if edit.held.immutable:
        mend = "leave `immutable` out of it: a policy is there to be edited"
        raise NotAppliedError(f"{edit.held} is immutable", mend)
    problems = edit.refusals(time.time())
    if problems:
        words = "the controller would refuse it, nothing was applied"
        raise NotAppliedError(words, "mend what is listed above", FINDING, problems)
    if edit.held.keeper is not None and not force:
        raise NotAppliedError(
            f"{edit.held} is kept by {edit.held.keeper}, which would take the edit back",
            "commit the file where it reads it, or say --force for an edit until its next turn",
            FINDING,
        )


def _show(edit: Edit, *, as_program: bool) -> None:
    for note in edit.notes():
        say(f"note: {note}")
    if not as_program:
        print(printable(edit.words(), lines=True), end="")


def _ask(edit: Edit, kubectl: Kubectl, *, yes: bool) -> None:
    """Let a person decide; without one to ask, --yes must be given."""
    if yes:
        return
    if sys.stdin is None or sys.stdin.closed or not sys.stdin.isatty():
        mend = "say --yes to apply without a question, or --dry-run to look only"
        raise NotAppliedError("nobody can be asked here", mend)
    context = kubectl.asked_context()
    where = edit.where if context is None else f"{edit.where}, context {context}"
    if not typer.confirm(f"apply to {printable(where)}?", err=True):
        raise NotAppliedError("nothing was applied", "run it again when it may be", FINDING)


def _write(edit: Edit, kubectl: Kubectl) -> None:
    """Put the text there; whoever interrupts that is told that it may be there."""
    try:
        config_map.replace(kubectl, edit.held, edit.key, edit.new.text)
    except KeyboardInterrupt:
        raise UncertainError(
            edit.held, edit.key, "interrupted while it was written", interrupted=True
        ) from None
