"""One engine outside Ray, for measurements: `python -m deployments.bench_engine`.

The pool's settings come in the environment, as for a replica; the listening socket is inherited.  Serves the
engine's OpenAI app on it, and beside it what a measurement needs:

GET  /bench/facts          what this engine is
POST /bench/take           the steps and finished requests since the last call
PUT  /bench/draft-lengths  K by the number of running sequences, in force from the next step on

It ends when its standard input does, so it never outlives who started it.  Exit status: 0 asked to end,
3 the settings cannot work, 4 the engine did not start; the last line on standard error says why.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any

import msgspec
import uvicorn
from starlette.requests import Request
from starlette.responses import Response

from autoscaling.types import Capabilities, FinishedRequest
from deployments.config import PoolSettings
from deployments.engine import (
    DraftLengthError,
    Engine,
    EngineConfigError,
    EngineError,
    Receive,
    Scope,
    Send,
    StepRecord,
)
from deployments.start_engine import make_engine

SETTINGS_REFUSED = 3
NOT_STARTED = 4
MOST_KEPT = 200_000  # steps, and finished requests: nobody has asked for them for hours

_encoder = msgspec.json.Encoder()


class Taken(msgspec.Struct, frozen=True):
    """What the engine has done since the last call."""

    steps: list[StepRecord]
    finished: list[FinishedRequest]


class Bench:
    """The engine's app with the measurement's own paths beside it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._steps: list[StepRecord] = []
        self._finished: list[FinishedRequest] = []
        engine.recorder.on_step = self._step
        engine.recorder.on_finished = self._finish

    def _step(self, record: StepRecord) -> None:
        if len(self._steps) < MOST_KEPT:
            self._steps.append(record)

    def _finish(self, record: FinishedRequest) -> None:
        if len(self._finished) < MOST_KEPT:
            self._finished.append(record)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "http" and scope["path"].startswith("/bench/"):
            response = await self._own(Request(scope, receive))
            await response(scope, receive, send)
        else:
            await self._engine.app(scope, receive, send)

    async def _own(self, request: Request) -> Response:
        match request.method, request.url.path:
            case "GET", "/bench/facts":
                return _json(self._engine.capabilities)
            case "POST", "/bench/take":
                taken, self._steps, self._finished = Taken(self._steps, self._finished), [], []
                return _json(taken)
            case "PUT", "/bench/draft-lengths":
                return await self._draft_lengths(await request.body())
            case _:
                return _json({"error": f"no {request.method} {request.url.path} here"}, 404)

    async def _draft_lengths(self, body: bytes) -> Response:
        change = getattr(self._engine, "set_draft_lengths", None)
        if change is None:
            return _json({"error": "the draft length of this engine is fixed"}, 409)
        try:
            await change(msgspec.json.decode(body, type=list[int]))
        except (msgspec.ValidationError, msgspec.DecodeError, DraftLengthError) as error:
            return _json({"error": str(error)}, 409)
        return _json({})


def _json(found: Capabilities | Taken | dict[str, Any], status: int = 200) -> Response:
    return Response(_encoder.encode(found), status, media_type="application/json")


async def serve(settings: PoolSettings, cores: tuple[int, ...], listening: socket.socket) -> None:
    """Start the engine and serve until standard input ends; raises EngineError when it does not start."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _look_for_end, ended)
    engine = await make_engine(settings, cores, oversubscribed=False)
    starting = asyncio.ensure_future(engine.start())
    gone = asyncio.ensure_future(ended.wait())
    try:
        await asyncio.wait({starting, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            return
        starting.result()
        config = uvicorn.Config(
            Bench(engine),
            interface="asgi3",
            lifespan="off",
            access_log=False,
            log_config=None,
            log_level="warning",
            timeout_keep_alive=3600,
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        server.capture_signals = contextlib.nullcontext
        serving = asyncio.ensure_future(server.serve(sockets=[listening]))
        await asyncio.wait({serving, gone}, return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        await serving
    finally:
        gone.cancel()
        await engine.stop()


def _look_for_end(ended: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        ended.set()


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve one engine; see the module for the exit status."""
    parser = argparse.ArgumentParser(prog="python -m deployments.bench_engine", description=__doc__)
    parser.add_argument("--socket", type=int, required=True, help="number of the inherited listening socket")
    parser.add_argument("--cores", default="", help="CPU cores, such as 0,1; all of them without")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who started this; its end is ours
    cores = tuple(int(core) for core in given.cores.split(",") if core)
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)  # with its children: neither engine is measured on the other's core
    with socket.socket(fileno=given.socket) as listening:
        try:
            asyncio.run(serve(PoolSettings.from_env(), cores, listening))
        except EngineError as error:
            sys.stderr.write(f"\n{error}\n")
            return SETTINGS_REFUSED if isinstance(error, EngineConfigError) else NOT_STARTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
