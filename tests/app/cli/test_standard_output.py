"""What every command does when nobody takes its output, or when the terminal lacks a character."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from tests.policies import policy

FULL = Path("/dev/full")  # every write fails with ENOSPC; Linux only
COMMAND = [sys.executable, "-m", "app.cli"]
# Through print, through rich's tables, and through the help of typer.
EACH = [("policy", "starters", "interactive-first"), ("policy", "starters"), ("policy", "--help")]


def twinpool(*arguments: str, stdout: int | IO[bytes], **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        check=False,
        timeout=60,
        env=os.environ | env,
    )


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", EACH)
def test_output_that_finds_no_room_is_an_error(arguments: tuple[str, ...]) -> None:
    """Exit code 1 and two lines, not the success of a command whose output is lost."""
    with FULL.open("wb") as full:
        done = twinpool(*arguments, stdout=full)

    assert 1 == done.returncode
    assert (
        "error: standard output cannot be written: No space left on device\n"
        "mend: make room there, or write to another place with > FILE\n"
    ) == done.stderr


@pytest.mark.parametrize("arguments", EACH)
def test_a_reader_that_has_gone_ends_the_command_without_a_word(arguments: tuple[str, ...]) -> None:
    """As behind `| head`: the exit code of a command that SIGPIPE ended."""
    read, write = os.pipe()
    os.close(read)
    try:
        done = twinpool(*arguments, stdout=write)
    finally:
        os.close(write)

    assert (141, "") == (done.returncode, done.stderr)


def test_output_that_is_closed_is_an_error() -> None:
    """`>&-` in a shell: nothing could be said, and the next file would be written in its place."""
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, "policy", "starters"],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )

    assert 1 == done.returncode
    assert done.stderr.startswith("error: standard output cannot be written: it is closed\nmend: ")


@pytest.mark.parametrize("encoding", ["ascii", "ascii:strict", "latin-1"])
def test_a_character_that_the_encoding_lacks_is_escaped(encoding: str, tmp_path: Path) -> None:
    """The answer is written all the same."""
    file = tmp_path / "wünsche-→.yaml"
    file.write_text(policy(2, 2), encoding="utf-8")
    done = twinpool("policy", "validate", str(file), stdout=subprocess.PIPE, PYTHONIOENCODING=encoding)

    assert (0, "") == (done.returncode, done.stderr)
    assert "-\\u2192.yaml" in done.stdout
