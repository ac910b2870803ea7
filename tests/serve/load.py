"""Streams that are kept open while something happens, and the count of their tokens.

Input: a running service.  Output: every stream that was open, and what was wrong with it.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from tests.serve.movement import ROLES, STEP_S, generated
from tests.service import Service, Stream, chat

# A step of a speculative replica: one token, and of four drafts those before the first refusal (0.7 each).
TOKENS_PER_STEP = {"speculative": 2.77, "plain": 1.0}
BOTH = {role: {"x-twinpool-pool": role} for role in ROLES}


@dataclass(frozen=True, slots=True)
class Told:
    """One stream that has ended; times are of this process's monotonic clock."""

    stream: Stream
    lane: str
    asked: int  # tokens
    opened_at: float
    first_at: float  # its first event came, or its end

    @property
    def replica(self) -> str | None:
        """Who served it."""
        return self.stream.headers.get("x-twinpool-replica")

    @property
    def fault(self) -> str | None:
        """Why it counts as lost; None when every token asked for has come."""
        stream = self.stream
        if stream.status != 200:
            return f"status {stream.status} {stream.fault}"
        if not stream.complete:
            return f"incomplete {stream.errors} {stream.fault}"
        return None if stream.tokens == self.asked else f"{stream.tokens} of {self.asked} tokens"


def tell(service: Service, lane: str, headers: Mapping[str, str], tokens: int) -> Told:
    """One stream from its beginning to its end."""
    body = chat("Tell a story", max_tokens=tokens, ignore_eos=True, stream_options={"include_usage": True})
    opened_at = time.monotonic()
    stream = Stream(service, body, dict(headers))
    stream.began.wait(60)
    first_at = time.monotonic()
    return Told(stream.join(900), lane, tokens, opened_at, first_at)


class Load:
    """Keeps `streams` streams open in each lane until the end of its block, which the last ones finish.

    A lane is a pool's name and the headers that lead there; `seconds` are the shortest and the longest
    stream of a simulated engine, `tokens` the exact length instead.  The service must be idle before.
    """

    def __init__(
        self,
        service: Service,
        lanes: Mapping[str, Mapping[str, str]] = BOTH,
        *,
        streams: int,
        seconds: tuple[float, float] = (1.0, 1.0),
        tokens: int | None = None,
        seed: int = 1,
    ) -> None:
        self.told: list[Told] = []
        self._service = service
        self._lanes = lanes
        self._seconds = seconds
        self._tokens = tokens
        self._faults: list[str] = []
        self._stop = threading.Event()
        self._generated_before = 0
        self._threads = [
            threading.Thread(target=self._run, args=(lane, f"{seed}/{lane}/{number}"), daemon=True)
            for lane in lanes
            for number in range(streams)
        ]

    def __enter__(self) -> Load:
        self._generated_before = generated(self._service)
        for thread in self._threads:
            thread.start()
        self._service.wait(self._all_open, 30, "every stream to be open")
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(900)

    def probe(self, lane: str) -> Told | None:
        """One short stream beside the others, which counts like them; None when it never ended."""
        return self._tell(lane, 2)

    @property
    def lost(self) -> list[str]:
        """What happened to each stream that is not whole."""
        broken = [f"{told.lane} on {told.replica}: {told.fault}" for told in list(self.told) if told.fault]
        return [*self._faults, *broken]

    @property
    def tokens(self) -> int:
        """Tokens of all streams by their usage chunks."""
        return sum(told.stream.tokens or 0 for told in list(self.told))

    def check(self, *, records: bool = True) -> None:
        """After the block: nothing is lost, and clients and engines counted the same tokens.

        Without `records` the engines' are left out: a new controller counts them from 0.
        """
        assert not any(thread.is_alive() for thread in self._threads)
        assert self.lost == [], self.lost
        assert len(self.told) >= len(self._threads)
        if records:
            assert self.tokens == generated(self._service) - self._generated_before

    def _all_open(self) -> bool:
        inflight: int = self._service.status()["ingress"]["inflight"]
        return inflight >= len(self._threads) or len(self.told) >= len(self._threads)

    def _run(self, lane: str, seed: str) -> None:
        chance = random.Random(seed)
        while not self._stop.is_set():
            steps = chance.uniform(*self._seconds) / STEP_S
            told = self._tell(lane, self._tokens or max(1, round(steps * TOKENS_PER_STEP[lane])))
            if told is None or told.fault is not None:
                self._stop.wait(0.5)

    def _tell(self, lane: str, tokens: int) -> Told | None:
        try:
            told = tell(self._service, lane, self._lanes[lane], tokens)
        except AssertionError as error:
            self._faults.append(f"{lane}: {error}")
            return None
        self.told.append(told)
        return told
