"""Where the text of a request is: the last user turn, the system message, how much there is; never raises."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import msgspec

from app.workload.text import (
    BRACKET,
    ERRORS,
    QUOTE,
    first_byte,
    size,
    size_of_all,
    start,
    start_and_end,
    texts,
)

END_BYTES: Final = 1024  # of the last user turn, at either end
SYSTEM_BYTES: Final = 1024
FIRST_BYTES: Final = 1024  # of the first user turn: only to name the conversation
_USER, _ASSISTANT = msgspec.Raw(b'"user"'), msgspec.Raw(b'"assistant"')
_SYSTEM: Final = (msgspec.Raw(b'"system"'), msgspec.Raw(b'"developer"'))


@dataclass(frozen=True, slots=True)
class Prompt:
    """Both ends of the last user turn, and what is around it; sizes are bytes as sent."""

    head: str = ""
    tail: str = ""  # empty when the head is everything
    last_bytes: int = 0
    system: str = ""  # its beginning
    system_bytes: int = 0
    all_bytes: int = 0
    token_ids: int | None = None  # None: the prompt is text
    turns: int = 0
    has_history: bool = False
    key: str | None = None


class _Message(msgspec.Struct, gc=False):
    role: msgspec.Raw = msgspec.Raw()
    content: msgspec.Raw = msgspec.Raw()


_NUMBERS = re.compile(rb"\[[\s\[]*[-0-9]")  # a list of token ids, or of lists of them
_messages = msgspec.json.Decoder(list[_Message])
_items = msgspec.json.Decoder(list[msgspec.Raw])


def of_chat(messages: msgspec.Raw) -> Prompt:
    """Read the `messages` of a chat request."""
    try:
        listed = _messages.decode(messages)
    except ERRORS:
        return Prompt()
    roles = [message.role for message in listed]
    users = [message.content for message in listed if message.role == _USER]
    about = next((texts(message.content) for message in listed if message.role in _SYSTEM), [])
    last = texts(users[-1]) if users else []
    head, tail = start_and_end(last, END_BYTES)
    return Prompt(
        head=head,
        tail=tail,
        last_bytes=size(last),
        system=start(about, SYSTEM_BYTES),
        system_bytes=size(about),
        all_bytes=size_of_all([message.content for message in listed]),
        turns=len(users),
        has_history=_ASSISTANT in roles,
        key=_key(about, last if len(users) == 1 else texts(users[0])) if users else None,
    )


def of_completion(prompt: msgspec.Raw) -> Prompt:
    """Read the `prompt` of a completion: a string, strings, or token ids, which have no text."""
    if first_byte(prompt) != BRACKET:
        strings = texts(prompt)
    elif _NUMBERS.match(prompt):  # nothing but commas tells how many: a million ids are not taken apart
        return Prompt(token_ids=bytes(prompt).count(b",") + 1, turns=1)
    else:
        try:
            items = _items.decode(prompt)
        except ERRORS:
            return Prompt()
        strings = [item for item in items if first_byte(item) == QUOTE]
        if items and not strings:
            return Prompt(token_ids=bytes(prompt).count(b",") + 1, turns=1)
    head, tail = start_and_end(strings[:1], END_BYTES)  # of several prompts the first stands for all
    return Prompt(
        head=head,
        tail=tail,
        last_bytes=size(strings[:1]),
        all_bytes=size(strings),
        turns=min(1, len(strings)),
    )


def _key(system: Sequence[msgspec.Raw], first: Sequence[msgspec.Raw]) -> str:
    """Name a conversation by how it began: later turns repeat that, byte by byte."""
    about = memoryview(system[0])[:SYSTEM_BYTES] if system else b""
    opening = memoryview(first[0])[:FIRST_BYTES] if first else b""
    # No text holds a zero byte, so that nothing slides from one to the other.
    return blake2b(b"\0".join((about, opening, b"")), digest_size=8).hexdigest()
