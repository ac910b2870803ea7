"""The service on the cluster, as its callers and operators see it: over HTTP, and by its policy file."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from autoscaling.types import Role
from benchmarks.errors import BenchError
from deployments.kept_files import replace_file

LOOK_LIMIT_S: Final = 5.0
TAKEN_LIMIT_S: Final = 20.0
LOOK_EVERY_S: Final = 0.2
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open

Status = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Replica:
    """One that reports."""

    id: str
    pool: Role
    node: str  # Ray's id


class Service:
    """One running application; `state` is the folder of its controller."""

    def __init__(self, url: str, policy: Path, state: Path) -> None:
        self.url = url
        self._policy = policy
        self._sha: str | None = None  # of what was written last
        self.audit_file = state / "audit.jsonl"

    def status(self) -> Status | None:
        """Its status, None while nobody answers."""
        found = self._get("/admin/status")
        return found if found and found.get("pools") else None

    def serving(self) -> dict[str, int] | None:
        """Replicas that take work, by pool and by the word of one ingress; None while nobody answers."""
        found = self._get("/ready")
        return None if found is None else found.get("pools")

    def replicas(self) -> list[Replica]:
        """Every replica that reports; raises BenchError while nobody answers."""
        status = self.status()
        if status is None:
            raise BenchError("the service does not answer")
        return [
            Replica(one["id"], role, one["node"])
            for role in Role
            for one in status["pools"][role.value]["replicas"]
        ]

    def whole(self, sizes: Mapping[Role, int], without: frozenset[str] = frozenset()) -> bool:
        """Whether so many serve in each pool, none of them in `without`, and nothing is on its way."""
        status = self.status()
        if status is None or not status["controller"]["reachable"]:
            return False
        for role, size in sizes.items():
            pool = status["pools"][role.value]
            ids = {one["id"] for one in pool["replicas"] if not one["draining"]}
            if (pool["target"], pool["running"], pool["starting"], len(ids)) != (size, size, 0, size):
                return False
            if ids & without:
                return False
        return self.serving() == {role.value: size for role, size in sizes.items()}

    def edit(self, text: str) -> None:
        """Write a policy."""
        replace_file(self._policy, text.encode())
        self._sha = hashlib.sha256(text.encode()).hexdigest()

    def check_taken(self) -> None:
        """Wait until the newest policy acts; raises BenchError with the words of a refusal."""

        def acts() -> bool:
            policy = (self.status() or {}).get("policy") or {}
            if policy.get("last_error"):
                raise BenchError(f"the policy was refused: {policy['last_error']}")
            return bool(policy.get("sha") == self._sha)

        wait(acts, TAKEN_LIMIT_S, "the policy to act")

    def audit(self) -> list[dict[str, Any]]:
        """The controller's audit so far, oldest line first."""
        lines = self.audit_file.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.endswith("}")]

    def _get(self, path: str) -> dict[str, Any] | None:
        with contextlib.suppress(OSError, ValueError), _open(self.url + path, timeout=LOOK_LIMIT_S) as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found
        return None


class Lookout:
    """Counts what serves, every LOOK_EVERY_S, from the block's beginning to its end."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="lookout", daemon=True)
        self.least: int | None = None  # replicas that served, both pools, at the worst moment

    def __enter__(self) -> Lookout:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(2 * LOOK_LIMIT_S)

    def _work(self) -> None:
        while not self._stop.wait(LOOK_EVERY_S):
            found = self._service.serving()
            count = 0 if found is None else sum(found.values())
            self.least = count if self.least is None else min(self.least, count)


def wait(condition: Callable[[], bool], limit_s: float, what: str) -> float:
    """Poll until true; returns the seconds that it took.  Raises BenchError."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > limit_s:
            raise BenchError(f"after {limit_s:.0f} s still waiting for {what}")
        time.sleep(0.1)
    return time.monotonic() - began
