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
MOUNTED = "..data"  # the link of a mounted ConfigMap to what it holds now


class UnreadableError(Exception):
    """There is no text to judge; the message names the file and the reason, `mend` what to do."""

    def __init__(self, message: str, mend: str = "name a policy file that you may read") -> None:
        super().__init__(message)
        self.mend = mend


class UnreplaceableError(Exception):
    """What stands there is nothing that may be replaced; `mend` says what to do instead."""

    def __init__(self, message: str, mend: str) -> None:
        super().__init__(message)
        self.mend = mend


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
    """Replace a file's content in one step, its mode and owner kept, or write a new one.

    A link keeps pointing where it does: the file behind it is replaced.  Raises OSError, and
    UnreplaceableError for what is no regular file or belongs to a mounted ConfigMap; all is untouched then.
    """
    target = _replaceable(path)
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


def _replaceable(path: Path) -> Path:
    """Find the file behind `path`, which is regular or not there yet; raises OSError, UnreplaceableError."""
    try:
        target = path.resolve()
    except RuntimeError as error:
        raise UnreplaceableError(f"{path} is a link in a circle", "name the policy file itself") from error
    mounted = (os.path.lexists(folder / MOUNTED) for folder in (path.parent, target.parent))
    # The kubelet's folders begin so; they are exchanged as a whole, and a file written there is lost.
    if any(mounted) or any(part.startswith("..") for part in target.parts):
        raise UnreplaceableError(
            f"{path} belongs to a mounted ConfigMap",
            "write it elsewhere, and change the ConfigMap with `twinpool policy apply`",
        )
    if os.path.lexists(target) and not stat.S_ISREG(target.stat().st_mode):
        kind = "a folder" if target.is_dir() else "not a regular file"
        raise UnreplaceableError(f"{target} is {kind}", "name a policy file with --write")
    return target


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
        words = f"{file}: line {line} is not UTF-8 (byte {data[error.start]:#04x})"
        raise UnreadableError(words, "save it as UTF-8") from error
