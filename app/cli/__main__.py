"""The `twinpool` command from its first moment to its last; `python -m app.cli` is the same."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

from app.cli import standard_output

INTERRUPTED = 130  # as a shell says of a command that Ctrl-C ended


def main() -> None:
    """Console entry point; raises SystemExit with the exit code of the command."""
    with _quiet_end():
        from app.cli.main import cli  # noqa: PLC0415  # takes most of a second

    with standard_output.checked():
        cli()


@contextlib.contextmanager
def _quiet_end() -> Iterator[None]:
    """While this lasts Ctrl-C ends the process without a word: it has done nothing yet."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:  # as behind & in a script
        yield
        return
    signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


if __name__ == "__main__":
    main()
