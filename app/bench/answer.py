"""One streamed answer as the bench reads it: times by its text, tokens by its usage; pure.

A chunk may hold several tokens, and the first one often holds none: gaps between chunks are no times per
token, and the first byte is not the first token.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

DONE = "[DONE]"


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one request; `None` is unknown.  Seconds."""

    ok: bool
    error: str | None = None
    ttft_s: float | None = None  # to the first text
    text_s: float | None = None  # from the first text to the last
    prompt_tokens: int | None = None
    tokens: int | None = None  # by usage
    drafted_by_step: tuple[int, ...] = ()  # of the steps that carried a draft
    accepted_by_step: tuple[int, ...] = ()

    @property
    def tpot_s(self) -> float | None:
        """Seconds per token after the first; None without usage, and for one token."""
        if not self.ok or self.text_s is None or self.tokens is None or self.tokens < 2:
            return None
        return self.text_s / (self.tokens - 1)


class AnswerReader:
    """Takes the bytes of an event stream however they are cut."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._rest = b""
        self._first: float | None = None
        self._last: float | None = None
        self._usage: dict[str, Any] = {}
        self._drafts: dict[str, Any] = {}
        self._error: str | None = None
        self._done = False

    def feed(self, data: bytes, at: float) -> None:
        """Take the next bytes, which came at `at`, by the clock of `began`."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._event(line[5:].strip().decode(errors="replace"), at)

    def answer(self, error: str | None = None) -> Answer:
        """What has come; `error` is why no more will."""
        error = error or self._error
        if error is None and not self._done:
            error = "the stream ended early"
        tokens, prompt = self._usage.get("completion_tokens"), self._usage.get("prompt_tokens")
        if error is None and not isinstance(tokens, int):
            error = "no usage in the answer"
        drafted, accepted = _by_step(self._drafts)
        return Answer(
            ok=error is None,
            error=error,
            ttft_s=None if self._first is None else self._first - self._began,
            text_s=None if self._first is None or self._last is None else self._last - self._first,
            prompt_tokens=prompt if isinstance(prompt, int) else None,
            tokens=tokens if isinstance(tokens, int) else None,
            drafted_by_step=drafted,
            accepted_by_step=accepted,
        )

    def _event(self, data: str, at: float) -> None:
        if data == DONE:
            self._done = True
            return
        try:
            found = json.loads(data)
        except ValueError:
            self._error = "an event is not JSON"
            return
        if found.get("error"):
            self._error = str(found["error"].get("message", "unknown"))
        if any(_text(choice) for choice in found.get("choices") or ()):
            self._first = at if self._first is None else self._first
            self._last = at
        if isinstance(usage := found.get("usage"), dict):
            self._usage = usage
            self._drafts = (found.get("metrics") or {}).get("speculative_decoding") or {}


def _text(choice: dict[str, Any]) -> bool:
    delta = choice.get("delta") or {}
    return bool(delta.get("content") or delta.get("reasoning_content") or choice.get("text"))


def _by_step(drafts: dict[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Lengths and accepted tokens of the drafts; from the histogram where every draft had one length."""
    if drafts.get("per_step_drafted"):
        return tuple(drafts["per_step_drafted"]), tuple(drafts["per_step_accepted"])
    histogram, steps = drafts.get("acceptance_histogram") or [], drafts.get("num_spec_steps") or 0
    if not steps or drafts.get("num_draft_tokens", 0) % steps:
        return (), ()
    accepted = tuple(count for count, times in enumerate(histogram) for _ in range(times))
    return (drafts["num_draft_tokens"] // steps,) * steps, accepted
