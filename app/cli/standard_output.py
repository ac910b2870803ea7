"""Standard output that says in one way when nobody takes it; imports nothing that takes long."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

STDOUT = 1  # the number of its file
NOT_WRITTEN = 1  # exit code
READER_GONE = 141  # exit code, as a shell says of a command that SIGPIPE ended


class OutputError(Exception):
    """Standard output takes no more; not an OSError, which a command could take for one of its own files."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or str(error))
        self.reader_gone = error.errno == errno.EPIPE


class _Output(io.FileIO):
    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OutputError(error) from error


@contextlib.contextmanager
def checked() -> Iterator[None]:
    """While this lasts everything printed is written for sure, or the process ends and says why.

    A character that the encoding lacks is written as an escape.  Where the reader has gone, as of `| head`,
    the process ends without a word.
    """
    before = sys.stdout
    if before is None:  # the parent has closed it
        _end("it is closed")
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Output(STDOUT, "w", closefd=False)),
        encoding=before.encoding,
        errors="backslashreplace",
        line_buffering=bool(before.line_buffering),
        write_through=getattr(before, "write_through", False),
    )
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OutputError as error:
        # What is left in buffers goes nowhere, instead of failing once more at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
        if error.reader_gone:
            sys.exit(READER_GONE)
        _end(str(error))


def _end(why: str) -> None:
    print(
        f"error: standard output cannot be written: {why}\n"
        "mend: make room there, or write to another place with > FILE",
        file=sys.stderr,
    )
    sys.exit(NOT_WRITTEN)
