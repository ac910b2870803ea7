"""Which bodies are refused before a replica sees them, and what a request weighs."""

from __future__ import annotations

import json
import time
from typing import Any

import msgspec
import pytest

from app.errors import ApiError
from app.peek import fields_of
from app.shape import sequences

MESSAGES = [{"role": "user", "content": "x"}]


def weigh(body: bytes, n: int, limit: int | None) -> int:
    return sequences(msgspec.json.decode(body, type=dict[str, msgspec.Raw]), n, limit)


def count(n: int = 1, limit: int | None = 2048, **fields: Any) -> int:
    return weigh(json.dumps(fields).encode(), n, limit)


@pytest.mark.parametrize(
    ("fields", "n", "expected"),
    [
        ({"messages": MESSAGES}, 1, 1),
        ({"messages": MESSAGES}, 5, 5),
        ({"prompt": "x"}, 2, 2),
        ({"prompt": ["a", "b", "c"]}, 2, 6),
        ({"prompt": [1, 2, 3]}, 1, 1),
        ({"prompt": [[1, 2], [3]]}, 3, 6),
        ({"prompt": []}, 1, 1),
        ({"prompt": [[]]}, 1, 1),
        ({"prompt": [[], [5]]}, 1, 2),
        ({"prompt": None}, 1, 1),
        ({}, 1, 1),
    ],
)
def test_sequences_are_n_times_prompts(fields: dict[str, Any], n: int, expected: int) -> None:
    """One prompt is a string or a list of token ids; several are lists of either."""
    assert expected == count(n, **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]},
        {"messages": [{"role": "user", "content": None}, {"role": "assistant", "tool_calls": [{"id": "1"}]}]},
        {"messages": MESSAGES * 4096},
        {"messages": [{"content": [{"type": "text", "text": "hi"}]}] * 4096},
        {"messages": [{"content": [{"type": "text", "text": "hi"}] * 4096}]},
        {"messages": [{"role": "user", "content": "a, {[" * 600_000}]},
        {"messages": MESSAGES, "tools": [{"text": "a, " * 200_000}] * 3},
        {"messages": MESSAGES, "unknown": {"text": "a, " * 20_000}},
        {"prompt": [], "allowed_token_ids": []},
        {"messages": "x"},  # the engine's to refuse: one error
        {"prompt": 5},
        {"messages": MESSAGES, "stop": ["a", "b"], "tools": [{}], "logit_bias": {"5": 1}},
        {"messages": MESSAGES, "allowed_token_ids": list(range(49152))},
        {"messages": MESSAGES, "response_format": {"type": "json_schema", "json_schema": {"a": [1] * 9999}}},
    ],
)
def test_ordinary_bodies_pass(fields: dict[str, Any]) -> None:
    """What a client has reason to send is not limited, and what is wrong once is the engine's to say."""
    assert count(**fields) == 1


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": [1]}, "messages"),
        ({"messages": MESSAGES * 4097}, "messages"),
        ({"messages": [{"content": [1]}]}, "messages.content"),
        ({"messages": [{"content": [{}] * 4097}]}, "messages.content"),
        ({"messages": [{"tool_calls": [{}] * 4097}]}, "messages.tool_calls"),
        ({"prompt": [{}]}, "prompt"),
        ({"prompt": ["a", 1]}, "prompt"),
        ({"prompt": [[1, "a"]]}, "prompt"),
        ({"prompt": [1.5]}, "prompt"),
        ({"prompt": ["a"] * 129}, "prompt"),
        ({"messages": [{"content": {}}]}, "messages.content"),
        ({"messages": [{"tool_calls": {}}]}, "messages.tool_calls"),
        ({"messages": MESSAGES * 4097 + [1]}, "messages"),
        ({"messages": [{"content": "x" * 20}] * 4097}, "messages"),
        ({"messages": [{"content": [{"type": "text", "text": "a"}] * 4097}]}, "messages.content"),
        ({"messages": [{"content": "x" * 99_999}, 1]}, "messages"),
        ({"messages": MESSAGES, "stop": ["a"] * 4097}, "stop"),
        ({"messages": MESSAGES, "stop": ["a" * 20] * 4097}, "stop"),
        ({"prompt": ["a" * 999] * 129}, "prompt"),
        ({"prompt": [[1]] * 129}, "prompt"),
        ({"prompt": [[[1]]]}, "prompt"),
        ({"prompt": [[1], 2]}, "prompt"),
        ({"prompt": [1, [2]]}, "prompt"),
        ({"prompt": [[1], 2, [3]]}, "prompt"),
        ({"messages": MESSAGES, "allowed_token_ids": ["a"] * 4097}, "allowed_token_ids"),
        ({"messages": MESSAGES, "allowed_token_ids": [1] * 1_000_001}, "allowed_token_ids"),
        ({"messages": MESSAGES, "logit_bias": {str(i): "x" * 20 for i in range(4097)}}, "logit_bias"),
        ({"messages": MESSAGES, "response_format": {"a": "x" * 1_048_577}}, "response_format"),
        ({"messages": MESSAGES, "stop": [[1] * 1_000_001]}, "stop"),
        ({"messages": MESSAGES, "unknown": [1] * 4097}, "unknown"),
        ({"messages": MESSAGES, "logit_bias": {str(i): 1 for i in range(4097)}}, "logit_bias"),
    ],
)
def test_dear_bodies_are_refused(fields: dict[str, Any], param: str) -> None:
    """Wrong elements in a list, and lists without end, are a 400 that names the field."""
    with pytest.raises(ApiError) as raised:
        count(**fields)
    assert (400, "invalid_value", param) == (
        raised.value.status,
        raised.value.code,
        raised.value.answer.param,
    )


def test_too_many_sequences() -> None:
    """n times prompts is limited to 128."""
    assert count(128, messages=MESSAGES) == 128
    for n, fields in ((129, {"messages": MESSAGES}), (2, {"prompt": ["a"] * 65})):
        with pytest.raises(ApiError) as raised:
            count(n, **fields)
        assert raised.value.answer.param == "n"


def test_token_ids_beyond_the_context() -> None:
    """More ids than any replica's context is context_length_exceeded, at once."""
    assert count(prompt=[1] * 2048) == 1
    for prompt in ([1] * 2049, [[1] * 2049]):
        with pytest.raises(ApiError) as raised:
            count(prompt=prompt)
        assert raised.value.code == "context_length_exceeded"


def test_a_hostile_body_is_judged_in_a_moment() -> None:
    """Four million wrong elements cost well under a second (it took a replica minutes)."""
    body = b'{"messages":[' + b"1," * 3_900_000 + b"1]}"
    began = time.monotonic()
    with pytest.raises(ApiError):
        weigh(body, 1, 2048)
    assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    "messages",
    [
        [{"content": ["a"] * 100}] * 42,
        [{"content": "a", "tool_calls": [{}] * 100}] * 42,
        [{"content": ["a"] * 50, "tool_calls": [{}] * 50}] * 42,
    ],
)
def test_one_budget_for_the_items_of_all_messages(messages: list[Any]) -> None:
    """Parts and tool calls are 4,096 in all beyond one per message, however they are spread."""
    with pytest.raises(ApiError) as raised:
        count(messages=messages)
    assert (400, "messages") == (raised.value.status, raised.value.answer.param)


def test_the_budget_is_for_what_is_beyond_one_per_message() -> None:
    """Two parts in each of 4,096 messages pass, one more does not."""
    assert count(messages=[{"content": ["a", "b"]}] * 4096) == 1
    with pytest.raises(ApiError) as raised:
        count(messages=[{"content": ["a", "b"]}] * 4095 + [{"content": ["a", "b", "c"]}])
    assert "4096 parts and tool calls" in raised.value.answer.message


@pytest.mark.parametrize("value", ["x", "x" * 400])
def test_fields_at_the_top_level(value: str) -> None:
    """A body has at most 256 fields, whether it is short or long."""
    body = {f"f{n}": value for n in range(257)}
    with pytest.raises(ApiError) as raised:
        fields_of(b"application/json", json.dumps(body).encode())
    assert (400, "invalid_value", "body") == (
        raised.value.status,
        raised.value.code,
        raised.value.answer.param,
    )
    assert "256 fields" in raised.value.answer.message
    del body["f0"]
    assert list(body) == list(fields_of(b"application/json", json.dumps(body).encode()))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"a":[' + b"[]," * 1_000_000 + b"1]}", "1000000 brackets"),
        (b'{"messages":[{"x":[' + b"1," * 4_000_001 + b"1]}]}", "4000000 commas"),
        (b"{" + b",".join(b'"%d":[]' % n for n in range(200_000)) + b"}", "256 fields"),
    ],
)
def test_structure_without_end(body: bytes, words: str) -> None:
    """Brackets, commas and fields are limited over the whole body, and the answer names the limit."""
    with pytest.raises(ApiError) as raised:
        sequences(fields_of(b"application/json", body), 1, 2048)
    assert (400, "invalid_value") == (raised.value.status, raised.value.code)
    assert words in raised.value.answer.message
