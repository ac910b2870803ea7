"""The parent's end of the engine's child process: submit, demultiplex, record, notice its death."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from autoscaling.types import EngineTotals, FinishedRequest
from deployments.engine import EngineRecorder, EngineStartError, StepRecord
from deployments.simulated.frames import (
    LENGTH_BYTES,
    Abort,
    Add,
    Configure,
    Counters,
    FromChild,
    Output,
    Ready,
    Update,
    body_length,
    frame,
)
from deployments.simulated.generation import EngineDeadError, Generation

CORE = "deployments.simulated.core"
STOP_GRACE_S = 1.0  # the child ends within milliseconds unless a signal has stopped it


class Child:
    """The child process of one engine; writes what it reports into `recorder`."""

    def __init__(self, recorder: EngineRecorder) -> None:
        self.failure: str | None = "the engine has not started"
        self._recorder = recorder
        self._process: Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._stopping = False
        self._open: dict[int, Generation] = {}
        self._keys = itertools.count(1)
        self._decoder = msgspec.msgpack.Decoder(FromChild)

    @property
    def pid(self) -> int | None:
        """Of the process while it runs."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    @property
    def unfinished(self) -> int:
        """Sequences that the child has not reported as finished, aborted ones included."""
        return len(self._open)

    async def start(self, config: Configure) -> None:
        """Run the process until it is ready; raises EngineStartError and leaves no process behind."""
        root = str(Path(__file__).parents[2])
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        try:
            process = self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", CORE),  # -P: no modules from the current folder
                env={**os.environ, "PYTHONPATH": path},
                stdin=PIPE,
                stdout=PIPE,
            )
        except OSError as error:
            raise EngineStartError(f"cannot run {sys.executable}: {error}") from error
        try:
            self._send(process, config)
            first = await self._next(process)
        except BaseException:
            await self.stop()
            raise
        if not isinstance(first, Ready):
            raise EngineStartError(await _end(process))
        self.failure = None
        self._reading = asyncio.create_task(self._read(process))

    def submit(self, adds: Iterable[Add]) -> Generation:
        """Queue the sequences of one request; raises EngineDeadError."""
        if self.failure is not None or self._process is None:
            raise EngineDeadError(self.failure)
        keyed = [msgspec.structs.replace(add, key=next(self._keys)) for add in adds]
        generation = Generation([add.key for add in keyed], self._abort)
        for add in keyed:
            self._open[add.key] = generation
            self._send(self._process, add)
        return generation

    async def stop(self) -> None:
        """End the process, whether it runs, hangs or is dead."""
        process = self._process
        if process is None:
            return
        self._stopping = True
        self._die("the engine was stopped")
        if process.stdin is not None:
            process.stdin.close()  # the child's sign to end
        await _end(process)
        if self._reading is not None:
            await self._reading

    def _abort(self, keys: Collection[int]) -> None:
        if self.failure is None and self._process is not None:
            self._send(self._process, Abort(tuple(keys)))

    def _send(self, process: Process, message: Configure | Add | Abort) -> None:
        assert process.stdin is not None
        process.stdin.write(frame(message))

    async def _next(self, process: Process) -> FromChild | None:
        assert process.stdout is not None
        try:
            prefix = await process.stdout.readexactly(LENGTH_BYTES)
            return self._decoder.decode(await process.stdout.readexactly(body_length(prefix)))
        except (asyncio.IncompleteReadError, ConnectionError, msgspec.DecodeError):
            return None

    async def _read(self, process: Process) -> None:
        while isinstance(update := await self._next(process), Update):
            self._apply(update)
        self._die(f"engine process {process.pid} closed its output")
        how = await _end(process)
        if not self._stopping:
            self.failure = how

    def _apply(self, update: Update) -> None:
        gauges = self._recorder.gauges
        gauges.running, gauges.waiting = update.running, update.waiting
        gauges.kv_cache_usage = update.kv_cache_usage
        before, self._recorder.totals = self._recorder.totals, _totals(update.counters)
        if update.stepped:
            gauges.last_step_at = time.monotonic()
            if self._recorder.on_step is not None:
                self._recorder.on_step(_step(update, before, self._recorder.totals, gauges.last_step_at))
        for output in update.outputs:
            if output.finish_reason is None:
                generation = self._open.get(output.key)
            else:
                generation = self._open.pop(output.key, None)
                self._record(output, output.finish_reason)
            if generation is not None:
                generation.put(output)

    def _record(self, output: Output, reason: str) -> None:
        assert output.record is not None
        fields = msgspec.structs.asdict(output.record)
        del fields["histogram"]
        try:
            self._recorder.on_finished(FinishedRequest(finish_reason=reason, **fields))
        except Exception:  # a listener's error must not end the engine
            self._recorder.errors += 1

    def _die(self, failure: str) -> None:
        if self.failure is None:
            self.failure = failure
        generations, self._open = set(self._open.values()), {}
        for generation in generations:
            generation.fail(failure)


def _totals(counters: Counters) -> EngineTotals:
    values = msgspec.structs.asdict(counters)
    for name in ("accepted_per_position", "drafted_per_position"):
        values[name] = tuple(values[name])
    return EngineTotals(**values)


def _step(update: Update, before: EngineTotals, after: EngineTotals, now: float) -> StepRecord:
    decoding = after.request_steps - before.request_steps
    prompt = after.prefill_tokens - before.prefill_tokens
    return StepRecord(
        at=now,
        step_s=update.step_s,
        sequences=decoding,
        started=sum(output.tokens > 0 for output in update.outputs) - decoding,
        prompt_tokens=prompt,
        decode_tokens=after.decode_tokens - before.decode_tokens,
        drafts=after.drafts - before.drafts,
        drafted=after.drafted - before.drafted,
        accepted=after.accepted - before.accepted,
    )


async def _end(process: Process) -> str:
    """Wait for a process that should be ending, kill it when it does not, and say how it ended."""
    try:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), STOP_GRACE_S)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    status = await process.wait()
    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    return f"engine process {process.pid} {how}"
