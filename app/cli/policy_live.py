"""`twinpool policy diff|history|rollback`: the policy file against what the running service has."""

from __future__ import annotations

import difflib
import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli import policy_text, problem_lines
from app.cli.client import address, get, told
from app.cli.output import (
    FINDING,
    UNKNOWN,
    AsJson,
    Output,
    Url,
    fail,
    path_of,
    print_json,
    print_table,
    printable,
    printable_values,
    show,
    show_time,
    wants_json,
)
from app.cli.try_it import own_command
from autoscaling.policy_file import read_policy

SHA_SHOWN = 12  # characters; enough to tell revisions apart


def history(output: Output = "text", as_json: AsJson = False, url: Url = None) -> None:
    """Show the revisions that the service has seen, refused ones included.

    Exit codes: 0 shown, 1 refused, 2 wrong usage or no answer.
    """
    wanted_json = wants_json(output, as_json)
    with told():
        found = get(address(url), "/admin/policy")
    if wanted_json:
        print_json(found)
        return
    found = printable_values(found)
    active = found["active_revision"]
    print(
        f"policy {show(found['name'])} of {show(found['path'])}: active revision {show(active)}, "
        f"mode {show(found['mode'])}, {show(found['state'])}"
    )
    print_table(
        ("revision", "at", "state", "sha", "message"),
        [
            (
                f"{item['revision']}{' *' if item['revision'] == active else ''}",
                show_time(item["at"]),
                item["state"],
                item["sha"][:SHA_SHOWN],
                item["message"] or UNKNOWN,
            )
            for item in found["history"]
        ],
    )


def rollback(
    revision: Annotated[
        int, typer.Argument(metavar="REVISION", min=0, help="A revision of `twinpool policy history`.")
    ],
    write: Annotated[
        Path | None,
        typer.Option("--write", parser=path_of, metavar="FILE", help="Replace this file by that revision."),
    ] = None,
    output: Output = "text",
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Show what going back to a revision would change; with --write, write it into the policy file.

    The service takes a written file by itself, as a new revision.
    Exit codes: 0 shown or written, 1 no such revision or no valid policy, 2 wrong usage, no answer,
    or the file cannot be written.
    """
    wanted_json = wants_json(output, as_json)
    service = address(url)
    with told():
        state = get(service, "/admin/policy")
        active = _text_of(service, state["active_revision"])
        wanted = get(service, f"/admin/policy/{revision}")
    path = str(write) if write is not None else state["path"]
    diff = _unified(active, state["active_revision"], wanted)
    if write is not None:
        _write(write, wanted)
    if wanted_json:
        print_json(
            {
                "revision": revision,
                "sha": wanted["sha"],
                "active_revision": state["active_revision"],
                "path": state["path"],
                "text": wanted["text"],
                "diff": diff,
                "command": None if path is None else _command(revision, path, url),
                "written": None if write is None else str(write),
            }
        )
        return
    print(
        printable(diff, lines=True) or f"revision {revision} has the text of the active revision",
        end="" if diff else "\n",
    )
    if write is not None:
        print(f"written: {printable(str(write))}")
        print("the service takes it within seconds, as a new revision: see `twinpool policy history`")
    elif path is None:
        print("this service has no policy file: write one with --write FILE, and serve with --policy FILE")
    else:
        print(f"to take it: {printable(_command(revision, path, url))}")
    if write is not None and state["path"] is not None and Path(state["path"]) != write.absolute():
        note = f"note: the service reads {state['path']}; was {write} meant for it?"
        print(printable(note), file=sys.stderr)


def _text_of(service: str, revision: int | None) -> str:
    """The text of a revision; empty while none is active."""
    if revision is None:
        return ""
    text: str = get(service, f"/admin/policy/{revision}")["text"]
    return text


def _unified(active: str, revision: int | None, wanted: dict[str, Any]) -> str:
    name = "no policy" if revision is None else f"revision {revision} (active)"
    lines = difflib.unified_diff(
        _lines(active), _lines(wanted["text"]), name, f"revision {wanted['revision']}", "", wanted["at"]
    )
    return "".join(lines)


def _lines(text: str) -> list[str]:
    """Lines that all end, so that the last one of a file does not run into the next."""
    return [f"{line}\n" for line in text.splitlines()]


def _write(path: Path, wanted: dict[str, Any]) -> None:
    problems = read_policy(wanted["text"], time.time()).problems
    if problems:
        for problem in problems:
            print(problem_lines.line(f"revision {wanted['revision']}", problem), file=sys.stderr)
        fail(
            f"revision {wanted['revision']} is no valid policy, {path} is unchanged",
            "take a revision that was active: see `twinpool policy history`",
            FINDING,
        )
    try:
        policy_text.replace(policy_text.file_of(path), wanted["text"])
    except policy_text.UnreplaceableError as error:
        fail(f"{path} cannot be replaced: {error}", error.mend)
    except (OSError, policy_text.UnreadableError) as error:
        fail(
            f"{path} cannot be replaced: {getattr(error, 'strerror', None) or error}",
            "name another file with --write and put it in place where you may; "
            "a mounted ConfigMap is changed with `twinpool policy apply`",
        )


def _command(revision: int, path: str, url: str | None) -> str:
    parts = [own_command(), "policy", "rollback", str(revision), "--write", path]
    return shlex.join([*parts, "--url", url] if url else parts)
