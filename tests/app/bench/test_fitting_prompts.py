"""Which prompts engines have room for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from app.bench import fitting_prompts
from app.bench.fitting_prompts import fitting, too_long
from app.bench.prompts import Prompt, PromptsError

ENGINE: Any = SimpleNamespace(capabilities=SimpleNamespace(models=("m",)))


def prompt(name: str, workload: str, words: int) -> Prompt:
    return Prompt(name, workload, {"messages": [{"role": "user", "content": "a " * words}]}, "short")


PROMPTS = [
    prompt("1", "chat", 10),
    prompt("2", "copy-long", 90),
    prompt("3", "copy-long", 60),
    prompt("4", "grounded", 95),
    prompt("5", "copy-long", 99),
    prompt("6", "grounded", 20),
]


@pytest.fixture(autouse=True)
def _a_word_is_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    async def counted(_engine: Any, _model: str, messages: Any) -> int:
        return len(messages[0]["content"].split())

    monkeypatch.setattr(fitting_prompts, "prompt_tokens", counted)


async def test_a_prompt_fits_with_its_answer_and_a_case_number() -> None:
    """72 tokens of 100 remain beside an answer of 20 and the 8 of a case number."""
    kept = await fitting(ENGINE, PROMPTS, ["chat", "copy-long"], 100, 20)

    assert ["1", "3", "6"] == [one.id for one in kept]


async def test_a_kind_with_only_too_long_prompts_is_named() -> None:
    """It could not be measured; one that is not to be measured may be lost."""
    words = (
        r"^copy-long: every prompt with its answer is longer than the 70 tokens of the engines: leave that"
    )
    with pytest.raises(PromptsError, match=words):
        await fitting(ENGINE, PROMPTS, ["chat", "copy-long"], 70, 20)

    assert ["1", "6"] == [one.id for one in await fitting(ENGINE, PROMPTS, ["chat"], 70, 20)]


def test_what_is_too_long_is_named_by_kind() -> None:
    """The most frequent first; nothing is said where all fit."""
    kept = [PROMPTS[0], PROMPTS[2], PROMPTS[5]]

    assert (
        "3 of 6 prompts (copy-long 2, grounded 1): with the answer they are longer than the 100 tokens of "
        "the engines"
    ) == too_long(PROMPTS, kept, 100)
    assert "" == too_long(PROMPTS, PROMPTS, 100)
