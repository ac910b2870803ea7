"""Starts that are slow, and starts that cannot work: what is said, with which exit code, and what is left."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil
import pytest

from tests.serve.conftest import settings
from tests.service import Service, chat

pytestmark = [pytest.mark.serve, pytest.mark.timeout(200)]


def run_serve(folder: Path, *arguments: str, limit_s: float = 120) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"RAY_AUTH_MODE": "disabled", "TWINPOOL_NODE_DIR": str(folder / "node")}
    command = [sys.executable, "-m", "app.cli.main", "serve", *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment,
        timeout=limit_s,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def left_behind(folder: Path) -> list[str]:
    """Processes of a service that was started with this folder, by the environment they inherited."""
    found = []
    for process in psutil.process_iter():
        try:
            ours = process.environ().get("TWINPOOL_NODE_DIR") == str(folder / "node")
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline())[:120])
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--engine", "other"], 2, ["engine.kind", "'vllm' or 'simulated'"]),
        (["--front", "nginx"], 2, ["front", "haproxy"]),
        (["--host", "0.0.0.0"], 2, ["--host 0.0.0.0", "--insecure-no-auth"]),
        (["--speculation", "{"], 2, ["--speculation", "JSON"]),
        (["--settings", "/nowhere.yaml"], 2, ["--settings /nowhere.yaml"]),
        (["--model", "/no/such/model"], 1, ["engine.model", "does not exist", "mend"]),
        (["--plain-replicas", "100"], 2, ["plain.replicas", "64"]),
    ],
)
def test_wrong_usage_is_one_clear_message(
    tmp_path: Path, arguments: list[str], code: int, words: list[str]
) -> None:
    """The message names the setting and the mend; the exit code is not 0; nothing was started."""
    ended = run_serve(tmp_path, *arguments)
    assert code == ended.returncode, ended.stderr
    assert all(word in ended.stderr for word in words), ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_port_in_use(tmp_path: Path) -> None:
    """The port and the mend are named before anything starts."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = run_serve(tmp_path, "--engine", "simulated", "--port", str(port))
    assert ended.returncode == 1
    assert str(port) in ended.stderr
    assert "mend" in ended.stderr


def test_a_settings_file_with_a_mistyped_key(tmp_path: Path) -> None:
    """File and field are named."""
    file = tmp_path / "s.yaml"
    file.write_text("plain:\n  replica: 3\n")
    ended = run_serve(tmp_path, "--engine", "simulated", "--settings", str(file))
    assert ended.returncode == 2
    assert "plain.replica" in ended.stderr
    assert str(file) in ended.stderr


@pytest.mark.long
def test_an_engine_that_refuses_its_settings_ends_the_start(tmp_path: Path) -> None:
    """A cause that waiting cannot mend: one message, exit code 1, and no process is left."""
    file = tmp_path / "s.yaml"
    file.write_text("plain:\n  engine:\n    max_model_len: 100000\n    kv_cache_memory_bytes: 16777216\n")
    began = time.monotonic()
    ended = run_serve(tmp_path, "--engine", "simulated", "--settings", str(file), "--port", "18431")
    assert ended.returncode == 1, ended.stderr
    assert "plain pool:" in ended.stderr
    assert "kv_cache" in ended.stderr
    assert time.monotonic() - began < 60
    assert left_behind(tmp_path) == []


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("start_s", "requests"), [(6.0, 200), (300.0, 1000)])
def test_a_slow_start_is_not_a_failure(tmp_path: Path, start_s: float, requests: int) -> None:
    """Case E7: while engines load, the ingress says 503 with Retry-After; no restart loop; then it serves."""
    slow = {"simulation": {"start_s": start_s}}
    made = settings(speculative={"replicas": 1, "engine": slow}, plain={"replicas": 1, "engine": slow})
    running = Service(tmp_path, made)
    try:

        def said() -> httpx.Response | None:
            try:
                return running.get("/ready")
            except httpx.HTTPError:
                return None

        running.wait(lambda: (answer := said()) is not None and answer.status_code == 503, 30, "a 503")
        answer = said()
        assert answer is not None
        assert answer.json()["error"]["code"] == "not_ready"
        assert int(answer.headers["retry-after"]) >= 1
        refused = running.post(chat("Hi"))
        assert (503, "not_ready") == (refused.status_code, refused.json()["error"]["code"])
        running.wait(lambda: len(running.processes("deployments.simulated.core")) == 2, 30, "two engines")
        first = {process.pid for process in running.processes("deployments.simulated.core")}
        running.wait(lambda: running.ready(1, 1), start_s + 50, "both replicas")
        assert first == {process.pid for process in running.processes("deployments.simulated.core")}
        # All at once: health checks still pass and nobody is replaced.
        replicas = {replica["id"] for pool in ("speculative", "plain") for replica in running.replicas(pool)}
        burst(running.port, requests)
        running.wait(running.idle, 30, "every counter at 0")
        assert replicas == {
            replica["id"] for pool in ("speculative", "plain") for replica in running.replicas(pool)
        }
    finally:
        running.stop()


def burst(port: int, count: int) -> None:
    """`count` requests at once; each is answered, with 200 or a documented refusal."""
    import asyncio

    async def run() -> list[int]:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(limits=limits, timeout=120) as client:
            url = f"http://127.0.0.1:{port}/v1/chat/completions"
            answers = await asyncio.gather(
                *(client.post(url, json=chat("Hi", max_tokens=2)) for _ in range(count)),
                return_exceptions=True,
            )
        return [a.status_code if isinstance(a, httpx.Response) else -1 for a in answers]

    statuses = asyncio.run(run())
    assert set(statuses) <= {200, 429, 503}, {status: statuses.count(status) for status in set(statuses)}
    assert statuses.count(200) > 0


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGTERM])
def test_nothing_is_left_after_a_stop(tmp_path: Path, number: signal.Signals) -> None:
    """An open stream finishes during the drain, new work is refused; then no process and no port is left."""
    from tests.service import Stream

    with Service(tmp_path, settings(speculative={"replicas": 1}, plain={"replicas": 1})) as running:
        stream = Stream(running, chat("x", max_tokens=600, ignore_eos=True))
        assert stream.began.wait(10)
        processes = psutil.Process(running.process.pid).children(recursive=True)
        running.process.send_signal(number)
        running.wait(lambda: running.get("/ready").status_code == 503, 5, "the ingress to refuse")
        refused = running.post(chat("Hi"))
        assert (503, "not_ready") == (refused.status_code, refused.json()["error"]["code"])
        assert running.status()["ready"] is False
        assert running.process.wait(60) == 0
        assert stream.join(5).complete, (stream.errors, stream.fault)
    _, alive = psutil.wait_procs(processes, timeout=10)
    assert [" ".join(p.cmdline()) for p in alive] == []
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # closed connections may linger
        free.bind(("127.0.0.1", running.port))


@pytest.mark.long
def test_the_end_of_ray_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    """kill -9 of the raylet: one message with a mend, exit code 1 within 20 s, no replica or engine left."""
    running = Service(tmp_path, settings(speculative={"replicas": 1}, plain={"replicas": 1}))
    running.__enter__()
    processes = psutil.Process(running.process.pid).children(recursive=True)
    next(process for process in processes if process.name() == "raylet").kill()
    assert running.process.wait(20) == 1
    assert "raylet has ended" in running.log.read_text()
    _, alive = psutil.wait_procs(processes, timeout=20)
    assert [" ".join(p.cmdline())[:100] for p in alive] == []


@pytest.mark.long
def test_nothing_is_left_after_kill_9(tmp_path: Path) -> None:
    """Even kill -9 of the command itself leaves nothing: engines end in 20 s, Ray's own agents in 90 s."""
    running = Service(tmp_path, settings(speculative={"replicas": 1}, plain={"replicas": 1}))
    running.__enter__()
    processes = psutil.Process(running.process.pid).children(recursive=True)
    engines = running.processes("deployments.simulated.core")
    assert len(engines) == 2
    running.process.kill()
    _, alive = psutil.wait_procs(engines, timeout=20)
    assert alive == []
    _, alive = psutil.wait_procs(processes, timeout=90)
    assert [" ".join(p.cmdline())[:100] for p in alive] == []
