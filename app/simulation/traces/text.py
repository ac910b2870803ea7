"""Reads a trace's file as text."""

from __future__ import annotations

from pathlib import Path

from app.simulation.traces.errors import TraceError


def read_text(path: Path) -> str:
    """The whole file, without a byte order mark.  Raises TraceError when it is no readable UTF-8 text."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise TraceError(
            f"{path} cannot be read: {error.strerror or error}; name a file that this user can read"
        ) from error
    except UnicodeDecodeError as error:
        raise TraceError(
            f"{path}: byte {error.start + 1} is not UTF-8: name a text file, unpacked and saved as UTF-8"
        ) from error
