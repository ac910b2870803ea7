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

from autoscaling.observations import LARGEST_EPOCH
from deployments.kept_files import (
    FencedError,
    StoreError,
    UnknownSchemaError,
    exclusive,
    replace_file,
    sync_folder,
)
from deployments.kept_state import AUDIT, STATE_SCHEMA, State, in_use, trimmed
from deployments.record_reader import last

POLICIES_KEPT = 50

# The epoch stands near the beginning of a state file, so that half a file still tells it.
_EPOCH = re.compile(rb'"epoch":\s*(\d{1,18})\b')
_POLICY = re.compile(r"([1-9][0-9]{0,17})\.yaml")


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

    def raise_epoch(self, epoch: int, higher: int) -> None:
        """Have a higher epoch than the one that `open` gave, and the next life above it.

        StoreError, FencedError, UnknownSchemaError.
        """

    def put_aside(self, why: str) -> str:
        """Have the state that `open` gave out of the way; words for where it is.  StoreError."""


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

    def raise_epoch(self, epoch: int, higher: int) -> None:
        """Nothing is kept; the wall clock orders the lives."""

    def put_aside(self, why: str) -> str:
        """There was nothing to read."""
        return why


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
            except (ValueError, RecursionError) as error:
                damage = self._damage(error)
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
            file = self._policies / f"{revision}.yaml"
            if self._policies.exists() and not self._policies.is_dir():
                _put_aside(self._policies)
            self._policies.mkdir(mode=0o700, exist_ok=True)
            if file.is_dir() and not file.is_symlink():
                _put_aside(file)
            replace_file(file, text.encode())

    def policy(self, revision: int) -> str | None:
        """The text of a revision; None also when it is no text any more."""
        with exclusive(self._folder, "state"):
            data = _read(self._policies / f"{revision}.yaml")
        try:
            return None if data is None else data.decode()
        except UnicodeDecodeError:
            return None

    def raise_epoch(self, epoch: int, higher: int) -> None:
        """Write the higher epoch down."""
        with exclusive(self._folder, "state"):
            self._fence(epoch)
            replace_file(self._epoch, b"%d\n" % higher)

    def put_aside(self, why: str) -> str:
        """Rename the state file, as `open` does with one that is no JSON."""
        with exclusive(self._folder, "state"):
            return self._damage(why)

    def _next_epoch(self) -> tuple[int, str | None]:
        """The next epoch and what was wrong with the epoch file.

        It is above the wall clock too, as lives without a store are: replicas and ingresses may remember an
        epoch of such a life, or of a folder that was lost; and above the audit's, which would refuse it.
        """
        stored = _epoch_of(_read(self._epoch))
        found = [*self._epochs(), *self._audit_epochs()]
        epoch = max([stored or 0, _wall_epoch(self._clock), *found]) + 1
        if stored is not None:
            return epoch, None
        fresh = not found and not self._epoch.exists()
        return epoch, None if fresh else f"{self._epoch} was damaged or gone; epochs go on at {epoch}"

    def _epochs(self) -> list[int]:
        files = [self._state, *self._folder.glob(f"{self._state.name}.corrupt-*")]
        matches = [_EPOCH.search(_read(file) or b"") for file in files]
        epochs = [int(match[1]) for match in matches if match]
        return [epoch for epoch in epochs if epoch <= LARGEST_EPOCH]

    def _audit_epochs(self) -> list[int]:
        with contextlib.suppress(StoreError, UnknownSchemaError):  # whoever writes it will say so
            return [record.get("epoch", 0) for record in last(self._folder, AUDIT, None, 1)]
        return []

    def _fence(self, epoch: int) -> None:
        data = _read(self._state)
        with contextlib.suppress(ValueError, RecursionError):  # a damaged file is written anew
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

    def _damage(self, why: object) -> str:
        return f"{self._state} was damaged ({why}); it is kept as {_put_aside(self._state)}"

    def _drop_policies(self, acting: frozenset[int]) -> None:
        names = [_POLICY.fullmatch(file.name) for file in self._policies.glob("*.yaml") if file.is_file()]
        for revision in sorted(int(name[1]) for name in names if name)[:-POLICIES_KEPT]:
            if revision not in acting:
                (self._policies / f"{revision}.yaml").unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class _Head:
    schema: int


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _put_aside(path: Path) -> Path:
    """Rename what is in the way to the next free NAME.corrupt-N."""
    taken = {file.name for file in path.parent.iterdir()}
    number = 1
    while f"{path.name}.corrupt-{number}" in taken:
        number += 1
    aside = path.with_name(f"{path.name}.corrupt-{number}")
    path.rename(aside)
    sync_folder(path.parent)
    return aside


def _epoch_of(data: bytes | None) -> int | None:
    match = re.fullmatch(rb"(\d{1,18})\n", data or b"")
    return int(match[1]) if match and int(match[1]) <= LARGEST_EPOCH else None


def _wall_epoch(clock: Callable[[], float]) -> int:
    return int(min(max(0.0, clock() * 1000), LARGEST_EPOCH - 1))
