"""The errors of the simulated app, in the words and shapes of vLLM's OpenAI server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

ENGINE_DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."
MAX_REPORTED = 10  # validation errors in one answer
UNION_BRANCHES = ("str", "int", "float", "bool", "list", "dict", "Part")


class ApiError(Exception):
    """An answer other than the one asked for."""

    def __init__(self, status: HTTPStatus, kind: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.param = param

    @property
    def body(self) -> dict[str, Any]:
        """The error object; `code` is a number, as with vLLM."""
        return {
            "error": {
                "message": self.message,
                "type": self.kind,
                "param": self.param,
                "code": self.status.value,
            }
        }


def invalid(message: str, param: str | None = None, value: object = None) -> ApiError:
    """Refuse a bad value; vLLM appends the parameter and the value to its message."""
    extras = [
        f"{name}={shown}" for name, shown in (("parameter", param), ("value", value)) if shown is not None
    ]
    suffix = f" ({', '.join(extras)})" if extras else ""
    return ApiError(HTTPStatus.BAD_REQUEST, "BadRequestError", message + suffix, param)


def unreadable(errors: Sequence[Mapping[str, Any] | str]) -> ApiError:
    """Refuse a request of the wrong form; `errors` are pydantic's, or plain sentences."""
    first = errors[0]
    param = None if isinstance(first, str) else _path(first["loc"])
    lines = [f"  {error if isinstance(error, str) else _line(error)}" for error in errors[:MAX_REPORTED]]
    if len(errors) > MAX_REPORTED:
        lines.append(f"  ...and {len(errors) - MAX_REPORTED} more errors")
    label = "error" if len(errors) == 1 else "errors"
    message = "\n".join([f"{len(errors)} validation {label}:", *lines])
    return ApiError(HTTPStatus.BAD_REQUEST, HTTPStatus.BAD_REQUEST.phrase, message, param)


def unknown_model(model: str, served: Sequence[str]) -> ApiError:
    """Refuse a model that is not served here."""
    message = f"The model `{model}` does not exist. Valid aliases: {', '.join(served)}."
    return ApiError(HTTPStatus.NOT_FOUND, "NotFoundError", message, "model")


def too_long(tokens: int, max_model_len: int) -> ApiError:
    """Refuse a prompt that does not fit into the context."""
    return invalid(
        f"This model's maximum context length is {max_model_len} tokens. However, your prompt contains "
        f"{tokens} input tokens, which exceeds this limit even without any output tokens. "
        "Please reduce the length of the input prompt.",
        "input_tokens",
        tokens,
    )


def engine_dead() -> ApiError:
    """Say that the engine is dead."""
    return ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalServerError", ENGINE_DEAD)


def plain_http(status: int, detail: str) -> ApiError:
    """Word an error of the web framework: no such path, no such method."""
    return ApiError(HTTPStatus(status), HTTPStatus(status).phrase, detail)


def _line(error: Mapping[str, Any]) -> str:
    shown = {key: error[key] for key in ("type", "loc", "msg", "input", "ctx") if key in error}
    shown["loc"] = _path(error["loc"])
    if len(str(shown.get("input"))) > 200:
        shown["input"] = f"<{type(error['input']).__name__}>"
    return str(shown)


def _path(loc: Sequence[str | int]) -> str:
    """Name a field by its path, without the branches of unions that pydantic spells out in it."""
    return ".".join(str(part) for part in loc if str(part) not in UNION_BRANCHES and "[" not in str(part))
