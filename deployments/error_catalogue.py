"""The catalogue of errors that a client can meet, and the value made from an entry; pure.

One entry per code.  The caller's own mistakes are permanent; what another replica or another moment
could mend is not, and says when to come back where we can tell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

MAX_MESSAGE: Final = 2000  # characters; an engine may echo the caller's whole input
RETRY_AFTER_MAX_S: Final = 120


class ErrorType(StrEnum):
    """OpenAI's coarse kind of an error."""

    INVALID_REQUEST = "invalid_request_error"
    NOT_FOUND = "not_found_error"
    RATE_LIMIT = "rate_limit_error"
    SERVER = "server_error"


class Code(StrEnum):
    """What went wrong, as one word that a client can test for; also a metric label."""

    INVALID_JSON = "invalid_json"
    INVALID_BODY = "invalid_body"
    INVALID_VALUE = "invalid_value"
    INVALID_REQUEST = "invalid_request"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    PARAMETER_NOT_SUPPORTED = "parameter_not_supported"
    UNSAFE_PARAMETER = "unsafe_parameter"
    CONTEXT_LENGTH_EXCEEDED = "context_length_exceeded"
    MODEL_NOT_FOUND = "model_not_found"
    ADMIN_NOT_ALLOWED = "admin_not_allowed"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    CONFLICT = "conflict"
    REQUEST_TOO_LARGE = "request_too_large"
    RATE_LIMIT_EXCEEDED = "rate_limit_exceeded"
    NO_CAPACITY = "no_capacity"
    NOT_READY = "not_ready"
    REPLICA_LOST = "replica_lost"
    STREAM_INTERRUPTED = "stream_interrupted"
    ENGINE_DEAD = "engine_dead"
    ENGINE_HUNG = "engine_hung"
    UPSTREAM_TIMEOUT = "upstream_timeout"
    INTERNAL_ERROR = "internal_error"


@dataclass(frozen=True, slots=True)
class Entry:
    """What every error of one code has in common."""

    status: int
    type: ErrorType
    permanent: bool  # repeating the same request cannot help
    retry_after_s: int | None = None


CATALOGUE: Final[Mapping[Code, Entry]] = MappingProxyType(
    {
        Code.INVALID_JSON: Entry(400, ErrorType.INVALID_REQUEST, permanent=True),
        Code.INVALID_BODY: Entry(400, ErrorType.INVALID_REQUEST, permanent=True),
        Code.INVALID_VALUE: Entry(400, ErrorType.INVALID_REQUEST, permanent=True),
        Code.INVALID_REQUEST: Entry(400, ErrorType.INVALID_REQUEST, permanent=True),
        Code.UNSUPPORTED_MEDIA_TYPE: Entry(415, ErrorType.INVALID_REQUEST, permanent=True),
        Code.PARAMETER_NOT_SUPPORTED: Entry(400, ErrorType.INVALID_REQUEST, permanent=True),
        Code.UNSAFE_PARAMETER: Entry(400, ErrorType.INVALID_REQUEST, permanent=True),
        Code.CONTEXT_LENGTH_EXCEEDED: Entry(400, ErrorType.INVALID_REQUEST, permanent=True),
        Code.MODEL_NOT_FOUND: Entry(404, ErrorType.NOT_FOUND, permanent=True),
        Code.ADMIN_NOT_ALLOWED: Entry(403, ErrorType.INVALID_REQUEST, permanent=True),
        Code.NOT_FOUND: Entry(404, ErrorType.NOT_FOUND, permanent=True),
        Code.METHOD_NOT_ALLOWED: Entry(405, ErrorType.INVALID_REQUEST, permanent=True),
        Code.CONFLICT: Entry(409, ErrorType.INVALID_REQUEST, permanent=True),
        Code.REQUEST_TOO_LARGE: Entry(413, ErrorType.INVALID_REQUEST, permanent=True),
        Code.RATE_LIMIT_EXCEEDED: Entry(429, ErrorType.RATE_LIMIT, permanent=False, retry_after_s=1),
        Code.NO_CAPACITY: Entry(503, ErrorType.SERVER, permanent=False, retry_after_s=1),
        Code.NOT_READY: Entry(503, ErrorType.SERVER, permanent=False, retry_after_s=5),
        Code.REPLICA_LOST: Entry(502, ErrorType.SERVER, permanent=False),
        Code.STREAM_INTERRUPTED: Entry(502, ErrorType.SERVER, permanent=False),
        Code.ENGINE_DEAD: Entry(503, ErrorType.SERVER, permanent=False, retry_after_s=1),
        Code.ENGINE_HUNG: Entry(504, ErrorType.SERVER, permanent=False),
        Code.UPSTREAM_TIMEOUT: Entry(504, ErrorType.SERVER, permanent=False),
        Code.INTERNAL_ERROR: Entry(500, ErrorType.SERVER, permanent=False),
    }
)


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """One error as the client will see it."""

    code: Code
    status: int
    type: ErrorType
    message: str
    param: str | None
    permanent: bool
    retry_after_s: int | None  # 1..120
    allow: str | None = None  # methods of a path, for 405


def answer(
    code: Code,
    message: str,
    *,
    param: str | None = None,
    status: int | None = None,
    retry_after_s: float | None = None,
    allow: str | None = None,
) -> ErrorAnswer:
    """Make the catalogue's entry for `code` concrete; `status` and `retry_after_s` overrule it."""
    entry = CATALOGUE[code]
    wait_s = entry.retry_after_s if retry_after_s is None else whole_seconds(retry_after_s)
    text = message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…"
    return ErrorAnswer(code, status or entry.status, entry.type, text, param, entry.permanent, wait_s, allow)


def whole_seconds(seconds: float) -> int:
    """Round up to what Retry-After may say, 1..120; 1 for what is not a number."""
    if math.isnan(seconds):
        return 1
    return math.ceil(min(max(seconds, 1), RETRY_AFTER_MAX_S))
