"""The few fields of a request that routing reads; pure.  The body itself is passed on untouched.

Whatever only the engine acts on is the engine's to judge: a field of the wrong type reads as unknown
here.  The exceptions are `model` and `service_tier`, which the ingress acts on itself.

`NaN` and `Infinity` (as literals), a byte-order mark, invalid UTF-8 and lone surrogates are no JSON
here, even where the engine's own parser would let them pass.  Of a repeated key the last one counts,
there and here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from app import errors
from app.shape import MAX_FIELDS, hold_brackets, members, sequences

_T = TypeVar("_T")
_ABSENT: Final = (b"", b"null")
_MOST_TOKENS: Final = 2**31  # of an answer; a larger number is the engine's to judge


@dataclass(frozen=True, slots=True)
class Peek:
    """What routing knows of a request; `None` means absent or unknown."""

    model: str | None  # None: the default model
    stream: bool
    include_usage: bool  # the caller asked for the final usage chunk
    service_tier: str | None
    max_tokens: int | None  # limit of the answer, 1..2**31
    sequences: int  # what the engine will run for it: n times prompts
    parameters: frozenset[str]  # active parameters that some engines refuse


Fields = Mapping[str, msgspec.Raw]  # the top level of a body, checked as JSON and not held to types

_NOTHING: Final = msgspec.Raw()


_strings = msgspec.json.Decoder(str)


class _TemplateKwargs(msgspec.Struct):
    chat_template: msgspec.Raw = _NOTHING


class _Kind(msgspec.Struct):
    type: msgspec.Raw = _NOTHING


class _StreamOptions(msgspec.Struct):
    include_usage: msgspec.Raw = _NOTHING


def fields_of(content_type: bytes | None, body: bytes) -> Fields:
    """The top level of a request's body; raises ApiError and nothing else."""
    _check_content_type(content_type)
    try:
        return _parse(body)
    except RecursionError:
        raise errors.invalid_json("nested too deeply") from None


def peek(path: str, fields: Fields, max_model_len: int | None = None) -> Peek:
    """Read what routing needs; raises ApiError and nothing else.

    `max_model_len` is the widest context that any replica takes, in tokens.
    """
    try:
        return _peek(path, fields, sequences(fields, _positive(_of(fields, "n")) or 1, max_model_len))
    except RecursionError:
        raise errors.invalid_json("nested too deeply") from None


def _of(fields: Fields, name: str) -> msgspec.Raw:
    return fields.get(name, _NOTHING)


def _peek(path: str, fields: Fields, count: int) -> Peek:
    if _present(_of(fields, "chat_template")):
        raise errors.unsafe_parameter("chat_template")
    kwargs = _read(_of(fields, "chat_template_kwargs"), _TemplateKwargs)
    if kwargs is not None and _present(kwargs.chat_template):
        raise errors.unsafe_parameter("chat_template_kwargs.chat_template")
    options = _read(_of(fields, "stream_options"), _StreamOptions)
    limit = _count(_of(fields, "max_tokens"))
    newer = _of(fields, "max_completion_tokens")
    if path.endswith("/chat/completions") and _present(newer):
        limit = _count(newer)  # the newer name wins, as in the engine
    return Peek(
        model=_text("model", _of(fields, "model")) or None,  # the engine takes "" as the default, too
        stream=_read(_of(fields, "stream"), bool) is True,
        include_usage=options is not None and _read(options.include_usage, bool) is True,
        service_tier=_text("service_tier", _of(fields, "service_tier")),
        max_tokens=limit,
        sequences=count,
        parameters=active_parameters(fields),
    )


def active_parameters(fields: Fields) -> frozenset[str]:
    """List the parameters that are on: their default values ask for nothing."""
    active = set()
    if (_read(_of(fields, "min_p"), float) or 0.0) > 0.0:
        active.add("min_p")
    if _read(_of(fields, "logit_bias"), dict[str, msgspec.Raw]):
        active.add("logit_bias")
    if _present(_of(fields, "logprob_token_ids")):
        active.add("logprob_token_ids")
    return frozenset(active | _grammar(fields))


def _grammar(fields: Fields) -> set[str]:
    """Which fields hold the answer to a grammar; one of an unknown kind is taken to do so."""
    active = set()
    kind = _read(_of(fields, "response_format"), _Kind)
    if kind is not None and _present(kind.type) and _string(kind.type) != "text":
        active.add("response_format")
    if _present(_of(fields, "structured_outputs")):
        active.add("structured_outputs")
    choice = bytes(_of(fields, "tool_choice"))
    if choice[:1] == b"{" or (choice[:1] == b'"' and _string(choice) == "required"):
        active.add("tool_choice")
    return active


def _check_content_type(content_type: bytes | None) -> None:
    sent = (content_type or b"").decode("latin-1")
    media_type = sent.split(";", maxsplit=1)[0].strip().lower()
    suffixed = media_type.startswith("application/") and media_type.endswith("+json")
    if media_type != "application/json" and not suffixed:
        raise errors.unsupported_media_type(sent)


def _parse(body: bytes) -> Fields:
    """Check the whole body, fields that nobody reads included."""
    try:
        if not body.isascii():
            body.decode("utf-8")  # msgspec does not look inside the strings it skips
    except UnicodeDecodeError as error:
        raise errors.invalid_json(f"not UTF-8 (byte {error.start})") from None
    if not body.strip():
        raise errors.invalid_json("it is empty (byte 0)")
    hold_brackets(body)
    try:
        return members(body, MAX_FIELDS, "body")
    except msgspec.ValidationError:  # every field is raw: only the outermost value can be of a wrong type
        raise errors.invalid_body() from None
    except msgspec.DecodeError as error:
        reason = str(error).removeprefix("JSON is malformed: ")
        if "(byte " not in reason:
            reason = f"it ends too early (byte {len(body)})"
        raise errors.invalid_json(reason) from None


def _present(raw: msgspec.Raw) -> bool:
    return raw is not _NOTHING and bytes(raw) not in _ABSENT


def _read(raw: msgspec.Raw, kind: type[_T]) -> _T | None:
    """Decode the value, if it is of this kind by the engine's lenient rules ("5" is 5)."""
    if not _present(raw):
        return None
    try:
        return msgspec.json.decode(raw, type=kind, strict=False)
    except msgspec.DecodeError:
        return None


def _positive(raw: msgspec.Raw) -> int | None:
    value = _read(raw, int)
    return value if value is not None and value >= 1 else None


def _count(raw: msgspec.Raw) -> int | None:
    value = _positive(raw)
    return value if value is not None and value <= _MOST_TOKENS else None


def _string(raw: bytes | msgspec.Raw) -> str | None:
    """The string that a value is, however it was escaped; `None` for any other kind."""
    try:
        return _strings.decode(raw)
    except msgspec.DecodeError:
        return None


def _text(name: str, raw: msgspec.Raw) -> str | None:
    if not _present(raw):
        return None
    try:
        return msgspec.json.decode(raw, type=str)
    except msgspec.DecodeError:
        raise errors.invalid_type(name, "a string") from None
