"""What a request's body says about the work it brings, read in at most 4 KB of its text; pure, total."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from app.workload import words
from app.workload.prompt import Prompt, of_chat, of_completion
from app.workload.text import ERRORS

INSTRUCTION: Final = 320  # characters of the beginning in which an instruction is looked for
LATE: Final = 240  # and of the end
SUMS_BYTES: Final = 1000  # a problem of arithmetic is no longer
PREAMBLE: Final = 600  # bytes of a system message that are no material
BYTES_PER_TOKEN: Final = 4.0
MOST_TOKENS: Final = 1_000_000_000  # of an answer; a larger number is no limit
GUIDED: Final = frozenset(
    ("structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar")
)

_T = TypeVar("_T")
_NOTHING: Final = msgspec.Raw()
_HOLLOW: Final = re.compile(rb'(?:null|""|\[\s*\]|\{\s*\})?')  # absent, or without a first item
_int = msgspec.json.Decoder(int, strict=False)
_float = msgspec.json.Decoder(float, strict=False)
_text = msgspec.json.Decoder(str, strict=False)
_dict = msgspec.json.Decoder(dict[str, msgspec.Raw], strict=False)


@dataclass(frozen=True, slots=True)
class Features:
    """What is known of a request before it runs; shares are 0..1, `None` is unknown or absent."""

    prompt_chars: int = 0  # bytes of all text, as sent
    prompt_tokens: int = 0  # estimated; counted for a prompt of token ids
    max_tokens: int | None = None
    temperature: float | None = None
    turns: int = 0  # of the user; a completion has one
    has_system: bool = False
    has_history: bool = False  # the assistant has spoken
    structured: bool = False  # the answer is held to JSON or a grammar
    tools: bool = False
    code_share: float = 0.0
    verb: words.Verb | None = None
    question: bool = False  # the last line asks
    sums: bool = False  # a problem of arithmetic
    program: bool = False  # the instruction speaks of a program
    context_share: float = 0.0  # supplied material, of the whole prompt
    repetition: float = 0.0  # words that were there before
    conversation_key: str | None = None  # the same on every turn of a conversation

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return msgspec.to_builtins(self)  # type: ignore[no-any-return]


def read_features(path: str, fields: Mapping[str, msgspec.Raw]) -> Features:
    """Read the features of a body; `fields` is its top level.  Never raises: what is odd is absent."""
    chat = path.endswith("/chat/completions")
    prompt = (
        of_chat(fields.get("messages", _NOTHING)) if chat else of_completion(fields.get("prompt", _NOTHING))
    )
    text = f"{prompt.head}\n{prompt.tail}" if prompt.tail else prompt.head
    last_line = text[-LATE:].rstrip().rpartition("\n")[2]
    question = words.asks(last_line)
    beginning = words.piece_of(prompt.head[:INSTRUCTION])
    verb, material_at = _asked_for(prompt, beginning)
    tools = fields.get("tools", _NOTHING)
    return Features(
        prompt_chars=prompt.all_bytes,
        prompt_tokens=_prompt_tokens(prompt, tools),
        max_tokens=_max_tokens(chat, fields),
        temperature=_temperature(fields.get("temperature", _NOTHING)),
        turns=prompt.turns,
        has_system=prompt.system_bytes > 0,
        has_history=prompt.has_history,
        structured=_is_structured(fields),
        tools=_present(tools) or _present(fields.get("functions", _NOTHING)),
        code_share=round(words.code_share(text), 3),
        verb=verb,
        question=question,
        sums=prompt.last_bytes <= SUMS_BYTES and words.about_sums(text, question),
        program=words.about_programs(beginning),
        context_share=round(_context_share(prompt, material_at, len(last_line) if question else 0), 3),
        repetition=round(words.repetition(text), 3),
        conversation_key=prompt.key,
    )


def _asked_for(prompt: Prompt, beginning: words.Piece) -> tuple[words.Verb | None, int | None]:
    """The verb, and the byte of the last user turn where its material may begin.

    The beginning counts before the end, and both before the system message, whose verb is about all
    that the user says.
    """
    verb, end = words.asked_for(beginning)
    if verb is not None:
        cuts = [at + 1 for mark in (":", "\n") if (at := prompt.head.find(mark, end)) >= 0]
        return verb, min(cuts, default=prompt.last_bytes)
    late = prompt.tail[-LATE:] or prompt.head[INSTRUCTION:][-LATE:]
    verb, _ = words.asked_for(words.piece_of(late))
    if verb is not None:
        return verb, None
    verb, _ = words.asked_for(words.piece_of(prompt.system[:INSTRUCTION]))
    return verb, None if verb in (None, words.Verb.WRITE) else 0


def _context_share(prompt: Prompt, material_at: int | None, question_chars: int) -> float:
    """How much of the prompt is material that somebody supplied, and no instruction.

    Material follows the colon or the line that ends an instruction, or stands before a question;
    earlier turns are material, and so is what a long system message holds.
    """
    if not prompt.all_bytes:
        return 0.0
    around = prompt.all_bytes - prompt.last_bytes - min(prompt.system_bytes, PREAMBLE)
    within = 0
    if material_at is not None:
        within = prompt.last_bytes - material_at
    elif question_chars and prompt.last_bytes > 2 * question_chars + 40:
        within = prompt.last_bytes - question_chars
    elif prompt.last_bytes > 2 * INSTRUCTION:
        within = prompt.last_bytes - INSTRUCTION
    return min(1.0, max(0, around + max(0, within)) / prompt.all_bytes)


def _prompt_tokens(prompt: Prompt, tools: msgspec.Raw) -> int:
    if prompt.token_ids is not None:
        return prompt.token_ids
    return math.ceil((prompt.all_bytes + len(tools)) / BYTES_PER_TOKEN)


def _max_tokens(chat: bool, fields: Mapping[str, msgspec.Raw]) -> int | None:
    raw = fields.get("max_completion_tokens", _NOTHING) if chat else _NOTHING
    if not _present(raw):  # the newer name wins, as in the engine
        raw = fields.get("max_tokens", _NOTHING)
    value = _read(raw, _int)
    return value if value is not None and 1 <= value <= MOST_TOKENS else None


def _temperature(raw: msgspec.Raw) -> float | None:
    value = _read(raw, _float)
    return value if value is not None and math.isfinite(value) and value >= 0 else None


def _is_structured(fields: Mapping[str, msgspec.Raw]) -> bool:
    kind = _read(fields.get("response_format", _NOTHING), _dict) or {}
    if _read(kind.get("type", _NOTHING), _text) not in (None, "text"):
        return True
    return not GUIDED.isdisjoint(fields) and any(_present(fields.get(name, _NOTHING)) for name in GUIDED)


def _present(raw: msgspec.Raw) -> bool:
    return _HOLLOW.fullmatch(raw) is None


def _read(raw: msgspec.Raw, kind: msgspec.json.Decoder[_T]) -> _T | None:
    if not _present(raw):
        return None
    try:
        return kind.decode(raw)
    except ERRORS:
        return None
