"""A look at a service every 0.3 s while something happens to it: what must hold at each look, and did not.

Two threads, because the status waits for a controller that is away and `/ready` does not.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from tests.serve.movement import MOVING, Sizes, Status, targets
from tests.service import Service

LOOK_EVERY_S = 0.3
FAULTS_KEPT = 20


class Lookout:
    """Looks on until the end of its block, then `check` fails with everything that was seen wrong.

    `budget` is in accelerators, `shares` are those of one replica of each pool.  `least` replicas of each
    pool take work at every look, by the ingress's word and, with `by_serve`, by Ray Serve's: its own counts
    say nothing while its controller comes back.  Targets are one of `allowed`, which may be changed on
    the way; any with None.
    """

    def __init__(
        self,
        service: Service,
        *,
        budget: int,
        least: Mapping[str, int],
        shares: Mapping[str, int] | None = None,
        by_serve: bool = True,
        allowed: tuple[Sizes, ...] | None = None,
    ) -> None:
        self.allowed = allowed
        self._service = service
        self._budget = budget
        self._least = least
        self._shares = shares or dict.fromkeys(least, 1)
        self._by_serve = by_serve
        self._faults: list[str] = []
        self._looks = {"status": 0, "ready": 0}
        self._began = time.monotonic()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=("status", self._status), daemon=True),
            threading.Thread(target=self._run, args=("ready", self._ready), daemon=True),
        ]

    def __enter__(self) -> Lookout:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def check(self) -> None:
        """After the block: there was something to see, and nothing was wrong."""
        assert not any(thread.is_alive() for thread in self._threads)
        assert min(self._looks.values()) > 0
        assert self._faults == [], self._faults

    def _run(self, name: str, look: Callable[[], None]) -> None:
        while not self._stop.wait(LOOK_EVERY_S):
            try:
                look()
                self._looks[name] += 1
            except Exception as error:  # no answer, or one without the parts that must be there
                self._wrong(f"no {name}: {type(error).__name__} {error}")

    def _wrong(self, words: str) -> None:
        if len(self._faults) < FAULTS_KEPT:
            self._faults.append(f"after {time.monotonic() - self._began:.1f} s: {words}")

    def _ready(self) -> None:
        answer = self._service.get("/ready")
        if answer.status_code != 200:
            self._wrong(f"not ready: {answer.text}")
            return
        counts: dict[str, int] = answer.json()["pools"]
        for role, least in self._least.items():
            if counts[role] < least:
                self._wrong(f"{counts[role]} replicas of {role} take work, expected at least {least}")

    def _status(self) -> None:
        allowed = self.allowed  # before the question: it may be narrowed while the answer is on its way
        status = self._service.status()
        self._budget_holds(status)
        self._targets_hold(status, allowed)
        moving = [move["id"] for move in status["moves"] or () if move["state"] in MOVING]
        if len(moving) > 1:
            self._wrong(f"{len(moving)} moves on their way: {moving}")
        if self._by_serve:
            for role, least in self._least.items():
                running = status["pools"][role]["running"]
                if running is None or running < least:
                    self._wrong(f"Ray Serve runs {running} replicas of {role}, expected at least {least}")

    def _budget_holds(self, status: Status) -> None:
        budget: dict[str, Any] = status["budget"] or {}
        used = budget.get("used")
        if used is not None and used > self._budget:
            self._wrong(f"{used} accelerators in use, the budget is {self._budget}")

    def _targets_hold(self, status: Status, allowed: tuple[Sizes, ...] | None) -> None:
        found = targets(status)
        known = {role: target for role, target in found.items() if target is not None}
        cost = sum(target * self._shares[role] for role, target in known.items())
        if cost > self._budget:
            self._wrong(f"targets {known} cost {cost} accelerators, the budget is {self._budget}")
        # A new controller that has not decided yet has no targets: Ray Serve holds its own.
        if allowed is not None and len(known) == len(self._least) and known not in allowed:
            self._wrong(f"targets {known}, allowed are {allowed}")
