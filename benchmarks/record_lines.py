"""A file of JSON lines that a run keeps what it has found in, so that another one can go on from it.

The first line says what all others hold for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.errors import BenchError


class RecordLines(ABC):
    """Every line is on the disk before the next step begins; `take` learns what a line says."""

    def __init__(self, path: Path, kind: str, begun: Any, of: str) -> None:
        """`begun` is the first line, of this kind; `of` is what another one would be about, for a refusal."""
        self.path = path
        self._kind, self._begun, self._of = kind, begun, of

    def begin(self) -> None:
        """Write the file anew."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(b"")
        self.append(self._kind, self._begun)

    def resume(self) -> None:
        """Read what there is; raises BenchError for another beginning, and for what is no such file."""
        try:
            raw = self.path.read_bytes()
        except OSError as error:
            raise BenchError(f"{self.path}: {error.strerror}: without --resume a run begins anew") from error
        whole = raw[: raw.rfind(b"\n") + 1]  # the last line may be cut
        try:
            for line in whole.splitlines():
                kind, value = next(iter(msgspec.json.decode(line, type=dict[str, msgspec.Raw]).items()))
                if kind == self._kind:
                    self._check(value)
                else:
                    self.take(kind, value)
        except (msgspec.MsgspecError, StopIteration) as error:
            raise BenchError(f"{self.path} is no record of a run: {error}") from error
        if not whole:
            raise BenchError(f"{self.path} is empty: begin anew without --resume")
        self.path.write_bytes(whole)

    @abstractmethod
    def take(self, kind: str, raw: msgspec.Raw) -> None:
        """Learn what a line of a kind says; raises msgspec.MsgspecError where it says something else."""

    def append(self, kind: str, value: Any) -> None:
        """Write a line."""
        with self.path.open("ab") as out:
            out.write(msgspec.json.encode({kind: value}) + b"\n")

    def _check(self, raw: msgspec.Raw) -> None:
        if msgspec.json.decode(raw, type=type(self._begun)) != self._begun:
            raise BenchError(
                f"{self.path} is of a run with another {self._of}: begin anew without --resume, "
                "or give the options of that run"
            )
