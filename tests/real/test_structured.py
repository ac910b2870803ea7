"""Structured output beside speculation: valid JSON or a clean error, of bounded length, engines alive.

vLLM 0.32 breaks off answers that are held to a grammar when a speculative engine runs other requests in the
same batch; so they are served by the plain pool, and a caller who names the other one is told at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import httpx
import pytest
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json

from tests.real.conftest import settings
from tests.service import Service, chat, events

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

MAX_TOKENS = 96  # an order takes some 40, a call of the tool some 60
BLANKS = re.compile(r"\s+")
LONGEST_BLANK = 40  # characters; the grammar allows any number between two tokens
PARSER = ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
PINNED = {"x-twinpool-pool": "speculative"}
INTERACTIVE = {"x-twinpool-tier": "interactive"}


class Order(BaseModel):
    """A small answer whose every part is bounded."""

    model_config = ConfigDict(extra="forbid")

    color: Literal["red", "green", "blue"]
    count: int = Field(ge=0, le=9)
    name: str = Field(max_length=8)


FUNCTION = {"name": "order", "strict": True, "parameters": Order.model_json_schema()}
KINDS: dict[str, dict[str, Any]] = {
    "json_schema": {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "order", "strict": True, "schema": Order.model_json_schema()},
        }
    },
    "tool": {
        "tools": [{"type": "function", "function": FUNCTION}],
        "tool_choice": {"type": "function", "function": {"name": "order"}},
    },
}


@dataclass(frozen=True)
class Said:
    """One answer, streamed or not: the JSON text, and how it ended."""

    text: str
    finish: str | None
    tokens: int
    pool: str


def ask(service: Service, kind: str, number: int, *, stream: bool, headers: dict[str, str]) -> Said:
    """One order; an error of any sort fails the test."""
    words = f"Order {number % 9} red balls for Anna. Answer as JSON with color, count and name, on one line."
    body = chat(words, max_tokens=MAX_TOKENS, **KINDS[kind])
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    answer = service.post(body, headers=headers)
    assert answer.status_code == 200, answer.text
    return streamed(answer) if stream else whole(answer)


def whole(answer: httpx.Response) -> Said:
    choice = answer.json()["choices"][0]
    message = choice["message"]
    calls = [call["function"]["arguments"] for call in message.get("tool_calls") or []]
    assert len(calls) <= 1
    text = calls[0] if calls else message["content"] or ""
    tokens = answer.json()["usage"]["completion_tokens"]
    return Said(text, choice["finish_reason"], tokens, answer.headers["x-twinpool-pool"])


def streamed(answer: httpx.Response) -> Said:
    found = events(answer)
    assert [event for event in found if "error" in event] == []
    assert found[-1] == "[DONE]"
    choices = [choice for event in found[:-1] for choice in event["choices"]]
    deltas = [choice["delta"] for choice in choices]
    calls = [call["function"].get("arguments") for delta in deltas for call in delta.get("tool_calls") or []]
    text = "".join(filter(None, calls or [delta.get("content") for delta in deltas]))
    finish = [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]
    tokens = found[-2]["usage"]["completion_tokens"]
    return Said(text, finish[-1] if finish else None, tokens, answer.headers["x-twinpool-pool"])


def check(said: Said) -> bool:
    """Whether the answer is complete; a cut one must be the begin of JSON, and either of bounded length."""
    assert said.tokens <= MAX_TOKENS
    assert max(map(len, BLANKS.findall(said.text)), default=0) <= LONGEST_BLANK, said.text
    if said.finish == "length":
        assert begins_json(said.text), said.text
        return False
    assert said.finish in ("stop", "tool_calls")
    Order.model_validate_json(said.text, strict=True)
    return True


def begins_json(text: str) -> bool:
    """Whether something can be put behind the text that makes it JSON; an empty one says nothing."""
    try:
        _, end = json.JSONDecoder().raw_decode(text.lstrip())
    except ValueError:
        try:
            from_json(text, allow_partial=True)
        except ValueError:
            return False
        return True
    return not text.lstrip()[end:].strip()


def many(service: Service, count: int, kind: str, stream: bool | None, headers: dict[str, str]) -> list[Said]:
    """So many orders at once; `stream` None streams every other one."""
    with ThreadPoolExecutor(count) as callers:
        asked = [
            callers.submit(
                ask, service, kind, n, stream=n % 2 == 0 if stream is None else stream, headers=headers
            )
            for n in range(count)
        ]
        return [one.result() for one in asked]


def alive(service: Service, before: dict[str, int]) -> None:
    """The same replicas serve, and nothing is left open."""
    service.wait(service.idle, 15, "every counter at 0")
    assert service.ready()
    assert before == pids(service)
    for pool in before:
        assert service.post(chat("Hi", max_tokens=2), headers={"x-twinpool-pool": pool}).status_code == 200


def pids(service: Service) -> dict[str, int]:
    return {pool: service.replicas(pool)[0]["pid"] for pool in ("speculative", "plain")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', True),
        ('{"a": 1} \n', True),
        ('{"a": 1} x', False),
        ('{"a": "b', True),
        ('{"a":\n', True),
        ('{"a" 1', False),
        ("Sure: {", False),
        ("", False),
    ],
)
def test_what_begins_json(text: str, expected: bool) -> None:
    """The rule by which a cut answer is judged here."""
    assert expected == begins_json(text)


def talk(service: Service, count: int) -> list[int]:
    """So many chats at once on the speculative pool; their statuses."""
    with ThreadPoolExecutor(count) as callers:
        asked = [
            callers.submit(service.post, chat(f"Tell story {n}", max_tokens=48), headers=PINNED)
            for n in range(count)
        ]
        return [one.result().status_code for one in asked]


def test_six_orders_beside_chats(service: Service) -> None:
    """Case D5: six at once beside chats, streamed and not, are JSON of the schema, by the plain pool."""
    before = pids(service)
    with ThreadPoolExecutor(1) as beside:
        chats = beside.submit(talk, service, 4)
        found = many(service, 6, "json_schema", None, INTERACTIVE)
        assert [200] * 4 == chats.result()
    assert {"plain"} == {said.pool for said in found}
    assert sum(check(said) for said in found) >= 3
    alive(service, before)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_speculative_pool_by_name_is_refused(service: Service, kind: str) -> None:
    """Case D5: whoever names the pool that cannot hold an answer to a grammar gets one clean 400."""
    answer = service.post(chat("Order.", max_tokens=4, **KINDS[kind]), headers=PINNED)
    error = answer.json()["error"]
    assert (400, "parameter_not_supported") == (answer.status_code, error["code"])
    assert error["param"] == {"json_schema": "response_format", "tool": "tool_choice"}[kind]


@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_call_that_the_engine_cannot_read(service: Service, stream: bool) -> None:
    """Case D5: without a tool parser a strict call is one clean 400."""
    before = pids(service)
    answer = service.post(chat("Order.", max_tokens=4, stream=stream, **KINDS["tool"]), headers=INTERACTIVE)
    assert (400, "invalid_request") == (answer.status_code, answer.json()["error"]["code"]), answer.text
    assert "tool-call-parser" in answer.json()["error"]["message"]
    alive(service, before)


@pytest.fixture(scope="module")
def calling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose engines have a tool parser."""
    engine = {"engine": {"extra_args": PARSER}}
    made = settings(speculative=engine, plain=engine)
    with Service(tmp_path_factory.mktemp("calling"), made, engine="vllm") as running:
        yield running


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_thirty_orders_at_once(calling: Service, stream: bool, kind: str) -> None:
    """Case D5: thirty at once beside chats, by schema or strict call, are valid JSON of bounded length."""
    before = pids(calling)
    with ThreadPoolExecutor(1) as beside:
        chats = beside.submit(talk, calling, 6)
        found = many(calling, 30, kind, stream, INTERACTIVE)
        assert [200] * 6 == chats.result()
    complete = sum(check(said) for said in found)
    print(f"{kind}: {complete} of 30 complete, {sum(said.tokens for said in found)} tokens", flush=True)
    assert complete >= 15
    assert {"plain"} == {said.pool for said in found}
    alive(calling, before)
