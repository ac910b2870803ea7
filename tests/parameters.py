"""One plausible request for every field of vLLM's two request models, and the table of what became of them.

`tests/test_parameters.py` holds the fields against vLLM, `tests/real/test_parameters.py` the answers of both
engines against docs/parameters.md, which `docs/generate_parameters.py` writes from the same probes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from deployments.edits import STEERING_FIELDS
from deployments.errors import Code
from tests.service import MODEL

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
PATHS = (CHAT, COMPLETIONS)
POOLS = ("speculative", "plain")

SERVED = "served"
NOT_ACCEPTED = "not accepted from clients"
ABSENT = "-"
HEAD = ("field", "chat", "completions", *POOLS)

_QUESTION = {"role": "user", "content": "Count to nine, please. One, two, three"}
_TOOL = {
    "type": "function",
    "function": {"name": "add", "parameters": {"type": "object", "properties": {"to": {"type": "integer"}}}},
}
_SCHEMA = {"type": "json_schema", "json_schema": {"name": "word", "schema": {"enum": ["yes", "no"]}}}
_PARSER = "A tool is called only with the engine arguments enable-auto-tool-choice and tool-call-parser."
_REMOVED = "Taken out without an error, whatever its value, so the probe's is none that the engine takes."


@dataclass(frozen=True, slots=True)
class Probe:
    """A value that asks for something, and what else the request must say for it to mean anything."""

    value: Any
    needs: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one probe; `code` and `message` are those of the error, None when it was served."""

    status: int
    code: str | None = None
    message: str | None = None


Measured = Mapping[
    tuple[str, str, str | None], Result
]  # by path, field, and pool; None: the caller named none

_STREAM = {"stream": True}
_COMMON: Mapping[str, Probe] = {
    "model": Probe(MODEL),
    "frequency_penalty": Probe(0.5),
    "logit_bias": Probe({"5": 1.0}),
    "max_tokens": Probe(3),
    "n": Probe(2, {"temperature": 0.7}, "vLLM wants a temperature above 0 for more than one answer."),
    "presence_penalty": Probe(0.5),
    "response_format": Probe(_SCHEMA),
    "seed": Probe(7),
    "stop": Probe(["."]),
    "stream": Probe(True),
    "stream_options": Probe({"include_usage": True}, _STREAM),
    "temperature": Probe(0.7),
    "top_p": Probe(0.9, {"temperature": 0.7}),
    "user": Probe("probe"),
    "use_beam_search": Probe(True, {"n": 2}),
    "top_k": Probe(20, {"temperature": 0.7}),
    "min_p": Probe(0.1, {"temperature": 0.7}),
    "repetition_penalty": Probe(1.1),
    "watermarking": Probe(True),
    "length_penalty": Probe(0.5, {"use_beam_search": True, "n": 2}),
    "stop_token_ids": Probe([2]),
    "include_stop_str_in_output": Probe(True, {"stop": ["."]}),
    "ignore_eos": Probe(True),
    "min_tokens": Probe(2),
    "skip_special_tokens": Probe(False),
    "spaces_between_special_tokens": Probe(False, {"skip_special_tokens": False}),
    "truncate_prompt_tokens": Probe(8),
    "truncation_side": Probe("left", {"truncate_prompt_tokens": 8}),
    "prompt_logprobs": Probe(1),
    "allowed_token_ids": Probe([5, 6, 7]),
    "bad_words": Probe(["zebra"]),
    "structured_outputs": Probe({"choice": ["yes", "no"]}),
    "request_id": Probe("probe"),
    "session_id": Probe("probe"),
    "return_token_ids": Probe(True),
    "routed_experts_prompt_start": Probe(1),
    "return_token_offsets": Probe(True),
    "mm_payload": Probe("none"),
    "return_mm_kwargs": Probe(False),
    "cache_salt": Probe("probe"),
    "repetition_detection": Probe({"max_pattern_size": 2, "min_count": 2}),
    "thinking_token_budget": Probe(2, note="Works only with the engine argument reasoning-parser."),
    "stream_interval": Probe(2, _STREAM),
    # None of these has the type that vLLM wants: an answer shows that it never saw the field.
    "priority": Probe("urgent", note=f"{_REMOVED} The tier sets the engine's priority."),
    "kv_transfer_params": Probe("probe", note=_REMOVED),
    "ec_transfer_params": Probe("probe", note=_REMOVED),
    "vllm_xargs": Probe("probe", note=_REMOVED),
}
_CHAT: Mapping[str, Probe] = {
    "messages": Probe([{"role": "system", "content": "Be short."}, _QUESTION]),
    "logprobs": Probe(True),
    "top_logprobs": Probe(2, {"logprobs": True}),
    "max_completion_tokens": Probe(3),
    "tools": Probe([_TOOL], note=_PARSER),
    "tool_choice": Probe({"type": "function", "function": {"name": "add"}}, {"tools": [_TOOL]}, note=_PARSER),
    "reasoning_effort": Probe("low"),
    "include_reasoning": Probe(False),
    "parallel_tool_calls": Probe(False),
    "logprob_token_ids": Probe([5, 6], {"logprobs": True}),
    "echo": Probe(True),
    "add_generation_prompt": Probe(False),
    "continue_final_message": Probe(
        True,
        {
            "add_generation_prompt": False,
            "messages": [_QUESTION, {"role": "assistant", "content": "four, five,"}],
        },
    ),
    "add_special_tokens": Probe(True),
    "documents": Probe([{"title": "Numbers", "text": "Nine comes after eight."}]),
    "chat_template": Probe("{{ 1 }}", note="A template can hold a processor for hours."),
    "chat_template_kwargs": Probe({"enable_thinking": False}, note="Not with a `chat_template` inside."),
    "media_io_kwargs": Probe({"image": {"mode": "L"}}),
    "mm_processor_kwargs": Probe({"num_crops": 1}),
    "return_tokens_as_token_ids": Probe(True, {"logprobs": True}),
    "return_prompt_text": Probe(True),
}
_COMPLETIONS: Mapping[str, Probe] = {
    "prompt": Probe([504, 28, 827, 28, 1296]),
    "echo": Probe(True),
    "logprobs": Probe(1),
    "suffix": Probe(" ten"),
    "logprob_token_ids": Probe([5, 6], {"logprobs": 1}),
    "prompt_embeds": Probe(
        "AAAA", {"prompt": ""}, "Works only with the engine argument enable-prompt-embeds."
    ),
    "add_special_tokens": Probe(False),
    "return_tokens_as_token_ids": Probe(True, {"logprobs": 1}),
}
PROBES: Mapping[str, Mapping[str, Probe]] = {
    CHAT: {**_CHAT, **_COMMON},
    COMPLETIONS: {**_COMPLETIONS, **_COMMON},
}


def body(path: str, name: str) -> dict[str, Any]:
    """The request that probes a field: a short greedy one with the field, and what it needs."""
    text: dict[str, Any] = (
        {"messages": [_QUESTION]} if path == CHAT else {"prompt": "Count to nine: one, two, three"}
    )
    probe = PROBES[path][name]
    return {"model": MODEL, "max_tokens": 4, "temperature": 0, **text, **probe.needs, name: probe.value}


def probe(url: str, path: str, name: str, pool: str | None) -> Result:
    """Send the probe of a field to a running service, to `pool` or as an unpinned interactive request.

    Raises AssertionError for an answer that may be another one a moment later: it says nothing of the field.
    """
    headers = {"x-twinpool-tier": "interactive"} if pool is None else {"x-twinpool-pool": pool}
    answer = httpx.post(url + path, json=body(path, name), headers=headers, timeout=120)
    error = _error(answer)
    assert error is None or set(error) == {"message", "type", "param", "code"}, answer.text
    if error is None:
        assert answer.status_code == 200, (name, answer.status_code, answer.text)
        return Result(200)
    passing = (Code.NO_CAPACITY, Code.NOT_READY, Code.RATE_LIMIT_EXCEEDED, Code.REPLICA_LOST)
    assert error["code"] not in passing, (name, error)
    return Result(answer.status_code, error["code"], error["message"])


def _error(answer: httpx.Response) -> dict[str, Any] | None:
    """The error object of an answer, which a begun stream has in an event; None when it was served."""
    lines = [line for line in answer.text.splitlines() if line.startswith('data: {"error"')]
    if answer.status_code < 400 and not lines:
        return None
    said = json.loads(lines[0].removeprefix("data: ")) if lines else answer.json()
    found: dict[str, Any] = said["error"]
    return found


def probes() -> Iterator[tuple[str, str, str | None]]:
    """Every probe: of each field, to both pools and to none."""
    for path in PATHS:
        for name in PROBES[path]:
            for pool in (*POOLS, None):
                yield path, name, pool


def measure(url: str) -> dict[tuple[str, str, str | None], Result]:
    """Send every probe to a running service, one after the other: some 370 requests of a few tokens."""
    return {key: probe(url, *key) for key in probes()}


# --- the table


def table(measured: Measured) -> list[tuple[str, ...]]:
    """One row of HEAD per field, in alphabetical order.

    `chat` and `completions` say what a caller gets who names no pool, the pools' columns what each pool
    says; there one word stands for both endpoints where they agree.
    """
    names = sorted({name for path in PATHS for name in PROBES[path]})
    return [
        (name, *_callers(measured, name), *(_pool(measured, name, pool) for pool in POOLS)) for name in names
    ]


def _callers(measured: Measured, name: str) -> list[str]:
    return [cell(name, measured[path, name, None]) if name in PROBES[path] else ABSENT for path in PATHS]


def _pool(measured: Measured, name: str, pool: str) -> str:
    found = {
        word: cell(name, measured[path, name, pool])
        for word, path in zip(("chat", "completions"), PATHS, strict=True)
        if name in PROBES[path]
    }
    if len(set(found.values())) == 1:
        return next(iter(found.values()))
    return "; ".join(f"{word}: {value}" for word, value in found.items())


def cell(name: str, result: Result) -> str:
    """A result in the table's words."""
    removed = name in STEERING_FIELDS and result.code is None
    if removed or result.code == Code.UNSAFE_PARAMETER:
        return NOT_ACCEPTED
    return SERVED if result.code is None else f"refused ({result.code})"


def note(measured: Measured, name: str) -> str:
    """What the probes say of a field, and the first sentence of a refusal."""
    notes = [PROBES[path][name].note for path in PATHS if name in PROBES[path]]
    said = [
        f"“{_plain(message)}”"
        for (_, field_name, _), result in measured.items()
        if field_name == name and (message := result.message) is not None
    ]
    return " ".join(dict.fromkeys([*filter(None, notes), *said[:1]])) or ABSENT


def _plain(message: str) -> str:
    """A message's first sentence as it may stand in a cell, at most 160 characters long."""
    line = message.strip().splitlines()[0].split(". ")[0].rstrip(".")
    return line.replace("|", "/").replace("`", "'")[:160]


def rows_of(page: str) -> list[tuple[str, ...]]:
    """The rows of a page that `docs/generate_parameters.py` wrote, without marks and notes."""
    lines = [line for line in page.splitlines() if line.startswith("| `")]
    return [tuple(cell.strip(" `") for cell in line.strip("| ").split(" | ")[: len(HEAD)]) for line in lines]
