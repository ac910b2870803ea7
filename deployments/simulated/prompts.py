"""From a request body to the sequences that the engine generates."""

from __future__ import annotations

from dataclasses import dataclass

from autoscaling.types import Capabilities
from deployments.simulated.errors import invalid, too_long, unknown_model
from deployments.simulated.frames import Add
from deployments.simulated.protocol import (
    COMPLETION_TOKENS,
    MESSAGE_TOKENS,
    ChatBody,
    CompletionBody,
)
from deployments.simulated.tokens import answer_to, count


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text to answer."""

    text: str
    question: str  # the part that is answered: a chat's last message from the user
    tokens: int


@dataclass(frozen=True, slots=True)
class Work:
    """What one request asks of the engine: n answers to each prompt, prompt by prompt."""

    response_id: str
    prompt_tokens: int
    prompts: int
    answers: int  # per prompt
    adds: tuple[Add, ...]
    refused: bool  # by this engine, though well-formed


@dataclass(frozen=True, slots=True)
class Limits:
    """What the sequences of one prompt share."""

    request_id: str
    max_tokens: int
    priority: int


def plan(body: ChatBody | CompletionBody, base_id: str, priority: int, capabilities: Capabilities) -> Work:
    """Check a request against the engine and lay out its sequences; raises ApiError."""
    if body.model and body.model not in capabilities.models:
        raise unknown_model(body.model, capabilities.models)
    prompts = [_chat(body)] if isinstance(body, ChatBody) else _completion(body)
    for prompt in prompts:
        if prompt.tokens > capabilities.max_model_len:
            raise too_long(prompt.tokens, capabilities.max_model_len)
    chat = isinstance(body, ChatBody)
    response_id = f"chatcmpl-{base_id}" if chat else f"cmpl-{base_id}"
    adds = []
    for number, prompt in enumerate(prompts):
        left = capabilities.max_model_len - prompt.tokens
        max_tokens = min(left, _wish(body, left))
        body.check(max_tokens)
        request_id = response_id if chat else f"{response_id}-{number}"
        limits = Limits(request_id, max_tokens, priority)
        adds += [_add(body, prompt, limits, index) for index in range(body.n or 1)]
    return Work(
        response_id=response_id,
        prompt_tokens=sum(prompt.tokens for prompt in prompts),
        prompts=len(prompts),
        answers=body.n or 1,
        adds=tuple(adds),
        refused=bool(capabilities.refuses) and body.refused_under_speculation(),
    )


def _wish(body: ChatBody | CompletionBody, left: int) -> int:
    if isinstance(body, CompletionBody):
        return COMPLETION_TOKENS if body.max_tokens is None else body.max_tokens
    wish = body.max_tokens if body.max_completion_tokens is None else body.max_completion_tokens
    return left if wish is None else wish


def _chat(body: ChatBody) -> Prompt:
    texts = [message.text for message in body.messages]
    asked = [text for message, text in zip(body.messages, texts, strict=True) if message.role == "user"]
    return Prompt(
        text="\n".join(f"{message.role}: {text}" for message, text in zip(body.messages, texts, strict=True)),
        question=(asked or texts or [""])[-1],
        tokens=sum(MESSAGE_TOKENS + count(text) for text in texts),
    )


def _completion(body: CompletionBody) -> list[Prompt]:
    given = body.prompt
    if given is None:
        raise invalid("Either prompt or prompt_embeds must be provided and non-empty.", "prompt")
    if isinstance(given, str):
        return [Prompt(given, given, max(1, count(given)))]
    if all(isinstance(token, int) for token in given):
        return [_tokens([token for token in given if isinstance(token, int)])]
    prompts = []
    for each in given:
        if isinstance(each, str):
            prompts.append(Prompt(each, each, max(1, count(each))))
        elif isinstance(each, list):
            prompts.append(_tokens(each))
    return prompts


def _tokens(ids: list[int]) -> Prompt:
    text = " ".join(map(str, ids))
    return Prompt(text, text, max(1, len(ids)))


def _add(body: ChatBody | CompletionBody, prompt: Prompt, limits: Limits, index: int) -> Add:
    # A seed asks for another sample, but the likeliest answer has only one.
    seed = "" if body.seed is None or body.greedy else str(body.seed)
    return Add(
        key=0,
        request_id=limits.request_id,
        index=index,
        prompt_tokens=prompt.tokens,
        max_tokens=limits.max_tokens,
        min_tokens=body.min_tokens,
        priority=limits.priority,
        stop=body.stops,
        include_stop=body.include_stop_str_in_output,
        answer=answer_to(prompt.question, prompt.text, f"{seed}/{index}", body.ignore_eos, body.min_tokens),
    )
