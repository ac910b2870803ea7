"""`kubectl` as a process of its own: the user's contexts, logins and rights apply, and no client library."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from app.cli import process

LIMIT_S = 120.0  # a login plugin may ask a person first
ANSWER_LIMIT = "20s"  # of the API server, one request
SHOWN = 600  # characters of what kubectl says


class Why(StrEnum):
    """Why kubectl did not do it."""

    ABSENT = "absent"
    NO_CONTEXT = "no_context"
    NO_ANSWER = "no_answer"
    NOT_LOGGED_IN = "not_logged_in"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    OTHER = "other"


NO_CONFIG_HOST = "localhost:8080"  # what kubectl asks when it has no configuration at all
# Words of kubectl and of the API server; the first that is found tells why.  Each has a space, a bracket, a
# colon or a capital letter: no name of an object has, and a message may hold any name.
_WORDS = (
    ("(Conflict)", Why.OTHER),
    ("(NotFound)", Why.NOT_FOUND),
    ("(Forbidden)", Why.FORBIDDEN),
    ("(Unauthorized)", Why.NOT_LOGGED_IN),
    ("must be logged in", Why.NOT_LOGGED_IN),
    ("provide credentials", Why.NOT_LOGGED_IN),
    ("getting credentials", Why.NOT_LOGGED_IN),
    ("does not exist", Why.NO_CONTEXT),
    ("context was not found", Why.NO_CONTEXT),
    ("no context exists", Why.NO_CONTEXT),
    ("current-context is not set", Why.NO_CONTEXT),
    (NO_CONFIG_HOST, Why.NO_CONTEXT),
    ("nable to connect to the server", Why.NO_ANSWER),
    ("The connection to the server", Why.NO_ANSWER),
    ("no such host", Why.NO_ANSWER),
    ("i/o timeout", Why.NO_ANSWER),
    ("handshake timeout", Why.NO_ANSWER),
    ("Timeout", Why.NO_ANSWER),  # (ServerTimeout), (Timeout), Client.Timeout exceeded
    ("deadline exceeded", Why.NO_ANSWER),
    ("timed out", Why.NO_ANSWER),
)
_MEND = {
    Why.ABSENT: "install kubectl, or add its folder to PATH",
    Why.NO_CONTEXT: "see `kubectl config get-contexts`, and name one with --context",
    Why.NO_ANSWER: "see whether `kubectl version` reaches the cluster, and ask again",
    Why.NOT_LOGGED_IN: "log in as for any kubectl command: `kubectl auth whoami` says who you are",
    Why.FORBIDDEN: "ask for the right that is named, or let somebody apply it who has it",
    Why.NOT_FOUND: "see what there is with `kubectl get`",
    Why.OTHER: "see what `kubectl version` says, and read the message",
}

NO_CONFIG = "set KUBECONFIG to the file that the cluster's admin gave you, or put it at ~/.kube/config"

_LOG_LINE = re.compile(r"[IWEF]\d{4} \d\d:\d\d")  # such as `E1130 22:10:02.224085   25452 memcache.go:265]`


class KubectlError(Exception):
    """Kubectl did not do it: `why` for programs, the message and `mend` for people."""

    def __init__(self, message: str, why: Why, mend: str | None = None) -> None:
        super().__init__(message)
        self.why = why
        self.mend = mend or _MEND[why]


@dataclass(frozen=True, slots=True)
class Kubectl:
    """The program, and the context that it is to use; its own current one when None."""

    program: str
    context: str | None = None

    @classmethod
    def found(cls, context: str | None = None) -> Kubectl:
        """The one on PATH; raises KubectlError."""
        program = shutil.which("kubectl")
        if program is None:
            raise KubectlError("kubectl is not on PATH", Why.ABSENT)
        return cls(program, context)

    def run(self, *arguments: str) -> str:
        """What it prints; raises KubectlError with its own words when it fails."""
        try:
            done = process.run(self._line(arguments), LIMIT_S)
        except subprocess.TimeoutExpired as error:
            words = f"kubectl {arguments[0]} took longer than {LIMIT_S:g} s"
            raise KubectlError(words, Why.NO_ANSWER) from error
        except OSError as error:
            raise KubectlError(f"{self.program} does not run: {error.strerror}", Why.ABSENT) from error
        output, errors = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
        if done.returncode != 0:
            words = _words(errors) or f"exit code {done.returncode}, and no word"
            why = _why(errors)
            if NO_CONFIG_HOST in errors and not _has_config():
                words = f"there is no kubeconfig ({words[:SHOWN]})"
                raise KubectlError(f"kubectl {arguments[0]}: {words}", why, NO_CONFIG)
            raise KubectlError(f"kubectl {arguments[0]}: {words[:SHOWN]}", why)
        return output

    def asked_context(self) -> str | None:
        """The context that is used; None where there is none, as inside a pod."""
        if self.context is not None:
            return self.context
        try:
            return self.run("config", "current-context").strip() or None
        except KubectlError:
            return None

    def _line(self, arguments: Sequence[str]) -> list[str]:
        chosen = [] if self.context is None else [f"--context={self.context}"]
        return [self.program, *arguments, *chosen, f"--request-timeout={ANSWER_LIMIT}"]


def _words(stderr: str) -> str:
    """What kubectl says to people, on one line, without its log lines if there is anything else."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    said = [line for line in lines if not _LOG_LINE.match(line)] or lines
    return " ".join(said).removeprefix("error: ")


def _has_config() -> bool:
    """Whether any file is there that kubectl would read its contexts from."""
    said = [part for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return any(Path(part).expanduser().is_file() for part in said or ["~/.kube/config"])


def _why(stderr: str) -> Why:
    return next((why for found, why in _WORDS if found in stderr), Why.OTHER)
