"""Replicas and ingresses told to stop while streams are open: streams finish, new work goes elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from tests.serve.conftest import settings
from tests.service import Service, Stream, chat

pytestmark = [pytest.mark.serve, pytest.mark.timeout(300)]

STEP_S = 0.05


@pytest.fixture(scope="module", params=["proxy", pytest.param("haproxy", marks=pytest.mark.long)])
def slow(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose engines make 20 steps a second, behind each front."""
    made = settings(
        speculative={"replicas": 1, "engine": slow_engine(), "longest_generation_s": 240.0},
        plain={"engine": slow_engine(), "longest_generation_s": 240.0},
    )
    with Service(tmp_path_factory.mktemp("slow"), made, front=request.param) as running:
        running.wait(lambda: running.ready(1, 2), 30, "three replicas")
        yield running


def slow_engine() -> dict[str, Any]:
    # A context in which 180 s of steps fit.
    return {"simulation": {"step_base_s": STEP_S, "step_per_token_s": 0.0}, "max_model_len": 8192}


def stream_of(service: Service, seconds: float, pool: str) -> Stream:
    """A stream of so many seconds on a plain engine; a speculative one says the same in fewer steps."""
    body = chat(
        "x", max_tokens=int(seconds / STEP_S), ignore_eos=True, stream_options={"include_usage": True}
    )
    stream = Stream(service, body, {"x-twinpool-pool": pool})
    assert stream.began.wait(20)
    assert stream.status == 200
    return stream


def drain_under(service: Service, seconds: float) -> None:
    streams = [stream_of(service, seconds, "plain") for _ in range(4)]
    before = {replica["id"] for replica in service.replicas("plain")}
    assert before == {stream.headers["x-twinpool-replica"] for stream in streams}
    service.resize(plain=1)
    try:
        service.wait(
            lambda: any(replica["draining"] for replica in service.replicas("plain")),
            10,
            "a draining replica",
        )
        victim = next(replica["id"] for replica in service.replicas("plain") if replica["draining"])
        while any(stream.open for stream in streams):
            answer = service.post(chat("Hi", max_tokens=2), headers={"x-twinpool-pool": "plain"})
            assert answer.status_code == 200
            assert answer.headers["x-twinpool-replica"] != victim
            time.sleep(0.2)
        for stream in streams:
            assert stream.complete, (stream.errors, stream.fault)
            assert stream.tokens == int(seconds / STEP_S)
        service.wait(lambda: service.ready(1, 1), 20, "the drained replica to be gone")
    finally:
        service.resize(plain=2)
        service.wait(lambda: service.ready(1, 2), 60, "the pool to be whole again")


def ingress_update_under(service: Service, seconds: float) -> None:
    streams = [stream_of(service, seconds, pool) for pool in ("plain", "speculative")]
    old = {process.pid for process in service.processes("ray::", "twinpool:ingress")}
    replicas = {replica["id"] for pool in ("speculative", "plain") for replica in service.replicas(pool)}
    changed = deepcopy(service.settings)
    changed["between_chunks_s"] = service.settings.get("between_chunks_s", 60.0) + 1
    service.reload(changed)
    service.wait(
        lambda: bool({p.pid for p in service.processes("ray::", "twinpool:ingress")} - old),
        30,
        "a new ingress",
    )
    while any(stream.open for stream in streams):
        assert service.post(chat("Hi", max_tokens=2)).status_code == 200
        time.sleep(0.3)
    for stream in streams:
        assert stream.complete, (stream.errors, stream.fault)
        assert stream.tokens == int(seconds / STEP_S)
    assert replicas == {
        replica["id"] for pool in ("speculative", "plain") for replica in service.replicas(pool)
    }


def test_a_draining_replica_finishes_its_streams(slow: Service) -> None:
    """Case B8: streams on a stopping replica finish; nothing new lands there."""
    drain_under(slow, 10)


def test_streams_survive_an_ingress_update(slow: Service) -> None:
    """A change of the ingress's settings rolls only the ingress, and open streams finish on the old one."""
    ingress_update_under(slow, 15)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_draining_replica_finishes_a_60_s_stream(slow: Service) -> None:
    """The same with a stream of 60 s."""
    drain_under(slow, 60)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_180_s_stream_survives_an_ingress_update(slow: Service) -> None:
    """The same with a stream of 180 s, longer than HAProxy's own default of 120 s after a change."""
    ingress_update_under(slow, 180)


@pytest.mark.parametrize("slow", ["proxy"], indirect=True)
def test_settings_that_cannot_start_are_taken_back(slow: Service) -> None:
    """A rollout whose new replicas cannot start is said and undone; the other pool serves meanwhile."""
    good = deepcopy(slow.settings)
    bad = deepcopy(slow.settings)
    bad["speculative"]["engine"]["kv_cache_memory_bytes"] = 16 << 20
    bad["speculative"]["engine"]["max_model_len"] = 100_000
    slow.reload(bad)
    slow.wait(lambda: "going back to the old ones" in slow.log.read_text(), 60, "the rollout to be undone")
    assert slow.post(chat("Hi", max_tokens=2, service_tier="priority")).status_code == 200
    slow.wait(lambda: slow.ready(1, 2), 60, "both pools whole again")
    slow.reload(good)


@pytest.mark.parametrize("slow", ["proxy"], indirect=True)
def test_a_changed_draft_rolls_only_the_speculative_pool(slow: Service) -> None:
    """Engine settings travel in the deployment's own environment: the plain replicas stay."""
    plain = {replica["id"] for replica in slow.replicas("plain")}
    old = {replica["id"] for replica in slow.replicas("speculative")}
    changed = deepcopy(slow.settings)
    changed["speculative"]["engine"]["speculative_config"] = {"method": "ngram", "num_speculative_tokens": 2}
    slow.reload(changed)

    def rolled() -> bool:
        new = slow.replicas("speculative")
        return bool(new) and not old & {replica["id"] for replica in new} and slow.ready(1, 2)

    slow.wait(rolled, 60, "a new speculative replica")
    assert [2] == [replica["draft_length"] for replica in slow.replicas("speculative")]
    assert plain == {replica["id"] for replica in slow.replicas("plain")}
