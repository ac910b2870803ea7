"""The policy file as it is on the disk: its text when the content changed, or why there is none.

By content, never by time of change, so that every way of writing is seen: in place, by rename, and the
kubelet's swap of `..data` in a mounted ConfigMap.  What the text means is not judged here.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 1 << 20  # a ConfigMap holds no more
SETTLE_POLLS = 2  # a file that is just being written differs from one poll to the next
VANISHED_POLLS = 3
NAMED = 5  # files named in a message, at most


@dataclass(frozen=True, slots=True)
class Seen:
    """News of the file: a text, or a problem, while which the last good text stays."""

    text: str | None
    sha: str | None  # SHA-256 of the bytes, hex; None when they were not read
    problem: str | None


class _VanishedError(Exception):
    """A name that was there a moment ago has nothing behind it."""


class PolicySource:
    """One policy file, or a folder that holds exactly one *.yaml.

    `vanished` counts the polls that found a name with nothing behind it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._said: Seen | None = None
        self._last: Seen | None = None  # what the previous poll found
        self._vanished_in_a_row = 0
        self.vanished = 0

    def poll(self) -> Seen | None:
        """What is new, else None; never raises for what is on the disk.

        The first finding is news at once; a later one when two polls in a row agree on it, so call it about
        once a second.
        """
        try:
            found = self._look()
            self._vanished_in_a_row = 0
        except _VanishedError as error:
            self.vanished += 1
            self._vanished_in_a_row += 1
            if self._vanished_in_a_row < VANISHED_POLLS:
                return None
            found = self._last = Seen(None, None, str(error))
        settled = self._said is None or found == self._last
        self._last = found
        if not settled or found == self._said:
            return None
        self._said = found
        return found

    def _look(self) -> Seen:
        try:
            file = self._file()
            # Once, and then that path only: between two uses of a link it may change.
            resolved = file.resolve(strict=True)
            data = _read(resolved)
        except FileNotFoundError:
            if not os.path.lexists(self._path):
                return _problem(f"{self._path}: the file is gone: put it back, the last good policy stays")
            raise _VanishedError(
                f"{self._path}: for {VANISHED_POLLS} polls a name with no file behind it: write it anew,"
                " the last good policy stays"
            ) from None
        except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
            reason = getattr(error, "strerror", None) or error
            return _problem(
                f"{self._path}: cannot be read: {reason}: the controller must be allowed to read it"
            )
        except ValueError as error:
            return _problem(str(error))
        return _seen(file, data)

    def _file(self) -> Path:
        if not self._path.is_dir():
            return self._path
        names = sorted(
            entry.name
            for entry in self._path.iterdir()
            if entry.suffix == ".yaml" and not entry.name.startswith(".")
        )
        if len(names) == 1:
            return self._path / names[0]
        if not names:
            raise ValueError(f"{self._path}: no *.yaml in this folder: put the policy file there")
        listed = ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
        raise ValueError(
            f"{self._path}: {len(names)} *.yaml in this folder ({listed}): leave one, or name the file itself"
        )


def _read(path: Path) -> bytes:
    """The first bytes of a file, one more than allowed; a pipe is refused and never waited for."""
    with open(path, "rb", buffering=0, opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError(f"{path}: not a regular file: name the policy file")
        return file.read(MAX_BYTES + 1)


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _seen(file: Path, data: bytes) -> Seen:
    if len(data) > MAX_BYTES:
        return _problem(f"{file}: larger than {MAX_BYTES} bytes: this is no policy file")
    sha = hashlib.sha256(data).hexdigest()
    try:
        return Seen(data.decode(), sha, None)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Seen(
            None, sha, f"{file}: line {line} is not UTF-8 (byte {data[error.start]:#04x}): save it as UTF-8"
        )


def _problem(words: str) -> Seen:
    return Seen(None, None, words)


class FixedPolicy:
    """A policy that is no file: one text, news once."""

    def __init__(self, text: str) -> None:
        self._text: str | None = text

    def poll(self) -> Seen | None:
        """The text, the first time."""
        text, self._text = self._text, None
        return None if text is None else Seen(text, hashlib.sha256(text.encode()).hexdigest(), None)
