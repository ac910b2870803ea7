"""Measure what a prompt costs: one that nobody has seen at a time, on both engines at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from app.bench.batches import Batches
from app.bench.client import prompt_tokens
from app.bench.engine_process import EngineProcess
from app.bench.prompt import Prompt, last_text
from autoscaling.profiling.measured import PrefillRun
from autoscaling.types import Role

ROOM: Final = 64  # tokens that a document and its frame may be longer than wanted
CHARACTERS: Final = 4  # of a token, seldom more
NO_TEXT: Final = "There is nothing to read in the prompts.\n" * 200


class Prefills:
    """Documents of the wanted lengths, each another one."""

    def __init__(
        self,
        engines: Mapping[Role, EngineProcess],
        batches: Batches,
        tokens: Sequence[int],
        seen: int = 0,  # documents that an engine which still runs may have in its prefix cache
    ) -> None:
        most = min(engine.capabilities.max_model_len for engine in engines.values())
        self._model = engines[Role.PLAIN].capabilities.models[0]
        self._engines = engines
        self._batches = batches
        self._tokens = [length for length in tokens if length + ROOM <= most]
        self._documents = seen

    async def measure(self, prompts: Sequence[Prompt], round_: int) -> list[PrefillRun]:
        """One round; the documents are made of the prompts' texts."""
        found = []
        for length in self._tokens:
            self._documents += 1
            document = await self._document(prompts, length)
            prompt = Prompt(f"document-{self._documents}", "document", {"messages": document}, "long")
            await asyncio.gather(*(engine.take() for engine in self._engines.values()))
            await asyncio.gather(*(self._batches.send(one, [prompt], 1) for one in self._engines.values()))
            for role, engine in self._engines.items():
                ended = (await engine.take()).finished
                found += [PrefillRun(role, round_, one.prompt_tokens, one.prefill_s) for one in ended]
        return found

    async def _document(self, prompts: Sequence[Prompt], tokens: int) -> list[dict[str, str]]:
        """Messages of at most so many tokens by the engine's own count, and about as many."""
        texts = [text for prompt in prompts if (text := last_text(prompt))] or [NO_TEXT]
        at = self._documents % len(texts)
        text = f"Document {self._documents}.\n" + "\n".join(texts[at:] + texts[:at])
        text = text[: CHARACTERS * tokens]
        while True:
            messages = [{"role": "user", "content": text}]
            count = await prompt_tokens(self._engines[Role.PLAIN], self._model, messages)
            if count is None or count <= tokens or not text:
                return messages
            # Texts differ in how long their tokens are: the whole is cut in proportion, and a little more.
            text = text[: len(text) * tokens // count - 1]
