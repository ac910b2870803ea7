"""The reader of JSON lines that `records` writes, forward and from the end, over the rotated files."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Generator, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from autoscaling.observations import LARGEST_EPOCH
from deployments.kept_files import StoreError, UnknownSchemaError

RECORD_SCHEMA = 1
BLOCK_BYTES = 1 << 16  # read at once from the end of a file
LARGEST_SEQ = 2**53

Record = dict[str, Any]


def read(folder: Path, name: str) -> Iterator[Record]:
    """Every record that is kept, oldest first; a torn line is left out.

    A writer may write and rotate meanwhile.  Raises StoreError, UnknownSchemaError.
    """
    with _readable(folder), contextlib.ExitStack() as stack:
        for file, path in reversed(_files(folder, name, stack)):
            for line in file:
                record = _record(line, path) if line.endswith(b"\n") else None
                if record is not None:
                    yield record


def last(folder: Path, name: str, kind: str | None, count: int) -> tuple[Record, ...]:
    """The newest records of a kind, of any kind with None, oldest first.  Errors as of `read`."""
    found: list[Record] = []
    with contextlib.closing(_backward(folder, name)) as records:
        while len(found) < count and (record := next(records, None)) is not None:
            if kind is None or record["kind"] == kind:
                found.append(record)
    return tuple(reversed(found))


def newest_that(folder: Path, name: str, fits: Callable[[Record], bool], searched: int) -> Record | None:
    """The newest record that fits, of so many newest ones at most.  Errors as of `read`."""
    with contextlib.closing(_backward(folder, name)) as records:
        return next(filter(fits, islice(records, searched)), None)


def after(folder: Path, name: str, seq: int) -> tuple[Record, ...]:
    """The records above a number, oldest first.  Errors as of `read`."""
    found: list[Record] = []
    with contextlib.closing(_backward(folder, name)) as records:
        while (record := next(records, None)) is not None and record["seq"] > seq:
            found.append(record)
    return tuple(reversed(found))


def last_whole(file: BinaryIO, path: Path) -> int:
    """Where the last whole record of a file ends, in bytes; what stands behind it was torn.

    Raises StoreError when the file has lines and no record among them: it is somebody else's.
    """
    lines = 0
    for end, line in _lines_from_the_end(file):
        if _record(line, path) is not None:
            return end
        lines += 1
    if lines:
        raise StoreError(f"{path} has {lines} lines and no record among them: move it away")
    return 0


def path_of(folder: Path, name: str, number: int = 0) -> Path:
    """The file that is written (0), or the one that was so many rotations ago."""
    return folder / (f"{name}.{number}.jsonl" if number else f"{name}.jsonl")


def numbers(folder: Path, name: str) -> list[int]:
    """The numbers of the rotated files that exist, newest first."""
    pattern = re.compile(re.escape(name) + r"\.([1-9]\d*)\.jsonl")
    return sorted(int(match[1]) for file in folder.iterdir() if (match := pattern.fullmatch(file.name)))


@contextlib.contextmanager
def _readable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        place = error.filename or folder
        raise StoreError(f"{place}: {error.strerror or error}: make it readable for this user") from error


def _files(folder: Path, name: str, stack: contextlib.ExitStack) -> list[tuple[BinaryIO, Path]]:
    """The files, newest first, all open: a rotation meanwhile moves names, and no record is missed."""
    found: dict[tuple[int, int], tuple[BinaryIO, Path]] = {}
    if not folder.is_dir():
        return []
    listed = numbers(folder, name)
    # One more each: a rotation may have come since they were listed.
    for number in sorted({0, 1, *listed, *(number + 1 for number in listed)}):
        path = path_of(folder, name, number)
        with contextlib.suppress(FileNotFoundError):
            file = stack.enter_context(path.open("rb"))
            facts = os.fstat(file.fileno())
            found.setdefault((facts.st_dev, facts.st_ino), (file, path))
    return list(found.values())


def _backward(folder: Path, name: str) -> Generator[Record, None, None]:
    with _readable(folder), contextlib.ExitStack() as stack:
        for file, path in _files(folder, name, stack):
            for _, line in _lines_from_the_end(file):
                record = _record(line, path)
                if record is not None:
                    yield record


def _lines_from_the_end(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Whole lines, the last one first, each with the offset behind it; an unfinished line is left out."""
    position = end = file.seek(0, os.SEEK_END)
    finished = False  # once it is, a newline stands at `end`
    parts: list[bytes] = []  # of the line before it, the last one first; joined once, however long it is
    while position > 0:
        size = min(BLOCK_BYTES, position)
        position = file.seek(position - size)
        pieces = file.read(size).split(b"\n")
        while len(pieces) > 1:
            piece = pieces.pop()
            if finished:
                line = b"".join(reversed((*parts, piece)))
                yield end + 1, line
                end -= len(line) + 1
            else:
                end = position + sum(map(len, pieces)) + len(pieces) - 1
            finished, parts = True, []
        if finished:
            parts.append(pieces[0])
    if finished:
        yield end + 1, b"".join(reversed(parts))


def _record(line: bytes, path: Path) -> Record | None:
    try:
        record = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not {"kind", "seq"} <= record.keys():
        return None
    if type(record.get("schema")) is not int:
        return None
    if record["schema"] != RECORD_SCHEMA:
        raise UnknownSchemaError(
            f"{path} has a record of schema {record['schema']}, this version knows {RECORD_SCHEMA}: read it"
            " with the version that wrote it, or move the file away"
        )
    numbered = _is_whole(record.get("seq"), LARGEST_SEQ) and _is_whole(record.get("epoch", 0), LARGEST_EPOCH)
    return record if numbered and isinstance(record.get("kind"), str) else None


def _is_whole(value: Any, largest: int) -> bool:
    return type(value) is int and 0 <= value <= largest
