"""Is a body of a shape that the engine can check at little cost?  Pure.

vLLM's request model collects an error for every wrong element: a body of a few MB full of them would
hold a replica's loop for minutes and take its memory.  So the lists that a client can make long are
held to their kind and to a length here, before any replica sees them; all else is the engine's to judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from app import errors

MAX_ITEMS: Final = 4096  # messages, parts of one message, tools, stop strings, biases, ...
MAX_TOKEN_IDS: Final = 1_000_000  # of a prompt, while no replica has said what fits
LARGE: Final = 256 << 10  # bytes; of more the items are counted before one is looked into
MAX_SEQUENCES: Final = 128  # answers of one request: n times prompts
TEXT, LIST, OBJECT = b'"[{'  # first bytes of JSON values
PROMPT_KINDS: Final = "a string, a list of strings, of token ids, or of lists of token ids"

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])
_token_ids = msgspec.json.Decoder(list[int])


_ABSENT: Final = msgspec.Raw()


class _Message(msgspec.Struct):
    content: msgspec.Raw = _ABSENT
    tool_calls: msgspec.Raw = _ABSENT


_messages = msgspec.json.Decoder(list[_Message])


def sequences(body: Mapping[str, msgspec.Raw], n: int, max_model_len: int | None) -> int:
    """Count the sequences that a request makes the engine run; `body` is the top level of its object.

    Raises ApiError for a shape that would be dear to check, or for too many sequences.
    """
    prompts = 1
    limit = max_model_len or MAX_TOKEN_IDS
    for name, raw in body.items():
        if name == "messages":
            _check_messages(raw)
        elif name == "prompt":
            prompts = _count_prompts(raw, limit)
        elif name == "allowed_token_ids":
            _bounded(name, raw, MAX_TOKEN_IDS)
        else:
            _bounded(name, raw, MAX_ITEMS)
    if n * prompts > MAX_SEQUENCES:
        raise errors.invalid_type("n", f"such that n times prompts is at most {MAX_SEQUENCES}")
    return n * prompts


def _check_messages(raw: msgspec.Raw) -> None:
    if _opening(raw) != LIST or memoryview(raw).nbytes > LARGE:
        _bounded("messages", raw, MAX_ITEMS)
    if _opening(raw) != LIST:
        return
    try:
        messages = _messages.decode(raw)
    except msgspec.ValidationError:
        raise errors.invalid_type("messages", "a list of objects") from None
    _hold("messages", len(messages), MAX_ITEMS)
    for message in messages:
        if _opening(message.content) != TEXT:
            parts = _bounded("messages.content", message.content, MAX_ITEMS)
            if any(_opening(part) not in (OBJECT, TEXT) for part in parts):
                raise errors.invalid_type("messages.content", "a string or a list of parts")
        if message.tool_calls is not _ABSENT:
            _bounded("messages.tool_calls", message.tool_calls, MAX_ITEMS)


def _count_prompts(raw: msgspec.Raw, limit: int) -> int:
    if _opening(raw) != LIST:
        return 1
    items = _items.decode(raw)
    kinds = {_opening(item) for item in items[: MAX_SEQUENCES + 1]}
    if kinds <= {TEXT} or kinds <= {LIST}:
        if len(items) > MAX_SEQUENCES:
            raise errors.invalid_type("prompt", f"at most {MAX_SEQUENCES} prompts")
        if kinds == {LIST}:
            for item in items:
                _check_token_ids(item, limit)
        return max(1, len(items))
    _check_token_ids(raw, limit)
    return 1


def _check_token_ids(raw: msgspec.Raw, limit: int) -> None:
    try:
        ids = _token_ids.decode(raw)
    except msgspec.ValidationError:
        raise errors.invalid_type("prompt", PROMPT_KINDS) from None
    if len(ids) > limit:
        raise errors.context_length_exceeded(limit, len(ids))


def _opening(raw: msgspec.Raw) -> int:
    """The first byte of a JSON value, which tells its kind; 0 for none."""
    view = memoryview(raw)
    return view[0] if view.nbytes else 0


def _bounded(name: str, raw: msgspec.Raw, limit: int) -> Sequence[msgspec.Raw]:
    """Hold a list or an object to a length; returns a list's items, nothing for any other kind."""
    kind = _opening(raw)
    if kind == LIST:
        items = _items.decode(raw)
        _hold(name, len(items), limit)
        return items
    if kind == OBJECT and len(_fields.decode(raw)) > limit:
        raise errors.invalid_type(name, f"an object of at most {limit} members")
    return ()


def _hold(name: str, length: int, limit: int) -> None:
    if length > limit:
        raise errors.invalid_type(name, f"a list of at most {limit} items, this one has {length}")
