"""The closed list of edits, and that all else is byte-identical."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.types import Role, Tier
from deployments import edits
from deployments.edits import AnswerEdits, UnreadableBodyError, UnsafeTemplateError, edit_request
from deployments.errors import body as error_body

TEXT = st.text(max_size=30) | st.sampled_from(
    [
        'data: {"',
        "data: {",
        '\n\ndata: {"id',
        "\r\ndata: {",
        '"usage":{',
        'usage":{',
        "usage",
        '\\"usage\\":{',
        'data: {"error"',
        "data: [DONE]",
        "👩‍👩‍👧‍👦 你好",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
TEXTS_EDIT = AnswerEdits(tier=Tier.BATCH, role=Role.PLAIN, state_tier=True, extend_usage=True)


def answer_edits(*, state_tier: bool = False, extend_usage: bool = False) -> AnswerEdits:
    return AnswerEdits(
        tier=Tier.INTERACTIVE, role=Role.SPECULATIVE, state_tier=state_tier, extend_usage=extend_usage
    )


# --- the request body ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"model":"m","messages":[{"role":"user","content":"hi"}]}',
        b' \n{ "model" :\t"m" ,\r\n "n" : 1 } \n',
        b'{"seed":123456789012345678901234567890,"temperature":1e400,"top_p":1.0000000000000000001,"x":-0}',
        b'{"a":1,"a":2,"a":{"b":1,"b":2}}',
        '{"content":"\\u00e9\\ud83d\\ude00 é😀 \\/ \\u0022"}'.encode(),
        b'{"vllm":{"priority":1,"service_tier":"flex","vllm_xargs":{}}}',
        b'{"messages":[{"content":"\\"priority\\":1, \\"service_tier\\":\\"flex\\""}]}',
        b'{"chat_template":null,"chat_template_kwargs":{"enable_thinking":false}}',
        b'{"chat_template_kwargs":{"chat_template": null }}',
        b'{"chat_template_kwargs":"no object"}',
        b'{"messages":[{"chat_template":"x"}]}',
        b'{"bytes that are no UTF-8":"\xff\xfe"}',
    ],
)
def test_a_body_without_what_is_ours_passes_as_it_is(body: bytes) -> None:
    """Where nothing is ours, whitespace, numbers, escapes and repeated keys keep every byte."""
    edited = edit_request(body)
    assert edited.body is body
    assert edited.asked_service_tier is False


@pytest.mark.parametrize(
    "body", [b"", b"  \n", b"[]", b'["priority"]', b'"priority"', b"17", b"null", b"true"]
)
def test_what_is_no_object_passes(body: bytes) -> None:
    """An empty body and JSON of another kind hold nothing of ours: the engine's refusal is the answer."""
    assert edit_request(body).body is body


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b'{"priority":-1',
        b'{"priority":-1,"temperature":NaN}',
        b'\xef\xbb\xbf{"priority":-1}',
        b'{"priority":-1,"user":"\\ud800"}',
        b'{"priority":-1,"\\ud800":1}',
        b'{"priority":-1,"user":"a\tb"}',
        b'{"priority":-1}{}',
        b'{"chat_template_kwargs":{"\\ud800":1,"chat_template":"{{ 1 }}"}}',
        '{"priority":-1}'.encode("utf-16"),
        b'{"priority":-1,"deep":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_what_we_cannot_read_does_not_pass(body: bytes) -> None:
    """A laxer parser may find a steering field where ours found no JSON: such a body is refused."""
    with pytest.raises(UnreadableBodyError):
        edit_request(body)


@pytest.mark.parametrize(
    ("body", "expected", "asked"),
    [
        (b'{"service_tier":"flex","model":"m"}', b'{"model":"m"}', True),
        (b'{"model":"m","service_tier":"auto"}', b'{"model":"m"}', True),
        (b'{"model":"m","service_tier":null}', b'{"model":"m"}', False),
        (b'{"model":"m","service_tier": null }', b'{"model":"m"}', False),
        (b'{"service_tier":17}', b"{}", True),
        (b'{"service_tier":"flex","service_tier":null}', b"{}", False),
        (b'{"priority":-5,"model":"m"}', b'{"model":"m"}', False),
        (b'{"model":"m","kv_transfer_params":{"do_remote_decode":true}}', b'{"model":"m"}', False),
        (b'{"model":"m","ec_transfer_params":{}}', b'{"model":"m"}', False),
        (b'{"model":"m","vllm_xargs":{"a":1}}', b'{"model":"m"}', False),
        (b'{"model":"m","priority":null}', b'{"model":"m"}', False),
        (b'{"pri\\u006frity":-5,"model":"m"}', b'{"model":"m"}', False),
        (b'{"priority":1,"priority":2,"model":"m"}', b'{"model":"m"}', False),
        (b'{"priority":1,"vllm_xargs":{},"service_tier":"priority"}', b"{}", True),
        (b'{"PRIORITY":1,"service_tier":"flex"}', b'{"PRIORITY":1}', True),
        (b'{"a":1,"a":2,"service_tier":"flex"}', b'{"a":2}', True),
    ],
)
def test_what_is_ours_stays_here(body: bytes, expected: bytes, asked: bool) -> None:
    """Steering fields and `service_tier` do not reach the engine; null asks for no tier."""
    edited = edit_request(body)
    assert (expected, asked) == (edited.body, edited.asked_service_tier)


@pytest.mark.parametrize(
    "value",
    [
        b"123456789012345678901234567890",
        b"1e400",
        b"-0",
        b"1.0000000000000000001",
        b'"\\u00e9\\/\\ud83d\\ude00"',
        '"é😀"'.encode(),
        b'{ "a" : [ 1 ,\t2 ] , "a" : 1e+05, "priority" : 3 }',
        b'"\\"service_tier\\":\\"flex\\""',
        b"[ ]",
    ],
)
def test_values_keep_their_bytes(value: bytes) -> None:
    """Where a field is taken out, every value that stays keeps its exact bytes."""
    body = b'{ "x" : ' + value + b' , "service_tier" : "flex" , "y" : ' + value + b" }"
    assert edit_request(body).body == b'{"x":' + value + b',"y":' + value + b"}"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b'{"chat_template":"{{ 1 }}"}', "chat_template"),
        (b'{"chat_template":""}', "chat_template"),
        (b'{"chat_template":{}}', "chat_template"),
        (b'{"chat\\u005ftemplate":"{{ 1 }}"}', "chat_template"),
        (b'{"chat_template":null,"chat_template":"x"}', "chat_template"),
        (b'{"chat_template_kwargs":{"chat_template":"x"}}', "chat_template_kwargs.chat_template"),
        (b'{"chat_template_kwargs":{"a":1,"chat_template" : "x"}}', "chat_template_kwargs.chat_template"),
    ],
)
def test_a_clients_template_is_refused(body: bytes, param: str) -> None:
    """A chat template is a program: refused at the top and among the template's arguments, by name."""
    with pytest.raises(UnsafeTemplateError) as raised:
        edit_request(body)
    refusal = edits.template_refusal(raised.value)
    assert (refusal.status, refusal.code.value, refusal.param) == (400, "unsafe_parameter", param)


@given(st.dictionaries(TEXT, VALUES, max_size=5), st.sampled_from(["priority", "service_tier", None]))
def test_taking_out_changes_nothing_else(fields: dict[str, Any], ours: str | None) -> None:
    """Any other field means the same afterwards, in the same order."""
    fields = {k: v for k, v in fields.items() if k not in edits.STEERING_FIELDS | {"service_tier"}}
    fields = {k: v for k, v in fields.items() if not k.startswith("chat_template")}
    sent = json.dumps({ours: 1} | fields if ours else fields, ensure_ascii=False).encode()
    found = json.loads(edit_request(sent).body)
    assert list(fields.items()) == list(found.items())


# --- the request headers ---------------------------------------------------------------------------


def test_only_listed_headers_reach_the_engine() -> None:
    """An allow-list: no client header steers the engine, hop headers and ours stay here."""
    sent = [
        (b"Content-Type", b"application/json"),
        (b"accept", b"text/event-stream"),
        (b"User-Agent", b"test"),
        (b"X-Request-ID", b"r-1"),
        (b"traceparent", b"00-1"),
        (b"tracestate", b"a=b"),
        (b"X-Session-ID", b"s"),
        (b"X-data-parallel-rank", b"1"),
        (b"X-Vllm-Priority", b"-100"),
        (b"x-vllm-anything-new", b"1"),
        (b"content-length", b"999"),
        (b"transfer-encoding", b"chunked"),
        (b"connection", b"keep-alive"),
        (b"host", b"h"),
        (b"authorization", b"Bearer key"),
        (b"cookie", b"c"),
        (b"x-twinpool-token", b"secret"),
        (b"x-twinpool-replica", b"r"),
        (b"x-twinpool-tier", b"batch"),
        (b"x-forwarded-for", b"1.2.3.4"),
    ]
    assert edits.engine_headers(sent, 17, Tier.BATCH) == [
        (b"content-type", b"application/json"),
        (b"accept", b"text/event-stream"),
        (b"user-agent", b"test"),
        (b"x-request-id", b"r-1"),
        (b"traceparent", b"00-1"),
        (b"tracestate", b"a=b"),
        (b"content-length", b"17"),
        (b"x-vllm-priority", b"20"),
    ]


@pytest.mark.parametrize(
    ("tier", "expected"), [(Tier.INTERACTIVE, b"0"), (Tier.STANDARD, b"10"), (Tier.BATCH, b"20")]
)
def test_the_tier_is_the_priority(tier: Tier, expected: bytes) -> None:
    """The engine serves lower numbers first: interactive, standard, batch."""
    assert edits.engine_headers([], 0, tier) == [(b"content-length", b"0"), (b"x-vllm-priority", expected)]


def test_header_map() -> None:
    """Names in lower case; of a repeated name the first counts."""
    assert edits.header_map([(b"A", b"1"), (b"a", b"2"), (b"B", b"3")]) == {b"a": b"1", b"b": b"3"}


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        (b"text/event-stream", True),
        (b"text/event-stream; charset=utf-8", True),
        (b"application/json", False),
        (b"", False),
    ],
)
def test_event_streams_are_known_by_their_type(content_type: bytes, expected: bool) -> None:
    """The content type decides how an answer is edited."""
    start = {"type": "http.response.start", "status": 200, "headers": [(b"Content-Type", content_type)]}
    assert expected is edits.is_event_stream(start)


# --- the answer ------------------------------------------------------------------------------------

CHUNK = b'data: {"id":"x","choices":[{"delta":{"content":"hi"}}]}\n\n'
USAGE = b'data: {"id":"x","choices":[],"usage":{"prompt_tokens":1,"total_tokens":2}}\n\n'


@pytest.mark.parametrize("body", [CHUNK, USAGE, b"data: [DONE]\n\n", b": comment\n\n", b""])
def test_chunks_pass_as_they_are(body: bytes) -> None:
    """Without a request for an edit a stream keeps every byte."""
    assert answer_edits().chunk(body) == body


def test_each_event_states_the_tier() -> None:
    """A caller who sent `service_tier` reads in each event the one that was used."""
    assert answer_edits(state_tier=True).chunk(CHUNK + CHUNK + b"data: [DONE]\n\n") == (
        b'data: {"service_tier":"priority","id":"x","choices":[{"delta":{"content":"hi"}}]}\n\n'
        b'data: {"service_tier":"priority","id":"x","choices":[{"delta":{"content":"hi"}}]}\n\n'
        b"data: [DONE]\n\n"
    )


@pytest.mark.parametrize(
    ("tier", "word"), [(Tier.INTERACTIVE, b"priority"), (Tier.STANDARD, b"default"), (Tier.BATCH, b"flex")]
)
def test_the_tier_is_stated_in_openais_words(tier: Tier, word: bytes) -> None:
    """Interactive, standard and batch are priority, default and flex there."""
    stating = AnswerEdits(tier=tier, role=Role.PLAIN, state_tier=True, extend_usage=False)
    assert stating.chunk(b'data: {"id":1}') == b'data: {"service_tier":"' + word + b'","id":1}'
    assert stating.whole(200, b'{"id":1}') == (200, b'{"id":1,"service_tier":"' + word + b'"}')


def test_usage_is_extended_on_request() -> None:
    """The extension goes into the usage object, and nowhere else."""
    assert answer_edits(extend_usage=True).chunk(CHUNK + USAGE) == (
        CHUNK
        + b'data: {"id":"x","choices":[],"usage":{"twinpool":{"pool":"speculative","tier":"interactive"},'
        b'"prompt_tokens":1,"total_tokens":2}}\n\n'
    )


@pytest.mark.parametrize("usage", [b"null", b"{}"])
def test_no_usage_is_not_extended(usage: bytes) -> None:
    """Null and empty usage stay, so that the JSON stays valid."""
    body = b'{"usage":' + usage + b"}"
    assert answer_edits(extend_usage=True).chunk(b"data: " + body) == b"data: " + body
    assert answer_edits(extend_usage=True).whole(200, body) == (200, body)


def test_text_that_ends_like_an_event() -> None:
    """A token `data: {` has the mark's bytes with its closing quote; it is text all the same."""
    body = b'data: {"id":"x","choices":[{"delta":{"content":"data: {"}}]}\n\n'
    assert answer_edits(state_tier=True).chunk(body) == (
        b'data: {"service_tier":"priority","id":"x","choices":[{"delta":{"content":"data: {"}}]}\n\n'
    )


@given(st.lists(st.tuples(TEXT, VALUES), min_size=1, max_size=3), st.booleans())
def test_text_triggers_no_edit(parts: list[tuple[str, Any]], ascii_only: bool) -> None:
    """Whatever the answer says inside its strings, only its own events and usage are edited."""
    sent = [
        {"id": text, "choices": [{"delta": {"content": text, "more": [text, str(value)]}}]}
        for text, value in parts
    ]
    raw = b"".join(
        b"data: " + json.dumps(item, ensure_ascii=ascii_only, separators=(",", ":")).encode() + b"\n\n"
        for item in sent
    )
    found = TEXTS_EDIT.chunk(raw)
    events = [json.loads(event.removeprefix(b"data: ")) for event in found.split(b"\n\n") if event]
    assert [{"service_tier": "flex"} | item for item in sent] == events


@given(TEXT, VALUES)
def test_text_triggers_no_edit_of_a_whole_body(text: str, value: Any) -> None:
    """The same for an answer in one piece: it means the same but for the tier and the real usage."""
    sent = {
        "id": text,
        "choices": [{"message": {"content": text + str(value)}}],
        "usage": {"total_tokens": 2},
    }
    raw = json.dumps(sent, ensure_ascii=False, separators=(",", ":")).encode()
    status, found = TEXTS_EDIT.whole(200, raw)
    assert status == 200
    assert json.loads(found) == sent | {
        "service_tier": "flex",
        "usage": {"twinpool": {"pool": "plain", "tier": "batch"}, "total_tokens": 2},
    }


@pytest.mark.parametrize(
    "body", [b'{ "id" : 1e400 ,\n"usage": {"a":1}}', b"[1]", b"", b"plain text", b"\xff"]
)
def test_whole_answers_pass_as_they_are(body: bytes) -> None:
    """Without a request for an edit, or where it is no object, a whole answer keeps every byte."""
    assert answer_edits().whole(200, body) == (200, body)
    if not body.startswith(b"{ "):
        assert answer_edits(state_tier=True).whole(200, body) == (200, body)


def test_the_engines_own_tier_is_replaced() -> None:
    """The engine's idea of a tier gives way to the one used; other values keep their bytes."""
    body = b'{"id":"x","service_tier":null,"n": 1e400}'
    assert answer_edits(state_tier=True).whole(200, body) == (
        200,
        b'{"id":"x","service_tier":"priority","n":1e400}',
    )


def test_errors_are_normalised() -> None:
    """An engine's error becomes ours, with a string code; one that is ours already stays."""
    said = {
        "error": {
            "message": "The model `x` does not exist.",
            "type": "NotFoundError",
            "param": "model",
            "code": 404,
        }
    }
    status, found = answer_edits(state_tier=True, extend_usage=True).whole(404, json.dumps(said).encode())
    assert status == 404
    assert json.loads(found) == {
        "error": {
            "message": "The model `x` does not exist.",
            "type": "not_found_error",
            "param": "model",
            "code": "model_not_found",
        }
    }
    assert answer_edits(state_tier=True).whole(404, found) == (404, found)
    ours = error_body(edits.template_refusal(UnsafeTemplateError("chat_template")))
    assert answer_edits().whole(400, ours) == (400, ours)


def test_tier_words() -> None:
    """The tier used is told in OpenAI's words."""
    assert {
        Tier.INTERACTIVE: "priority",
        Tier.STANDARD: "default",
        Tier.BATCH: "flex",
    } == edits.SERVICE_TIER_WORDS
