"""What the ingress reads of a request, and what it refuses to pass on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import ApiError
from app.peek import Peek, fields_of, peek

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
JSON = b"application/json"
NOTHING = Peek(
    model=None,
    stream=False,
    include_usage=False,
    service_tier=None,
    max_tokens=None,
    sequences=1,
    parameters=frozenset(),
)


def read(path: str, content_type: bytes | None, body: bytes) -> Peek:
    return peek(path, fields_of(content_type, body))


def look(fields: dict[str, Any], path: str = CHAT) -> Peek:
    return read(path, JSON, json.dumps(fields).encode())


def refusal(body: bytes, content_type: bytes | None = JSON) -> ApiError:
    with pytest.raises(ApiError) as caught:
        read(CHAT, content_type, body)
    return caught.value


def test_a_full_request() -> None:
    """All fields that routing knows are read; the rest is not looked at."""
    fields = {
        "model": "m:batch",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "service_tier": "flex",
        "max_tokens": 7,
        "n": 3,
        "min_p": 0.1,
        "logit_bias": {"5": 1},
        "x_unknown": {"deep": [1]},
    }
    assert look(fields) == Peek(
        model="m:batch",
        stream=True,
        include_usage=True,
        service_tier="flex",
        max_tokens=7,
        sequences=3,
        parameters=frozenset({"min_p", "logit_bias"}),
    )


@pytest.mark.parametrize(
    "fields",
    [
        {},
        dict.fromkeys(
            [
                "model",
                "stream",
                "stream_options",
                "service_tier",
                "max_tokens",
                "max_completion_tokens",
                "n",
                "min_p",
                "logit_bias",
                "chat_template",
                "chat_template_kwargs",
            ]
        ),
        {"model": ""},
        {
            "stream": "perhaps",
            "stream_options": 5,
            "max_tokens": "many",
            "n": {},
            "min_p": [],
            "logit_bias": 3,
        },
        {
            "stream_options": {"include_usage": "perhaps"},
            "n": 0,
            "max_tokens": -1,
            "chat_template_kwargs": "x",
        },
        {"min_p": 0, "logit_bias": {}},
        {"min_p": -0.5, "n": 1.5, "max_tokens": True},
    ],
)
def test_absent_null_and_mistyped_fields_are_unknown(fields: dict[str, Any]) -> None:
    """Null is absent, `max_tokens: null` included, and a field of the wrong type is the engine's to judge."""
    assert look(fields) == NOTHING


@pytest.mark.parametrize(
    ("path", "fields", "expected"),
    [
        (CHAT, {"max_tokens": 5}, 5),
        (CHAT, {"max_tokens": 5, "max_completion_tokens": 9}, 9),
        (CHAT, {"max_tokens": 5, "max_completion_tokens": None}, 5),
        (CHAT, {"max_tokens": "5"}, 5),
        (COMPLETIONS, {"max_tokens": 5, "max_completion_tokens": 9}, 5),
        (COMPLETIONS, {"max_completion_tokens": 9}, None),
    ],
)
def test_limit_of_the_answer(path: str, fields: dict[str, Any], expected: int | None) -> None:
    """In chat the newer name wins; completions know only the older one; "5" is 5, as in the engine."""
    assert expected == look(fields, path).max_tokens


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"min_p": 0.05}, {"min_p"}),
        ({"min_p": 1}, {"min_p"}),
        ({"min_p": "0.2"}, {"min_p"}),
        ({"min_p": 0.0}, set()),
        ({"logit_bias": {"1": -100}}, {"logit_bias"}),
        ({"logit_bias": {}}, set()),
        ({"logit_bias": [1]}, set()),
        ({"logprob_token_ids": [5]}, {"logprob_token_ids"}),
        ({"logprob_token_ids": None}, set()),
        ({"response_format": {"type": "json_object"}}, {"response_format"}),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, {"response_format"}),
        ({"response_format": {"type": "a kind of tomorrow"}}, {"response_format"}),
        ({"response_format": {"type": "text"}}, set()),
        ({"response_format": None}, set()),
        ({"structured_outputs": {"choice": ["a", "b"]}}, {"structured_outputs"}),
        ({"structured_outputs": None}, set()),
        ({"tool_choice": "required"}, {"tool_choice"}),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, {"tool_choice"}),
        ({"tool_choice": "auto"}, set()),
        ({"tool_choice": "none"}, set()),
    ],
)
def test_active_parameters(fields: dict[str, Any], expected: set[str]) -> None:
    """A parameter counts when it asks for something; its default value does not."""
    assert expected == look(fields).parameters


def test_last_of_repeated_keys_counts() -> None:
    """A repeated key means its last value, also when an escape hides that it is the same key."""
    assert read(CHAT, JSON, b'{"model":"a","mod\\u0065l":"b"}').model == "b"


@pytest.mark.parametrize(
    ("content_type", "accepted"),
    [
        (b"application/json", True),
        (b"application/json; charset=utf-8", True),
        (b"Application/JSON ;charset=utf-8", True),
        (b"application/vnd.api+json", True),
        (b"text/plain", False),
        (b"application/x-www-form-urlencoded", False),
        (b"application/jsonp", False),
        (b"text/x+json", False),
        (b"", False),
        (b"\xff\x00", False),
        (None, False),
    ],
)
def test_content_type(content_type: bytes | None, accepted: bool) -> None:
    """Only JSON media types are read; anything else is a 415 with a JSON error."""
    if accepted:
        assert read(CHAT, content_type, b"{}") == NOTHING
    else:
        error = refusal(b"{}", content_type)
        assert (error.status, error.code.value) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    ("body", "position"),
    [
        (b"", "(byte 0)"),
        (b" \n ", "(byte 0)"),
        (b"{", "(byte 1)"),
        (b'{"model":"m",}', "(byte 13)"),
        (b'{"model":"m"} x', "(byte 15)"),
        (b"{'model':1}", "(byte 1)"),
        (b'{"a":NaN}', "(byte 5)"),
        (b'{"a":-Infinity}', "(byte 6)"),
        (b'{"a":Infinity}', "(byte 5)"),
        (b'{"a":"\xff"}', "(byte 6)"),
        (b'{"a":"\xed\xa0\x80"}', "(byte 6)"),
        (b'{"a":"\\udc00"}', "(byte 12)"),
        (b'{"a":"\\ud800 and more text"}', "(byte 12)"),
        (b'{"a":"line\nbreak"}', "(byte 10)"),
        (b"\xef\xbb\xbf{}", "(byte 0)"),
        ("{}".encode("utf-16"), "(byte 0)"),
    ],
)
def test_malformed_json_names_the_position(body: bytes, position: str) -> None:
    """Malformed JSON anywhere in the body, in fields nobody reads too, is a 400 that says where."""
    error = refusal(body)
    assert (error.status, error.code.value) == (400, "invalid_json")
    assert position in error.answer.message


@pytest.mark.parametrize("body", [b"[1]", b"null", b'"x"', b"5", b"true", b" [ ] "])
def test_body_must_be_an_object(body: bytes) -> None:
    """JSON that is not an object is a 400 of its own."""
    assert refusal(body).code.value == "invalid_body"


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"chat_template_kwargs":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
        b'{"model":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_deep_nesting_is_refused(body: bytes) -> None:
    """A body nested beyond reason is a 400, not a crash."""
    error = refusal(body)
    assert error.code.value == "invalid_json"
    assert "nested too deeply" in error.answer.message


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b'{"chat_template":"{{ x }}"}', "chat_template"),
        (b'{"chat_template":""}', "chat_template"),
        (b'{"chat_template":5}', "chat_template"),
        (b'{"ch\\u0061t_template":"x"}', "chat_template"),
        (b'{"chat_template_kwargs":{"chat_template":"x"}}', "chat_template_kwargs.chat_template"),
        (b'{"chat_template_kwargs":{"a":1,"chat_templat\\u0065":"x"}}', "chat_template_kwargs.chat_template"),
    ],
)
def test_a_callers_chat_template_is_refused(body: bytes, param: str) -> None:
    """A chat template in a request is a program: refused in both places where the engine would take one."""
    error = refusal(body)
    assert (error.code.value, error.answer.param) == ("unsafe_parameter", param)


def test_other_template_arguments_pass() -> None:
    """Arguments for the model's own template are none of the ingress's business."""
    fields = {"chat_template_kwargs": {"enable_thinking": False, "chat_template": None}}
    assert look(fields) == NOTHING


@pytest.mark.parametrize("name", ["model", "service_tier"])
@pytest.mark.parametrize("value", [5, True, [], {}, 1e999])
def test_fields_that_the_ingress_acts_on_must_be_text(name: str, value: object) -> None:
    """`model` and `service_tier` decide here, so a wrong type is refused here."""
    error = refusal(json.dumps({name: value}).replace("Infinity", "1e999").encode())
    assert (error.code.value, error.answer.param) == ("invalid_value", name)


NAMES = st.sampled_from(
    [
        "model",
        "stream",
        "stream_options",
        "service_tier",
        "max_tokens",
        "max_completion_tokens",
        "n",
        "min_p",
        "logit_bias",
        "chat_template",
        "chat_template_kwargs",
        "include_usage",
        "other",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=10,
)


@given(
    st.text(max_size=30),
    st.none() | st.just(JSON) | st.binary(max_size=30),
    st.binary(max_size=60)
    | st.dictionaries(NAMES, VALUES, max_size=6).map(lambda value: json.dumps(value).encode()),
)
def test_peek_raises_nothing_but_api_errors(path: str, content_type: bytes | None, body: bytes) -> None:
    """Any bytes give a Peek or an error of the caller's making, never anything else."""
    found: Peek | ApiError
    try:
        found = read(path, content_type, body)
    except ApiError as error:
        found = error
    if isinstance(found, ApiError):
        assert found.status in (400, 415)
        assert found.answer.permanent
    else:
        assert found.parameters <= {"min_p", "logit_bias"}
        assert found.sequences >= 1
        assert found.max_tokens is None or found.max_tokens >= 1


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("number", ["2147483649", "9" * 309, "9" * 4300, "1e400", '"' + "9" * 400 + '"'])
def test_a_limit_beyond_any_answer_is_unknown(name: str, number: str) -> None:
    """A number above 2**31 is the engine's to judge: routing takes it for no limit."""
    body = b'{"messages":[],"%b":%b}' % (name.encode(), number.encode())
    assert read(CHAT, JSON, body).max_tokens is None
    assert read(CHAT, JSON, b'{"messages":[],"%b":2147483648}' % name.encode()).max_tokens == 2**31


def test_n_beyond_any_is_refused() -> None:
    """More sequences than a request may have are refused, however long the number is."""
    for digits in (10, 309, 4300):
        assert refusal(b'{"messages":[],"n":%b}' % (b"9" * digits)).answer.param == "n"


def test_escaped_words_are_the_same_words() -> None:
    """`requ\\u0069red` asks for a grammar as `required` does, and `te\\u0078t` for none."""
    body = b'{"messages":[],"tool_choice":"requ\\u0069red","response_format":{"type":"te\\u0078t"}}'
    assert read(CHAT, JSON, body).parameters == frozenset({"tool_choice"})
    body = b'{"messages":[],"tool_choice":"aut\\u006f","response_format":{"type":"json_objec\\u0074"}}'
    assert read(CHAT, JSON, body).parameters == frozenset({"response_format"})
