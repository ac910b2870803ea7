"""The error catalogue, its wire form, and the reading of an engine's own errors."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.errors import (
    CATALOGUE,
    Code,
    ErrorType,
    answer,
    body,
    event,
    headers,
    normalise,
    whole_seconds,
)

CONTEXT = (
    "This model's maximum context length is 2048 tokens. However, your prompt contains at least 2049 input "
    "tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input "
    "prompt. (parameter=input_tokens, value=2049)"
)
TOO_MANY = (
    "max_tokens=9000 cannot be greater than max_model_len=2048. Please request fewer output tokens. "
    "(parameter=max_tokens, value=9000)"
)
SPECULATION = "The min_p and logit_bias sampling parameters are not yet supported with speculative decoding."
TEMPLATE = (
    "Chat template is passed with request, but --trust-request-chat-template is not set. "
    "Refused request with untrusted chat template."
)
JSON_INVALID = "1 validation error:\n  {'type': 'json_invalid', 'loc': 'body.12', 'msg': 'JSON decode error'}"
MEDIA = "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
NOT_OBJECT = (
    "1 validation error:\n  {'type': 'model_attributes_type', 'loc': 'body', 'msg': 'Input should be a valid "
    "dictionary or object to extract fields from', 'input': '<list of 1 items>'}"
)
BAD_FIELD = (
    "1 validation error:\n  {'type': 'float_parsing', 'loc': 'body.temperature', 'msg': 'Input should be a "
    "valid number', 'input': 'this is not supported'}"
)
DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."
BUSY = "The engine is currently busy and cannot accept new requests. Please try again later."


def engine_error(message: str, kind: str, code: int, param: str | None = None) -> bytes:
    return json.dumps({"error": {"message": message, "type": kind, "param": param, "code": code}}).encode()


def test_every_code_has_an_entry() -> None:
    """The catalogue is complete: a code without an entry cannot be answered."""
    assert set(CATALOGUE) == set(Code)


@pytest.mark.parametrize(
    ("code", "status", "kind", "permanent"),
    [
        ("invalid_json", 400, "invalid_request_error", True),
        ("invalid_body", 400, "invalid_request_error", True),
        ("invalid_value", 400, "invalid_request_error", True),
        ("invalid_request", 400, "invalid_request_error", True),
        ("unsupported_media_type", 415, "invalid_request_error", True),
        ("parameter_not_supported", 400, "invalid_request_error", True),
        ("unsafe_parameter", 400, "invalid_request_error", True),
        ("context_length_exceeded", 400, "invalid_request_error", True),
        ("model_not_found", 404, "not_found_error", True),
        ("not_found", 404, "not_found_error", True),
        ("method_not_allowed", 405, "invalid_request_error", True),
        ("request_too_large", 413, "invalid_request_error", True),
        ("rate_limit_exceeded", 429, "rate_limit_error", False),
        ("no_capacity", 503, "server_error", False),
        ("not_ready", 503, "server_error", False),
        ("replica_lost", 502, "server_error", False),
        ("stream_interrupted", 502, "server_error", False),
        ("engine_dead", 503, "server_error", False),
        ("engine_hung", 504, "server_error", False),
        ("upstream_timeout", 504, "server_error", False),
        ("internal_error", 500, "server_error", False),
    ],
)
def test_catalogue(code: str, status: int, kind: str, permanent: bool) -> None:
    """Status, type and permanence of a code are part of the interface."""
    entry = CATALOGUE[Code(code)]
    assert (status, kind, permanent) == (entry.status, entry.type.value, entry.permanent)


def test_429_and_503_say_when_to_come_back() -> None:
    """Every 429 and 503 carries Retry-After, no other status does."""
    for code, entry in CATALOGUE.items():
        assert (entry.status in (429, 503)) == (entry.retry_after_s is not None), code


def test_body_has_all_four_keys() -> None:
    """The error object has message, type, param and code, also where param says nothing."""
    assert json.loads(body(answer(Code.INTERNAL_ERROR, "m"))) == {
        "error": {"message": "m", "type": "server_error", "param": None, "code": "internal_error"}
    }


def test_event_is_one_sse_event() -> None:
    """A broken stream ends with one event that holds the error object."""
    error = answer(Code.STREAM_INTERRUPTED, "line one\nline two")
    assert event(error) == b"data: " + body(error) + b"\n\n"
    assert event(error).count(b"\n") == 2


def test_headers_of_a_permanent_error() -> None:
    """A permanent error tells the client not to retry, and gives no Retry-After."""
    error = answer(Code.MODEL_NOT_FOUND, "x")
    assert headers(error) == [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body(error))).encode()),
        (b"x-should-retry", b"false"),
    ]


def test_headers_of_a_passing_error() -> None:
    """An error that will pass gives Retry-After in whole seconds and does not forbid a retry."""
    found = dict(headers(answer(Code.NO_CAPACITY, "x", retry_after_s=2.1)))
    assert found[b"retry-after"] == b"3"
    assert b"x-should-retry" not in found


def test_405_lists_the_allowed_methods() -> None:
    """A 405 carries the Allow header."""
    assert dict(headers(answer(Code.METHOD_NOT_ALLOWED, "x", allow="GET, HEAD")))[b"allow"] == b"GET, HEAD"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, 1),
        (0.2, 1),
        (1, 1),
        (1.01, 2),
        (120, 120),
        (121, 120),
        (-5, 1),
        (float("inf"), 120),
        (float("-inf"), 1),
        (float("nan"), 1),
    ],
)
def test_retry_after_is_an_integer_from_1_to_120(seconds: float, expected: int) -> None:
    """Odd waits (fractions, negatives, infinities, not a number) become whole seconds in 1..120."""
    assert expected == whole_seconds(seconds)


def test_message_is_bounded() -> None:
    """An engine that echoes the whole input does not make our answer as long."""
    assert len(answer(Code.INVALID_VALUE, "x" * 5000).message) == 2000


@pytest.mark.parametrize(
    ("status", "raw", "expected"),
    [
        (
            400,
            engine_error(CONTEXT, "BadRequestError", 400, "input_tokens"),
            (400, "context_length_exceeded"),
        ),
        (400, engine_error(TOO_MANY, "BadRequestError", 400, "max_tokens"), (400, "context_length_exceeded")),
        (400, engine_error(SPECULATION, "BadRequestError", 400), (400, "parameter_not_supported")),
        (400, engine_error(TEMPLATE, "BadRequestError", 400), (400, "unsafe_parameter")),
        (400, engine_error(JSON_INVALID, "Bad Request", 400, "body.12"), (400, "invalid_json")),
        (400, engine_error(MEDIA, "Bad Request", 400), (415, "unsupported_media_type")),
        (400, engine_error(NOT_OBJECT, "Bad Request", 400, "body"), (400, "invalid_body")),
        (400, engine_error(BAD_FIELD, "Bad Request", 400, "body.temperature"), (400, "invalid_value")),
        (400, engine_error("Client disconnected", "BadRequestError", 400), (400, "invalid_request")),
        (422, engine_error("no", "UnprocessableEntityError", 422, "url"), (422, "invalid_value")),
        (
            404,
            engine_error("The model `nope` does not exist.", "NotFoundError", 404, "model"),
            (404, "model_not_found"),
        ),
        (
            404,
            engine_error("The model `nope` does not exist.", "NotFoundError", 404),
            (404, "model_not_found"),
        ),
        (404, b'{"detail":"Not Found"}', (404, "not_found")),
        (405, b'{"detail":"Method Not Allowed"}', (405, "method_not_allowed")),
        (413, b"too large", (413, "request_too_large")),
        (415, b"", (415, "unsupported_media_type")),
        (429, b"slow down", (429, "rate_limit_exceeded")),
        (500, engine_error(DEAD, "InternalServerError", 500), (503, "engine_dead")),
        (500, engine_error("boom", "InternalServerError", 500), (500, "internal_error")),
        (500, b"Internal Server Error", (500, "internal_error")),
        (502, b"<html>", (502, "internal_error")),
        (501, engine_error("later", "NotImplementedError", 501), (501, "parameter_not_supported")),
        (503, engine_error(BUSY, "Service Unavailable", 503), (503, "no_capacity")),
        (504, b"", (504, "upstream_timeout")),
        (400, b'{"error":"flat"}', (400, "invalid_request")),
        (400, b'{"object":"error","message":"flat","code":400}', (400, "invalid_request")),
        (400, b'{"error":null}', (400, "invalid_request")),
        (599, b"\xff\xfe", (599, "internal_error")),
    ],
)
def test_engine_errors_get_a_code(status: int, raw: bytes, expected: tuple[int, str]) -> None:
    """An engine's error is read by its status, param and words; its own non-generic status stays."""
    found = normalise(status, raw)
    assert found is not None
    assert expected == (found.status, found.code.value)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (engine_error("bad", "Bad Request", 400, "body.response_format.type"), "response_format.type"),
        (engine_error("bad", "BadRequestError", 400, "top_k"), "top_k"),
        (engine_error(JSON_INVALID, "Bad Request", 400, "body.12"), None),
        (engine_error("bad", "Bad Request", 400, "body"), None),
        (b'{"detail":[{"loc":["body","n"],"msg":"Input should be an integer","type":"int_type"}]}', "n"),
        (engine_error("bad", "BadRequestError", 400), None),
    ],
)
def test_param_names_the_request_field(raw: bytes, expected: str | None) -> None:
    """`param` is the field as the caller wrote it, without the framework's `body.`."""
    found = normalise(400, raw)
    assert found is not None
    assert expected == found.param


@pytest.mark.parametrize(
    ("status", "raw", "expected"),
    [
        (400, engine_error("say what", "BadRequestError", 400), "say what"),
        (400, b'{"detail":"as detail"}', "as detail"),
        (400, b'{"detail":[{"loc":["body"],"msg":"a","type":"b"},{"msg":"c","type":"d"}]}', "a (b); c (d)"),
        (500, b"plain text", "plain text"),
        (500, b"", "Internal Server Error"),
        (599, b"", "HTTP status 599"),
        (
            500,
            engine_error(DEAD, "InternalServerError", 500),
            "The engine that held this request died; the request may be sent again.",
        ),
    ],
)
def test_message_is_never_empty(status: int, raw: bytes, expected: str) -> None:
    """The engine's words are kept, the status's phrase stands in for none, a dead engine gets ours."""
    found = normalise(status, raw)
    assert found is not None
    assert expected == found.message


@pytest.mark.parametrize("code", list(Code))
def test_our_own_bodies_are_left_alone(code: Code) -> None:
    """What already has a code of the catalogue passes through byte for byte."""
    error = answer(code, "m", param="p")
    assert normalise(error.status, body(error)) is None


@given(st.integers(100, 399), st.binary(max_size=50))
def test_answers_that_are_no_errors_are_left_alone(status: int, raw: bytes) -> None:
    """A status below 400 is not an error, whatever the body holds."""
    assert normalise(status, raw) is None


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "detail", "message", "type", "param", "code", "loc", "msg"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    st.integers(400, 599), JSON_VALUES.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=80)
)
def test_any_error_body_can_be_read(status: int, raw: bytes) -> None:
    """Whatever an engine sends becomes a valid error object of the catalogue with a message."""
    found = normalise(status, raw)
    if found is not None:
        error = json.loads(body(found))["error"]
        assert list(error) == ["message", "type", "param", "code"]
        assert error["code"] in set(Code)
        assert error["type"] in set(ErrorType)
        assert error["message"]
        assert 400 <= found.status <= 599


@given(st.text(st.characters(), max_size=50))
def test_any_text_can_be_written(text: str) -> None:
    """Lone surrogates in a message do not break the answer."""
    error = json.loads(body(answer(Code.NOT_FOUND, text, param=text)))["error"]
    assert error["code"] == "not_found"


def test_deeply_nested_error_body() -> None:
    """A hostile error body does not overflow the stack."""
    found = normalise(500, b"[" * 100_000 + b"]" * 100_000)
    assert found is not None
    assert found.code is Code.INTERNAL_ERROR
