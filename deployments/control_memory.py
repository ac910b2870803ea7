"""What the control loop writes down and finds again: state, audit, records; in an order that survives kills.

An audit line that changes something carries that part of the state with it.  A successor takes the saved
state and lays over it what stands in younger lines, so nothing is lost between the two writes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from deployments.config import ControllerSettings
from deployments.control_left import UNUSABLE, Left, laid_over, revived, words
from deployments.kept_files import FencedError, StoreError, UnknownSchemaError
from deployments.kept_state import AUDIT, State
from deployments.record_reader import last, newest_that
from deployments.records import Records
from deployments.state_store import DirectoryStore, NoStore, Opened, StateStore

logger = logging.getLogger("ray.serve")

OBSERVATIONS = "observations"
DECISIONS = "decisions"
REQUESTS = "requests"
DECISIONS_SEARCHED = 5000
REQUESTS_SEARCHED = 100_000  # about a second of reading


class ControlMemory:
    """Store, audit and records of one controller life; blocking work runs in threads, one at a time."""

    def __init__(self, settings: ControllerSettings, wall: Callable[[], float]) -> None:
        self._settings = settings
        self._wall = wall
        self._store: StateStore = NoStore(wall)
        self._lock = asyncio.Lock()
        self._audit: Records | None = None
        self._records: dict[str, Records] = {}
        self._audit_seq = 0
        self._left = Left()
        self._requests_lock = asyncio.Lock()  # of its own: a slow disk of records delays no decision
        self.requests_lost = 0  # records of requests that could not be written
        self.epoch = 0
        self.problem: str | None = None  # what cannot be written down, in words
        self.fenced = False

    def open(self) -> int:
        """Take the next epoch and read what is there.

        A store that cannot be used is said and done without; it is tried again at each later writing.
        """
        try:
            opened = self._open_store()
        except (StoreError, UnknownSchemaError) as error:
            self.problem = str(error)
            opened = self._store.open()
            self._open_records(opened.epoch, None)
        self._left = Left(opened.state, problem=opened.problem)
        return self.epoch

    def _open_store(self) -> Opened:
        folder = None if self._settings.state_dir is None else Path(self._settings.state_dir)
        store: StateStore = NoStore(self._wall) if folder is None else DirectoryStore(folder, self._wall)
        opened = store.open()
        self._store = store
        self._open_records(opened.epoch, folder)
        return opened

    def _open_records(self, epoch: int, folder: Path | None) -> None:
        self.epoch = epoch
        self._audit = Records(folder, AUDIT, epoch=self.epoch, fsync=True, clock=self._wall)
        records = None if self._settings.record_dir is None else Path(self._settings.record_dir)
        self._records = {
            name: Records(
                records, name, epoch=self.epoch, stdout=self._settings.record_stdout, clock=self._wall
            )
            for name in (OBSERVATIONS, DECISIONS, REQUESTS)
        }

    def describe(self) -> str:
        """What becomes of the state, for the status."""
        words = self._store.describe()
        return words if self.problem is None else f"{words}: {self.problem}"

    def restore(self, now: float, wall: float) -> Left:
        """What a former life left, by this life's clocks.  Blocking; raises nothing for what is on the disk.

        A state file that could be read and cannot be true is put aside as a damaged one is; what the audit
        does not bring back is then as Ray Serve has it.
        """
        assert self._audit is not None
        state, problems = self._left.state, [self._left.problem]
        if state is not None:
            try:
                revived(state, now, wall)
            except UNUSABLE as error:
                state = None
                problems.append(self._put_aside(words(error)))
        try:
            younger = self._audit.after(0 if state is None else state.audit_seq)
        except (StoreError, UnknownSchemaError) as error:
            self.problem = str(error)
            younger = ()
        state, problem = laid_over(state, younger, now, wall)
        said = "; ".join(filter(None, (*problems, problem))) or None
        if state is None:
            return Left(problem=said)
        self._audit_seq = state.audit_seq
        return replace(revived(state, now, wall), problem=said)

    def _put_aside(self, why: str) -> str:
        try:
            return self._store.put_aside(why)
        except StoreError as error:
            return f"the kept state cannot be used ({why}) and stays where it is: {error}"

    def policy_text(self, revision: int) -> str | None:
        """The text of a revision; None when it is not kept, or cannot be read."""
        try:
            return self._store.policy(revision)
        except StoreError as error:
            logger.warning(f"the text of revision {revision} cannot be read: {error}")
            return None

    async def decision(self, number: str) -> dict[str, Any] | None:
        """A decision of the audit by its number; None when it is not kept."""
        folder = self._settings.state_dir
        if folder is None or not isinstance(self._store, DirectoryStore):
            return None

        def find() -> dict[str, Any] | None:
            for line in reversed(last(Path(folder), AUDIT, "decision", DECISIONS_SEARCHED)):
                found: dict[str, Any] = line["decision"]
                if str(found["number"]) == number:
                    return found
            return None

        try:
            return await asyncio.to_thread(find)
        except (StoreError, UnknownSchemaError):
            return None

    async def keep_text(self, revision: int, text: str) -> None:
        """Keep the text of a revision, before any state names it."""
        await self._write(lambda _: self._store.save_policy(revision, text, self.epoch), State)

    async def keep(
        self, kind: str, fields: Mapping[str, Any], state: Callable[[], State], changed: tuple[str, ...]
    ) -> None:
        """One audit line, then the state; `changed` names the parts of the state that the line carries."""

        def work(now: State) -> None:
            assert self._audit is not None
            part = {name: getattr(now, name) for name in (*changed, "saved_now", "saved_wall")}
            plain = msgspec.to_builtins(dict(fields))
            self._audit_seq = self._audit.write(kind, plain | {"state": msgspec.to_builtins(part)})
            self._store.save(replace(now, audit_seq=self._audit_seq), self.epoch)
            self._records[DECISIONS].write(kind, plain)

        await self._write(work, state)

    async def save(self, state: Callable[[], State]) -> None:
        """The state alone."""
        await self._write(
            lambda now: self._store.save(replace(now, audit_seq=self._audit_seq), self.epoch), state
        )

    async def rise(self, epoch: int) -> None:
        """Take a higher epoch, also in the store, so that the next life is above it."""

        def work(_: State) -> None:
            if epoch > self.epoch:
                self._store.raise_epoch(self.epoch, epoch)
                self.epoch = epoch
                for records in (self._audit, *self._records.values()):
                    if records is not None:
                        records.rise(epoch)

        await self._write(work, State)

    async def keep_observation(self, fields: Mapping[str, Any]) -> None:
        """One record of what was seen."""
        if self.records_kept:
            plain = msgspec.to_builtins(dict(fields))
            await self._write(lambda _: self._records[OBSERVATIONS].write("observation", plain), State)

    @property
    def records_kept(self) -> bool:
        """Whether records go anywhere."""
        return self._settings.record_dir is not None or self._settings.record_stdout

    async def keep_requests(self, found: Sequence[Mapping[str, Any]]) -> None:
        """Records of requests that ended, one each, in their order.

        What cannot be written is counted and gone: nothing rests on it, and the next ones are tried again.
        """
        if not found or not self.records_kept:
            return
        async with self._requests_lock:
            try:
                await asyncio.to_thread(self._write_requests, found)
            except (StoreError, UnknownSchemaError, FencedError, ValueError) as error:
                if self.requests_lost == 0:
                    logger.error(f"records of requests cannot be written: {error}")  # noqa: TRY400
                self.requests_lost += len(found)

    def _write_requests(self, found: Sequence[Mapping[str, Any]]) -> None:
        plain = [{"request": msgspec.to_builtins(dict(fields))} for fields in found]
        self._records[REQUESTS].write_all("request", plain)

    async def request(self, wanted: str) -> dict[str, Any] | None:
        """A request of the records by its id, the caller's or the engine's; None when it is not kept."""
        folder = self._settings.record_dir
        if folder is None:
            return None

        def fits(line: Mapping[str, Any]) -> bool:
            found = line.get("request")
            return isinstance(found, dict) and wanted in (found.get("id"), found.get("engine_id"))

        try:
            line = await asyncio.to_thread(newest_that, Path(folder), REQUESTS, fits, REQUESTS_SEARCHED)
        except (StoreError, UnknownSchemaError):
            return None
        return None if line is None else dict(line["request"])

    async def _write(self, work: Callable[[State], Any], state: Callable[[], State]) -> None:
        """Run one piece of writing; what cannot be written is said, and the service goes on.

        The state is taken when its turn comes: of two that wait, the later one is the newer one.
        """
        async with self._lock:
            try:
                await asyncio.to_thread(self._work, work, state())
                self.problem = None
            except FencedError as error:
                self.fenced, self.problem = True, str(error)
                logger.error(self.problem)  # noqa: TRY400  # the words say it all
            except (StoreError, UnknownSchemaError, *UNUSABLE) as error:
                if self.problem is None:
                    logger.error(f"the controller cannot write down what it does: {error}")  # noqa: TRY400
                self.problem = str(error)

    def _work(self, work: Callable[[State], Any], state: State) -> None:
        if self._settings.state_dir is not None and isinstance(self._store, NoStore):
            self._open_store()  # what a former life left counts no more: this one has acted since
        work(state)

    def close(self) -> None:
        """Close the files."""
        for records in (self._audit, *self._records.values()):
            if records is not None:
                records.close()
