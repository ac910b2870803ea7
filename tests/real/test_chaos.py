"""Real vLLM processes killed and stopped: engines are gone, memory is back, the pool is whole again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from typing import Any

import psutil
import pytest

from tests.service import Service, Stream, chat

pytestmark = [pytest.mark.real, pytest.mark.timeout(500)]

START_S = 90.0  # a vLLM replica's start on a busy machine
LONG = {"max_tokens": 400, "ignore_eos": True, "stream_options": {"include_usage": True}}
CUT = LONG | {"max_tokens": 1500}  # surely not at its end when its replica dies


@pytest.fixture(autouse=True)
def _whole(service: Service) -> Iterator[None]:
    service.wait(service.ready, START_S + 30, "both pools whole before the test")
    yield
    service.wait(service.ready, START_S + 30, "both pools whole after the test")
    service.wait(service.idle, 15, "every counter at 0")


def open_streams(service: Service, pool: str, count: int, fields: Mapping[str, Any] = LONG) -> list[Stream]:
    streams = [
        Stream(service, chat("Tell a story", **fields), {"x-twinpool-pool": pool}) for _ in range(count)
    ]
    for stream in streams:
        assert stream.began.wait(30)
        assert stream.status == 200
    return streams


def resident(processes: list[psutil.Process]) -> int:
    return sum(process.memory_info().rss for process in processes)


def test_kill_of_a_replica(service: Service) -> None:
    """kill -9 of a replica under load: its EngineCore and worker are gone within 10 s, its memory is back."""
    victim = service.replicas("speculative")[0]
    engine = service.engine_processes(victim["pid"])
    assert len(engine) >= 1
    held = resident(engine)
    streams, others = open_streams(service, "speculative", 3, CUT), open_streams(service, "plain", 3)
    free = psutil.virtual_memory().available
    psutil.Process(victim["pid"]).kill()
    began = time.monotonic()
    for stream in streams:
        assert stream.join(10).errors == ["stream_interrupted"]
    _, alive = psutil.wait_procs(engine, timeout=10)
    assert alive == []
    gone_s = time.monotonic() - began
    assert psutil.virtual_memory().available > free + held * 0.3  # the replacement is loading by now
    for stream in others:
        assert stream.join(120).complete, (stream.errors, stream.fault)
        assert stream.tokens == 400
    whole_s = service.wait(service.ready, START_S + 15, "the replacement") + time.monotonic() - began
    pools = service.status()["pools"].values()
    shared = [replica["oversubscribed"] for pool in pools for replica in pool["replicas"]]
    assert shared == [False, False] or len(os.sched_getaffinity(0)) < 2
    print(f"engine gone after {gone_s:.1f} s, replacement ready after at most {whole_s:.0f} s")


@pytest.mark.long
def test_kill_of_the_engine_core(service: Service) -> None:
    """kill -9 of EngineCore: an error event on each stream, the slot free within 5 s."""
    victim = service.replicas("plain")[0]
    streams, others = open_streams(service, "plain", 3, CUT), open_streams(service, "speculative", 2)
    cores = [p for p in service.engine_processes(victim["pid"]) if "EngineCore" in " ".join(p.cmdline())]
    assert cores
    cores[0].kill()
    for stream in streams:
        assert stream.join(10).errors == ["engine_dead"]
    service.wait(lambda: not psutil.pid_exists(victim["pid"]), 5, "the slot to be free")
    for stream in others:
        assert stream.join(120).complete


@pytest.mark.long
def test_the_serve_controller_dies_and_real_engines_survive(service: Service) -> None:
    """kill -9 of the Serve controller: the same replicas serve on (a closed log handler would stop them)."""
    before = {pool: service.replicas(pool)[0]["pid"] for pool in ("speculative", "plain")}
    streams = open_streams(service, "plain", 2) + open_streams(service, "speculative", 2)
    for process in service.processes("ray::ServeController"):
        process.kill()
    for stream in streams:
        assert stream.join(120).complete, (stream.errors, stream.fault)
        assert stream.tokens == 400
    time.sleep(12)  # the new controller has asked every replica for its log file by now
    assert before == {pool: service.replicas(pool)[0]["pid"] for pool in ("speculative", "plain")}
    assert service.post(chat("Hi", max_tokens=2)).status_code == 200


@pytest.mark.long
def test_a_hung_engine_core(service: Service) -> None:
    """SIGSTOP of EngineCore: error events after 30 s without a step (at most 120 s), slot free 5 s later."""
    victim = service.replicas("plain")[0]
    streams = open_streams(service, "plain", 3, CUT)
    began = time.monotonic()
    for process in service.engine_processes(victim["pid"]):
        process.send_signal(signal.SIGSTOP)
    for stream in streams:
        assert stream.join(130).errors == ["engine_hung"]
    verdict_s = time.monotonic() - began
    assert 29 <= verdict_s
    service.wait(lambda: not psutil.pid_exists(victim["pid"]), 5, "the slot to be free")
    print(f"judged hung after {verdict_s:.1f} s")


@pytest.mark.long
def test_the_controller_deployment_and_the_ingress_die(service: Service) -> None:
    """kill -9 of our controller, then of the ingress: no replica restarts, service goes on within 15 s."""
    before = {pool: service.replicas(pool)[0]["pid"] for pool in ("speculative", "plain")}
    streams = open_streams(service, "plain", 2) + open_streams(service, "speculative", 2)
    service.processes("ray::", "twinpool:controller")[0].kill()
    for stream in streams:
        assert stream.join(120).complete, (stream.errors, stream.fault)
    service.processes("ray::", "twinpool:ingress")[0].kill()
    service.wait(service.ready, 30, "a new ingress")
    service.wait(lambda: service.status()["pools"] is not None, 30, "a new controller")
    assert before == {pool: service.replicas(pool)[0]["pid"] for pool in ("speculative", "plain")}
