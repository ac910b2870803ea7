"""What the demo reads of one event stream: its usage, its drafts, its error, its end; pure."""

from __future__ import annotations

import json
from typing import Any

from app.demo.answers import Drafts

DONE = b"[DONE]"
# Most events hold neither, and are not parsed: the demo shares its machine with the engines.
TELLING = (b'"usage"', b'"error"')


class StreamReader:
    """Takes the bytes of a stream however they are cut; what it has not seen is None."""

    def __init__(self) -> None:
        self._rest = b""
        self._reads = 0
        self._last_at: float | None = None
        self.first_at: float | None = None  # by the reader's clock
        self.tokens: int | None = None
        self.drafts: Drafts | None = None
        self.error: str | None = None  # its code
        self.finished = False

    @property
    def stream_s(self) -> float | None:
        """Seconds from the first byte to the last; None when all came at once, which tells no pace."""
        if self.first_at is None or self._last_at is None or self._reads < 2:
            return None
        return self._last_at - self.first_at

    def feed(self, data: bytes, at: float) -> None:
        """Take the next bytes, which came at `at`, in seconds of any clock that does not jump."""
        self._reads += 1
        self._last_at = at
        if self.first_at is None:
            self.first_at = at
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._event(line.removeprefix(b"data:").strip())

    def _event(self, data: bytes) -> None:
        if data == DONE:
            self.finished = True
            return
        if not any(word in data for word in TELLING):
            return
        try:
            found = json.loads(data)
        except ValueError:
            self.error = "not JSON"
            return
        if not isinstance(found, dict):
            return
        if found.get("error"):
            self.error = error_code(found) or "unknown"
        usage = found.get("usage")
        if isinstance(usage, dict):
            self.tokens = _count(usage.get("completion_tokens"))
            self.drafts = _drafts(found.get("metrics"))


def error_code(found: Any) -> str | None:
    """The code in an error object of the service; None for anything else."""
    error = found.get("error") if isinstance(found, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return None if code is None else str(code)


def _drafts(metrics: Any) -> Drafts | None:
    speculative = metrics.get("speculative_decoding") if isinstance(metrics, dict) else None
    if not isinstance(speculative, dict):
        return None
    steps = _count(speculative.get("num_spec_steps"))
    drafted = _count(speculative.get("num_draft_tokens"))
    accepted = _count(speculative.get("num_accepted_draft_tokens"))
    if steps is None or drafted is None or accepted is None:
        return None
    return Drafts(steps, drafted, accepted)


def _count(found: Any) -> int | None:
    return found if isinstance(found, int) and not isinstance(found, bool) else None
