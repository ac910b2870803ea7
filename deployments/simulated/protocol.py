"""The OpenAI requests that the simulated app reads, checked as vLLM 0.32 checks them."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from deployments.simulated.errors import ApiError, invalid, unreadable

COMPLETION_TOKENS = 16  # answer tokens of /v1/completions when nothing is said
MESSAGE_TOKENS = 4  # what the chat template adds to a message
GREEDY_BELOW = 1e-5  # a temperature that means "the likeliest token"
TEXT_PARTS = ("text", "input_text", "output_text", "refusal", "thinking")
_INT64 = 2**63

Token = Annotated[int, Field(ge=0)]


class Form(BaseModel):
    """Base of the request models: what they do not know is ignored, as vLLM ignores it."""

    model_config = ConfigDict(extra="allow", frozen=True)


class StreamOptions(Form):
    """What a stream carries besides text."""

    include_usage: bool | None = False
    continuous_usage_stats: bool | None = False


class Sampling(Form):
    """What the two endpoints have in common."""

    model: str | None = None
    logit_bias: dict[str, float] | None = None
    max_tokens: int | None = None
    min_tokens: int = 0
    min_p: float | None = None
    n: int | None = 1
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    priority: int = Field(0, ge=-_INT64, lt=_INT64)
    request_id: str | None = None
    seed: int | None = Field(None, ge=-_INT64, lt=_INT64)
    stop: str | list[str] | None = None
    include_stop_str_in_output: bool = False
    ignore_eos: bool = False
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    temperature: float | None = None
    top_p: float | None = None

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is asked for."""
        return self.temperature is not None and self.temperature < GREEDY_BELOW

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop strings."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    @property
    def includes_usage(self) -> bool:
        """Whether the stream ends with a usage chunk."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)

    @property
    def continuous_usage(self) -> bool:
        """Whether every chunk carries usage."""
        options = self.stream_options
        return self.includes_usage and options is not None and bool(options.continuous_usage_stats)

    def check(self, max_tokens: int) -> None:
        """Refuse values out of range; `max_tokens` is what the context leaves of the wish."""
        n, top_p, temperature = self.n or 1, self.top_p, self.temperature
        if self.n is not None and self.n < 1:
            raise invalid(f"n must be at least 1, got {self.n}.")
        for name in ("presence_penalty", "frequency_penalty"):
            if not -2.0 <= (getattr(self, name) or 0.0) <= 2.0:
                raise invalid(f"{name} must be in [-2, 2], got {getattr(self, name)}.")
        if temperature is not None and temperature < 0:
            raise invalid(f"temperature must be non-negative, got {temperature}.", "temperature", temperature)
        if temperature is not None and not temperature <= 2:
            raise invalid(f"temperature must be in [0, 2], got {temperature}.", "temperature", temperature)
        if top_p is not None and not 0 < top_p <= 1:
            raise invalid(f"top_p must be in (0, 1], got {top_p}.", "top_p", top_p)
        if self.min_p is not None and not 0 <= self.min_p <= 1:
            raise invalid(f"min_p must be in [0, 1], got {self.min_p}.")
        if max_tokens < 1:
            raise invalid(f"max_tokens must be at least 1, got {max_tokens}.", "max_tokens", max_tokens)
        if self.min_tokens < 0:
            raise invalid(f"min_tokens must be greater than or equal to 0, got {self.min_tokens}.")
        if self.min_tokens > max_tokens:
            raise invalid(
                f"min_tokens must be less than or equal to max_tokens={max_tokens}, got {self.min_tokens}."
            )
        if not all(self.stops):
            raise invalid("stop cannot contain an empty string.")
        if self.greedy and n > 1:
            raise invalid(f"n must be 1 when using greedy sampling, got {n}.")

    def refused_under_speculation(self) -> bool:
        """Whether a speculative engine refuses this request."""
        # Greedy sampling sets min_p aside before vLLM looks at it.
        return bool(self.logit_bias) or (not self.greedy and (self.min_p or 0.0) > GREEDY_BELOW)


class Part(Form):
    """One part of a message's content."""

    type: str | None = None


class Message(Form):
    """One message of a chat."""

    role: str
    content: str | list[Part | str] | None = None
    tool_calls: list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        """Everything in it that the model would read."""
        content = [self.content] if isinstance(self.content, str) else self.content or []
        texts = [part if isinstance(part, str) else _part_text(part) for part in content]
        for call in self.tool_calls or []:
            function = call.get("function")
            if isinstance(function, dict):
                texts.append(f"{function.get('name', '')} {function.get('arguments', '')}")
        return "\n".join(texts)


class ChatBody(Sampling):
    """Body of /v1/chat/completions."""

    messages: list[Message]
    max_completion_tokens: int | None = None


class CompletionBody(Sampling):
    """Body of /v1/completions."""

    n: int = 1  # unlike a chat's, not nullable
    prompt: list[Token] | list[list[Token]] | str | list[str] | None = None


FormT = TypeVar("FormT", bound=Sampling)


def read_body(form: type[FormT], raw: bytes, content_type: str) -> FormT:
    """Read a request body as `form`; raises ApiError in vLLM's words."""
    if content_type.lower().split(";", maxsplit=1)[0] != "application/json":
        raise unreadable(["Unsupported Media Type: Only 'application/json' is allowed"])
    try:
        data = json.loads(raw)
    except json.JSONDecodeError as error:
        ctx = {"error": error.msg}
        where = ("body", error.pos)
        raise unreadable(
            [{"type": "json_invalid", "loc": where, "msg": "JSON decode error", "input": {}, "ctx": ctx}]
        ) from error
    except (ValueError, RecursionError) as error:  # not UTF-8, an integer of 5,000 digits, too deep
        phrase = HTTPStatus.BAD_REQUEST.phrase
        raise ApiError(HTTPStatus.BAD_REQUEST, phrase, "There was an error parsing the body") from error
    if isinstance(data, dict):
        if data.get("stream_options") and not data.get("stream"):
            raise invalid("Stream options can only be defined when `stream=True`.", "stream_options")
        if form is CompletionBody and data.get("prompt") in (None, "", []):
            raise invalid("Either prompt or prompt_embeds must be provided and non-empty.", "prompt")
    try:
        return form.model_validate(data)
    except ValidationError as error:
        found = error.errors(include_url=False)
        raise unreadable([{**each, "loc": ("body", *each["loc"])} for each in found]) from error


def _part_text(part: Part) -> str:
    kind = part.type or "text"
    if kind not in TEXT_PARTS:
        raise invalid(f"This model reads text only, not content of type {kind!r}.", "messages")
    key = kind if kind in ("refusal", "thinking") else "text"
    value = (part.model_extra or {}).get(key)
    return value if isinstance(value, str) else ""
