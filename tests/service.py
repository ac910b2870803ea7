"""The whole service as its user runs it: `twinpool serve` in a child process, spoken to over HTTP.

Input: settings, HTTP requests, signals to real processes.  Output: answers, /admin/status, and which
processes and ports are left.  Nothing inside is patched.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil
import yaml

from deployments.ports import free_ports
from tests.policies import steady

MODEL = "smollm2-135m"
START_LIMIT_S = 240.0


class Service:
    """One running `twinpool serve`; `settings` are merged over the defaults by the CLI itself."""

    def __init__(
        self,
        folder: Path,
        settings: dict[str, Any],
        engine: str = "simulated",
        front: str = "proxy",
        policy: str | None = None,
    ) -> None:
        self.port = free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}"
        self.policy_file = folder / "policy.yaml"
        self.policy_file.write_text(steady(settings) if policy is None else policy)
        self.state_dir = folder / "state"
        self.settings = {"policy": str(self.policy_file), "state_dir": str(self.state_dir)} | settings
        self._file = folder / "settings.yaml"
        self.log = folder / "serve.log"
        self._write()
        command = [sys.executable, "-m", "app.cli.main", "serve", "--engine", engine, "--front", front]
        command += ["--port", str(self.port), "--settings", str(self._file)]
        environment = os.environ | {"RAY_AUTH_MODE": "disabled", "TWINPOOL_NODE_DIR": str(folder / "node")}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, start_new_session=True
            )

    def __enter__(self) -> Service:
        self.wait(lambda: "ready after" in self.words(), START_LIMIT_S, "the service to be ready")
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def words(self) -> str:
        """What the command has printed; raises when it has ended."""
        text = self.log.read_text()
        if self.process.poll() is not None and "ready after" not in text:
            raise AssertionError(f"serve ended with {self.process.returncode}:\n{text[-3000:]}")
        return text

    def _write(self) -> None:
        self._file.write_text(yaml.safe_dump(self.settings))

    def reload(self, settings: dict[str, Any]) -> None:
        """Write new settings and have them deployed."""
        before = self.log.read_text().count("settings taken")
        self.settings = settings
        self._write()
        self.process.send_signal(signal.SIGUSR1)
        self.wait(
            lambda: self.log.read_text().count("settings taken") > before, 20, "the settings to be taken"
        )

    def resize(self, **sizes: int) -> None:
        """Force pools to sizes, as an operator does, donors first; earlier overrides are cleared."""
        self.order("DELETE", "/admin/overrides/all?who=test")
        pools = self.status()["pools"]
        for pool, size in sorted(sizes.items(), key=lambda item: item[1] - (pools[item[0]]["target"] or 0)):
            order = {"pool": pool, "replicas": size, "for_s": 3600.0, "reason": "test", "who": "test"}
            self.order("POST", "/admin/overrides", order)

    def order(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """An operator's order; raises when it is refused."""
        answer = httpx.request(method, self.url + path, json=body, timeout=30)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def stop(self) -> None:
        """Ctrl-C, and wait for the drain."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(120)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise AssertionError(f"no end after Ctrl-C:\n{self.log.read_text()[-2000:]}") from None

    # --- what it says and what it is made of ---------------------------------------------------

    def get(self, path: str, **options: Any) -> httpx.Response:
        return httpx.get(self.url + path, timeout=30, **options)

    def post(self, body: Any, path: str = "/v1/chat/completions", **options: Any) -> httpx.Response:
        options.setdefault("timeout", 120)
        return httpx.post(self.url + path, json=body, **options)

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.get("/admin/status").json()
        return found

    def replicas(self, pool: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.status()["pools"][pool]["replicas"]
        return found

    def totals(self, key: str) -> int:
        """A counter summed over every replica of both pools."""
        pools = self.status()["pools"]
        return sum(replica[key] for pool in pools.values() for replica in pool["replicas"])

    def settled(self, key: str) -> int:
        """The counter once every replica is idle and has said so in a report of later."""
        self.wait(self.idle, 15, "every counter at 0")
        time.sleep(1.5)
        return self.totals(key)

    def processes(self, *words: str) -> list[psutil.Process]:
        """Living processes of this service whose title or command line contains all `words`."""
        found = []
        for process in psutil.Process(self.process.pid).children(recursive=True):
            try:
                line = " ".join(process.cmdline())
                if all(word in line for word in words) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def engine_processes(self, replica_pid: int) -> list[psutil.Process]:
        """What runs below one replica, without Python's resource tracker."""
        below = psutil.Process(replica_pid).children(recursive=True)
        return [child for child in below if "resource_tracker" not in " ".join(child.cmdline())]

    def ready(self, speculative: int = 1, plain: int = 1) -> bool:
        """Whether exactly so many replicas take work, by the ingress's word."""
        try:
            answer = self.get("/ready")
        except httpx.HTTPError:
            return False
        return answer.status_code == 200 and answer.json()["pools"] == {
            "speculative": speculative,
            "plain": plain,
        }

    def idle(self) -> bool:
        """Whether every counter of open work is exactly 0, in ingress, replica and engine."""
        status = self.status()
        replicas = [replica for pool in status["pools"].values() for replica in pool["replicas"]]
        counts = [replica[key] for replica in replicas for key in ("inflight", "running", "waiting")]
        return status["ingress"]["inflight"] == 0 and all(count in (0, None) for count in counts)

    @staticmethod
    def wait(condition: Callable[[], bool], limit_s: float, what: str) -> float:
        """Poll until true; returns the seconds it took."""
        began = time.monotonic()
        while not condition():
            assert time.monotonic() - began < limit_s, f"after {limit_s:.0f} s still waiting for {what}"
            time.sleep(0.1)
        return time.monotonic() - began


def chat(text: str, **fields: Any) -> dict[str, Any]:
    """A chat body for the served model."""
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], "temperature": 0} | fields


def events(answer: httpx.Response) -> list[Any]:
    """The events of a stream, decoded; `[DONE]` stays text."""
    found: list[Any] = []
    for line in answer.text.split("\n\n"):
        if line.startswith("data: "):
            data = line.removeprefix("data: ")
            found.append(data if data == "[DONE]" else json.loads(data))
    return found


def text_of(found: list[Any]) -> str:
    """The text that a chat stream's events add up to."""
    parts = []
    for event in found:
        if isinstance(event, dict):
            parts += [choice["delta"].get("content") or "" for choice in event.get("choices", [])]
    return "".join(parts)


class Stream:
    """One streaming answer read in a thread of its own."""

    def __init__(self, service: Service, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        import threading

        self.headers: dict[str, str] = {}
        self.events: list[Any] = []
        self.status: int | None = None
        self.fault: str | None = None
        self.began = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(service, body, headers or {}), daemon=True)
        self._thread.start()

    def _run(self, service: Service, body: dict[str, Any], headers: dict[str, str]) -> None:
        try:
            with httpx.stream(
                "POST",
                service.url + "/v1/chat/completions",
                json=body | {"stream": True},
                headers=headers,
                timeout=600,
            ) as answer:
                self.status = answer.status_code
                self.headers = dict(answer.headers)
                for line in answer.iter_lines():
                    if line.startswith("data: "):
                        data = line.removeprefix("data: ")
                        self.events.append(data if data == "[DONE]" else json.loads(data))
                        self.began.set()
        except httpx.HTTPError as error:
            self.fault = f"{type(error).__name__}: {error}"
        finally:
            self.began.set()

    def join(self, limit_s: float = 120) -> Stream:
        self._thread.join(limit_s)
        assert not self._thread.is_alive(), f"stream still open after {limit_s} s"
        return self

    @property
    def open(self) -> bool:
        return self._thread.is_alive()

    @property
    def errors(self) -> list[str]:
        return [
            event["error"]["code"] for event in self.events if isinstance(event, dict) and "error" in event
        ]

    @property
    def complete(self) -> bool:
        """Ended by [DONE], without an error event."""
        return self.fault is None and not self.errors and self.events[-1:] == ["[DONE]"]

    @property
    def tokens(self) -> int | None:
        """Completion tokens by the usage chunk, None without one."""
        for event in self.events:
            if isinstance(event, dict) and event.get("usage"):
                return int(event["usage"]["completion_tokens"])
        return None
