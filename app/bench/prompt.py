"""One prompt of a measurement, and which prompts a cell gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

Context = Literal["short", "medium", "long"]  # of the prompt; about 128, 512 and 1250 tokens
CONTEXTS: Final[tuple[Context, ...]] = ("short", "medium", "long")
CHARS_PER_TOKEN: Final = 4
SHORT_TOKENS: Final = 256  # up to here a prompt is short, estimated
MEDIUM_TOKENS: Final = 1000


class PromptsError(Exception):
    """The prompts cannot be used; the message says where, what is wrong, and what to do."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request and what kind it is."""

    id: str
    workload: str
    body: Mapping[str, Any]  # of /v1/chat/completions, without `model`
    context: Context


def context_of(messages: Sequence[Mapping[str, Any]]) -> Context:
    """The length of a prompt as a word, by the characters of its text."""
    tokens = sum(len(text) for message in messages for text in _texts(message)) / CHARS_PER_TOKEN
    return "short" if tokens <= SHORT_TOKENS else "medium" if tokens <= MEDIUM_TOKENS else "long"


def cells_of(prompts: Sequence[Prompt], workload: str, count: int, first: int) -> tuple[Prompt, ...]:
    """`count` prompts of a workload in their order, from number `first` on; no two are alike.

    The same arguments always give the same prompts.  Once all have been used they come again with a case
    number before them, so that an engine's prefix cache does not take them for the former ones.
    Raises PromptsError when there is none of this workload.
    """
    found = [prompt for prompt in prompts if prompt.workload == workload]
    if not found:
        known = ", ".join(sorted({prompt.workload for prompt in prompts})) or "none"
        raise PromptsError(f"no prompt of workload {workload!r}: choose one that is there ({known})")
    return tuple(_lap(found[at % len(found)], at // len(found)) for at in range(first, first + count))


def last_text(prompt: Prompt) -> str:
    """What its last message that has a text says; empty where none has."""
    for message in reversed(prompt.body["messages"]):
        if texts := _texts(message):
            return "\n".join(texts)
    return ""


def _lap(prompt: Prompt, lap: int) -> Prompt:
    if lap == 0:
        return prompt
    case = f"Case {lap + 1}."
    first, *others = prompt.body["messages"]
    match first.get("content"):
        case str() as text:
            messages = [{**first, "content": f"{case}\n{text}"}, *others]
        case list() as parts:
            messages = [{**first, "content": [{"type": "text", "text": case}, *parts]}, *others]
        case _:
            messages = [{"role": "system", "content": case}, first, *others]
    body = {**prompt.body, "messages": messages}
    return Prompt(f"{prompt.id}/{lap + 1}", prompt.workload, body, prompt.context)


def _texts(message: Mapping[str, Any]) -> list[str]:
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return [text for text in texts if isinstance(text, str)]
