"""When `twinpool policy apply` ends early: the reason for people, and the same document for programs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from app.cli import problem_lines
from app.cli.config_map import ChangedError, ConfigMapError, UncertainError
from app.cli.kubectl import KubectlError
from app.cli.output import CANNOT_TELL, FINDING, fail, print_json
from app.cli.policy_applied import INTERRUPTED, INTERRUPTION, listed
from autoscaling.policy_file import Problem

NOT_APPLIED, UNCERTAIN = "not_applied", "uncertain"  # outcomes: nothing was written; nobody knows


class NotAppliedError(Exception):
    """Why nothing is written; `mend` says what to do, `problems` are those of the file."""

    def __init__(
        self, message: str, mend: str, code: int = CANNOT_TELL, problems: tuple[Problem, ...] = ()
    ) -> None:
        super().__init__(message)
        self.mend = mend
        self.code = code
        self.problems = problems


@contextmanager
def told(document: dict[str, Any], *, as_program: bool) -> Iterator[None]:
    """End the command by what is raised inside; `document` is what was known of the edit by then."""
    try:
        yield
    except NotAppliedError as error:
        listed(document["file"], error.problems)
        first = problem_lines.as_json(error.problems[0]) if error.problems else None
        _end(document | {"problem": first}, NOT_APPLIED, (str(error), error.mend, error.code), as_program)
    except UncertainError as error:
        outcome, code = (INTERRUPTION, INTERRUPTED) if error.interrupted else (UNCERTAIN, CANNOT_TELL)
        _end(document, outcome, (str(error), error.mend, code), as_program)
    except (KubectlError, ConfigMapError) as error:
        code = FINDING if isinstance(error, ChangedError) else CANNOT_TELL
        _end(document, NOT_APPLIED, (str(error), error.mend, code), as_program)
    except KeyboardInterrupt:
        words = "interrupted, nothing was written", "run it again when it may be"
        _end(document, INTERRUPTION, (*words, INTERRUPTED), as_program)
    except typer.Abort:  # Ctrl-C or the end of the input at the question
        words = "nothing was applied", "run it again when it may be"
        _end(document, NOT_APPLIED, (*words, FINDING), as_program)


def _end(document: dict[str, Any], outcome: str, words: tuple[str, str, int], as_program: bool) -> None:
    if as_program:
        ends = {"outcome": outcome, "revision": None, "message": words[0], "problem": None}
        print_json(ends | document | {"outcome": outcome})
    fail(*words)
