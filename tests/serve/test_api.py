"""The OpenAI surface over real Ray with the simulated engine: tiers, headers, errors, usage."""

from __future__ import annotations

import socket
import time
from typing import Any

import httpx
import openai
import psutil
import pytest

from tests.service import MODEL, Service, Stream, chat, events, text_of

pytestmark = pytest.mark.serve

ERROR_KEYS = {"message", "type", "param", "code"}


@pytest.fixture
def client(service: Service) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{service.url}/v1", api_key="none")


@pytest.mark.parametrize(
    ("fields", "headers", "pool", "tier", "reason"),
    [
        ({}, {}, "plain", "standard", "tier_standard"),
        ({"service_tier": "auto"}, {}, "plain", "standard", "tier_standard"),
        ({"service_tier": "default"}, {}, "plain", "standard", "tier_standard"),
        ({"service_tier": "priority"}, {}, "speculative", "interactive", "tier_interactive"),
        ({"service_tier": "fast"}, {}, "speculative", "interactive", "tier_interactive"),
        ({"service_tier": "flex"}, {}, "plain", "batch", "tier_batch"),
        ({"model": f"{MODEL}:interactive"}, {}, "speculative", "interactive", "tier_interactive"),
        ({"model": f"{MODEL}:batch"}, {}, "plain", "batch", "tier_batch"),
        ({}, {"X-Twinpool-Tier": "interactive"}, "speculative", "interactive", "tier_interactive"),
        ({"service_tier": "priority"}, {"x-twinpool-tier": "batch"}, "plain", "batch", "tier_batch"),
        ({}, {"x-twinpool-pool": "speculative"}, "speculative", "standard", "pinned_by_caller"),
        (
            {"service_tier": "priority", "min_p": 0.1, "temperature": 1},
            {},
            "plain",
            "interactive",
            "capability",
        ),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_every_way_to_name_a_tier(
    service: Service,
    fields: dict[str, Any],
    headers: dict[str, str],
    pool: str,
    tier: str,
    reason: str,
    stream: bool,
) -> None:
    """Header, service_tier and alias choose the tier; the answer says pool, tier and reason."""
    answer = service.post(chat("Say hi", max_tokens=6, stream=stream) | fields, headers=headers)
    assert answer.status_code == 200, answer.text
    said = [answer.headers[f"x-twinpool-{name}"] for name in ("pool", "tier", "route-reason")]
    assert [pool, tier, reason] == said
    assert answer.headers["x-request-id"]


def test_the_tier_used_is_stated_when_the_client_had_sent_one(service: Service) -> None:
    """`service_tier` comes back as the tier used, in the body and in every chunk."""
    whole = service.post(chat("Say hi", max_tokens=4, service_tier="fast")).json()
    assert whole["service_tier"] == "priority"
    chunks = events(service.post(chat("Say hi", max_tokens=4, service_tier="flex", stream=True)))
    assert {"flex"} == {chunk["service_tier"] for chunk in chunks if isinstance(chunk, dict)}


def test_openai_client_streams_and_not_with_equal_counts(service: Service, client: openai.OpenAI) -> None:
    """Chat and completions, streamed and not: the same text, usage equal to the engines' records."""
    before = service.settled("finished_generated_tokens")
    tokens = 0
    for tier in ("auto", "priority", "flex"):
        messages: Any = [{"role": "user", "content": "Repeat exactly: one two three four five six"}]
        common: dict[str, Any] = {"model": MODEL, "max_tokens": 12, "temperature": 0, "service_tier": tier}
        whole = client.chat.completions.create(messages=messages, **common)
        chunks = list(
            client.chat.completions.create(
                messages=messages, stream=True, stream_options={"include_usage": True}, **common
            )
        )
        assert whole.choices[0].message.content == "".join(
            choice.delta.content or "" for chunk in chunks for choice in chunk.choices
        )
        assert whole.usage is not None
        assert chunks[-1].usage is not None
        assert whole.usage.completion_tokens == chunks[-1].usage.completion_tokens
        done = client.completions.create(
            prompt="Repeat exactly: a b c", model=MODEL, max_tokens=5, temperature=0
        )
        assert done.usage is not None
        tokens += 2 * whole.usage.completion_tokens + done.usage.completion_tokens
    service.wait(
        lambda: service.totals("finished_generated_tokens") - before == tokens, 5, f"{tokens} tokens"
    )


def test_a_speculative_answer_carries_its_acceptance(service: Service) -> None:
    """The final usage chunk of the speculative pool says how its drafts fared; the plain pool's does not."""
    for tier, present in (("priority", True), ("flex", False)):
        body = chat("Say something", max_tokens=24, stream=True, stream_options={"include_usage": True})
        last = events(service.post(body | {"service_tier": tier}))[-2]
        assert last["choices"] == []
        assert present == bool((last.get("metrics") or {}).get("speculative_decoding"))


def test_usage_chunk_only_for_those_who_ask(service: Service) -> None:
    """Case A1: exactly one usage chunk, before [DONE], and none for a client that did not ask."""
    asked = events(
        service.post(chat("Hi", max_tokens=8, stream=True, stream_options={"include_usage": True}))
    )
    assert [bool(e.get("usage")) for e in asked[:-1]].count(True) == 1
    assert asked[-2]["usage"]["completion_tokens"] >= 1
    assert asked[-1] == "[DONE]"
    silent = events(service.post(chat("Hi", max_tokens=8, stream=True)))
    assert not any("usage" in e and e["usage"] for e in silent if isinstance(e, dict))


def test_usage_extension_on_request_only(service: Service) -> None:
    """`x-twinpool-usage: extended` adds pool and tier to the usage object; nothing else differs."""
    plain = service.post(chat("Hi", max_tokens=4)).json()["usage"]
    extended = service.post(chat("Hi", max_tokens=4), headers={"x-twinpool-usage": "extended"}).json()[
        "usage"
    ]
    assert {"pool": "plain", "tier": "standard"} == extended.pop("twinpool")
    assert plain == extended


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
@pytest.mark.parametrize("field", ["null", "absent"])
def test_max_tokens_null_is_the_default(service: Service, path: str, stream: bool, field: str) -> None:
    """Case A4: null and absent both mean the default; never a 500."""
    body = chat("Hi", stream=stream)
    if path == "/v1/completions":
        body = {"model": MODEL, "prompt": "test", "temperature": 0, "stream": stream}
    if field == "null":
        body["max_tokens"] = None
    assert service.post(body, path=path).status_code == 200


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/x-www-form-urlencoded", 415),
        ("text/plain", 415),
        ("application/json; charset=utf-8", 200),
        ("application/json", 200),
    ],
)
def test_content_type(service: Service, content_type: str, status: int) -> None:
    """Case A6: a body that is not declared JSON is a 415 with our error object."""
    raw = b'{"messages":[{"role":"user","content":"Hi"}],"max_tokens":2}'
    answer = httpx.post(
        f"{service.url}/v1/chat/completions", content=raw, headers={"content-type": content_type}
    )
    assert status == answer.status_code
    if status != 200:
        assert set(answer.json()["error"]) == ERROR_KEYS


BAD = [
    (b'{"messages": [', 400, "invalid_json"),
    (b"[1, 2]", 400, "invalid_body"),
    (b'"text"', 400, "invalid_body"),
    (b"", 400, "invalid_json"),
    (b'{"model": "nope", "messages": [{"role":"user","content":"x"}]}', 404, "model_not_found"),
    (b'{"messages": [{"role":"user","content":"x"}], "service_tier": "gold"}', 400, "invalid_value"),
    (b'{"messages": [{"role":"user","content":"x"}], "max_tokens": -1}', 400, "invalid_value"),
    (b'{"messages": "x"}', 400, "invalid_value"),
    (b'{"messages": [{"role":"user","content":"x"}], "chat_template": "{{ 1 }}"}', 400, "unsafe_parameter"),
    (
        b'{"messages": [{"role":"user","content":"x"}], "chat_template_kwargs": {"chat_template": "{}"}}',
        400,
        "unsafe_parameter",
    ),
]


@pytest.mark.parametrize("pool", ["speculative", "plain"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("raw", "status", "code"), BAD)
def test_bad_input_is_the_same_on_both_pools(
    service: Service, raw: bytes, status: int, code: str, stream: bool, pool: str
) -> None:
    """A 4xx with the OpenAI error object and a string code, before any byte, nothing retried."""
    if stream and raw.startswith(b"{") and raw.endswith(b"}"):
        raw = raw[:-1] + b', "stream": true}'
    headers = {"content-type": "application/json", "x-twinpool-pool": pool}
    answer = httpx.post(f"{service.url}/v1/chat/completions", content=raw, headers=headers)
    assert (status, code) == (answer.status_code, answer.json()["error"]["code"])
    assert set(answer.json()["error"]) == ERROR_KEYS
    assert answer.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("pool", ["speculative", "plain"])
def test_too_long_a_prompt(service: Service, client: openai.OpenAI, pool: str, stream: bool) -> None:
    """Case A9: a real 400 before any byte in both modes, which the stock client raises as BadRequestError."""
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": "word " * 3000}],
            stream=stream,
            extra_headers={"x-twinpool-pool": pool},
        )
    assert raised.value.code == "context_length_exceeded"


def test_bad_requests_harm_nobody(service: Service) -> None:
    """Case B3: after 50 over-context requests the next good one is served and both pools are whole."""
    for _ in range(50):
        assert service.post(chat("word " * 3000)).status_code == 400
    assert service.post(chat("Hi", max_tokens=2)).status_code == 200
    assert service.ready(2, 2)


def test_unknown_model_touches_no_replica(service: Service, client: openai.OpenAI) -> None:
    """Case A17: 404 model_not_found at the first attempt, and no replica sees it."""
    steps = service.settled("steps")
    with pytest.raises(openai.NotFoundError) as raised:
        client.chat.completions.create(model="nope", messages=[{"role": "user", "content": "x"}])
    assert raised.value.code == "model_not_found"
    assert steps == service.settled("steps")


def test_client_template_does_not_hold_a_cpu(service: Service) -> None:
    """Case G8: a hostile template is refused in both places, and /health stays fast."""
    evil = "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}"
    for fields in ({"chat_template": evil}, {"chat_template_kwargs": {"chat_template": evil}}):
        assert service.post(chat("x") | fields).json()["error"]["code"] == "unsafe_parameter"
        began = time.monotonic()
        assert service.get("/health").status_code == 200
        assert time.monotonic() - began < 1


def test_many_turns_with_list_content(service: Service) -> None:
    """Case A12: content parts, tool calls and tool results survive for many turns, on both pools."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    for turn in range(10):
        pool = ("speculative", "plain")[turn % 2]
        body = {"model": MODEL, "messages": messages, "max_tokens": 4}
        answer = service.post(body, headers={"x-twinpool-pool": pool})
        assert answer.status_code == 200, answer.text
        said = answer.json()["choices"][0]["message"]["content"]
        messages.append(
            {"role": "assistant", "content": [{"type": "text", "text": said}], "tool_calls": [call]}
        )
        messages.append({"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "ok"}]})


def test_characters_survive(service: Service) -> None:
    """Case A15: no replacement character; the stream adds up to the whole text."""
    body = chat("Repeat exactly: 👩‍👩‍👧‍👦 你好 ёжик", max_tokens=16)
    whole = service.post(body).json()["choices"][0]["message"]["content"]
    streamed = text_of(events(service.post(body | {"stream": True})))
    assert "👩‍👩‍👧‍👦 你好 ёжик" in whole
    assert "\ufffd" not in streamed
    assert whole == streamed


def test_engine_steering_is_ours(service: Service) -> None:
    """Case B5 in part: client priorities and routing headers are accepted and reach no engine."""
    body = chat("Hi", max_tokens=2, priority=-5, vllm_xargs={"a": 1}, kv_transfer_params={"b": 2})
    headers = {"X-Vllm-Priority": "-100", "X-Session-ID": "s", "X-data-parallel-rank": "7"}
    assert service.post(body, headers=headers).status_code == 200


def test_bodies_that_are_dear_to_check_are_refused_at_the_door(service: Service) -> None:
    """Lists of the wrong kind or length are a quick 400, and no replica sees them."""
    steps = service.settled("steps")
    poison: list[tuple[str, Any]] = [
        ("messages", [1] * 1_000_000),
        ("messages", [{"role": "user", "content": [1] * 1_000_000}]),
        ("prompt", [{}] * 500_000),
        ("stop", [1] * 1_000_000),
        ("n", 100_000),
    ]
    for field, value in poison:
        path = "/v1/completions" if field == "prompt" else "/v1/chat/completions"
        body = {"model": MODEL, "prompt": "x"} if field == "prompt" else chat("x")
        answer = service.post(body | {field: value}, path=path, timeout=10)
        assert (400, "invalid_value") == (answer.status_code, answer.json()["error"]["code"])
    assert steps == service.settled("steps")


def test_a_request_weighs_its_sequences(service: Service) -> None:
    """A request with n answers counts n times: others find the emptier replica of its pool."""
    wide = Stream(
        service,
        chat("Tell a story", n=40, temperature=1, max_tokens=200, ignore_eos=True),
        {"x-twinpool-pool": "plain"},
    )
    assert wide.began.wait(20)
    for _ in range(6):
        answer = service.post(chat("Hi", max_tokens=2), headers={"x-twinpool-pool": "plain"})
        assert answer.headers["x-twinpool-replica"] != wide.headers["x-twinpool-replica"]
    assert wide.join(60).complete


def test_one_request_id_comes_back(service: Service) -> None:
    """The client's id, once; a new one, once, where it sent none."""
    for sent in ({"x-request-id": "mine-1"}, {}):
        for path in ("/v1/chat/completions", "/v1/completions"):
            prompt = {"model": MODEL, "prompt": "Hi", "max_tokens": 1}
            body = chat("Hi", max_tokens=1) if "chat" in path else prompt
            found = service.post(body, path=path, headers=sent).headers.get_list("x-request-id")
            assert len(found) == 1
            assert sent.get("x-request-id", found[0]) == found[0]


def test_models(service: Service) -> None:
    """The served model and its tier aliases are listed and found one by one; others are 404."""
    listed = [card["id"] for card in service.get("/v1/models").json()["data"]]
    assert [MODEL, f"{MODEL}:interactive", f"{MODEL}:batch"] == listed
    assert MODEL == service.get(f"/v1/models/{MODEL}").json()["id"]
    assert service.get("/v1/models/nope").json()["error"]["code"] == "model_not_found"


def test_unknown_paths_and_methods(service: Service) -> None:
    """Paths outside ours are 404 and never forwarded; known ones with a wrong method are 405."""
    for path in ("/v1/embeddings", "/metrics/x", "/v1/chat", "/collective_rpc", "/tokenize"):
        assert service.get(path).json()["error"]["code"] == "not_found", path
    answer = service.get("/v1/chat/completions")
    assert (405, "POST") == (answer.status_code, answer.headers["allow"])


def test_ready_and_health(service: Service) -> None:
    """Both pools take work; the process is healthy."""
    assert {"speculative": 2, "plain": 2} == service.get("/ready").json()["pools"]
    assert service.get("/health").status_code == 200


def test_status_speaks_the_contract(service: Service) -> None:
    """The status has every field of the contract, unknown ones null, and no token of any replica."""
    status = service.status()
    expected = {
        "schema_version", "generated_at", "ready", "url", "versions", "conditions", "controller", "policy",
        "hold", "overrides", "budget", "tiers", "pools", "moves", "last_decision",
    }  # fmt: skip
    assert expected <= set(status)
    assert status["pools"]["plain"]["mean_acceptance_length"] is None
    assert status["pools"]["speculative"]["mean_acceptance_length"] >= 1
    assert "token" not in str(status).replace("tokens", "").replace("_token_", "")


def test_replica_endpoint_is_closed_to_others(service: Service) -> None:
    """A replica's own port answers nobody without its token: 401 on every path."""
    listening = psutil.Process(service.replicas("plain")[0]["pid"]).net_connections("tcp")
    ours = [c.laddr for c in listening if c.status == "LISTEN" and 21000 <= c.laddr.port <= 21999]
    assert ["127.0.0.1"] == [address.ip for address in ours]
    for path in ("/v1/models", "/metrics", "/docs", "/v1/chat/completions"):
        assert httpx.get(f"http://127.0.0.1:{ours[0].port}{path}").status_code == 401


def test_idle_connection_outlives_a_balancers_limit(service: Service) -> None:
    """Case A23: our idle limit is above the 60 s that balancers keep (long form: test_keep_alive_61_s)."""
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        for pause_s in (0, 6):  # uvicorn's own default of 5 s would have closed it
            time.sleep(pause_s)
            connection.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
            assert answered(connection)


def answered(connection: socket.socket) -> bool:
    """Read one whole answer of /health; False when it is no 200."""
    found = b""
    while b"}" not in found:
        piece = connection.recv(4096)
        if not piece:
            return False
        found += piece
    return found.startswith(b"HTTP/1.1 200")


@pytest.mark.long
@pytest.mark.timeout(200)
def test_keep_alive_61_s(service: Service) -> None:
    """Case A23: 20 connections idle for 61 s are still served; none is reset."""
    connections = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(20)]
    for connection in connections:
        connection.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
        assert answered(connection)
    time.sleep(61)
    for connection in connections:
        connection.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
        assert answered(connection)
        connection.close()
