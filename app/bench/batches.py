"""Send a batch of prompts to an engine: greedy unless asked otherwise, and all answers of one length."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from app.bench.answer import Answer
from app.bench.client import ask
from app.bench.engine_process import EngineProcess
from app.bench.prompts import Prompt


class Batches:
    """How prompts are asked; answers that fail are counted in `errors`, by their words."""

    def __init__(self, model: str, answer_tokens: int, errors: dict[str, int], *, greedy: bool) -> None:
        self._model = model
        self._answer_tokens = answer_tokens
        self._errors = errors
        self._greedy = greedy  # whatever the prompts ask for

    async def send(
        self, engine: EngineProcess, batch: Sequence[Prompt], tokens: int | None = None
    ) -> list[Answer]:
        """All at once; returns when the last has ended."""
        answers = await asyncio.gather(
            *(ask(engine, self._body(prompt.body, tokens or self._answer_tokens)) for prompt in batch)
        )
        for answer in answers:
            if answer.error is not None:
                self._errors[answer.error] = self._errors.get(answer.error, 0) + 1
        return list(answers)

    def _body(self, body: Mapping[str, Any], tokens: int) -> dict[str, Any]:
        return {
            "temperature": 0,
            **body,
            "model": self._model,
            "max_tokens": tokens,
            "ignore_eos": True,  # every answer has the same length, so that a batch stays full
            "stream": True,
            "stream_options": {"include_usage": True},
            # Prescribed acceptance knows greedy decoding only.
            **({"temperature": 0} if self._greedy else {}),
        }
