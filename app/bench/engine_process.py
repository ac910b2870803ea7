"""One engine in a process of its own, started, asked and ended by the bench."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from autoscaling.types import Capabilities
from deployments.bench_engine import SETTINGS_REFUSED, Taken
from deployments.config import PoolSettings

START_LIMIT_S = 900.0  # a large model from a slow disk
STOP_LIMIT_S = 20.0
LOOK_LIMIT_S = 30.0
SILENCE_LIMIT_S = 300.0  # between two chunks of an answer: a prompt in a full queue
LAST_LINES = 8


class BenchEngineError(Exception):
    """An engine did not start, ended, or refused; the message says what to do."""


class EngineProcess:
    """A running engine; end it with `stop`, whatever happens."""

    def __init__(self, process: Process, port: int, log: Path, name: str) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.name = name
        self.log = log
        self.start_s = 0.0  # from the start of the process until it served
        self._process = process
        self._known: Capabilities | None = None
        self.session = aiohttp.ClientSession(
            base_url=self.url + "/",
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_read=SILENCE_LIMIT_S),
        )

    @classmethod
    async def start(
        cls, pool: PoolSettings, cores: tuple[int, ...], say: Callable[[str], None], log: Path
    ) -> EngineProcess:
        """Start an engine of this pool on these CPU cores, and wait until it serves.

        What it prints goes to the file `log`.  Raises BenchEngineError, and leaves no process behind.
        """
        began = time.monotonic()
        with socket.create_server(("127.0.0.1", 0), backlog=1024) as listening, log.open("ab") as out:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "deployments.bench_engine"),
                *("--socket", str(listening.fileno()), "--cores", ",".join(map(str, cores))),
                env=_environment(pool),
                pass_fds=(listening.fileno(),),
                stdin=PIPE,
                stdout=out,
                stderr=out,
                start_new_session=True,  # Ctrl-C is the bench's
            )
            engine = cls(process, listening.getsockname()[1], log, pool.role.value)
        try:
            engine._known = await engine._wait_ready()
        except BaseException:
            await engine.stop()
            raise
        engine.start_s = time.monotonic() - began
        say(f"the {engine.name} engine serves after {engine.start_s:.0f} s")
        return engine

    @property
    def capabilities(self) -> Capabilities:
        """What the engine says of itself."""
        assert self._known is not None
        return self._known

    async def take(self) -> Taken:
        """Steps and finished requests since the last call; raises BenchEngineError."""
        return msgspec.json.decode(await self._call("POST", "bench/take"), type=Taken)

    async def set_draft_lengths(self, table: Sequence[int]) -> None:
        """Draft `table[b]` tokens while b sequences run; its length is `max_num_seqs` + 1.

        Raises BenchEngineError when the engine does not take it.
        """
        await self._call("PUT", "bench/draft-lengths", list(table))

    async def set_draft_length(self, length: int) -> None:
        """Draft `length` tokens at every batch; raises BenchEngineError."""
        await self.set_draft_lengths([0] + [length] * self.capabilities.max_num_seqs)

    async def stop(self) -> float:
        """End the engine, and return how many seconds that took; never raises for a dead one."""
        began = time.monotonic()
        await self.session.close()
        if self._process.returncode is None:
            assert self._process.stdin is not None
            self._process.stdin.close()  # the child's sign to end
            try:
                async with asyncio.timeout(STOP_LIMIT_S):
                    await self._process.wait()
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()
                await self._process.wait()
        return time.monotonic() - began

    async def _wait_ready(self) -> Capabilities:
        """The first answer; the socket takes the question long before."""
        asking = asyncio.ensure_future(self._facts())
        ending = asyncio.ensure_future(self._process.wait())
        try:
            done, _ = await asyncio.wait(
                {asking, ending}, timeout=START_LIMIT_S, return_when=asyncio.FIRST_COMPLETED
            )
            if ending in done:
                raise BenchEngineError(self._why_it_ended())
            if asking not in done:
                raise BenchEngineError(
                    f"the {self.name} engine does not serve after {START_LIMIT_S:.0f} s: "
                    f"its words are in {self.log}"
                )
            return asking.result()
        finally:
            for task in (asking, ending):
                task.cancel()
            await asyncio.gather(asking, ending, return_exceptions=True)

    async def _facts(self) -> Capabilities:
        while True:
            try:
                limit = aiohttp.ClientTimeout(total=None)
                async with self.session.get("bench/facts", timeout=limit) as response:
                    return msgspec.json.decode(await response.read(), type=Capabilities)
            except aiohttp.ClientError:
                await asyncio.sleep(0.2)  # it is ending, or begins to serve just now

    async def _call(self, method: str, path: str, body: Any = None) -> bytes:
        limit = aiohttp.ClientTimeout(total=LOOK_LIMIT_S)
        try:
            async with self.session.request(method, path, json=body, timeout=limit) as response:
                found = await response.read()
                if response.status == 200:
                    return found
                words = msgspec.json.decode(found).get("error", response.status)
        except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError) as error:
            words = str(error) or type(error).__name__
            if self._process.returncode is not None:
                words = self._why_it_ended()
        raise BenchEngineError(f"the {self.name} engine: {words}")

    def _why_it_ended(self) -> str:
        status = self._process.returncode
        lines = [line for line in _tail(self.log) if line.strip()]
        if status == SETTINGS_REFUSED and lines:
            return lines[-1]
        how = f"signal {-status}" if status is not None and status < 0 else f"status {status}"
        words = "\n  ".join(lines[-LAST_LINES:])
        return f"the {self.name} engine ended with {how}; its last words, all are in {self.log}:\n  {words}"


def _environment(pool: PoolSettings) -> dict[str, str]:
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    return {**os.environ, **pool.to_env(), "PYTHONPATH": path}


def _tail(log: Path) -> list[str]:
    try:
        data = log.read_bytes()[-20_000:]
    except OSError:
        return []
    return data.decode(errors="replace").splitlines()
