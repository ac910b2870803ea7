"""`twinpool policy validate`: every problem of policy files in its place; no service is needed."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli import policy_text, problem_lines
from app.cli.k8s_instead import policy_instead
from app.cli.output import CANNOT_TELL, FINDING, OK, AsJson, choose, print_json, printable
from autoscaling.policy_file import PolicyRead, read_policy

# An object of another kind at the root, in a file of one or more.
_MANIFESTS = re.compile(
    r"^kind: (?:RayService|ConfigMap|Namespace|Kustomization|Component|Deployment|Service|List)\s*$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class _Checked:
    """One file of `validate`: what it says, or why it could not be read."""

    file: str
    found: PolicyRead | None
    unreadable: str = ""
    mend: str = ""

    @property
    def code(self) -> int:
        """Its part of the exit code."""
        if self.found is None:
            return CANNOT_TELL
        return FINDING if self.found.problems else OK


def validate(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Policy files, folders with one *.yaml, or - for standard input."
        ),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", help="text, json, or github (annotations of a review).")
    ] = "text",
    as_json: AsJson = False,
) -> None:
    """Check policy files and show every problem with its line; no service is needed.

    Exit codes: 0 all are fine, 1 a problem, 2 a file cannot be read.
    """
    form = choose(output, as_json, ("text", "json", "github"))
    checked = [_checked(file) for file in files]
    if form == "json":
        print_json([_json(item) for item in checked])
    else:
        for item in checked:
            print("\n".join(_github(item) if form == "github" else _text(item)))
    raise typer.Exit(max(item.code for item in checked))


def _checked(path: Path) -> _Checked:
    try:
        found = policy_text.read(path)
    except policy_text.UnreadableError as error:
        return _Checked(str(path), None, str(error), policy_instead(path) or error.mend)
    if _MANIFESTS.search(found.text):
        words = f"{found.file}: these look like rendered manifests, no policy file"
        return _Checked(
            found.file, None, words, "name the file of the ConfigMap, such as settings/policy.yaml"
        )
    return _Checked(found.file, read_policy(found.text, time.time()))


def _text(item: _Checked) -> list[str]:
    found = item.found
    if found is None:
        return [printable(f"{item.unreadable}: {item.mend}")]
    lines = [problem_lines.line(item.file, problem) for problem in found.problems]
    lines += [problem_lines.line(item.file, problem, "warning: ") for problem in found.warnings]
    if not found.problems:
        lines.append(f"{printable(item.file)}: ok, sha {found.sha[:12]}")
    return lines


def _github(item: _Checked) -> list[str]:
    found = item.found
    if found is None:
        return [problem_lines.file_annotation(item.file, item.unreadable)]
    lines = [problem_lines.annotation(item.file, problem, "error") for problem in found.problems]
    lines += [problem_lines.annotation(item.file, problem, "warning") for problem in found.warnings]
    return lines or [f"{printable(item.file)}: ok"]


def _json(item: _Checked) -> dict[str, Any]:
    found = item.found
    if found is None:
        return {
            "file": item.file,
            "valid": None,
            "sha": None,
            "unreadable": item.unreadable,
            "problems": [],
            "warnings": [],
        }
    return {
        "file": item.file,
        "valid": not found.problems,
        "sha": found.sha,
        "unreadable": None,
        "problems": [problem_lines.as_json(problem) for problem in found.problems],
        "warnings": [problem_lines.as_json(problem) for problem in found.warnings],
    }
