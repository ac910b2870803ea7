"""Both ends of a JSON text, without decoding what lies between; never raises."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

QUOTE, BRACKET = b'"['  # the first byte of a JSON value tells its kind
MAX_PARTS: Final = 64  # of one message; of more only the first and the last are looked at
MAX_ALL_PARTS: Final = 1024  # of all messages; the rest counts as long as it was sent
ERRORS: Final = (msgspec.MsgspecError, RecursionError, ValueError)
_NEAR: Final = 64  # bytes in which a space is looked for; most words are shorter
_LONGEST_ESCAPE: Final = 12  # bytes; a surrogate pair
_HIGH = re.compile(rb"\\u[dD][89abAB]..")
_LOW = re.compile(rb"\\u[dD][c-fC-F]..")
# Behind six bytes without a backslash no escape is open; one that follows another byte begins there.
_OUTSIDE = re.compile(rb"[^\\]{6}|[^\\](?=\\)")

_string = msgspec.json.Decoder(str)
_items = msgspec.json.Decoder(list[msgspec.Raw])


class _Part(msgspec.Struct):
    text: msgspec.Raw = msgspec.Raw()


_part = msgspec.json.Decoder(_Part)


def first_byte(raw: msgspec.Raw) -> int:
    """The first byte of a value; 0 for one that is absent."""
    view = memoryview(raw)
    return view[0] if view.nbytes else 0


def texts(content: msgspec.Raw) -> list[msgspec.Raw]:
    """The strings of a message's content: itself, or those of its text parts; none for other kinds."""
    opening = first_byte(content)
    if opening == QUOTE:
        return [content]
    return _texts_of(_parts(content)) if opening == BRACKET else []


def size(strings: Sequence[msgspec.Raw]) -> int:
    """Their length in bytes as they were sent, quotes left out."""
    total = -2 * len(strings)
    for raw in strings:
        total += memoryview(raw).nbytes
    return max(0, total)


def size_of_all(contents: Sequence[msgspec.Raw]) -> int:
    """The size of the texts of all these messages."""
    total = 0
    left = MAX_ALL_PARTS
    for content in contents:
        view = memoryview(content)
        if view.nbytes > 1 and view[0] == QUOTE:
            total += view.nbytes - 2
        elif view.nbytes and view[0] == BRACKET:
            if left > 0:
                parts = _parts(content)
                left -= len(parts)
                total += size(_texts_of(parts))
            else:
                total += view.nbytes
    return total


def start(strings: Sequence[msgspec.Raw], limit: int) -> str:
    """At most `limit` bytes of the beginning."""
    return _start_and_end(strings[0], limit, 0)[0] if strings else ""


def start_and_end(strings: Sequence[msgspec.Raw], limit: int) -> tuple[str, str]:
    """At most `limit` bytes of either end; the end is empty when the start is everything."""
    if not strings:
        return "", ""
    if len(strings) == 1:
        return _start_and_end(strings[0], limit, limit)
    first, last = start(strings, limit), _start_and_end(strings[-1], 0, limit)
    return first, last[1] or last[0]


def _start_and_end(raw: msgspec.Raw, head: int, tail: int) -> tuple[str, str]:
    view = memoryview(raw)
    length = max(0, view.nbytes - 2)
    if length <= head + tail:
        return _decoded(bytes(view)), ""
    return (
        _decoded(b'"%b"' % _to_a_cut(bytes(view[1 : 1 + head]))) if head else "",
        _decoded(b'"%b"' % _from_a_cut(bytes(view[1 + length - tail : 1 + length]))) if tail else "",
    )


def _to_a_cut(data: bytes) -> bytes:
    """Up to a place near the end where no character and no escape is cut in two."""
    end = data.rfind(b" ", max(0, len(data) - _NEAR))
    if end >= 0:  # a space is a part of no escape and of no other character
        return data[:end]
    end = data.find(b"\\", max(0, len(data) - _LONGEST_ESCAPE))
    if end >= 0:
        end = len(data[:end].rstrip(b"\\"))  # an escape begins where its backslashes begin
        return data[: end - 6] if _HIGH.fullmatch(data[end - 6 : end]) else data[:end]
    end = len(data)
    while end and data[end - 1] >= 0x80:  # the bytes of the last character, which may be incomplete
        end -= 1
        if data[end] >= 0xC0:
            break
    return data[:end]


def _from_a_cut(data: bytes) -> bytes:
    """From a place near the beginning where no character and no escape is cut in two."""
    begin = data.find(b" ", 0, _NEAR) + 1
    if begin:
        return data[begin:]
    found = _OUTSIDE.search(data, 0, _NEAR)
    if found is None:
        return b""
    begin = found.end()
    if _LOW.match(data, begin):
        begin += 6
    while begin < len(data) and 0x80 <= data[begin] < 0xC0:
        begin += 1
    return data[begin:]


def _decoded(data: bytes) -> str:
    try:
        return _string.decode(data)
    except ERRORS:
        return ""


def _parts(content: msgspec.Raw) -> list[msgspec.Raw]:
    """The parts of a list that are looked at."""
    try:
        parts = _items.decode(content)
    except ERRORS:
        return []
    return parts if len(parts) <= MAX_PARTS else parts[: MAX_PARTS // 2] + parts[-MAX_PARTS // 2 :]


def _texts_of(parts: Sequence[msgspec.Raw]) -> list[msgspec.Raw]:
    return [text for part in parts if (text := _text_of(part)) is not None]


def _text_of(part: msgspec.Raw) -> msgspec.Raw | None:
    if first_byte(part) == QUOTE:
        return part
    try:
        text = _part.decode(part).text
    except ERRORS:
        return None
    return text if first_byte(text) == QUOTE else None
