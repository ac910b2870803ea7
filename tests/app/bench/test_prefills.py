"""Documents whose prompts are measured: as long as wanted by the engine's own count, and each another one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from app.bench import prefills
from app.bench.prefills import Prefills
from app.bench.prompts import Prompt
from autoscaling.profiling.measured import PrefillRun
from autoscaling.types import Role

TEXTS = [
    Prompt(f"t{number}", "chat", {"messages": [{"role": "user", "content": f"{number} " * 900}]}, "short")
    for number in range(3)
]


class Engine:
    """Takes 2,048 tokens, and says what the last prompt took."""

    def __init__(self) -> None:
        self.capabilities = SimpleNamespace(max_model_len=2048, models=("m",))

    async def take(self) -> Any:
        return SimpleNamespace(finished=[SimpleNamespace(prompt_tokens=7, prefill_s=0.5)])


class Sent:
    """What was sent, in place of a batch."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def send(self, _engine: Any, batch: list[Prompt], _tokens: int) -> list[Any]:
        self.texts += [prompt.body["messages"][0]["content"] for prompt in batch]
        return []


@pytest.mark.parametrize("characters", [1, 2, 3])
async def test_a_document_has_no_more_tokens_than_wanted(
    characters: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of texts with less than four characters per token, which would not fit into the context."""

    async def counted(_engine: Any, _model: str, messages: Any) -> int:
        return 20 + -(-len(messages[0]["content"]) // characters)

    monkeypatch.setattr(prefills, "prompt_tokens", counted)
    sent, engines = Sent(), {role: Engine() for role in Role}
    found = await Prefills(engines, sent, (128, 1500, 2000)).measure(TEXTS, 0)  # type: ignore[arg-type]

    assert {PrefillRun(role, 0, 7, 0.5) for role in Role} == set(found)
    lengths = [20 + -(-len(text) // characters) for text in sent.texts]
    short, long = lengths[:2], lengths[2:]
    assert all(0.9 * 128 <= one <= 128 for one in short)
    assert all(one <= 1500 for one in long)
    assert 2 == len(long)  # 2,000 and the answer's room are above what the engines take
    assert 2 == len(set(sent.texts))


async def test_an_engine_that_does_not_count_gets_four_characters_per_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may refuse one that is too long, which the measurement then says."""

    async def unknown(_engine: Any, _model: str, _messages: Any) -> None:
        return None

    monkeypatch.setattr(prefills, "prompt_tokens", unknown)
    sent, engines = Sent(), {role: Engine() for role in Role}
    await Prefills(engines, sent, (128,)).measure(TEXTS, 0)  # type: ignore[arg-type]

    assert [512, 512] == [len(text) for text in sent.texts]


async def test_an_engine_that_still_runs_sees_no_document_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would find it in its prefix cache; prompts without a text give other words to read."""

    async def unknown(_engine: Any, _model: str, _messages: Any) -> None:
        return None

    monkeypatch.setattr(prefills, "prompt_tokens", unknown)
    sent, engines = Sent(), {role: Engine() for role in Role}
    silent = Prompt("s", "chat", {"messages": [{"role": "assistant", "tool_calls": []}]}, "short")
    await Prefills(engines, sent, (128,), seen=5).measure([silent], 0)  # type: ignore[arg-type]

    assert ["Document 6.\nThere is nothing to read"] == sorted({text[:36] for text in sent.texts})
