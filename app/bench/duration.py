"""How long a measurement takes, roughly, on two CPU cores with the embedded model; pure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Final

from app.bench.asked import Asked, groups
from app.bench.plan import LONG_BATCH, Pair, Plan, expected_s, pairs
from app.bench.prompt import CHARS_PER_TOKEN, Prompt

START_S: Final = 45.0  # of an engine; a move is one too
PREFILL_TOKEN_S: Final = 0.002
KV_TOKEN_BYTES: Final = 23_040  # of the embedded model
LONG_S: Final = 2700.0  # told in hours from here on
MOST_RATIO: Final = 1.5  # of tokens to what the characters let expect, at most


def round_s(plan: Plan, round_: int, lengths: Sequence[int]) -> float:
    """Seconds of one round with engines that have these K."""
    return prefills_s(plan) + sum(expected_s(pair, plan) for pair in pairs(plan, round_, lengths))


def rounds_s(plan: Plan, lengths: Sequence[int], most: int | None = None) -> float:
    """Seconds of the first `most` rounds, or of all."""
    count = plan.rounds if most is None else min(most, plan.rounds)
    return sum(round_s(plan, round_, lengths) for round_ in range(count))


def prefills_s(plan: Plan) -> float:
    """Seconds in which one round reads its documents."""
    return PREFILL_TOKEN_S * sum(plan.prefill_tokens)


def warm_up_s(plan: Plan) -> float:
    """Seconds in which every kind of prompts is sent once."""
    return sum(expected_s(Pair(LONG_BATCH, workload, 0), plan) for workload in plan.all_workloads)


def run_s(asked: Asked) -> float:
    """Seconds of a whole run, without batches that the KV cache of the embedded model does not hold."""
    plan, starts = asked.plan, groups(asked)
    holds = min(pool.engine.kv_cache_memory_bytes for pool in (asked.speculative, asked.plain))
    room = asked.plain.engine.max_model_len - plan.answer_tokens  # longer prompts are left out
    longest = _longest(asked.prompts, room)
    rounds = sum(
        prefills_s(plan)
        + sum(
            expected_s(pair, plan)
            for pair in pairs(plan, round_, lengths)
            if pair.sequences * (longest.get(pair.workload, 0.0) + plan.answer_tokens)
            <= holds / KV_TOKEN_BYTES
        )
        for lengths in starts
        for round_ in range(plan.rounds)
    )
    return START_S * (len(starts) + 1) + len(starts) * warm_up_s(plan) + rounds


def about(seconds: float) -> str:
    """In words, no more exact than such an estimate is."""
    if seconds < LONG_S:
        return f"about {10 * math.ceil(seconds / 600)} minutes"
    hours = max(1, math.floor(seconds / 3600))
    return f"about {hours} to {hours + 1} hours"


def _longest(prompts: Sequence[Prompt], room: int) -> Mapping[str, float]:
    """Tokens of the longest prompt of each kind, estimated."""
    found: dict[str, float] = {}
    for prompt in prompts:
        tokens = MOST_RATIO * len(json.dumps(prompt.body.get("messages"))) / CHARS_PER_TOKEN
        found[prompt.workload] = max(min(tokens, room), found.get(prompt.workload, 0.0))
    return found
