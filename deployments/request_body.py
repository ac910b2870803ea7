"""Reading a request body from ASGI messages, with a limit."""

from __future__ import annotations

from deployments.engine import Receive


class BodyTooLargeError(Exception):
    """The caller sends more than is read here."""


async def read_body(receive: Receive, limit_bytes: int) -> bytes | None:
    """The whole body; None when the caller left first.  Raises BodyTooLargeError above the limit."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit_bytes:
            raise BodyTooLargeError
        if not message.get("more_body", False):
            return b"".join(parts)
