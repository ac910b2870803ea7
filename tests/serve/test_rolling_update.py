"""A rolling update of the whole application at once: both pools, the ingresses and the controller.

The cluster has no spare room, so each replica ends before its successor starts.  With two of each kind
nobody notices; with one of each a caller is told when to come again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.policies import policy
from tests.serve.movement import ROLES, ids, settings, targets
from tests.service import Service, Stream, chat

pytestmark = [pytest.mark.long, pytest.mark.serve, pytest.mark.timeout(300)]

PAUSE_S = 0.1  # between two requests of one caller
ROLLED_S = 120.0
STILL = {"behavior": {"scaleUp": {"selectPolicy": "Disabled"}, "scaleDown": {"selectPolicy": "Disabled"}}}


def calm(replicas: int) -> str:
    """A policy that keeps so many replicas in each pool."""
    return policy(replicas, replicas, name="calm", **STILL)


def everything_changed(service: Service, folder: Path) -> dict[str, Any]:
    """Settings that differ in the environment of each of the four deployments."""
    changed = deepcopy(service.settings)
    for role in ROLES:
        changed[role]["hung_after_s"] = changed[role].get("hung_after_s", 30.0) + 1.0
    changed["between_chunks_s"] = changed.get("between_chunks_s", 60.0) + 1.0
    changed["record_dir"] = str(folder / "records")
    return changed


@dataclass
class Asked:
    """One request that was not streamed."""

    at: float  # by this process's monotonic clock
    status: int | None  # None: the connection failed
    code: str | None = None
    retry_after: str | None = None
    fault: str = ""


@dataclass
class Callers:
    """Short requests without a pool, one after another, from so many callers, until the end of the block."""

    service: Service
    count: int
    told: list[Asked] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Callers:
        tiers = ("default", "priority")
        self._threads = [
            threading.Thread(target=self._run, args=(tiers[number % 2],), daemon=True)
            for number in range(self.count)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def _run(self, tier: str) -> None:
        while not self._stop.wait(PAUSE_S):
            self.told.append(self._ask(tier))

    def _ask(self, tier: str) -> Asked:
        at = time.monotonic()
        try:
            answer = self.service.post(chat("Hi", max_tokens=2, service_tier=tier), timeout=60)
        except httpx.HTTPError as error:
            return Asked(at, None, fault=f"{type(error).__name__}: {error}")
        if answer.status_code == 200:
            return Asked(at, 200)
        try:
            code = str(answer.json()["error"]["code"])
        except (ValueError, KeyError, TypeError):
            return Asked(at, answer.status_code, fault=answer.text[:200])
        return Asked(at, answer.status_code, code, answer.headers.get("retry-after"))

    @property
    def failed(self) -> list[Asked]:
        return [asked for asked in self.told if asked.status != 200]


class Streams:
    """A new stream of some seconds each second, until the end of the block; all of them are kept."""

    def __init__(self, service: Service, tokens: int) -> None:
        self.opened: list[Stream] = []
        self._service = service
        self._tokens = tokens
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Streams:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def _run(self) -> None:
        body = chat(
            "Tell a story", max_tokens=self._tokens, ignore_eos=True, stream_options={"include_usage": True}
        )
        while True:
            tier = ("default", "priority")[len(self.opened) % 2]
            self.opened.append(Stream(self._service, body | {"service_tier": tier}))
            if self._stop.wait(1.0):
                return


def pids(service: Service, name: str) -> set[int]:
    """Processes of a deployment's replicas."""
    return {process.pid for process in service.processes("ray::", f"twinpool:{name}")}


@dataclass
class Before:
    """What ran before an update."""

    replicas: dict[str, set[str]]
    ingresses: set[int]
    controllers: set[int]
    epoch: int

    @classmethod
    def of(cls, service: Service) -> Before:
        status = service.status()
        return cls(
            {role: ids(status, role) for role in ROLES},
            pids(service, "ingress"),
            pids(service, "controller"),
            status["controller"]["epoch"],
        )

    def rolled(self, service: Service, replicas: int, ingresses: int) -> bool:
        """Whether all that ran is gone and as much of the new is whole."""
        try:
            status = service.status()
        except (httpx.HTTPError, ValueError):
            return False
        # One ingress knows its controller, another may still show its last picture.
        if status.get("pools") is None or not status["controller"]["reachable"]:
            return False
        now = {role: ids(status, role) for role in ROLES}
        new = pids(service, "ingress")
        return (
            all(len(now[role]) == replicas and not now[role] & self.replicas[role] for role in ROLES)
            and len(new) == ingresses
            and not new & self.ingresses
            and not pids(service, "controller") & self.controllers
            and service.ready(replicas, replicas)
        )


def update(service: Service, folder: Path, replicas: int, ingresses: int) -> Before:
    """Change everything at once and wait until all of it is new; returns what was before."""
    before = Before.of(service)
    service.reload(everything_changed(service, folder))
    took = service.wait(lambda: before.rolled(service, replicas, ingresses), ROLLED_S, "the whole update")
    print(f"\nthe update of {replicas}+{replicas} replicas and {ingresses} ingresses took {took:.0f} s")
    return before


def check_after(service: Service, before: Before, replicas: int) -> None:
    """Sizes, policy and epoch after an update."""
    status = service.status()
    assert dict.fromkeys(ROLES, replicas) == targets(status)
    assert status["controller"]["epoch"] > before.epoch
    assert (1, "active") == (status["policy"]["active_revision"], status["policy"]["state"])
    assert [] == status["moves"]


@pytest.fixture
def two_of_each(tmp_path: Path) -> Iterator[Service]:
    made = settings(slots=4, start_s=2.0) | {"ingresses": 2}
    with Service(tmp_path, made, policy=calm(2)) as service:
        service.wait(lambda: service.ready(2, 2), 30, "all four replicas")
        yield service


@pytest.fixture
def one_of_each(tmp_path: Path) -> Iterator[Service]:
    with Service(tmp_path, settings(slots=2, start_s=2.0), policy=calm(1)) as service:
        service.wait(lambda: service.ready(1, 1), 30, "both replicas")
        yield service


def test_with_two_of_each_nobody_notices(two_of_each: Service, tmp_path: Path) -> None:
    """No request and no stream fails while every replica, both ingresses and the controller are replaced."""
    service = two_of_each
    with Streams(service, tokens=60) as streams, Callers(service, 4) as callers:
        time.sleep(2.0)
        before = update(service, tmp_path, replicas=2, ingresses=2)
        time.sleep(2.0)
    for stream in streams.opened:
        stream.join(60)
        assert (200, None, []) == (stream.status, stream.fault, stream.errors)
        assert stream.complete
        assert 60 == stream.tokens
    assert [] == callers.failed
    print(f"{len(callers.told)} requests and {len(streams.opened)} streams, none failed")
    assert len(callers.told) > 100
    check_after(service, before, 2)


def test_with_one_of_each_a_caller_is_told_when_to_come_again(one_of_each: Service, tmp_path: Path) -> None:
    """Open streams finish; what cannot be served is a 503 with Retry-After, never a broken answer."""
    service = one_of_each
    body = chat("Tell a story", max_tokens=200, ignore_eos=True, stream_options={"include_usage": True})
    open_before = [Stream(service, body, {"x-twinpool-pool": role}) for role in ROLES for _ in range(2)]
    for stream in open_before:
        assert stream.began.wait(20)
        assert 200 == stream.status
    with Callers(service, 2) as callers:
        time.sleep(1.0)
        before = update(service, tmp_path, replicas=1, ingresses=1)
        time.sleep(2.0)
    for stream in open_before:
        stream.join(60)
        assert stream.complete, (stream.errors, stream.fault)
        assert 200 == stream.tokens
    failed = callers.failed
    away = failed[-1].at - failed[0].at if failed else 0.0
    print(f"{len(failed)} of {len(callers.told)} requests were told to come again, over {away:.1f} s")
    for asked in failed:
        assert 503 == asked.status, asked
        assert asked.code in ("not_ready", "no_capacity"), asked
        assert asked.retry_after is not None, asked
        assert 1 <= int(asked.retry_after) <= 120, asked
    assert 200 == callers.told[-1].status
    check_after(service, before, 1)
