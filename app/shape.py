"""Is a body of a shape that the ingress and the engine can check at little cost?  Pure.

vLLM's request model collects an error for every wrong element: a body of a few MB full of them would
hold a replica's loop for minutes and take its memory.  So the lists that a client can make long are
held to their kind and to a length here, before any replica sees them; all else is the engine's to judge.
Here, too, nothing long is taken apart before it is known to be short enough: commas are counted first,
and whatever is decoded ends at the first item too many.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from app import errors

MAX_FIELDS: Final = 256  # of the body
MAX_ITEMS: Final = 4096  # messages, parts of one message, tools, stop strings, biases, ...
MAX_MORE_ITEMS: Final = 4096  # parts and tool calls of all messages, beyond one per message
MAX_TOKEN_IDS: Final = 1_000_000  # of a prompt, while no replica has said what fits
MAX_COMMAS: Final = 1_000_000  # of a field, at every depth: some 20 ms to skip
MAX_BRACKETS: Final = 1_000_000  # that open, of the body, texts included: some 10 ms to skip
MAX_TEXT_COMMAS: Final = 4_000_000  # of `messages`, texts included: no context holds a text with so many
MAX_SMALL: Final = 1 << 20  # bytes of a field that the ingress itself reads, some of them more than once
MAX_SEQUENCES: Final = 128  # answers of one request: n times prompts
LARGE: Final = 64 << 10  # bytes; of more no list is decoded past its limit, of less that costs 2 ms
SMALL: Final = frozenset(
    (
        *("model", "service_tier", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens"),
        *("min_p", "temperature", "logit_bias", "logprob_token_ids", "response_format", "structured_outputs"),
        *("tool_choice", "chat_template", "chat_template_kwargs"),
    )
)
TEXT, LIST, OBJECT = b'"[{'  # first bytes of JSON values
PROMPT_KINDS: Final = "a string, a list of strings, of token ids, or of lists of token ids"

_ABSENT: Final = msgspec.Raw()
_FIRST: Final = re.compile(rb"\[[ \t\r\n]*(.)", re.DOTALL)  # of a list
_IDS: Final = b"-0123456789, \t\r\n"  # all that a list of token ids consists of, but its brackets


class _Message(msgspec.Struct):
    content: msgspec.Raw = _ABSENT
    tool_calls: msgspec.Raw = _ABSENT


class _Name(str):
    """The name of a field: a type of its own, so that it is counted when it is read."""

    __slots__ = ()


def _at_most(kind: type) -> type[msgspec.Struct]:
    """A list that msgspec refuses at the first item beyond the limit; a `list` it would read to its end."""
    items = [(f"item{n}", kind, _ABSENT) for n in range(MAX_ITEMS)]
    return msgspec.defstruct("AtMost", items, array_like=True, forbid_unknown_fields=True)


_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])
_long_items = msgspec.json.Decoder(_at_most(msgspec.Raw))
_messages = msgspec.json.Decoder(list[_Message])
_long_messages = msgspec.json.Decoder(_at_most(_Message))


def hold_brackets(body: bytes) -> None:
    """Refuse a body of very many lists or objects before any is read; raises ApiError."""
    if len(body) > MAX_BRACKETS and len(body) - len(body.translate(None, b"[{")) > MAX_BRACKETS:
        raise errors.invalid_type("body", f"an object with at most {MAX_BRACKETS} brackets that open")


def members(data: bytes | msgspec.Raw, limit: int, name: str) -> dict[str, msgspec.Raw]:
    """Decode an object; raises ApiError at the first member beyond the limit, and msgspec's errors.

    Of an object above `LARGE` bytes repeated names count each.
    """
    if len(data) <= LARGE:
        found = _fields.decode(data)
        if len(found) > limit:
            raise _too_wide(name, limit)
        return found
    left = limit

    def counted(_: type, value: str) -> _Name:
        nonlocal left
        left -= 1
        if left < 0:
            raise _too_wide(name, limit)
        return _Name(value)

    named = msgspec.json.decode(data, type=dict[_Name, msgspec.Raw], dec_hook=counted)
    return {str(name): raw for name, raw in named.items()}


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
            _check_allowed(name, raw)
        else:
            _check_other(name, raw)
    if n * prompts > MAX_SEQUENCES:
        raise errors.invalid_type("n", f"such that n times prompts is at most {MAX_SEQUENCES}")
    return n * prompts


def _check_messages(raw: msgspec.Raw) -> None:
    if _opening(raw) != LIST:
        _check_other("messages", raw)
        return
    if len(raw) > 2 * MAX_TEXT_COMMAS:
        _hold_commas("messages", raw, MAX_TEXT_COMMAS)
    left = MAX_MORE_ITEMS
    for message in _messages_of(raw):
        items = 0
        kind = _opening(message.content)
        if kind == OBJECT:
            raise errors.invalid_type("messages.content", "a string or a list of parts")
        if kind == LIST:
            parts = _listed("messages.content", message.content)
            if any(_opening(part) not in (OBJECT, TEXT) for part in parts):
                raise errors.invalid_type("messages.content", "a string or a list of parts")
            items = len(parts)
        if message.tool_calls is not _ABSENT:
            if _opening(message.tool_calls) == OBJECT:
                raise errors.invalid_type("messages.tool_calls", "a list")
            items += len(_listed("messages.tool_calls", message.tool_calls))
        if items > 1:
            left -= items - 1
            if left < 0:
                most = f"at most {MAX_MORE_ITEMS} parts and tool calls beyond one per message"
                raise errors.invalid_type("messages", f"a list with {most}")


def _messages_of(raw: msgspec.Raw) -> Sequence[_Message]:
    try:
        if len(raw) <= LARGE:
            messages = _messages.decode(raw)
            if len(messages) > MAX_ITEMS:
                raise _too_long("messages")
            return messages
        found = msgspec.structs.astuple(_long_messages.decode(raw))
        return [message for message in found if message is not _ABSENT]
    except msgspec.ValidationError as error:
        if "at most length" in str(error):
            raise _too_long("messages") from None
        raise errors.invalid_type("messages", "a list of objects") from None


def _count_prompts(raw: msgspec.Raw, limit: int) -> int:
    first = _FIRST.match(raw)
    if first is None or first[1] == b"]":
        return 1
    if first[1] == b'"':
        items = _listed("prompt", raw)
        if any(_opening(item) != TEXT for item in items):
            raise errors.invalid_type("prompt", PROMPT_KINDS)
        return _few_prompts(len(items))
    data = bytes(raw)
    brackets = data.translate(None, _IDS)  # the list was checked to be JSON: only its kinds are in question
    if brackets == b"[]":
        _hold_ids(data, limit)
        return 1
    inner = len(brackets) // 2 - 1
    if brackets != b"[%b]" % (b"[]" * inner):
        raise errors.invalid_type("prompt", PROMPT_KINDS)
    prompts = _few_prompts(inner)
    *lists, rest = data.split(b"]")[:-1]
    before = b"["
    for one in lists:
        between, _, ids = one.rpartition(b"[")
        if between.strip() != before:
            raise errors.invalid_type("prompt", PROMPT_KINDS)
        _hold_ids(ids, limit)
        before = b","
    if rest.strip():
        raise errors.invalid_type("prompt", PROMPT_KINDS)
    return prompts


def _few_prompts(count: int) -> int:
    if count > MAX_SEQUENCES:
        raise errors.invalid_type("prompt", f"at most {MAX_SEQUENCES} prompts")
    return count


def _hold_ids(ids: bytes, limit: int) -> None:
    count = ids.count(b",") + 1
    if count > limit:
        raise errors.context_length_exceeded(limit, count)


def _check_allowed(name: str, raw: msgspec.Raw) -> None:
    """Of token ids there may be as many as a vocabulary has; more than a few must be such."""
    if len(raw) <= 2 * MAX_ITEMS or _opening(raw) != LIST:
        _check_other(name, raw)
        return
    data = bytes(raw)
    if data.count(b",") >= MAX_TOKEN_IDS or data.translate(None, _IDS) != b"[]":
        raise errors.invalid_type(name, f"a list of at most {MAX_TOKEN_IDS} token ids")


def _check_other(name: str, raw: msgspec.Raw) -> None:
    """Hold a field to a length: a list to its items, an object to its members."""
    size = len(raw)
    if size <= 2 * MAX_ITEMS:  # with its comma an item takes two bytes
        return
    if size > MAX_SMALL and name in SMALL:
        raise errors.invalid_type(name, f"at most {MAX_SMALL} bytes long")
    kind = _opening(raw)
    if kind not in (LIST, OBJECT):
        return
    if _hold_commas(name, raw, MAX_COMMAS) < MAX_ITEMS:
        return
    if kind == LIST:
        _listed(name, raw)
    else:
        members(raw, MAX_ITEMS, name)


def _hold_commas(name: str, raw: msgspec.Raw, limit: int) -> int:
    commas = bytes(raw).count(b",")
    if commas >= limit:
        raise errors.invalid_type(name, f"a value with less than {limit} commas")
    return commas


def _listed(name: str, raw: msgspec.Raw) -> Sequence[msgspec.Raw]:
    """The items of a list, nothing for any other kind."""
    if _opening(raw) != LIST:
        return ()
    if len(raw) <= LARGE:
        items = _items.decode(raw)
        if len(items) > MAX_ITEMS:
            raise _too_long(name)
        return items
    try:
        found = msgspec.structs.astuple(_long_items.decode(raw))
    except msgspec.ValidationError:
        raise _too_long(name) from None
    return [item for item in found if item is not _ABSENT]


def _opening(raw: msgspec.Raw) -> int:
    """The first byte of a JSON value, which tells its kind; 0 for none."""
    view = memoryview(raw)
    return view[0] if view.nbytes else 0


def _too_wide(name: str, limit: int) -> errors.ApiError:
    return errors.invalid_type(name, f"an object of at most {limit} fields")


def _too_long(name: str) -> errors.ApiError:
    return errors.invalid_type(name, f"a list of at most {MAX_ITEMS} items")
