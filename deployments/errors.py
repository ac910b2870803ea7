"""The errors a client can meet, and how an engine's own become them; pure: no IO, no clock.

Replica and ingress share the catalogue.  `answer` makes an entry concrete; `body`, `headers` and
`event` write it; `normalise` reads what an engine said and finds the entry that fits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final

import msgspec

from deployments.error_catalogue import CATALOGUE, Code, ErrorAnswer, ErrorType, answer, whole_seconds

__all__ = [
    "CATALOGUE",
    "Code",
    "ErrorAnswer",
    "ErrorType",
    "answer",
    "body",
    "event",
    "headers",
    "normalise",
    "whole_seconds",
]


def body(error: ErrorAnswer) -> bytes:
    """Write the OpenAI error object, always with its four keys."""
    fields = {
        "message": _encodable(error.message),
        "type": error.type.value,
        "param": None if error.param is None else _encodable(error.param),
        "code": error.code.value,
    }
    return msgspec.json.encode({"error": fields})


def headers(error: ErrorAnswer) -> list[tuple[bytes, bytes]]:
    """List the headers of the answer whose body is `body(error)`, its length included."""
    found = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body(error))).encode()),
    ]
    if error.retry_after_s is not None:
        found.append((b"retry-after", str(error.retry_after_s).encode()))
    if error.permanent:
        found.append((b"x-should-retry", b"false"))
    if error.allow is not None:
        found.append((b"allow", error.allow.encode("latin-1", "replace")))
    return found


def event(error: ErrorAnswer) -> bytes:
    """Write the one event that a broken stream ends with."""
    return b"data: " + body(error) + b"\n\n"


def _encodable(text: str) -> str:
    """`text` without lone surrogates, which JSON in UTF-8 cannot carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


# --- what an engine said ---------------------------------------------------------------------------

# vLLM's own words (validators, renderers, exception texts); the first pattern that matches wins.
_BY_WORDS: Final = (
    (Code.UNSUPPORTED_MEDIA_TYPE, re.compile(r"unsupported media type")),
    (Code.INVALID_JSON, re.compile(r"json_invalid|json decode error|invalid json format")),
    (Code.CONTEXT_LENGTH_EXCEEDED, re.compile(r"maximum context length|maximum model length|max_model_len")),
    (Code.UNSAFE_PARAMETER, re.compile(r"untrusted chat template")),
    (Code.PARAMETER_NOT_SUPPORTED, re.compile(r"not (?:yet |currently )?supported")),
    (Code.INVALID_BODY, re.compile(r"model_attributes_type|valid dictionary or object")),
)
_BY_STATUS: Final[Mapping[int, Code]] = MappingProxyType(
    {
        405: Code.METHOD_NOT_ALLOWED,
        413: Code.REQUEST_TOO_LARGE,
        415: Code.UNSUPPORTED_MEDIA_TYPE,
        429: Code.RATE_LIMIT_EXCEEDED,
        501: Code.PARAMETER_NOT_SUPPORTED,
        503: Code.NO_CAPACITY,
        504: Code.UPSTREAM_TIMEOUT,
    }
)
_ENGINE_DEAD: Final = re.compile(r"enginecore encountered an issue|enginedead|engine is dead")
_ECHOED_INPUT: Final = re.compile(r"'input':.*")  # pydantic repeats the caller's value; not our evidence
_KEYS: Final = frozenset({"message", "type", "param", "code"})


def normalise(status: int, raw: bytes) -> ErrorAnswer | None:
    """Read an engine's error body as an entry of the catalogue.

    `None` leaves the answer as it is: not an error, or already ours.  An engine's generic 400 and 500
    give way to the status of the code that was recognised; any other status stays.
    """
    if status < 400:
        return None
    try:
        said: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        said = raw.decode("utf-8", "replace")
    if _is_ours(said):
        return None
    message, param = _message_and_param(said)
    message = message.strip() or _phrase(status)
    code = _code(status, message.lower(), param)
    if code is Code.ENGINE_DEAD:
        message = "The engine that held this request died; the request may be sent again."
    if code in (Code.INVALID_JSON, Code.INVALID_BODY) or param == "body":
        param = None
    own = CATALOGUE[code].status if status in (400, 500) else status
    return answer(code, message, param=param, status=own)


def _is_ours(said: Any) -> bool:
    error = said.get("error") if isinstance(said, dict) else None
    if not isinstance(error, dict) or set(error) != _KEYS:
        return False
    return isinstance(error["code"], str) and error["code"] in set(Code)


def _message_and_param(said: Any) -> tuple[str, str | None]:
    """Find the two texts that an error body carries, in any of the shapes that occur."""
    if not isinstance(said, dict):
        return (said if isinstance(said, str) else ""), None
    found = said.get("error", said)  # {"error": {...}}, {"error": "text"}, or flat
    if isinstance(found, str):
        return found, None
    if not isinstance(found, dict):
        return "", None
    detail = found.get("detail")
    if isinstance(detail, list):  # FastAPI's list of validation errors
        items = [item for item in detail if isinstance(item, dict)]
        message = "; ".join(f"{item.get('msg', '')} ({item.get('type', '')})" for item in items[:10])
        where = items[0].get("loc") if items else None
        param = ".".join(str(part) for part in where) if isinstance(where, list) else None
    else:
        message = next((t for t in (found.get("message"), detail) if isinstance(t, str)), "")
        param = found.get("param")
    if not isinstance(param, str) or not param:
        return message, None
    return message, param.removeprefix("body.")[:200]


def _code(status: int, words: str, param: str | None) -> Code:
    if status >= 500 and _ENGINE_DEAD.search(words):
        return Code.ENGINE_DEAD
    if status == 404:
        about_model = param == "model" or ("model" in words and "does not exist" in words)
        return Code.MODEL_NOT_FOUND if about_model else Code.NOT_FOUND
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500:
        return Code.INTERNAL_ERROR
    words = _ECHOED_INPUT.sub("", words)
    for code, pattern in _BY_WORDS:
        if pattern.search(words):
            return code
    return Code.INVALID_VALUE if param or "validation error" in words else Code.INVALID_REQUEST


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return f"HTTP status {status}"
