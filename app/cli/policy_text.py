"""Policy files on this machine: read one, replace one."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 1 << 20  # as the service: a ConfigMap holds no more


class UnreadableError(Exception):
    """There is no text to judge; the message names the file and the reason."""


@dataclass(frozen=True, slots=True)
class PolicyText:
    """The text of one file, and the name to say in messages."""

    file: str
    text: str


def read(path: Path) -> PolicyText:
    """Read a policy file, a folder that holds exactly one *.yaml, or `-`; raises UnreadableError."""
    try:
        if str(path) == "-":
            return PolicyText("<stdin>", _decoded("<stdin>", sys.stdin.buffer.read(MAX_BYTES + 1)))
        file = file_of(path)
        if not stat.S_ISREG(file.stat().st_mode):
            raise UnreadableError(f"{file}: not a regular file")
        with file.open("rb") as opened:
            return PolicyText(str(file), _decoded(str(file), opened.read(MAX_BYTES + 1)))
    except OSError as error:
        raise UnreadableError(f"{path}: {error.strerror}") from error


def file_of(path: Path) -> Path:
    """Find the file itself where a folder is named, as the service does; raises UnreadableError, OSError."""
    return _only_yaml(path) if path.is_dir() else path


def replace(path: Path, text: str) -> None:
    """Replace a file's content in one step, its mode and owner kept; raises OSError, the file untouched.

    A link keeps pointing where it does: the file behind it is replaced.
    """
    target = path.resolve()
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".new", dir=target.parent)
    new = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            _like(descriptor, target)
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        new.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            new.unlink()
        raise


def _like(descriptor: int, target: Path) -> None:
    """Give the new file the mode and, where we may, the owner of the old one."""
    try:
        old = target.stat()
    except FileNotFoundError:
        os.fchmod(descriptor, 0o644)
        return
    if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _only_yaml(folder: Path) -> Path:
    """Find the policy of a mounted ConfigMap: its `..data` and other hidden names are not looked at."""
    found = sorted(p for p in folder.iterdir() if p.suffix == ".yaml" and not p.name.startswith("."))
    if len(found) != 1:
        names = ", ".join(p.name for p in found) or "none"
        raise UnreadableError(f"{folder}: exactly one *.yaml is needed in a folder, found {names}")
    return found[0]


def _decoded(file: str, data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise UnreadableError(f"{file}: larger than {MAX_BYTES} bytes, which no policy is")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableError(f"{file}: line {line} is not UTF-8 (byte {data[error.start]:#04x})") from error
