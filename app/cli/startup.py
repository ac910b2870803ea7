"""Progress of a start: one line per replica that comes up, and the first failure as one message."""

from __future__ import annotations

import json
import re
import threading
import time
import urllib.error
import urllib.request

from rich.console import Console

from app.cli.ray_watch import check_ray
from autoscaling.decisions import Sizes
from autoscaling.types import Role
from deployments import local_cluster
from deployments.local_cluster import Replicas
from deployments.local_config import ServiceSettings

TICK_S = 0.5
WORD_EVERY_S = 10.0  # a sign of life while an engine loads
# Serve's status message holds the traceback of a failed start; our errors are its last telling line.
OUR_ERROR = re.compile(r"(?:Engine(?:Config|Start)Error|NoPortError|NoCoreError|ValueError): (.+)")
SETTLED = ("HEALTHY", "UPSCALING", "DOWNSCALING")  # Serve's words once a pool has come up
PERMANENT = "EngineConfigError"
FAILED = "DEPLOY_FAILED"  # Serve has given up, for a deployment or the application


class StartFailed(Exception):  # noqa: N818
    """A replica cannot start; the message names the pool, the cause and the mend."""


def follow_start(
    settings: ServiceSettings, sizes: Sizes, url: str, console: Console, stop: threading.Event
) -> bool:
    """Wait until every replica that the plan begins with runs and `/ready` answers; False when stopped first.

    Raises StartFailed for a cause that waiting will not mend, RayGone when Ray has ended.
    """
    began = word_at = time.monotonic()
    shown: dict[str, int] = {}
    limit_s = max(settings.pool(role).start_timeout_s for role in Role)
    while not stop.wait(TICK_S):
        check_ray()
        now = time.monotonic()
        there = local_cluster.application()
        counts = {} if there is None else there.deployments
        for name, one in counts.items():
            refuse_failed(name, one)
        for role in Role:
            found = counts.get(role.value)
            if found is None:
                continue
            if found.running != shown.get(role.value, 0):
                shown[role.value] = found.running
                word_at = now
                wanted = max(sizes[role], found.running)  # an override of a former life may want more
                console.print(
                    f"  {role} pool: {found.running} of {wanted} replicas ready ({now - began:.0f} s)"
                )
        # A replica calls itself running only when Serve aims at the plan's sizes, so Serve's word is enough.
        complete = all(
            (found := counts.get(role.value)) is not None and found.status in SETTLED for role in Role
        )
        if complete and _is_ready(url, sizes):
            return True
        if now - word_at > WORD_EVERY_S:
            word_at = now
            console.print(f"  starting: {_word(sizes, shown)} ({now - began:.0f} s)")
        if now - began > limit_s:
            raise StartFailed(
                f"not ready after {limit_s:.0f} s ({_word(sizes, shown)}): "
                "raise start_timeout_s of the pool if the model is large, or see the logs"
            )
    return False


def _word(sizes: Sizes, shown: dict[str, int]) -> str:
    return ", ".join(f"{role} {shown.get(role.value, 0)}/{sizes[role]}" for role in Role)


def refuse_failed(name: str, found: Replicas) -> None:
    """Raise StartFailed for a configuration error at once, for any other when Serve has given up."""
    what = f"{name} pool" if name in set(Role) else name
    message = found.message
    causes = OUR_ERROR.findall(message)
    if PERMANENT in message and causes:
        raise StartFailed(f"{what}: {causes[-1].strip()}")
    if found.status == FAILED:
        raise StartFailed(f"{what}: {causes[-1].strip() if causes else last_line(message)}")


def last_line(message: str) -> str:
    """What a traceback ends with."""
    return (message.strip().splitlines() or ["Serve does not say why, see the logs"])[-1]


def _is_ready(url: str, sizes: Sizes) -> bool:
    """Whether every pool serves that is to have a replica."""
    try:
        with urllib.request.urlopen(f"{url}/ready", timeout=5) as answer:  # noqa: S310  # our own address
            waiting = json.loads(answer.read())["waiting_for"]
            return answer.status == 200 and not any(sizes[Role(name)] for name in waiting)
    except (urllib.error.URLError, OSError):
        return False
