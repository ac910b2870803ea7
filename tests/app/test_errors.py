"""The ingress's errors: one exception, the catalogue's answer inside, words for the caller."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from app import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

ALL = [
    (errors.invalid_json("trailing comma (byte 3)"), 400, "invalid_json", None),
    (errors.invalid_body(), 400, "invalid_body", None),
    (errors.unsupported_media_type("text/plain"), 415, "unsupported_media_type", None),
    (errors.unsupported_media_type(""), 415, "unsupported_media_type", None),
    (errors.invalid_value("service_tier", "gold", ["auto"]), 400, "invalid_value", "service_tier"),
    (errors.invalid_type("model", "a string"), 400, "invalid_value", "model"),
    (errors.unknown_field("until", ["for_s"]), 400, "invalid_value", "until"),
    (errors.refused_field("for_s", "for_s: too long."), 400, "invalid_value", "for_s"),
    (errors.refused_field(None, "Give one of the two."), 400, "invalid_request", None),
    (errors.admin_not_allowed("No keys."), 403, "admin_not_allowed", None),
    (errors.nothing_named("There is no revision 9.", "revision"), 404, "not_found", "revision"),
    (errors.conflict("A hold stands."), 409, "conflict", None),
    (errors.no_controller("it is restarting", changing=True), 503, "not_ready", None),
    (errors.parameter_not_supported(["min_p"]), 400, "parameter_not_supported", "min_p"),
    (errors.parameter_not_supported(["min_p", "logit_bias"]), 400, "parameter_not_supported", None),
    (errors.unsafe_parameter("chat_template"), 400, "unsafe_parameter", "chat_template"),
    (errors.model_not_found("nope", ["m"]), 404, "model_not_found", "model"),
    (errors.not_found("/v2"), 404, "not_found", None),
    (errors.method_not_allowed("PUT", ["POST"]), 405, "method_not_allowed", None),
    (errors.request_too_large(1024), 413, "request_too_large", None),
    (errors.no_capacity(2), 503, "no_capacity", None),
    (errors.not_ready("the first snapshot"), 503, "not_ready", None),
    (errors.replica_lost(), 502, "replica_lost", None),
    (errors.stream_interrupted(), 502, "stream_interrupted", None),
    (errors.engine_hung(), 504, "engine_hung", None),
    (errors.upstream_timeout(30), 504, "upstream_timeout", None),
    (errors.internal_error(), 500, "internal_error", None),
]


@pytest.mark.parametrize(("error", "status", "code", "param"), ALL)
def test_each_error_answers_with_its_entry(
    error: errors.ApiError, status: int, code: str, param: str | None
) -> None:
    """Status, code and param come out as the catalogue says, with a message, as an exception and as bytes."""
    told = json.loads(errors.body(error))["error"]
    assert (status, code) == (error.status, error.code.value)
    assert (code, param) == (told["code"], told["param"])
    assert told["message"]
    assert errors.event(error) == b"data: " + errors.body(error) + b"\n\n"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.no_capacity(0.2), b"1"),
        (errors.no_capacity(float("nan")), b"1"),
        (errors.no_capacity(1e9), b"120"),
        (errors.not_ready("x"), b"5"),
        (errors.internal_error(), None),
        (errors.model_not_found("nope", ["m"]), None),
    ],
)
def test_retry_after(error: errors.ApiError, expected: bytes | None) -> None:
    """Retry-After is whole seconds from 1 to 120, and only where waiting helps."""
    assert expected == dict(errors.headers(error)).get(b"retry-after")


def test_unknown_model_is_permanent() -> None:
    """An unknown model tells the client not to try again, and which names there are."""
    error = errors.model_not_found("nope", ["m", "m:batch"])
    assert dict(errors.headers(error))[b"x-should-retry"] == b"false"
    assert error.answer.message == "The model 'nope' does not exist. Served here: m, m:batch."


def test_allow_header() -> None:
    """A 405 lists what the path takes."""
    error = errors.method_not_allowed("PUT", ["GET", "HEAD"])
    assert dict(errors.headers(error))[b"allow"] == b"GET, HEAD"


def test_echoed_values_are_short_and_printable() -> None:
    """What the caller sent is repeated quoted, escaped and cut: no control characters, no flood."""
    message = errors.not_found("/\x00\ud800" + "a" * 500).answer.message
    assert message.isascii()
    assert message.isprintable()
    assert len(message) < 150


def test_errors_survive_a_context_manager() -> None:
    """Raising through a generator-based context manager keeps the error as it is."""

    @contextmanager
    def through() -> Iterator[None]:
        yield

    with pytest.raises(errors.ApiError) as caught, through():
        raise errors.replica_lost()
    assert caught.value.code is errors.Code.REPLICA_LOST
