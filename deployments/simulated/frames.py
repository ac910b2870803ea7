"""The messages between the engine and its child process, and how they travel: length, then msgpack."""

from __future__ import annotations

import msgspec

LENGTH_BYTES = 4


class Configure(msgspec.Struct, frozen=True, tag="configure", array_like=True):
    """First frame to the child: the step clock and the limits of the scheduler."""

    start_s: float
    step_base_s: float
    step_per_token_s: float
    step_per_context_s: float
    acceptance: float
    seed: int
    max_prefill_tokens: int
    max_num_seqs: int
    max_model_len: int
    kv_capacity: int  # tokens
    draft_length: int  # 0 on a plain engine


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What a sequence will say: the script's tokens, then filler words chosen by the seed."""

    script: tuple[str, ...]
    seed: int
    length: int | None  # tokens until the answer ends by itself; None never ends it


class Add(msgspec.Struct, frozen=True, tag="add", array_like=True):
    """A sequence to generate."""

    key: int  # of the sequence; the request id may repeat, this does not
    request_id: str
    index: int  # among the sequences of one request
    prompt_tokens: int
    max_tokens: int
    min_tokens: int
    priority: int  # lower runs first
    stop: tuple[str, ...]
    include_stop: bool
    answer: Answer


class Abort(msgspec.Struct, frozen=True, tag="abort", array_like=True):
    """Sequences that nobody waits for any more; unknown keys are ignored."""

    keys: tuple[int, ...]


class Ready(msgspec.Struct, frozen=True, tag="ready", array_like=True):
    """The child can serve."""

    pid: int


class Finished(msgspec.Struct, frozen=True, array_like=True):
    """The record of one finished sequence."""

    request_id: str
    prompt_tokens: int
    generated_tokens: int
    queued_s: float
    prefill_s: float
    decode_s: float
    e2e_s: float
    preemptions: int
    histogram: tuple[int, ...]  # decode steps by number of accepted draft tokens


class Output(msgspec.Struct, frozen=True, array_like=True):
    """What one step added to one sequence."""

    key: int
    text: str
    tokens: int
    finish_reason: str | None = None  # "stop" | "length" | "abort"
    stop_reason: str | None = None  # the stop string that ended the sequence
    record: Finished | None = None  # with the finish reason


class Counters(msgspec.Struct, array_like=True):
    """Counters since the child started; the fields of `autoscaling.types.EngineTotals`."""

    steps: int = 0
    preemptions: int = 0
    drafts: int = 0
    drafted: int = 0
    accepted: int = 0
    accepted_per_position: list[int] = []
    drafted_per_position: list[int] = []
    prefill_tokens: int = 0
    decode_tokens: int = 0
    request_steps: int = 0
    finished: int = 0
    finished_prompt_tokens: int = 0
    finished_generated_tokens: int = 0
    longest_step_s: float = 0.0


class Update(msgspec.Struct, frozen=True, tag="update", array_like=True):
    """What changed: after a step, or (`stepped` false) after aborts between steps."""

    stepped: bool
    outputs: list[Output]
    running: int
    waiting: int
    kv_cache_usage: float
    counters: Counters
    step_s: float = 0.0  # what the step was to take; 0 between steps


ToChild = Configure | Add | Abort
FromChild = Ready | Update

_encoder = msgspec.msgpack.Encoder()


def frame(message: ToChild | FromChild) -> bytes:
    """One message as it travels."""
    body = _encoder.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def body_length(prefix: bytes) -> int:
    """Bytes that follow a length prefix."""
    return int.from_bytes(prefix, "big")
