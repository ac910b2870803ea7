"""Files that outlive a process: one process at a time, each written whole or not at all.

Beside them the errors of everything kept, split by what the caller does.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

LOCK_WAIT_S = 5.0  # everything done under the lock takes milliseconds


class StoreError(Exception):
    """The disk is full, or the folder cannot be used: go on without keeping state, show it, try again."""


class FencedError(Exception):
    """A successor has begun: stop acting, this life is over."""


class UnknownSchemaError(Exception):
    """What is stored was written by a version that this one does not understand, and is left untouched.

    `epoch` is the one that `open` took before it found out; None from elsewhere.
    """

    def __init__(self, message: str, epoch: int | None = None) -> None:
        super().__init__(message)
        self.epoch = epoch


@contextlib.contextmanager
def exclusive(folder: Path, name: str) -> Iterator[None]:
    """A private folder for one process at a time, by the lock file NAME.lock; raises StoreError."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(folder / f"{name}.lock", timeout=LOCK_WAIT_S, mode=0o600):
            yield
    except Timeout:
        raise StoreError(
            f"{folder / name}.lock is held by another process for {LOCK_WAIT_S:.0f} s: find out which"
        ) from None
    except OSError as error:
        raise StoreError(
            f"{error.filename or folder}: {error.strerror or error}: make room, or change the folder's owner"
        ) from error


def replace_file(path: Path, data: bytes) -> None:
    """Write a private file, whole or not at all; it is on the disk when this returns."""
    unfinished = path.with_name(f"{path.name}.tmp")
    try:
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
