"""Is a body of a shape that the engine can check at little cost?  Pure.

vLLM's request model collects an error for every wrong element: a body of a few MB full of them would
hold a replica's loop for minutes and take its memory.  So the lists that a client can make long are
held to their kind and to a length here, before any replica sees them; all else is the engine's to judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from app import errors

MAX_ITEMS: Final = 4096  # messages, parts of one message, tools, stop strings, biases, ...
MAX_TOKEN_IDS: Final = 1_000_000  # of a prompt, while no replica has said what fits
MAX_SEQUENCES: Final = 128  # answers of one request: n times prompts
PROMPT_KINDS: Final = "a string, a list of strings, of token ids, or of lists of token ids"

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])
_token_ids = msgspec.json.Decoder(list[int])


class _Message(msgspec.Struct):
    content: msgspec.Raw = msgspec.Raw()
    tool_calls: msgspec.Raw = msgspec.Raw()


_message = msgspec.json.Decoder(_Message)


def sequences(body: bytes, n: int, max_model_len: int | None) -> int:
    """Count the sequences that a request makes the engine run; `body` is a JSON object.

    Raises ApiError for a shape that would be dear to check, or for too many sequences.
    """
    prompts = 1
    limit = max_model_len or MAX_TOKEN_IDS
    for name, raw in _fields.decode(body).items():
        value = bytes(raw)
        if name == "messages":
            _check_messages(value)
        elif name == "prompt":
            prompts = _count_prompts(value, limit)
        elif name == "allowed_token_ids":
            _bounded(name, value, MAX_TOKEN_IDS)
        else:
            _bounded(name, value, MAX_ITEMS)
    if n * prompts > MAX_SEQUENCES:
        raise errors.invalid_type("n", f"such that n times prompts is at most {MAX_SEQUENCES}")
    return n * prompts


def _check_messages(value: bytes) -> None:
    items = _bounded("messages", value, MAX_ITEMS)
    for item in items:
        if _opening(item) != b"{":
            raise errors.invalid_type("messages", "a list of objects")
        message = _message.decode(item)
        parts = _bounded("messages.content", bytes(message.content), MAX_ITEMS)
        if any(_opening(part) not in (b"{", b'"') for part in parts):
            raise errors.invalid_type("messages.content", "a string or a list of parts")
        _bounded("messages.tool_calls", bytes(message.tool_calls), MAX_ITEMS)


def _count_prompts(value: bytes, limit: int) -> int:
    if value[:1] != b"[":
        return 1
    items = _items.decode(value)
    kinds = {_opening(item) for item in items[: MAX_SEQUENCES + 1]}
    if kinds <= {b'"'} or kinds <= {b"["}:
        if len(items) > MAX_SEQUENCES:
            raise errors.invalid_type("prompt", f"at most {MAX_SEQUENCES} prompts")
        if kinds == {b"["}:
            for item in items:
                _check_token_ids(bytes(item), limit)
        return max(1, len(items))
    _check_token_ids(value, limit)
    return 1


def _check_token_ids(value: bytes, limit: int) -> None:
    try:
        ids = _token_ids.decode(value)
    except msgspec.ValidationError:
        raise errors.invalid_type("prompt", PROMPT_KINDS) from None
    if len(ids) > limit:
        raise errors.context_length_exceeded(limit, len(ids))


def _opening(item: msgspec.Raw) -> bytes:
    """The first byte of a JSON value: it tells the kind."""
    return bytes(memoryview(item)[:1])


def _bounded(name: str, value: bytes, limit: int) -> Sequence[msgspec.Raw]:
    """Hold a list or an object to a length; returns a list's items, nothing for any other kind."""
    if value[:1] == b"[":
        items = _items.decode(value)
        if len(items) > limit:
            raise errors.invalid_type(name, f"a list of at most {limit} items, this one has {len(items)}")
        return items
    if value[:1] == b"{" and len(_fields.decode(value)) > limit:
        raise errors.invalid_type(name, f"an object of at most {limit} members")
    return ()
