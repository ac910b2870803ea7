"""Which prompts an engine has room for, by its own count of their tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from app.bench.client import prompt_tokens
from app.bench.engine_process import EngineProcess
from app.bench.prompts import Prompt, PromptsError

CASE_TOKENS: Final = 8  # of a case number, which may come before a prompt that is used again


async def fitting(
    engine: EngineProcess,
    prompts: Sequence[Prompt],
    workloads: Collection[str],
    most: int,
    answer_tokens: int,
) -> list[Prompt]:
    """Those that are with their answer at most `most` tokens; an engine that does not count takes all.

    Raises PromptsError when none of a workload that is to be measured is left.
    """
    model = engine.capabilities.models[0]
    kept = []
    for prompt in prompts:
        count = await prompt_tokens(engine, model, prompt.body.get("messages"))
        if count is None or count + CASE_TOKENS + answer_tokens <= most:
            kept.append(prompt)
    lost = {one.workload for one in prompts} - {one.workload for one in kept}
    if named := sorted(lost.intersection(workloads)):
        raise PromptsError(
            f"{', '.join(named)}: every prompt with its answer is longer than the {most} tokens of the "
            "engines: leave that class out, or raise engine.max_model_len in the settings"
        )
    return kept


def too_long(prompts: Sequence[Prompt], kept: Sequence[Prompt], most: int) -> str:
    """What `fitting` has left out, by kind, in words; empty where nothing was."""
    lost = Counter(one.workload for one in prompts)
    lost.subtract(one.workload for one in kept)
    if not lost.total():
        return ""
    named = ", ".join(f"{name} {count}" for name, count in lost.most_common() if count)
    return (
        f"{lost.total()} of {len(prompts)} prompts ({named}): with the answer they are longer than the "
        f"{most} tokens of the engines"
    )
