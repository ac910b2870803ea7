"""A valid policy from a file or a text; anything else ends the command with every problem in its place."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from app.cli import policy_text, problem_lines
from app.cli.output import fail
from autoscaling.policy import CapacityPolicy
from autoscaling.policy_file import read_policy


def of_file(path: Path) -> CapacityPolicy:
    """The policy of a file, of a folder with one *.yaml, or of `-`."""
    try:
        found = policy_text.read(path)
    except policy_text.UnreadableError as error:
        fail(str(error), error.mend)
    return of_text(found.file, found.text)


def of_text(name: str, text: str) -> CapacityPolicy:
    """The policy of a text that is called `name`."""
    found = read_policy(text, time.time())
    if found.policy is None:
        for problem in found.problems:
            print(problem_lines.line(name, problem), file=sys.stderr)
        fail(
            f"{name} is no valid policy",
            "mend what is listed above; `twinpool policy validate` shows it again",
        )
    return found.policy
