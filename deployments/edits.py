"""The closed list of edits a replica makes to a request and its answer; everything else passes as is.

Request: (1) hop and engine-steering headers and fields are ours, (2) `service_tier` stays here.
Answer: (3) the tier used is stated when the client had sent one, (4) a usage extension on request,
(5) one error event on a broken stream, (6) error bodies in our catalogue's words.
"""

from __future__ import annotations

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
_EVENT_OPEN = b'data: {"'
_USAGE_OPEN = b'"usage":{'

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.Encoder().encode


class UnsafeTemplateError(Exception):
    """The client sent a chat template; rendering one can hold a CPU for hours."""

    def __init__(self, param: str) -> None:
        super().__init__(
            f"{param} is not accepted from a client: remove it; the model's own template is used"
        )
        self.param = param


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

    Values keep their exact bytes.  A body that is no JSON object passes: the engine's refusal is
    the answer.  Raises UnsafeTemplateError.
    """
    try:
        fields = _fields.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
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


def _is_set(value: msgspec.Raw | None) -> bool:
    return value is not None and bytes(value).strip() != b"null"


def _has_template(value: msgspec.Raw | None) -> bool:
    if value is None:
        return False
    try:
        return _is_set(_fields.decode(value).get(TEMPLATE_FIELD))
    except msgspec.DecodeError:
        return False  # not an object: the engine refuses it


@dataclass(frozen=True, slots=True)
class AnswerEdits:
    """What is edited in one answer."""

    tier: Tier
    role: Role
    state_tier: bool
    extend_usage: bool

    def chunk(self, body: bytes) -> bytes:
        """A piece of an event stream.

        The two marks cannot occur inside a JSON string, where a quote is written with a backslash.
        """
        if self.state_tier:
            stated = f'data: {{"service_tier":"{SERVICE_TIER_WORDS[self.tier]}","'.encode()
            body = body.replace(_EVENT_OPEN, stated)
        if self.extend_usage:
            body = body.replace(_USAGE_OPEN, _USAGE_OPEN + self._usage())
        return body

    def whole(self, status: int, body: bytes) -> tuple[int, bytes]:
        """A complete answer: errors into our catalogue, the tier and usage where asked for."""
        if status >= 400:
            ours = errors.normalise(status, body)
            return (status, body) if ours is None else (ours.status, errors.body(ours))
        if self.state_tier:
            try:
                fields = _fields.decode(body)
            except msgspec.DecodeError:
                return status, body
            fields[SERVICE_TIER] = msgspec.Raw(_encode(SERVICE_TIER_WORDS[self.tier]))
            body = _encode(fields)
        if self.extend_usage:
            body = body.replace(_USAGE_OPEN, _USAGE_OPEN + self._usage(), 1)
        return status, body

    def _usage(self) -> bytes:
        return b'"twinpool":' + _encode({"pool": self.role.value, "tier": self.tier.value}) + b","


def is_event_stream(start: Message) -> bool:
    """Whether a response start announces server-sent events."""
    return header_map(start["headers"]).get(b"content-type", b"").startswith(b"text/event-stream")


def template_refusal(error: UnsafeTemplateError) -> errors.ErrorAnswer:
    """The 400 for a client's chat template."""
    return errors.answer(Code.UNSAFE_PARAMETER, str(error), param=error.param)
