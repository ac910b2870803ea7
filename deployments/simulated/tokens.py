"""Tokens of the simulated model: one token is one word with the whitespace before it.

Answers are a function of the prompt alone, so that two engines of one model say the same.
"""

from __future__ import annotations

import re
import zlib

from deployments.simulated.frames import Answer

TOKENIZER = "simulated-tokenizer-1"  # part of the fingerprint: change it with the token rule
SHORTEST_ANSWER = 16
LONGEST_ANSWER = 64

_TOKEN = re.compile(r"\s*\S+")
_REPEAT = re.compile(
    r"\brepeat (?:exactly|verbatim|the following|this|after me)\b[^:\n]*:\s*(.+)", re.IGNORECASE | re.DOTALL
)
_FENCE = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
WORDS = (  # noqa: SIM905 - a text reads better than eighty quoted words
    "the of and to in is that for it as with was on are by this be from at or which an has more one "
    "can when each time other into than its may two only some these part over water light small state "
    "every city river story early table number under question answer method simple between because "
    "system carries measure result follows second market people garden winter letter machine closely "
    "through another example reason morning village science signal balance window record silver distant"
).split()


def split(text: str) -> list[str]:
    """Split a text into its tokens; joined they give it back, but for whitespace at its end."""
    return _TOKEN.findall(text)


def count(text: str) -> int:
    """Count the tokens of a text."""
    return len(text.split())


def answer_to(question: str, prompt: str, variant: str, ignore_eos: bool, min_tokens: int) -> Answer:
    """Answer `prompt`, whose last message is `question`; `variant` tells samples apart.

    A request to repeat a text, or a fenced block in the question, is answered with that text.
    """
    script: tuple[str, ...] = ()
    if found := _REPEAT.search(question) or _FENCE.search(question):
        script = tuple(split(found[1].strip()))
    seed = zlib.crc32(f"{prompt}\x00{variant}".encode("utf-8", "surrogatepass"))
    if ignore_eos:
        length = None
    else:
        natural = len(script) or SHORTEST_ANSWER + seed % (LONGEST_ANSWER - SHORTEST_ANSWER + 1)
        length = max(natural, min_tokens)
    return Answer(script=script, seed=seed, length=length)


class Writer:
    """Writes one answer token by token and holds back what may yet become a stop string."""

    def __init__(self, answer: Answer, stop: tuple[str, ...], include_stop: bool, min_tokens: int) -> None:
        self._answer = answer
        self._stop = stop
        self._include_stop = include_stop
        self._min_tokens = min_tokens
        self._held = max((len(word) for word in stop), default=1) - 1  # characters that stay back
        self._pending = ""
        self.tokens = 0
        self.stopped_by: str | None = None

    @property
    def ended(self) -> bool:
        """The answer is complete: said in full, or ended by a stop string."""
        return self.stopped_by is not None or self.tokens == self._answer.length

    def write(self, tokens: int) -> int:
        """Add up to `tokens` tokens; returns how many were written before the answer ended."""
        written = 0
        while written < tokens and not self.ended:
            before = len(self._pending)
            self._pending += self._token(self.tokens)
            self.tokens += 1
            written += 1
            if self._stop and self.tokens > self._min_tokens:
                self._look_for_stop(before)
        return written

    def take(self, finished: bool) -> str:
        """Take the text not taken yet: all of it when finished, else without what is held back."""
        end = len(self._pending) if finished else max(0, len(self._pending) - self._held)
        text, self._pending = self._pending[:end], self._pending[end:]
        return text

    def _token(self, index: int) -> str:
        script = self._answer.script
        if index < len(script):
            return script[index]
        # A multiplicative hash: cheap, and the same in every process.
        mixed = (self._answer.seed + (index + 1) * 2654435761) * 2246822519 >> 7
        word = WORDS[mixed % len(WORDS)]
        return f" {word}" if index else word

    def _look_for_stop(self, before: int) -> None:
        found = [
            (at, stop)
            for stop in self._stop
            if (at := self._pending.find(stop, max(0, before - len(stop) + 1))) >= 0
        ]
        if found:
            at, self.stopped_by = min(found)
            self._pending = self._pending[: at + len(self.stopped_by) if self._include_stop else at]
