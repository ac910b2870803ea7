"""Replicas as an ingress meets them: HTTP servers on loopback whose every byte a test decides."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from autoscaling.types import ReplicaView, Role
from tests.app.views import view

EVENT = b'data: {"id":"x","choices":[]}\n\n'
DONE = b"data: [DONE]\n\n"
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
)


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came in, header names in lower case."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Connection:
    """The server's end of one connection."""

    writer: asyncio.StreamWriter
    gone: asyncio.Event = field(default_factory=asyncio.Event)  # the ingress has closed it

    async def write(self, *parts: bytes) -> None:
        for part in parts:
            self.writer.write(part)
            with contextlib.suppress(ConnectionError):
                await self.writer.drain()

    def close(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        """Close with RST, as a killed process with unread input does."""
        made = self.writer.get_extra_info("socket")
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Behaviour = Callable[[Connection], Awaitable[None]]


def chunk(raw: bytes) -> bytes:
    """`raw` as one chunk of a chunked body; empty for the last one."""
    return f"{len(raw):x}\r\n".encode() + raw + b"\r\n"


def whole(status: int = 200, body: bytes = b'{"id":"x"}', **headers: str) -> bytes:
    """A complete answer."""
    lines = [f"HTTP/1.1 {status} X", "content-type: application/json", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def says(*parts: bytes) -> Behaviour:
    """Write these bytes and keep the connection."""

    async def behave(connection: Connection) -> None:
        await connection.write(*parts)

    return behave


def says_and_closes(*parts: bytes) -> Behaviour:
    """Write these bytes and close the connection."""

    async def behave(connection: Connection) -> None:
        await connection.write(*parts)
        connection.close()

    return behave


def says_and_waits(*parts: bytes) -> Behaviour:
    """Write these bytes, and then nothing until the ingress closes the connection."""

    async def behave(connection: Connection) -> None:
        await connection.write(*parts)
        await connection.gone.wait()

    return behave


def streams(*pieces: bytes) -> Behaviour:
    """A complete event stream."""
    return says(STREAM_HEAD, *(chunk(piece) for piece in pieces), chunk(b""))


class Replica:
    """One replica: remembers its requests, and answers as `behave` says."""

    def __init__(self, replica_id: str, behave: Behaviour, role: Role = Role.PLAIN) -> None:
        self.replica_id = replica_id
        self.behave = behave
        self.role = role
        self.requests: list[Received] = []
        self.connections: list[Connection] = []
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self) -> Replica:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in tuple(self._open):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await task

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    def view(
        self, *, seq: int = 1, inflight: int = 0, accepting: bool = True, refuses: tuple[str, ...] = ()
    ) -> ReplicaView:
        """What the controller's snapshot says of it."""
        made = view(
            self.replica_id, self.role, seq=seq, inflight=inflight, accepting=accepting, refuses=refuses
        )
        return replace(made, host="127.0.0.1", port=self.port, token=f"token-{self.replica_id}")

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        connection = Connection(writer)
        self.connections.append(connection)
        try:
            while True:
                self.requests.append(await _read(reader))
                watching = asyncio.create_task(_watch(reader, connection))
                await self.behave(connection)
                watching.cancel()
        except (asyncio.IncompleteReadError, ConnectionError):
            connection.gone.set()
        except asyncio.CancelledError:
            pass  # the test has ended
        finally:
            self._open.discard(task)
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.removesuffix("\r\n\r\n").split("\r\n")
    pairs = [entry.split(": ", 1) for entry in rest]
    headers = {name.lower(): value for name, value in pairs}
    assert len(headers) == len(pairs), f"a header came twice: {rest}"
    return Received(line, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


async def _watch(reader: asyncio.StreamReader, connection: Connection) -> None:
    """Nobody sends while waiting for an answer: the only news is the end."""
    with contextlib.suppress(ConnectionError):
        await reader.read(1)
    connection.gone.set()
