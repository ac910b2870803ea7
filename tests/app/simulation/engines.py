"""Small engines for the tests of the simulation."""

from __future__ import annotations

from typing import Any

from app.simulation.acceptance import Acceptance
from app.simulation.engine import Engine
from app.simulation.engine_profile import EngineProfile
from app.simulation.sequence import Sequence
from autoscaling.profile import MEAN
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role

PLAIN = StepCost(base_s=0.01, per_token_s=0.001)
DRAFTS = StepCost(base_s=0.01, per_token_s=0.001, draft_s=0.002, draft_length=2)
ALWAYS = Acceptance((1.0, 1.0))


def engine_profile(acceptance: Acceptance = ALWAYS, **changes: Any) -> EngineProfile:
    """Steps of 10 ms and 1 ms per token, drafts of two tokens for 2 ms, room for all; and what is given."""
    fields: dict[str, Any] = {
        "name": "small",
        "costs": {Role.SPECULATIVE: DRAFTS, Role.PLAIN: PLAIN},
        "acceptance": {MEAN: acceptance},
        "kv_tokens": {Role.SPECULATIVE: 1_000_000, Role.PLAIN: 1_000_000},
        "max_num_seqs": 256,
        "max_batched_tokens": 8192,
        "max_model_len": 100_000,
        "context_tokens": 100.0,
        "start_s": 30.0,
        "stop_s": 3.0,
    }
    return EngineProfile(**(fields | changes))


def step(engine: Engine, now: float) -> tuple[float, list[tuple[str, int, bool]]]:
    """One step: its seconds to the nanosecond, and what it brought."""
    seconds = engine.begin(now)
    assert seconds is not None
    return round(seconds, 9), finish(engine, now + seconds)


def finish(engine: Engine, now: float) -> list[tuple[str, int, bool]]:
    """End a step: of each that gained tokens its name, how many, and whether those were its last."""
    before = [(one, one.generated) for one in engine.sequences]
    ended = engine.finish(now)
    left = engine.sequences
    assert {one.identity for one, _ in before} == {one.identity for one in (*ended, *left)}
    return [
        (one.identity, one.generated - generated, one in ended)
        for one, generated in before
        if one.generated > generated
    ]


def drive(engine: Engine, now: float = 0.0) -> float:
    """Step until the engine is idle; when that is."""
    while (seconds := engine.begin(now)) is not None:
        now += seconds
        engine.finish(now)
    return now


def kept_full(
    engine: Engine, sequences: int, prompt_tokens: int, answer_tokens: int, workload: str, requests: int
) -> tuple[float, int]:
    """Keep an engine at `sequences`, until `requests` ended: the seconds, and the tokens that came out.

    The first ones are in all stages of their answers, as in an engine that has run for long; that their
    prompts are computed does not count.
    """
    begun = sequences
    first = []
    for place in range(sequences):
        done = place * answer_tokens // sequences
        first.append(Sequence(str(place), workload, prompt_tokens + done, answer_tokens - done, place))
        engine.add(first[-1], 0.0)
    while any(one.first_token_at is None for one in first):
        step(engine, 0.0)
    now, tokens, ended = 0.0, 0, 0
    while ended < requests:
        seconds, progress = step(engine, now)
        now += seconds
        for _, gained, last in progress:
            tokens += gained
            if last:
                ended += 1
                engine.add(Sequence(str(begun), workload, prompt_tokens, answer_tokens, begun), now)
                begun += 1
    return now, tokens
