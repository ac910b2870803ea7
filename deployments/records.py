"""The writer of JSON lines that outlive a controller: numbered without a gap, versioned, rotated by size.

The audit ("decisions") and the state store are two files, and a crash may come between them.  A controller
keeps this order, so that no move is lost and none is made twice:

1. write the audit line of a decision that changes something, with what it changes; it has a number,
2. save the state with that number as `audit_seq`,
3. publish the plan.

At its start it reads the state, then `after(state.audit_seq)`: lines that were begun and not saved, by a
crash or a store that failed.  It lays what they changed over the state, in their order; a line at or below
`audit_seq` is in the state already.  From the first line of a life on, a former controller that lingers is
refused.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any

import msgspec

from deployments.kept_files import FencedError, exclusive, sync_folder
from deployments.record_reader import RECORD_SCHEMA, Record, after, last, last_whole, numbers, path_of

OWN_FIELDS = frozenset({"schema", "kind", "seq", "at", "epoch"})


class Records:
    """The writer of `NAME.jsonl` in a private folder, and of nothing when `folder` is None.

    Any thread may write.  With `stdout` each line is printed too.  A file that would grow above `max_bytes`
    becomes NAME.1.jsonl, that one NAME.2.jsonl, up to `keep` of them.  With `fsync` a line is on the disk
    when `write` returns.  The file is opened by the first `write`.
    """

    def __init__(
        self,
        folder: Path | None,
        name: str,
        *,
        epoch: int,
        stdout: bool = False,
        max_bytes: int = 64 << 20,
        keep: int = 8,
        fsync: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._name = name
        self._epoch = epoch
        self._stdout = stdout
        self._max_bytes = max_bytes
        self._keep = keep
        self._fsync = fsync
        self._clock = clock
        self._mutex = threading.Lock()
        self._file: FileIO | None = None
        self._size = 0  # of the file when it was written or read last
        self._seq = 0

    def write(self, kind: str, fields: Mapping[str, Any]) -> int:
        """Append one record and return its number; NaN and infinities become null.

        Raises StoreError (nothing was written, the number is free again), FencedError, UnknownSchemaError,
        and ValueError for a field whose name is a record's own.
        """
        return self.write_all(kind, (fields,))

    def write_all(self, kind: str, many: Sequence[Mapping[str, Any]]) -> int:
        """Append records of one kind together and return the number of the last; errors as of `write`.

        An error means that none was written; a kill may leave the first ones.  They stand in one file, under
        one lock, so keep them to a few thousand.
        """
        if taken := sorted(OWN_FIELDS & {name for fields in many for name in fields}):
            raise ValueError(
                f"a record of kind {kind!r} has fields of its own named {taken}: name them otherwise"
            )
        with self._mutex, self._alone():
            self._ready()
            lines = b"".join(self._lines(kind, many))
            if lines:
                self._append(lines)
            self._seq = seq = self._seq + len(many)
        if self._stdout:
            with contextlib.suppress(OSError, ValueError):  # closed: the records are in the file
                sys.stdout.write(lines.decode())
                sys.stdout.flush()
        return seq

    def _lines(self, kind: str, many: Sequence[Mapping[str, Any]]) -> Iterator[bytes]:
        at = _rfc3339(self._clock())
        for seq, fields in enumerate(many, self._seq + 1):
            head = {"schema": RECORD_SCHEMA, "kind": kind, "seq": seq, "at": at, "epoch": self._epoch}
            yield msgspec.json.encode(head | dict(fields)) + b"\n"

    def rise(self, epoch: int) -> None:
        """Write under a higher epoch from now on."""
        with self._mutex:
            self._epoch = epoch

    def after(self, seq: int) -> tuple[Record, ...]:
        """The records above a number, oldest first.  StoreError, UnknownSchemaError."""
        return () if self._folder is None else after(self._folder, self._name, seq)

    def close(self) -> None:
        """Close the file; a later `write` opens it again."""
        with self._mutex:
            self._close()

    def _alone(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self._folder is None else exclusive(self._folder, self._name)

    def _ready(self) -> None:
        """Have the file open and known to its end, whoever has written, moved or removed it meanwhile."""
        if self._folder is None:
            return
        path = path_of(self._folder, self._name)
        if self._file is not None:
            with contextlib.suppress(FileNotFoundError):
                there, ours = path.stat(), os.fstat(self._file.fileno())
                if (there.st_dev, there.st_ino, there.st_size) == (ours.st_dev, ours.st_ino, self._size):
                    return
        self._close()
        file = _open(path)
        try:
            self._size = last_whole(file, path)
            newest = last(self._folder, self._name, None, 1)
            if newest and newest[0].get("epoch", 0) > self._epoch:
                raise FencedError(
                    f"{path} is written by the controller of epoch {newest[0]['epoch']}, this one has"
                    f" {self._epoch}: end it"
                )
            file.truncate(self._size)
        except BaseException:
            file.close()
            raise
        self._file = file
        self._seq = max([self._seq, *(record["seq"] for record in newest)])
        if self._fsync:
            sync_folder(self._folder)

    def _append(self, lines: bytes) -> None:
        if self._size and self._size + len(lines) > self._max_bytes:
            self._rotate()
        if self._file is None:
            return
        try:
            written = 0
            while written < len(lines):
                written += self._file.write(lines[written:])
            if self._fsync:
                os.fsync(self._file.fileno())
        except OSError:
            # When this fails too, the next write cuts the last line.
            with contextlib.suppress(OSError):
                self._file.truncate(self._size)
            raise
        self._size += len(lines)

    def _rotate(self) -> None:
        """Move every file up by one, the oldest first: a kill in between leaves a gap in the names only."""
        if self._folder is None:
            return
        path = path_of(self._folder, self._name)
        free = 1
        while free < self._keep and path_of(self._folder, self._name, free).exists():
            free += 1
        for number in range(free, 1, -1):
            path_of(self._folder, self._name, number - 1).replace(path_of(self._folder, self._name, number))
        path.replace(path_of(self._folder, self._name, 1))
        for number in numbers(self._folder, self._name):
            if number > self._keep:
                path_of(self._folder, self._name, number).unlink()
        self._close()
        self._file, self._size = _open(path), 0
        if self._fsync:
            sync_folder(self._folder)

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _open(path: Path) -> FileIO:
    return FileIO(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "r+")


def _rfc3339(wall: float) -> str:
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
