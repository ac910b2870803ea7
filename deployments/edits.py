"""The closed list of edits a replica makes to a request and its answer; everything else passes as is.

Request: (1) hop and engine-steering headers and fields are ours, (2) `service_tier` stays here.
Answer: (3) the tier used is stated when the client had sent one, (4) a usage extension on request,
(5) one error event on a broken stream, (6) error bodies in our catalogue's words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from autoscaling.types import Role, Tier
from deployments import errors
from deployments.engine import Message
from deployments.errors import Code

# Fields that steer the engine: the service sets what they mean, a client does not.
STEERING_FIELDS = frozenset({"priority", "kv_transfer_params", "ec_transfer_params", "vllm_xargs"})
TEMPLATE_FIELD = "chat_template"
TEMPLATE_ARGUMENTS = "chat_template_kwargs"
SERVICE_TIER = "service_tier"

# Request headers that reach the engine.  An allow-list: a new vLLM header cannot steer by surprise.
PASSED_HEADERS = frozenset(
    {b"content-type", b"accept", b"user-agent", b"x-request-id", b"traceparent", b"tracestate"}
)
# vLLM serves lower numbers first.
PRIORITY = {Tier.INTERACTIVE: 0, Tier.STANDARD: 10, Tier.BATCH: 20}
SERVICE_TIER_WORDS = {Tier.INTERACTIVE: "priority", Tier.STANDARD: "default", Tier.BATCH: "flex"}

ERROR_EVENT = b'data: {"error"'
# An event begins a line, and no line ends inside a JSON string.  The text alone would not do: a string
# that ends in `data: {` has it, too, with its closing quote.
_EVENT_OPEN = re.compile(rb'^data: \{"', re.MULTILINE)
_USAGE_OPEN = re.compile(rb'"usage":\{(?!\})')

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.Encoder().encode


class UnsafeTemplateError(Exception):
    """The client sent a chat template; rendering one can hold a CPU for hours."""

    def __init__(self, param: str) -> None:
        super().__init__(
            f"{param} is not accepted from a client: remove it; the model's own template is used"
        )
        self.param = param


class UnreadableBodyError(Exception):
    """A body that we cannot read; the engine's more lenient parser might, and find what is ours in it."""


@dataclass(frozen=True, slots=True)
class EditedRequest:
    """A request body as the engine gets it."""

    body: bytes
    asked_service_tier: bool  # the client had sent `service_tier`


def header_map(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Header names in lower case to values; of a repeated name the first wins."""
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        found.setdefault(name.lower(), value)
    return found


def engine_headers(
    headers: Iterable[tuple[bytes, bytes]], length: int, tier: Tier
) -> list[tuple[bytes, bytes]]:
    """What the engine sees: the allow-list, the new length, and the tier as a priority."""
    kept = [(name.lower(), value) for name, value in headers if name.lower() in PASSED_HEADERS]
    return [
        *kept,
        (b"content-length", str(length).encode()),
        (b"x-vllm-priority", str(PRIORITY[tier]).encode()),
    ]


def edit_request(body: bytes) -> EditedRequest:
    """Take out what is ours; a body without it is returned as the same bytes.

    Values keep their exact bytes; of a repeated key the last is kept, as the engine would.  An empty
    body and JSON that is no object pass: the engine's refusal is the answer.
    Raises UnsafeTemplateError and UnreadableBodyError.
    """
    fields = _read(body) if body.strip() else None
    if fields is None:
        return EditedRequest(body, asked_service_tier=False)
    if _is_set(fields.get(TEMPLATE_FIELD)):
        raise UnsafeTemplateError(TEMPLATE_FIELD)
    if _has_template(fields.get(TEMPLATE_ARGUMENTS)):
        raise UnsafeTemplateError(f"{TEMPLATE_ARGUMENTS}.{TEMPLATE_FIELD}")
    asked = _is_set(fields.get(SERVICE_TIER))
    ours = [name for name in fields if name in STEERING_FIELDS or name == SERVICE_TIER]
    if not ours:
        return EditedRequest(body, asked_service_tier=False)
    for name in ours:
        del fields[name]
    return EditedRequest(_encode(fields), asked_service_tier=asked)


def _read(raw: bytes | msgspec.Raw) -> dict[str, msgspec.Raw] | None:
    """The fields of a JSON object, None for JSON of another kind; raises UnreadableBodyError."""
    try:
        return _fields.decode(raw)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableBodyError(f"The request body is not JSON that can be read here: {error}.") from None


def _is_set(value: msgspec.Raw | None) -> bool:
    return value is not None and bytes(value).strip() != b"null"


def _has_template(value: msgspec.Raw | None) -> bool:
    fields = None if value is None else _read(value)
    return fields is not None and _is_set(fields.get(TEMPLATE_FIELD))


@dataclass(frozen=True, slots=True)
class AnswerEdits:
    """What is edited in one answer."""

    tier: Tier
    role: Role
    state_tier: bool
    extend_usage: bool

    def chunk(self, body: bytes) -> bytes:
        """A piece of an event stream, made of whole events.

        Text of the answer cannot look like the two marks: inside a JSON string a quote is written with
        a backslash, and a line never begins.
        """
        if self.state_tier:
            stated = f'data: {{"service_tier":"{SERVICE_TIER_WORDS[self.tier]}","'.encode()
            body = _EVENT_OPEN.sub(stated, body)
        return self._with_usage(body) if self.extend_usage else body

    def whole(self, status: int, body: bytes) -> tuple[int, bytes]:
        """A complete answer: errors into our catalogue, the tier and usage where asked for."""
        if status >= 400:
            ours = errors.normalise(status, body)
            return (status, body) if ours is None else (ours.status, errors.body(ours))
        if self.state_tier:
            try:
                fields = _read(body)
            except UnreadableBodyError:
                fields = None
            if fields is None:
                return status, body
            fields[SERVICE_TIER] = msgspec.Raw(_encode(SERVICE_TIER_WORDS[self.tier]))
            body = _encode(fields)
        if self.extend_usage:
            body = self._with_usage(body)
        return status, body

    def _with_usage(self, body: bytes) -> bytes:
        extension = _encode({"pool": self.role.value, "tier": self.tier.value})
        return _USAGE_OPEN.sub(b'"usage":{"twinpool":' + extension + b",", body)


def is_event_stream(start: Message) -> bool:
    """Whether a response start announces server-sent events."""
    return header_map(start["headers"]).get(b"content-type", b"").startswith(b"text/event-stream")


def template_refusal(error: UnsafeTemplateError) -> errors.ErrorAnswer:
    """The 400 for a client's chat template."""
    return errors.answer(Code.UNSAFE_PARAMETER, str(error), param=error.param)
