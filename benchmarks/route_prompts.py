"""Requests with 8k-token prompts: 32 KB of prose or code each, built from the samples of `app`; pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any, Final

from app.samples import samples

PROMPT_BYTES: Final = 32 << 10  # 8k tokens of four bytes
TURNS: Final = 20  # of the user in a long conversation
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
PROSE: Final = ("summarize", "rag", "translate", "chat")
PROGRAMS: Final = ("code",)


@dataclass(frozen=True, slots=True)
class Body:
    """One request as it comes in."""

    kind: str
    path: str
    raw: bytes


def bodies(each: int, seed: int = 0) -> list[Body]:
    """`each` different requests of every kind; the kinds take turns."""
    chance = Random(seed)
    return [
        Body(kind, path, json.dumps(make(chance), ensure_ascii=False, separators=(",", ":")).encode())
        for _ in range(each)
        for kind, (path, make) in KINDS.items()
    ]


def _pieces(words: Sequence[str]) -> list[str]:
    """The paragraphs of all samples of these kinds."""
    contents = [
        message["content"]
        for sample in samples()
        if sample.workload in words
        for message in sample.body["messages"]
        if isinstance(message["content"], str)
    ]
    return [piece for content in contents for piece in content.split("\n\n") if len(piece) > 40]


def _text(chance: Random, pieces: Sequence[str], size: int, number: bool = False) -> str:
    """Paragraphs in a random order, cut at `size` characters."""
    parts: list[str] = []
    length = 0
    for index in count(1):
        part = chance.choice(pieces)
        parts.append(f"[{index}] {part}" if number else f"{part} ({chance.randrange(10**6)})")
        length += len(parts[-1]) + 2
        if length > size:
            break
    return "\n\n".join(parts)[:size]


def _asked(chance: Random, **own: Any) -> dict[str, Any]:
    limit, heat = chance.choice((64, 256, 512, 1024)), chance.choice((0.0, 0.2, 0.7, 1.0))
    return {"model": "m", **own, "max_tokens": limit, "temperature": heat, "stream": True}


def _messages(*turns: tuple[str, str]) -> list[dict[str, str]]:
    return [{"role": role, "content": content} for role, content in turns]


def _chat(chance: Random) -> dict[str, Any]:
    verb = chance.choice(
        ("Summarize this in three sentences:", "Rewrite this as a letter:", "What follows from this?")
    )
    text = f"{verb}\n\n{_text(chance, _PROSE, PROMPT_BYTES)}"
    return _asked(chance, messages=_messages(("system", "You are a careful assistant."), ("user", text)))


def _turns(chance: Random) -> dict[str, Any]:
    size = PROMPT_BYTES // (2 * TURNS)
    said = _messages(
        *((role, _text(chance, _PROSE, size)) for _ in range(TURNS) for role in ("user", "assistant"))
    )
    return _asked(chance, messages=[*_messages(("system", "Answer briefly.")), *said[:-1]])


def _completion(chance: Random) -> dict[str, Any]:
    return _asked(chance, prompt=_text(chance, _PROSE, PROMPT_BYTES))


def _code(chance: Random) -> dict[str, Any]:
    code = "".join(f"```python\n{_text(chance, _CODE, PROMPT_BYTES // 4)}\n```\n" for _ in range(4))
    return _asked(chance, messages=_messages(("user", f"Rename `load` to `read` in these files.\n\n{code}")))


def _rag(chance: Random) -> dict[str, Any]:
    context = _text(chance, _PROSE, PROMPT_BYTES, number=True)
    question = "Which of the documents names a year, and which one? Answer with the number in brackets."
    system = "Answer from the documents only. Say so when they do not tell."
    return _asked(
        chance, messages=_messages(("system", system), ("user", f"{context}\n\nQuestion: {question}"))
    )


_PROSE, _CODE = _pieces(PROSE), _pieces(PROGRAMS)
_Make = Callable[[Random], dict[str, Any]]
KINDS: Final[dict[str, tuple[str, _Make]]] = {
    "chat": (CHAT, _chat),
    "turns": (CHAT, _turns),
    "completion": (COMPLETIONS, _completion),
    "code": (CHAT, _code),
    "rag": (CHAT, _rag),
}


def taking_turns(made: Sequence[Body], total: int) -> Iterator[Body]:
    """`total` requests, the same ones again when they end."""
    for index in range(total):
        yield made[index % len(made)]
