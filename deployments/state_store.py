"""What a controller leaves for its successor: one JSON document, its epoch, and the texts of policies.

Two stores behind one port: a folder, and none.  Blocking and short; call them from a thread.  A store is
fenced: `open` takes the next epoch, and from then on whatever a former life saves is refused.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import msgspec

from deployments.kept_files import FencedError, UnknownSchemaError, exclusive, replace_file, sync_folder
from deployments.kept_state import STATE_SCHEMA, State, in_use, trimmed

POLICIES_KEPT = 50

# The epoch stands near the beginning of a state file, so that half a file still tells it.
_EPOCH = re.compile(rb'"epoch":\s*(\d{1,18})\b')


@dataclass(frozen=True, slots=True)
class Opened:
    """What `open` found."""

    epoch: int  # ours from now on
    state: State | None  # None: nothing was kept
    problem: str | None = None  # what was damaged, and where it is now


class StateStore(Protocol):
    """The port."""

    def describe(self) -> str:
        """Words for status: what becomes of the state."""

    def open(self) -> Opened:
        """Take the next epoch and read what the former life left.  StoreError, UnknownSchemaError."""

    def save(self, state: State, epoch: int) -> None:
        """Keep a state as of `epoch`, the newest moves and revisions of it.

        StoreError, FencedError, UnknownSchemaError; ValueError for a state that could not be read back.
        """

    def save_policy(self, revision: int, text: str, epoch: int) -> None:
        """Keep the text of a revision; before the state that names it.  Errors as of `save`."""

    def policy(self, revision: int) -> str | None:
        """The text of a revision, None when it is not kept.  StoreError."""


class NoStore:
    """Keeps nothing; the wall clock orders the lives."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock

    def describe(self) -> str:
        """What becomes of the state."""
        return "lost on restart"

    def open(self) -> Opened:
        """An epoch above those of earlier lives, and no state."""
        return Opened(_wall_epoch(self._clock), None)

    def save(self, state: State, epoch: int) -> None:
        """Nothing is kept."""

    def save_policy(self, revision: int, text: str, epoch: int) -> None:
        """Nothing is kept."""

    def policy(self, revision: int) -> str | None:
        """Nothing was kept."""


class DirectoryStore:
    """Keeps everything in one private folder, made when absent."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock
        self._state = folder / "state.json"
        self._epoch = folder / "epoch"
        self._policies = folder / "policies"

    def describe(self) -> str:
        """What becomes of the state."""
        return f"kept in {self._folder}"

    def open(self) -> Opened:
        """Take the next epoch, then read; a damaged state file is put aside and its place is empty."""
        with exclusive(self._folder, "state"):
            epoch, problem = self._next_epoch()
            replace_file(self._epoch, b"%d\n" % epoch)
            data = _read(self._state)
            if data is None:
                return Opened(epoch, None, problem)
            try:
                return Opened(epoch, self._decode(data), problem)
            except UnknownSchemaError as error:
                raise UnknownSchemaError(str(error), epoch) from None
            except ValueError as error:
                damage = f"{self._state} was damaged ({error}); it is kept as {self._put_aside()}"
                return Opened(epoch, None, damage if problem is None else f"{damage}; {problem}")

    def save(self, state: State, epoch: int) -> None:
        """Keep a state, atomically and durably, and drop the texts of old policies."""
        kept = replace(trimmed(state), epoch=epoch)
        data = msgspec.json.encode(kept)
        msgspec.json.decode(data, type=State)
        with exclusive(self._folder, "state"):
            self._fence(epoch)
            replace_file(self._state, data)
            self._drop_policies(in_use(kept))

    def save_policy(self, revision: int, text: str, epoch: int) -> None:
        """Keep the text of a revision, atomically and durably."""
        with exclusive(self._folder, "state"):
            self._fence(epoch)
            self._policies.mkdir(mode=0o700, exist_ok=True)
            replace_file(self._policies / f"{revision}.yaml", text.encode())

    def policy(self, revision: int) -> str | None:
        """The text of a revision; None also when it is no text any more."""
        with exclusive(self._folder, "state"):
            data = _read(self._policies / f"{revision}.yaml")
        try:
            return None if data is None else data.decode()
        except UnicodeDecodeError:
            return None

    def _next_epoch(self) -> tuple[int, str | None]:
        """The next epoch and what was wrong with the epoch file.

        A folder that does not tell its epoch begins at the wall clock, as no store does: replicas and
        ingresses may remember an epoch of a folder that was lost.
        """
        stored = _epoch_of(_read(self._epoch))
        found = self._epochs()
        if stored is not None:
            return max([stored, *found]) + 1, None
        epoch = max([_wall_epoch(self._clock), *found]) + 1
        fresh = not found and not self._epoch.exists()
        return epoch, None if fresh else f"{self._epoch} was damaged or gone; epochs go on at {epoch}"

    def _epochs(self) -> list[int]:
        files = [self._state, *self._folder.glob(f"{self._state.name}.corrupt-*")]
        matches = [_EPOCH.search(_read(file) or b"") for file in files]
        return [int(match[1]) for match in matches if match]

    def _fence(self, epoch: int) -> None:
        data = _read(self._state)
        with contextlib.suppress(ValueError):  # a damaged file is written anew
            self._check_schema(data or b"")
        stored = _epoch_of(_read(self._epoch))
        newest = max([stored or 0, *self._epochs()])
        if newest > epoch:
            raise FencedError(
                f"{self._folder} belongs to the controller of epoch {newest}, this one has {epoch}: end it"
            )
        if stored != epoch:  # the folder was emptied, or put back from a copy
            replace_file(self._epoch, b"%d\n" % epoch)

    def _decode(self, data: bytes) -> State:
        self._check_schema(data)
        return msgspec.json.decode(data, type=State)

    def _check_schema(self, data: bytes) -> None:
        schema = msgspec.json.decode(data, type=_Head).schema
        if schema != STATE_SCHEMA:
            raise UnknownSchemaError(
                f"{self._state} has schema {schema}, this version knows {STATE_SCHEMA}: start the version"
                " that wrote it, or move the file away to begin with nothing"
            )

    def _put_aside(self) -> Path:
        taken = {file.name for file in self._folder.iterdir()}
        number = 1
        while f"{self._state.name}.corrupt-{number}" in taken:
            number += 1
        aside = self._state.with_name(f"{self._state.name}.corrupt-{number}")
        self._state.rename(aside)
        sync_folder(self._folder)
        return aside

    def _drop_policies(self, acting: frozenset[int]) -> None:
        kept = sorted(int(file.stem) for file in self._policies.glob("*.yaml") if file.stem.isdecimal())
        for revision in kept[:-POLICIES_KEPT]:
            if revision not in acting:
                (self._policies / f"{revision}.yaml").unlink()


@dataclass(frozen=True, slots=True)
class _Head:
    schema: int


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _epoch_of(data: bytes | None) -> int | None:
    match = re.fullmatch(rb"(\d{1,18})\n", data or b"")
    return int(match[1]) if match else None


def _wall_epoch(clock: Callable[[], float]) -> int:
    return int(clock() * 1000)
