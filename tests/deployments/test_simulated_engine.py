"""The simulated engine with its real child process, driven through its ASGI app; nothing is mocked."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import psutil
import pytest

from autoscaling.types import FinishedRequest, Role
from deployments.config import EngineSettings, SimulationSettings
from deployments.engine import ASGIApp, EngineConfigError, EngineStartError
from deployments.simulated.engine import SimulatedEngine
from deployments.speculation_limits import NOT_UNDER_SPECULATION

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
SPECULATION = {"method": "ngram", "num_speculative_tokens": 4}
FAST = {"step_base_s": 0.002, "step_per_token_s": 0.0}
JSON_TYPE = {"content-type": "application/json"}
EMOJI = "👩‍👩‍👧‍👦 你好 ёжик"


class Call:
    """One request: `await` it for the end, `leave` it to disconnect."""

    def __init__(self, app: ASGIApp, path: str, body: object, headers: dict[str, str] | None = None) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._inbox = [{"type": "http.request", "body": raw, "more_body": False}]
        self._gone = asyncio.Event()
        self._started = asyncio.Event()
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.parts: list[bytes] = []
        named = [(key.encode(), value.encode()) for key, value in (JSON_TYPE | (headers or {})).items()]
        scope = {
            **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http"},
            **{"method": "POST" if raw else "GET", "path": path, "raw_path": path.encode()},
            **{"query_string": b"", "root_path": "", "client": None, "server": None, "headers": named},
        }
        self.task = asyncio.ensure_future(app(scope, self._receive, self._send))

    async def _receive(self) -> Any:
        if self._inbox:
            return self._inbox.pop()
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {key.decode(): value.decode() for key, value in message["headers"]}
        elif message.get("body"):
            self.parts.append(message["body"])
            self._started.set()

    async def started(self) -> None:
        await asyncio.wait_for(self._started.wait(), 10)

    def leave(self) -> None:
        self._gone.set()

    async def end(self) -> Call:
        await asyncio.wait_for(self.task, 20)
        return self

    @property
    def json(self) -> Any:
        return json.loads(b"".join(self.parts))

    @property
    def events(self) -> list[Any]:
        """The events of a stream; the last must be [DONE]."""
        lines = b"".join(self.parts).decode().split("\n\n")
        assert lines[-2:] == ["data: [DONE]", ""]
        return [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]

    @property
    def chunks(self) -> list[str]:
        """The texts of a stream's choices, in order."""
        choices = [choice for event in self.events for choice in event.get("choices", ())]
        return [c["text"] if "text" in c else c["delta"]["content"] for c in choices]

    @property
    def usage(self) -> list[Any]:
        """The events with usage."""
        return [event for event in self.events if "usage" in event]


@asynccontextmanager
async def running(
    *, speculative: bool = False, simulation: dict[str, Any] | None = None, **changes: Any
) -> AsyncIterator[tuple[SimulatedEngine, list[FinishedRequest]]]:
    """A started engine and the records it has written; stopped at the end."""
    engine = make(speculative=speculative, simulation=simulation, **changes)
    records: list[FinishedRequest] = []
    engine.recorder.on_finished = records.append
    await engine.start()
    try:
        yield engine, records
    finally:
        await engine.stop()
        assert engine.processes() == ()


def make(
    *, speculative: bool = False, simulation: dict[str, Any] | None = None, **changes: Any
) -> SimulatedEngine:
    settings = EngineSettings(
        kind="simulated",
        speculative_config=SPECULATION if speculative else None,
        simulation=SimulationSettings(**(FAST | (simulation or {}))),
        **changes,
    )
    return SimulatedEngine(settings, Role.SPECULATIVE if speculative else Role.PLAIN)


def chat(text: str = "Hello", **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **fields}


def endless(text: str = "Go on", **fields: Any) -> dict[str, Any]:
    return chat(text, stream=True, ignore_eos=True, **fields)


async def until(condition: Callable[[], bool], limit_s: float = 5.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        await asyncio.sleep(0.002)


def alive(pid: int) -> bool:
    """Whether a process still runs; one that waits to be reaped does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


# What callers see


@pytest.mark.parametrize("speculative", [False, True])
async def test_a_stream_says_what_a_body_says(speculative: bool) -> None:
    """Same text, same counts, on both endpoints; and both engines say the same."""
    async with running(speculative=speculative) as (engine, records):
        for path, body, beginning in (
            (CHAT, chat("Tell me", max_tokens=40), "over city question"),
            (COMPLETIONS, {"prompt": "Tell me", "max_tokens": 40}, "answer measure garden"),
        ):
            whole = await Call(engine.app, path, body).end()
            options = {"stream": True, "stream_options": {"include_usage": True}}
            stream = await Call(engine.app, path, body | options).end()
            choice = whole.json["choices"][0]
            said = choice["message"]["content"] if path == CHAT else choice["text"]
            assert "".join(stream.chunks) == said
            counts = {key: whole.json["usage"][key] for key in stream.usage[0]["usage"]}
            assert stream.usage[0]["usage"] == counts
            assert [record.generated_tokens for record in records[-2:]] == [len(said.split())] * 2
            assert said.startswith(beginning)


async def test_chat_chunks_have_the_shape_of_vllm() -> None:
    """A role first, then text, the finish reason with the last text, usage without choices."""
    async with running() as (engine, _):
        body = chat("Repeat exactly: a b", stream=True, stream_options={"include_usage": True})
        call = await Call(engine.app, CHAT, body, {"x-request-id": "abc"}).end()
        head = {"id": "chatcmpl-abc", "object": "chat.completion.chunk", "model": "smollm2-135m"}
        assert len({event["created"] for event in call.events}) == 1
        assert call.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert [{key: event[key] for key in head} for event in call.events] == [head] * 4
        assert [event["choices"] for event in call.events] == [
            [
                {
                    "index": 0,
                    "delta": {"role": "assistant", "content": ""},
                    "logprobs": None,
                    "finish_reason": None,
                }
            ],
            [
                {
                    "index": 0,
                    "delta": {"content": "a"},
                    "logprobs": None,
                    "finish_reason": None,
                    "token_ids": None,
                }
            ],
            [
                {
                    "index": 0,
                    "delta": {"content": " b"},
                    "logprobs": None,
                    "finish_reason": "stop",
                    "stop_reason": None,
                    "token_ids": None,
                }
            ],
            [],
        ]
        assert call.events[-1]["usage"] == {"prompt_tokens": 8, "total_tokens": 10, "completion_tokens": 2}


async def test_usage_comes_once_and_only_when_asked_for() -> None:
    """A last chunk without choices; with continuous_usage_stats every chunk counts so far."""
    async with running(speculative=True) as (engine, _):
        for path, body in ((CHAT, chat()), (COMPLETIONS, {"prompt": "Hello"})):
            silent = await Call(engine.app, path, body | {"stream": True}).end()
            assert silent.usage == []
            options = {"include_usage": True}
            asked = body | {"stream": True, "stream_options": options}
            call = await Call(engine.app, path, asked).end()
            assert [event["choices"] for event in call.usage] == [[]]
            assert call.usage == call.events[-1:]
            options["continuous_usage_stats"] = True
            call = await Call(engine.app, path, asked).end()
            assert call.usage == call.events
            counts = [event["usage"]["completion_tokens"] for event in call.usage]
            assert counts == sorted(counts)


async def test_records_count_what_was_sent() -> None:
    """One record per sequence, with the id of its request; several prompts have ids of their own."""
    async with running(speculative=True) as (engine, records):
        call = await Call(engine.app, CHAT, chat(n=3), {"x-request-id": "abc"}).end()
        words = [len(choice["message"]["content"].split()) for choice in call.json["choices"]]
        assert sorted(words) == sorted(record.generated_tokens for record in records)
        assert {(r.request_id, r.prompt_tokens) for r in records} == {("chatcmpl-abc", 5)}
        assert (call.json["usage"]["prompt_tokens"], call.json["metrics"]) == (5, None)
        assert call.json["usage"]["completion_tokens"] == sum(words)
        assert len({choice["message"]["content"] for choice in call.json["choices"]}) == 3
        records.clear()
        body = {"prompt": ["one two", "three"], "n": 2, "max_tokens": 3}
        call = await Call(engine.app, COMPLETIONS, body, {"x-request-id": "abc"}).end()
        assert sorted(r.request_id for r in records) == ["cmpl-abc-0"] * 2 + ["cmpl-abc-1"] * 2
        assert [c["index"] for c in call.json["choices"]] == [0, 1, 2, 3]
        assert call.json["usage"]["prompt_tokens"] == 3
        assert (call.json["id"], call.json["usage"]["completion_tokens"]) == ("cmpl-abc", 12)
        totals = engine.recorder.totals
        assert (totals.finished, totals.finished_generated_tokens) == (7, sum(words) + 12)


async def test_the_same_request_gives_the_same_chunks() -> None:
    """Also in another process: text follows the prompt, acceptance the request id and the seed."""
    seen = []
    for _ in range(2):
        async with running(speculative=True) as (engine, _records):
            call = await Call(engine.app, CHAT, chat(stream=True), {"x-request-id": "same"}).end()
            seen.append(call.chunks)
    assert seen[0] == seen[1]


async def test_speculation_emits_what_it_accepts() -> None:
    """Several tokens in a chunk, acceptance near the setting, and the caller's metrics agree with ours."""
    async with running(speculative=True, simulation={"acceptance": 0.7, "seed": 3}) as (engine, records):
        options = {"stream_options": {"include_usage": True}, "max_tokens": 600}
        calls = [Call(engine.app, CHAT, endless(f"q {n}", **options)) for n in range(8)]
        metrics = [(await call.end()).usage[0]["metrics"]["speculative_decoding"] for call in calls]
        totals = engine.recorder.totals
        assert max(len(chunk.split()) for chunk in calls[0].chunks) == 5
        assert totals.accepted_per_position[0] / totals.drafts == pytest.approx(0.7, abs=0.05)
        # 0.7 + 0.7^2 + 0.7^3 + 0.7^4, and the bonus token
        mean = sum(m["mean_acceptance_length"] for m in metrics) / len(metrics)
        assert mean == pytest.approx(2.773, abs=0.12)
        assert sum(m["num_accepted_draft_tokens"] for m in metrics) == totals.accepted
        assert sum(m["num_draft_tokens"] for m in metrics) == totals.drafted
        assert (sum(m["num_spec_steps"] for m in metrics), metrics[0]["num_spec_tokens"]) == (
            totals.drafts,
            4,
        )
        assert [record.generated_tokens for record in records] == [600] * 8
        assert totals.decode_tokens == 8 * 599


async def test_unicode_comes_back_whole() -> None:
    """Families, CJK and Cyrillic survive both directions."""
    async with running() as (engine, _):
        body = chat([{"type": "text", "text": f"Repeat exactly: {EMOJI}"}], stream=True)  # type: ignore[arg-type]
        assert "".join((await Call(engine.app, CHAT, body).end()).chunks) == EMOJI
        call = await Call(engine.app, COMPLETIONS, {"prompt": f"Say\n```\n{EMOJI}\n```"}).end()
        assert call.json["choices"][0]["text"] == EMOJI


async def test_every_message_counts_as_prompt() -> None:
    """Lists of parts and tool calls are text like any other, four tokens more for each message."""
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    messages = [
        {"role": "system", "content": [{"type": "text", "text": "be brief"}]},
        {"role": "user", "content": "one two three"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "four"}, "five"]},
    ]
    async with running() as (engine, _):
        body = (await Call(engine.app, CHAT, {"messages": messages, "temperature": 0, "seed": 1}).end()).json
        assert body["usage"]["prompt_tokens"] == 2 + 3 + 3 + 2 + 4 * 4


async def test_a_stop_string_ends_the_answer() -> None:
    """Neither it nor its beginning is sent; tokens up to it count."""
    async with running(speculative=True) as (engine, records):
        body = chat("Repeat exactly: one two three four", stream=True, stop=["three f"])
        call = await Call(engine.app, CHAT, body).end()
        assert "".join(call.chunks) == "one two "
        assert call.events[-1]["choices"][0]["stop_reason"] == "three f"
        assert (records[0].finish_reason, records[0].generated_tokens) == ("stop", 4)


@pytest.mark.parametrize(
    ("fields", "tokens", "reason"),
    [
        ({"max_tokens": None}, 4, "stop"),
        ({"max_tokens": 3}, 3, "length"),
        ({"max_tokens": 9, "max_completion_tokens": 2}, 2, "length"),
        ({"ignore_eos": True, "max_tokens": 20}, 20, "length"),
        ({"ignore_eos": True}, 64 - 10, "length"),  # what the context leaves
        ({"ignore_eos": True, "max_tokens": 5000}, 64 - 10, "length"),
    ],
)
async def test_an_answer_ends_where_it_should(fields: dict[str, Any], tokens: int, reason: str) -> None:
    """By itself, at max_tokens, or at the end of the context."""
    async with running(max_model_len=64) as (engine, _):
        body = (await Call(engine.app, CHAT, chat("Repeat exactly: a b c d", **fields)).end()).json
        assert body["usage"]["completion_tokens"] == tokens
        assert body["choices"][0]["finish_reason"] == reason


BAD = [
    (
        CHAT,
        chat(model="other"),
        404,
        "model",
        "The model `other` does not exist. Valid aliases: smollm2",
    ),
    (
        CHAT,
        chat("x " * 61),
        400,
        "input_tokens",
        "maximum context length is 64 tokens. However, your",
    ),
    (CHAT, chat("x " * 61, stream=True), 400, "input_tokens", "contains 65 input tokens, which exceeds this"),
    (CHAT, chat("x " * 60), 400, "max_tokens", "max_tokens must be at least 1, got 0."),
    (
        CHAT,
        chat(max_tokens=0),
        400,
        "max_tokens",
        "max_tokens must be at least 1, got 0. (parameter=",
    ),
    (CHAT, chat(max_tokens="many"), 400, "body.max_tokens", "1 validation error"),
    (CHAT, {}, 400, "body.messages", "Field required"),
    (CHAT, [], 400, "body", "valid dictionary"),
    (CHAT, {"messages": "Hi"}, 400, "body.messages", "valid list"),
    (CHAT, chat(n=0), 400, None, "n must be at least 1, got 0."),
    (CHAT, chat(n=2, temperature=0), 400, None, "n must be 1 when using greedy sampling, got 2."),
    (CHAT, chat(temperature=3), 400, "temperature", "temperature must be in [0, 2], got 3.0."),
    (CHAT, chat(stop=""), 400, None, "stop cannot contain an empty string."),
    (CHAT, chat(stream_options={"include_usage": True}), 400, "stream_options", "only be defined when"),
    (CHAT, chat(min_p=0.1), 400, None, "The min_p and logit_bias sampling parameters are not yet supported"),
    (CHAT, chat(logit_bias={"1": 5}), 400, None, "not yet supported with speculative decoding."),
    (CHAT, b"{bad", 400, "body.1", "JSON decode error"),
    (COMPLETIONS, {}, 400, "prompt", "Either prompt or prompt_embeds must be provided and non-empty."),
    (COMPLETIONS, {"prompt": "Hi", "n": None}, 400, "body.n", "valid integer"),
    (COMPLETIONS, {"prompt": [-1]}, 400, "body.prompt.0", "greater than or equal to 0"),
    ("/v1/embeddings", {}, 404, None, "Not Found"),
]


async def test_errors_are_worded_as_vllm_words_them() -> None:
    """A status, an error object with a numeric code, nothing left in the engine."""
    async with running(speculative=True, max_model_len=64) as (engine, records):
        for path, body, status, param, message in BAD:
            call = await Call(engine.app, path, body).end()
            error = call.json["error"]
            assert (call.status, error["code"], error["param"]) == (status, status, param), error
            assert message in error["message"]
            assert list(error) == ["message", "type", "param", "code"]
        call = await Call(engine.app, CHAT, chat(), {"content-type": "text/plain"}).end()
        assert (call.status, "Unsupported Media Type" in call.json["error"]["message"]) == (400, True)
        assert (engine.unfinished(), records) == (0, [])


async def test_a_stream_is_refused_by_an_event() -> None:
    """As with vLLM, which checks min_p and logit_bias only after the 200; greedy sampling forgets min_p."""
    async with running(speculative=True) as (engine, _):
        call = await Call(engine.app, CHAT, chat(stream=True, min_p=0.1)).end()
        assert (call.status, [event["error"]["code"] for event in call.events]) == (200, [400])
        assert (await Call(engine.app, CHAT, chat(min_p=0.1, temperature=0)).end()).status == 200
    async with running() as (engine, _):
        assert (await Call(engine.app, CHAT, chat(min_p=0.1, logit_bias={"1": 5})).end()).status == 200


async def test_models_and_health_are_answered() -> None:
    """Canonical name first; health is 503 once the engine is dead."""
    async with running() as (engine, _):
        call = await Call(engine.app, "/v1/models", b"").end()
        assert tuple(card["id"] for card in call.json["data"]) == engine.capabilities.models
        assert (await Call(engine.app, "/health", b"").end()).status == 200
        await engine.stop()
        assert (await Call(engine.app, "/health", b"").end()).status == 503


# The step clock and the queue


@pytest.mark.parametrize(("speculative", "tokens"), [(False, 100), (True, 240)])
async def test_a_step_takes_at_least_its_cost(speculative: bool, tokens: int) -> None:
    """With all cost per token the mean step is B * (1 + K) * 0.2 ms, and longer on a busy machine only.

    The formula itself is checked exactly, in virtual time, by test_simulated_scheduler.py.
    """
    width = 5 if speculative else 1
    async with running(
        speculative=speculative, simulation={"step_base_s": 0, "step_per_token_s": 0.0002}
    ) as (engine, _):
        for batch in (8, 16):
            before = engine.recorder.totals
            started_at = time.monotonic()
            calls = [Call(engine.app, CHAT, endless(f"q {n}", max_tokens=tokens)) for n in range(batch)]
            # Speculation thins the batch out at the end: look at the steps with a full one.
            await until(lambda: engine.recorder.gauges.running == batch)  # noqa: B023
            await until(lambda: engine.recorder.gauges.running != batch)  # noqa: B023
            steps = engine.recorder.totals.steps - before.steps
            mean_s = (time.monotonic() - started_at) / steps
            assert mean_s >= 0.95 * batch * width * 0.0002  # the first steps fill the batch
            for call in calls:
                await call.end()


@pytest.mark.long
async def test_the_clock_does_not_drift_with_many_streams() -> None:
    """On a quiet machine 64 streams of 50 chunks a second come on time: a late step is made up for."""
    async with running(max_num_seqs=64, simulation={"step_base_s": 0.02}) as (engine, records):
        calls = [Call(engine.app, CHAT, endless(f"q {n}", max_tokens=75)) for n in range(64)]
        for call in calls:
            await call.end()
        chunks = sum(len(call.chunks) for call in calls)
        assert chunks == 64 * 76
        decode_s = sorted(record.decode_s for record in records)[32]
        assert decode_s == pytest.approx(74 * 0.02, rel=0.1)


async def test_more_than_max_num_seqs_wait() -> None:
    """The gauges tell how many, the records how long."""
    async with running(max_num_seqs=2) as (engine, records):
        calls = [Call(engine.app, CHAT, endless(f"q {n}", max_tokens=30)) for n in range(5)]
        gauges = engine.recorder.gauges
        await until(lambda: (gauges.running, gauges.waiting) == (2, 3))
        assert engine.unfinished() == 5
        assert gauges.kv_cache_usage is not None
        assert 0 < gauges.kv_cache_usage < 0.1
        for call in calls:
            await call.end()
        assert [record.queued_s > 0.02 for record in records] == [False, False, True, True, True]
        assert (gauges.running, gauges.waiting, engine.unfinished()) == (0, 0, 0)


async def test_a_lower_priority_number_goes_first() -> None:
    """The header wins over the body."""
    async with running(max_num_seqs=1) as (engine, records):
        first = Call(engine.app, CHAT, endless(max_tokens=30), {"x-request-id": "first"})
        await first.started()
        low = Call(engine.app, CHAT, chat(priority=-9), {"x-request-id": "low", "x-vllm-priority": "5"})
        high = Call(engine.app, CHAT, chat(), {"x-request-id": "high", "x-vllm-priority": "-5"})
        middle = Call(engine.app, CHAT, chat(priority=1), {"x-request-id": "middle"})
        for call in (first, low, high, middle):
            await call.end()
        assert [r.request_id for r in records] == [
            f"chatcmpl-{name}" for name in ("first", "high", "middle", "low")
        ]


# Those who leave, and engines that die


async def test_who_leaves_is_forgotten() -> None:
    """A disconnect or a cancelled task aborts, whether running or queued, streaming or not."""
    async with running(max_num_seqs=2) as (engine, records):
        streaming = Call(engine.app, CHAT, endless())
        cancelled = Call(engine.app, CHAT, endless("Other"))
        await streaming.started()
        await cancelled.started()
        queued = [Call(engine.app, CHAT, endless("Third")), Call(engine.app, CHAT, chat())]
        gauges = engine.recorder.gauges
        await until(lambda: gauges.waiting == 2)
        for call in queued:
            call.leave()
            await call.end()
        await until(lambda: (gauges.running, gauges.waiting) == (2, 0), 0.5)
        streaming.leave()
        await streaming.end()
        cancelled.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled.task
        await until(lambda: engine.unfinished() == 0, 0.5)
        assert (gauges.running, gauges.waiting) == (0, 0)
        assert [(r.finish_reason, r.generated_tokens > 0) for r in records] == [
            ("abort", False),
            ("abort", False),
            ("abort", True),
            ("abort", True),
        ]


async def test_a_killed_engine_is_dead_at_once() -> None:
    """Streams end with an error event, bodies and later requests are a 500, and the signal is named."""
    async with running(max_num_seqs=2) as (engine, _):
        assert engine.failure() is None
        stream = Call(engine.app, CHAT, endless())
        whole = Call(engine.app, CHAT, chat(ignore_eos=True))
        queued = Call(engine.app, CHAT, endless("Third"))
        await stream.started()
        (pid,) = engine.processes()
        os.kill(pid, signal.SIGKILL)
        await until(lambda: engine.failure() is not None, 1)
        for call in (stream, queued, whole):
            await call.end()
        message = "EngineCore encountered an issue. See stack trace (above) for the root cause."
        error = {"message": message, "type": "InternalServerError", "param": None, "code": 500}
        assert stream.events[-1] == {"error": error}
        assert queued.events == [{"error": error}]
        assert (whole.status, whole.json) == (500, {"error": error})
        late = await Call(engine.app, CHAT, chat(stream=True)).end()
        assert (late.status, late.json) == (500, {"error": error})
        await until(lambda: engine.failure() == f"engine process {pid} was killed by signal 9")
        assert (engine.unfinished(), engine.processes()) == (0, ())


async def test_a_stopped_engine_only_looks_hung() -> None:
    """Work stays unfinished and no step comes, also after the caller has left; then all goes on."""
    async with running() as (engine, records):
        call, left = Call(engine.app, CHAT, endless(max_tokens=50)), Call(engine.app, CHAT, endless("Other"))
        await call.started()
        (pid,) = engine.processes()
        os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(0.05)
        last_step_at = engine.recorder.gauges.last_step_at
        assert last_step_at is not None
        left.leave()
        await left.end()
        await asyncio.sleep(0.4)
        assert (engine.unfinished(), engine.failure()) == (2, None)
        assert engine.recorder.gauges.last_step_at == last_step_at
        os.kill(pid, signal.SIGCONT)
        await call.end()
        await until(lambda: engine.unfinished() == 0)
        assert {record.finish_reason for record in records} == {"abort", "length"}
        assert engine.recorder.gauges.last_step_at > last_step_at
        # The stall is one long step, not a burst of short ones afterwards.
        assert engine.recorder.totals.longest_step_s > 0.3


async def test_stop_ends_an_engine_in_any_state() -> None:
    """Also a hung one with open streams, which get an error event; and again without harm."""
    async with running() as (engine, _):
        call = Call(engine.app, CHAT, endless())
        await call.started()
        (pid,) = engine.processes()
        os.kill(pid, signal.SIGSTOP)
        await engine.stop()
        await engine.stop()
        assert not psutil.pid_exists(pid)
        assert (await call.end()).events[-1]["error"]["code"] == 500
        assert engine.failure() == "the engine was stopped"


ORPHAN = """
import asyncio, os
from tests.deployments.test_simulated_engine import make

async def main():
    engine = make()
    await engine.start()
    print(*engine.processes(), flush=True)
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


def test_the_child_ends_with_its_parent() -> None:
    """A kill -9 of the parent leaves nothing behind."""
    done = subprocess.run([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE, timeout=20, check=False)
    assert done.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 2
    while alive(int(done.stdout)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(int(done.stdout))


def test_the_child_ends_at_the_end_of_its_input() -> None:
    """Even before it was told anything."""
    command = [sys.executable, "-m", "deployments.simulated.core"]
    assert subprocess.run(command, input=b"", timeout=10, check=False).returncode == 0


# Starting


async def test_a_start_that_fails_leaves_no_process() -> None:
    """Whether the settings cannot work, the child dies, or the caller gives up."""
    with pytest.raises(EngineConfigError, match=r"engine\.kv_cache_memory_bytes 16777216 holds 728 tokens"):
        await make(kv_cache_memory_bytes=16 << 20).start()
    dying = make(simulation={"start_s": 30})
    start = asyncio.create_task(dying.start())
    await until(lambda: dying.processes() != ())
    os.kill(dying.processes()[0], signal.SIGKILL)
    with pytest.raises(EngineStartError, match="was killed by signal 9"):
        await start
    slow = make(simulation={"start_s": 30})
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(slow.start(), 0.3)
    assert (dying.processes(), slow.processes()) == ((), ())


async def test_start_takes_as_long_as_it_is_told() -> None:
    """`start` returns when the engine can serve, and says what it is."""
    started_at = time.monotonic()
    async with running(speculative=True, simulation={"start_s": 0.3}) as (engine, _):
        assert time.monotonic() - started_at > 0.3
        capabilities = engine.capabilities
        assert (capabilities.engine, capabilities.role, capabilities.method) == (
            "simulated",
            Role.SPECULATIVE,
            "ngram",
        )
        assert (capabilities.draft_length_max, capabilities.per_request_metrics) == (4, True)
        assert NOT_UNDER_SPECULATION == capabilities.refuses
        plain = make().capabilities
        assert (plain.method, plain.draft_length_max, plain.refuses) == (None, 0, ())
        assert plain.fingerprint == capabilities.fingerprint
        assert make(model="other").capabilities.fingerprint != plain.fingerprint


async def test_a_listener_that_raises_is_counted() -> None:
    """It reaches neither the caller nor the engine."""

    def fail(_record: FinishedRequest) -> None:
        raise ValueError

    async with running() as (engine, _):
        engine.recorder.on_finished = fail
        assert (await Call(engine.app, CHAT, chat()).end()).status == 200
        assert (engine.recorder.errors, engine.failure()) == (1, None)


def test_it_runs_on_uvloop_off_the_main_thread() -> None:
    """That is where an actor's event loop is."""
    uvloop = pytest.importorskip("uvloop")
    statuses: list[int | None] = []

    async def once() -> None:
        async with running() as (engine, _):
            statuses.append((await Call(engine.app, CHAT, chat()).end()).status)

    thread = threading.Thread(target=lambda: uvloop.run(once()))
    thread.start()
    thread.join(20)
    assert statuses == [200]
