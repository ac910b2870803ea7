"""The service of `benchmarks.mixed`: started, watched, its policy edited while it runs, and stopped."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from autoscaling.types import Role
from benchmarks.errors import BenchError, UnfitError
from benchmarks.mixed_plan import SWITCHES, Condition, policy_text, settings_text
from benchmarks.processes import Child, module
from deployments.ports import free_ports

START_LIMIT_S: Final = 600.0  # a first start converts the model
STOP_LIMIT_S: Final = 90.0
EDIT_LIMIT_S: Final = 20.0  # of a file until it counts; usually two seconds
IDLE_LIMIT_S: Final = 60.0
SPREAD_S: Final = 1.0  # until an ingress has fetched what the controller knows; its poll takes 0.25 s
LOOK_LIMIT_S: Final = 10.0
READY: Final = {role.value: 1 for role in Role}

Status = dict[str, Any]
Command = Callable[[int, Path], list[str]]


def serve_command(engine: str) -> Command:
    """`twinpool serve` with one of the engines."""
    serve = module("app.cli.main", "serve", "--engine", engine)
    return lambda port, settings: [*serve, "--port", str(port), "--settings", str(settings)]


class Service:
    """One speculative and one plain replica, with everything they keep inside `folder`.

    `command` starts it on a port with a settings file.
    """

    def __init__(self, command: Command, folder: Path) -> None:
        self._policy, self._profile = folder / "policy.yaml", folder / "profile.json"
        self.records = folder / "records"
        try:
            (port,) = free_ports(1)
        except OSError as error:
            raise UnfitError(f"no free port on 127.0.0.1 ({error}): end what holds ports") from error
        self.url = f"http://127.0.0.1:{port}"
        settings = folder / "settings.yaml"
        settings.write_text(settings_text(folder), encoding="utf-8")
        self._policy.write_text(policy_text("calibration", SWITCHES[Condition.TIER_ONLY]), encoding="utf-8")
        self._child = Child("service", command(port, settings), folder)

    def __enter__(self) -> Service:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        words = self._child.log_end()
        self._child.stop(STOP_LIMIT_S)
        if isinstance(error, BenchError) and words not in str(error):
            raise BenchError(f"{error}\nthe last words of the service:\n{words}") from error

    def wait_ready(self) -> None:
        """Wait for both replicas, and for a status that tells of them; raises BenchError."""
        self._child.wait_ready(self._ready, START_LIMIT_S)
        self._wait(lambda found: all(_replicas(found, role) for role in Role), EDIT_LIMIT_S, "both replicas")

    def switch(self, name: str, text: str) -> None:
        """Write a policy named `name`, and wait until it acts everywhere; raises BenchError.

        Names are told apart: each may be used once.
        """
        before = (_policy(self.status()).get("active_revision")) or 0
        _replace(self._policy, text)

        def acts(found: Status) -> bool:
            policy = _policy(found)
            if (policy.get("seen_revision") or 0) > before and policy.get("last_error"):
                raise BenchError(f"policy {name} was refused: {policy['last_error']}")
            return (policy.get("active_revision") or 0) > before and policy.get("name") == name

        self._wait(acts, EDIT_LIMIT_S, f"policy {name} to be active")
        time.sleep(SPREAD_S)

    def use_profile(self, text: str) -> None:
        """Write the profile, and wait until limits rest on it; raises BenchError."""
        _replace(self._profile, text)

        def counts(found: Status) -> bool:
            profile = found.get("profile") or {}
            if profile.get("state") in ("invalid", "stale"):
                raise BenchError(f"the profile is {profile['state']}: {profile.get('error')}")
            return bool(profile.get("state") == "measured")

        self._wait(counts, EDIT_LIMIT_S, "the profile to be in force")
        time.sleep(SPREAD_S)

    def check_profile_known(self) -> None:
        """Raises BenchError unless the status says what becomes of the profile."""
        self._wait(
            lambda found: bool((found.get("profile") or {}).get("state")), EDIT_LIMIT_S, "the profile's state"
        )

    def wait_idle(self) -> None:
        """Wait until nothing is open, by the ingress and by both engines; raises BenchError."""
        self._wait(_idle, IDLE_LIMIT_S, "every request to end")

    def model(self) -> tuple[str, int]:
        """Fingerprint of the served model, and K of its drafts; raises BenchError."""
        (replica,) = _replicas(self.status(), Role.SPECULATIVE)
        fingerprint, length = replica.get("model_fingerprint"), replica.get("draft_length")
        if not fingerprint or not length:
            raise BenchError(f"the speculative replica says fingerprint {fingerprint}, draft length {length}")
        return fingerprint, length

    def status(self) -> Status:
        """The status JSON; raises BenchError when it does not come."""
        try:
            found = json.loads(_get(f"{self.url}/admin/status"))
        except (OSError, ValueError) as error:
            raise BenchError(f"no status of the service: {error}") from None
        return found if isinstance(found, dict) else {}

    def _ready(self) -> bool:
        try:
            return bool(json.loads(_get(f"{self.url}/ready"))["pools"] == READY)
        except (OSError, ValueError, KeyError):  # an HTTP error is an OSError
            return False

    def _wait(self, true: Callable[[Status], bool], limit_s: float, what: str) -> None:
        deadline = time.monotonic() + limit_s
        while not true(self.status()):
            if time.monotonic() > deadline:
                raise BenchError(f"after {limit_s:.0f} s still waiting for {what}")
            time.sleep(0.2)


def _policy(found: Status) -> dict[str, Any]:
    return found.get("policy") or {}


def _replicas(found: Status, role: Role) -> list[dict[str, Any]]:
    pool = (found.get("pools") or {}).get(role.value) or {}
    return [one for one in pool.get("replicas") or [] if one.get("state") == "running"]


def _idle(found: Status) -> bool:
    replicas = [one for role in Role for one in _replicas(found, role)]
    open_ = [one.get(name) for one in replicas for name in ("inflight", "running", "waiting")]
    return found.get("ingress", {}).get("inflight") == 0 and not any(open_)


def _get(url: str) -> bytes:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=LOOK_LIMIT_S) as response:
        data: bytes = response.read()
    return data


def _replace(path: Path, text: str) -> None:
    """In one step: a reader never sees half a file."""
    unfinished = path.with_name(path.name + ".tmp")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
