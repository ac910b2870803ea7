"""One attempt at one replica: connect, send, wait for the first byte; how it can fail decides what follows.

AttemptError
├── NotAccepted   the replica never took the request: another may be tried for free
├── Lost          it took the request and was lost before the first byte: one retry
└── Silent        it sent nothing for too long: no retry, the work may still be running
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

from autoscaling.types import ReplicaView

CONNECT_LIMIT_S = 1.0
IDLE_KEPT_S = 60.0  # below the replica's own limit, which then never closes under a new request
# A node that vanished without a word is noticed after 5 + 3 x 5 s.
PROBE_OPTIONS = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 20_000}

NOT_ACCEPTED = "x-twinpool-not-accepted"
LOST = "x-twinpool-lost"
HOP = {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"}
OURS = {b"date", b"server", b"x-request-id"}
DROPPED = frozenset(HOP | OURS)  # of a replica's answer

RawHeaders = Sequence[tuple[bytes, bytes]]


class AttemptError(Exception):
    """An attempt that gave no byte of an answer."""


class NotAccepted(AttemptError):  # noqa: N818  # an outcome, not a fault
    """The request was not taken; `unreachable` when there was not even a connection."""

    def __init__(self, why: str, unreachable: bool) -> None:
        super().__init__(why)
        self.unreachable = unreachable


class Lost(AttemptError):  # noqa: N818
    """The request was taken, and the replica or its engine went away before the first byte."""


class Silent(AttemptError):  # noqa: N818
    """Nothing came for the time allowed."""

    def __init__(self, why: str, limit_s: float) -> None:
        super().__init__(why)
        self.limit_s = limit_s


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What is sent to a replica; the same bytes for every attempt."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Upstream:
    """HTTP connections to the replicas; `close` when done."""

    def __init__(self, first_byte_limit_s: float, between_chunks_s: float) -> None:
        self._first_byte_limit_s = first_byte_limit_s
        self._between_chunks_s = between_chunks_s
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=IDLE_KEPT_S, socket_factory=_socket, enable_cleanup_closed=False
            ),
            # Reading is limited here: aiohttp starts its own limit for the next bytes when bytes come,
            # so that a new one would not hold for the silence behind the first.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_LIMIT_S, sock_read=None),
            auto_decompress=False,
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    async def open(self, replica: ReplicaView, request: Outgoing) -> OpenAnswer:
        """Send `request` to `replica`; returns at the first byte of an answer.

        Raises an AttemptError.  The caller must `close` the answer.
        """
        url = f"http://{replica.host}:{replica.port}{request.path}"
        headers = [
            *request.headers,
            ("x-twinpool-token", replica.token),
            ("x-twinpool-replica", replica.replica_id),
        ]
        try:
            async with asyncio.timeout(self._first_byte_limit_s):
                response = await self._session.request(
                    request.method, url, data=request.body or None, headers=headers, allow_redirects=False
                )
        except aiohttp.ClientConnectorError as error:
            raise NotAccepted(f"cannot connect: {error.os_error}", unreachable=True) from error
        except aiohttp.ConnectionTimeoutError as error:
            raise NotAccepted("cannot connect: timed out", unreachable=True) from error
        except TimeoutError as error:
            raise Silent("no answer within the longest generation", self._first_byte_limit_s) from error
        except (aiohttp.ClientError, OSError) as error:
            raise Lost(f"{type(error).__name__}: {error}") from error
        return await self._begin(response)

    async def _begin(self, response: aiohttp.ClientResponse) -> OpenAnswer:
        not_accepted, lost = response.headers.get(NOT_ACCEPTED), response.headers.get(LOST)
        if not_accepted is not None:
            await _finish(response)
            raise NotAccepted(not_accepted, unreachable=not_accepted == "failed")
        if lost is not None:
            await _finish(response)
            raise Lost(lost)
        try:
            async with asyncio.timeout(self._between_chunks_s):
                first = await response.content.readany()
        except BaseException as error:
            response.close()
            if isinstance(error, TimeoutError):
                raise Silent("headers came, no byte of the answer", self._between_chunks_s) from error
            if isinstance(error, aiohttp.ClientError | OSError):
                raise Lost(f"{type(error).__name__}: {error}") from error
            raise
        return OpenAnswer(response, first, self._between_chunks_s)


class OpenAnswer:
    """An answer whose first bytes are here."""

    def __init__(self, response: aiohttp.ClientResponse, first: bytes, between_chunks_s: float) -> None:
        self._response = response
        self._between_chunks_s = between_chunks_s
        self.first = first
        self.status = response.status
        self.headers: RawHeaders = [
            (name.lower(), value) for name, value in response.raw_headers if name.lower() not in DROPPED
        ]
        self.is_event_stream = response.headers.get("content-type", "").startswith("text/event-stream")

    async def rest(self) -> AsyncIterator[bytes]:
        """Bytes after the first; raises Lost or Silent when they break off."""
        try:
            while True:
                async with asyncio.timeout(self._between_chunks_s):
                    piece = await self._response.content.readany()
                if not piece:
                    return
                yield piece
        except TimeoutError as error:
            raise Silent("the stream went silent", self._between_chunks_s) from error
        except (aiohttp.ClientError, OSError) as error:
            raise Lost(f"{type(error).__name__}: {error}") from error

    async def complete(self, longest: int) -> bool:
        """Read the rest into `first`; False for one that breaks off, or is longer than `longest` bytes."""
        try:
            async for piece in self.rest():
                self.first += piece
                if len(self.first) > longest:
                    return False
        except (Lost, Silent):
            return False
        return True

    def close(self) -> None:
        """Free the connection; an unfinished answer is cut, which tells the replica to stop."""
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()


async def _finish(response: aiohttp.ClientResponse) -> None:
    """Read a refusal to its end, so that the connection can serve again; else close it."""
    try:
        async with asyncio.timeout(CONNECT_LIMIT_S):
            await response.read()
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass
    finally:
        response.close()  # without effect after the end


def _socket(address: Any) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in PROBE_OPTIONS.items():
        option = getattr(socket, name, None)  # some systems lack one or another
        if option is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made
