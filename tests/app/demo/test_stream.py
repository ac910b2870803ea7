"""Reading a stream: usage and drafts by its last chunk, errors, its end, times; chunks are never counted."""

from __future__ import annotations

import pytest

from app.demo.answers import Drafts
from app.demo.stream import StreamReader

STREAM = (
    b'data: {"choices": [{"delta": {"content": "say \\"usage\\" or \\"error\\""}}], "usage": null}\n\n'
    b": a comment\n\n"
    b'data: {"choices": [], "usage": {"completion_tokens": 48}, "metrics": {"speculative_decoding":'
    b' {"num_spec_steps": 10, "num_draft_tokens": 40, "num_accepted_draft_tokens": 37}}}\n\n'
    b"data: [DONE]\n\n"
)


def read(*parts: bytes) -> StreamReader:
    reader = StreamReader()
    for number, part in enumerate(parts):
        reader.feed(part, 100.0 + number)
    return reader


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_stream_is_read_however_it_is_cut(size: int) -> None:
    """Tokens and drafts come from the usage chunk, whatever the sizes of the pieces."""
    reader = read(*(STREAM[start : start + size] for start in range(0, len(STREAM), size)))

    assert (48, Drafts(10, 40, 37), None, True) == (
        reader.tokens,
        reader.drafts,
        reader.error,
        reader.finished,
    )


def test_without_usage_nothing_is_known_of_the_tokens() -> None:
    """Chunks are not counted."""
    reader = read(b'data: {"choices": [{"delta": {"content": "a"}}]}\n\n' * 5 + b"data: [DONE]\n\n")

    assert (None, None, True) == (reader.tokens, reader.drafts, reader.finished)


def test_a_plain_pool_has_no_drafts() -> None:
    """Usage without metrics."""
    reader = read(b'data: {"usage": {"completion_tokens": 3}, "metrics": null}\n\n')

    assert (3, None) == (reader.tokens, reader.drafts)


@pytest.mark.parametrize(
    ("code", "event"),
    [
        ("stream_interrupted", b'data: {"error":{"message":"m","code":"stream_interrupted"}}\n\n'),
        ("unknown", b'data: {"error":"no object"}\n\n'),
        ("not JSON", b'data: {"error": cut'),
    ],
)
def test_an_error_event_is_kept(code: str, event: bytes) -> None:
    """Its code, or what it is instead of one of the service's."""
    reader = read(event, b"\n")

    assert (code, False) == (reader.error, reader.finished)


@pytest.mark.parametrize(
    "event",
    [b'data: ["usage"]\n', b'data: {"usage": 3}\n', b'data: {"usage": {"completion_tokens": true}}\n'],
)
def test_what_has_another_shape_is_unknown(event: bytes) -> None:
    """No guess is made of it."""
    assert None is read(event).tokens


def test_times_are_those_of_the_bytes() -> None:
    """From the first piece to the last; a stream in one piece tells no pace."""
    assert (100.0, 2.0) == (read(b"a", b"b", b"c").first_at, read(b"a", b"b", b"c").stream_s)
    assert (100.0, None) == (read(STREAM).first_at, read(STREAM).stream_s)
    assert (None, None) == (StreamReader().first_at, StreamReader().stream_s)
