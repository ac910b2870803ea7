"""The errors that end a request in the ingress; built on the catalogue shared with the replicas.

    ApiError                          one exception; `answer.code` says which
    ├── the caller's to mend          400 invalid_json, invalid_body, invalid_value, invalid_request,
    │   (permanent)                       parameter_not_supported, unsafe_parameter,
    │                                     context_length_exceeded
    │                                 403 admin_not_allowed             405 method_not_allowed
    │                                 404 model_not_found, not_found    409 conflict
    │                                 413 request_too_large             415 unsupported_media_type
    ├── come back later               429 rate_limit_exceeded
    │   (Retry-After)                 503 no_capacity, not_ready, engine_dead
    └── ours, may be sent again       500 internal_error                504 engine_hung, upstream_timeout
                                      502 replica_lost, stream_interrupted

The functions below hold the words that a caller reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from deployments import errors as catalogue
from deployments.errors import CATALOGUE, Code, ErrorAnswer, ErrorType, normalise

__all__ = [
    "CATALOGUE",
    "ApiError",
    "Code",
    "ErrorAnswer",
    "ErrorType",
    "body",
    "event",
    "headers",
    "normalise",
]

_ECHO: Final = 80  # characters of the caller's own value repeated in a message


class ApiError(Exception):
    """A request ends here with this answer.

    Not frozen itself, since raising writes to an exception; the answer is.
    """

    def __init__(self, answer: ErrorAnswer) -> None:
        super().__init__(f"{answer.code}: {answer.message}")
        self.answer: Final = answer

    @property
    def code(self) -> Code:
        """Which error, as the word the client tests for."""
        return self.answer.code

    @property
    def status(self) -> int:
        """The HTTP status, where no byte has been sent yet."""
        return self.answer.status


def body(error: ApiError) -> bytes:
    """Write the OpenAI error object, always with its four keys."""
    return catalogue.body(error.answer)


def headers(error: ApiError) -> list[tuple[bytes, bytes]]:
    """List the headers of the answer, content type and length included."""
    return catalogue.headers(error.answer)


def event(error: ApiError) -> bytes:
    """Write the one event that a broken stream ends with."""
    return catalogue.event(error.answer)


def invalid_json(reason: str) -> ApiError:
    """Say that the body is not JSON; `reason` carries the position."""
    return _error(Code.INVALID_JSON, f"The request body is not valid JSON: {reason}.")


def invalid_body() -> ApiError:
    """Say that the body is JSON, but no object."""
    return _error(Code.INVALID_BODY, "The request body must be a JSON object.")


def unsupported_media_type(content_type: str) -> ApiError:
    """Say that the content type is missing or is not JSON."""
    sent = f"not {_echo(content_type)}" if content_type else "but there is none"
    return _error(Code.UNSUPPORTED_MEDIA_TYPE, f"Content-Type must be application/json, {sent}.")


def invalid_value(param: str, value: str, allowed: Iterable[str]) -> ApiError:
    """Say that a header or field that routing acts on has a value outside its list."""
    words = ", ".join(allowed)
    return _error(Code.INVALID_VALUE, f"{param} must be one of {words}, not {_echo(value)}.", param)


def invalid_type(param: str, expected: str) -> ApiError:
    """Say that a field that only the ingress reads has the wrong type."""
    return _error(Code.INVALID_VALUE, f"{param} must be {expected}.", param)


def unknown_field(param: str, known: Iterable[str]) -> ApiError:
    """Say that a body of the operator has a field that nobody reads."""
    words = ", ".join(known)
    return _error(
        Code.INVALID_VALUE, f"There is no field {_echo(param)} here; fields: {words}.", param[:_ECHO]
    )


def refused_field(param: str | None, reason: str) -> ApiError:
    """Say what is wrong with what the operator asks for; without `param`, with no single field."""
    return _error(Code.INVALID_REQUEST if param is None else Code.INVALID_VALUE, reason, param)


def admin_not_allowed(reason: str) -> ApiError:
    """Say why nothing may be changed by this request, and what would be allowed."""
    return _error(Code.ADMIN_NOT_ALLOWED, reason)


def conflict(reason: str) -> ApiError:
    """Say what of the present state stands against what the operator asks for."""
    return _error(Code.CONFLICT, reason)


def nothing_named(reason: str, param: str | None = None) -> ApiError:
    """Say that there is no such revision, override or record."""
    return _error(Code.NOT_FOUND, reason, param)


def parameter_not_supported(parameters: Iterable[str]) -> ApiError:
    """Say that no replica which may serve this request takes all of its parameters."""
    names = sorted(parameters)
    message = f"No replica that may serve this request supports {' and '.join(names)}."
    return _error(Code.PARAMETER_NOT_SUPPORTED, message, names[0] if len(names) == 1 else None)


def unsafe_parameter(param: str) -> ApiError:
    """Say that the caller sent a program for us to run."""
    return _error(Code.UNSAFE_PARAMETER, f"{param} is not accepted from a request.", param)


def model_not_found(model: str, served: Iterable[str]) -> ApiError:
    """Say that no replica serves a model of this name."""
    names = ", ".join(served)
    return _error(
        Code.MODEL_NOT_FOUND, f"The model {_echo(model)} does not exist. Served here: {names}.", "model"
    )


def not_found(path: str) -> ApiError:
    """Say that there is no such path."""
    return _error(Code.NOT_FOUND, f"There is nothing at {_echo(path)}.")


def method_not_allowed(method: str, allowed: Iterable[str]) -> ApiError:
    """Say that the path exists and takes other methods."""
    words = ", ".join(allowed)
    message = f"{_echo(method)} is not allowed here; allowed: {words}."
    return ApiError(catalogue.answer(Code.METHOD_NOT_ALLOWED, message, allow=words))


def request_too_large(limit_bytes: int) -> ApiError:
    """Say that the body is longer than the ingress reads."""
    return _error(Code.REQUEST_TOO_LARGE, f"The request body is larger than {limit_bytes} bytes.")


def context_length_exceeded(limit: int, found: int) -> ApiError:
    """Say that a prompt of token ids does not fit."""
    message = f"This model's maximum context length is {limit} tokens, the prompt has {found} token ids."
    return _error(Code.CONTEXT_LENGTH_EXCEEDED, message, "prompt")


def no_capacity(retry_after_s: float) -> ApiError:
    """Say that every replica which could serve this is full."""
    message = "All replicas are at their limit."
    return ApiError(catalogue.answer(Code.NO_CAPACITY, message, retry_after_s=retry_after_s))


def queue_full(tier: str, limit: int, retry_after_s: float) -> ApiError:
    """Say that too many requests of this tier wait already."""
    message = f"Too many requests wait: the queue of the {tier} tier holds {limit} sequences and is full."
    return ApiError(catalogue.answer(Code.RATE_LIMIT_EXCEEDED, message, retry_after_s=retry_after_s))


def not_ready(waiting_for: str, retry_after_s: float = 5) -> ApiError:
    """Say that nothing can be served yet."""
    message = f"Not ready: waiting for {waiting_for}."
    return ApiError(catalogue.answer(Code.NOT_READY, message, retry_after_s=retry_after_s))


def stopping() -> ApiError:
    """Say that the service is being taken down."""
    message = "This service is stopping and takes no new requests."
    return ApiError(catalogue.answer(Code.NOT_READY, message))


def no_controller(reason: str, *, changing: bool) -> ApiError:
    """Say that the controller gave no answer; of a change nobody knows whether it was made."""
    unsure = " Whether the change was made is unknown: look at the status before asking again."
    message = (
        f"The controller cannot answer: {reason}.{unsure if changing else ''} Requests are still served."
    )
    return _error(Code.NOT_READY, message)


def replica_lost() -> ApiError:
    """Say that a replica took the request, went away before its first byte, and no retry is left."""
    return _error(Code.REPLICA_LOST, "The replica that held this request was lost before it answered.")


def stream_interrupted() -> ApiError:
    """Say that a replica went away after the first byte: an event, never a retry."""
    return _error(Code.STREAM_INTERRUPTED, "The replica was lost; this answer is incomplete.")


def engine_hung() -> ApiError:
    """Say that the engine has work and makes no step."""
    return _error(Code.ENGINE_HUNG, "The engine that held this request stopped making progress.")


def upstream_timeout(limit_s: float) -> ApiError:
    """Say that the replica was silent for longer than allowed."""
    return _error(Code.UPSTREAM_TIMEOUT, f"The replica sent nothing for {limit_s:g} seconds.")


def internal_error() -> ApiError:
    """Admit a defect of ours; the details are in the log under the request id."""
    return _error(Code.INTERNAL_ERROR, "An internal error occurred.")


def _error(code: Code, message: str, param: str | None = None) -> ApiError:
    return ApiError(catalogue.answer(code, message, param=param))


def _echo(value: str) -> str:
    """Quote the caller's own value, short and printable."""
    return ascii(value if len(value) <= _ECHO else value[:_ECHO] + "...")
