"""The end of a running `serve`: refuse new requests, let open answers finish, end the replicas."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console

from app.cli.ray_watch import RayGone, check_ray
from app.cli.signals import Signals
from deployments import local_cluster
from deployments.local_config import ServiceSettings

POLL_S = 0.3
WORD_EVERY_S = 5.0
# The ingresses learn of the stop at their next fetch, the controller of the open rest a report later.
LEARN_S = 2.0


def drain(wanted: ServiceSettings, signals: Signals, console: Console) -> None:
    """Drain; a second stop signal cuts what is still open.  Raises RayGone."""
    signals.stop.clear()
    console.print("draining: open answers finish, new requests are refused; Ctrl-C again cuts them")
    deadline = time.monotonic() + local_cluster.drain_limit_s(wanted)
    try:
        local_cluster.refuse_new()
        signals.stop.wait(LEARN_S)
        _wait(signals, deadline, console, lambda: local_cluster.open_requests() == 0)
    except RayGone:
        raise
    except Exception as error:  # no controller: Serve's own drain of each replica is the fallback
        console.print(
            f"  the controller does not answer ({type(error).__name__}); each replica drains by itself"
        )
    if signals.stop.is_set():
        console.print("cutting what is still open")
    local_cluster.delete()
    _wait(signals, deadline, console, local_cluster.deleted)


def _wait(signals: Signals, deadline: float, console: Console, done: Callable[[], bool]) -> None:
    """Poll until `done`, the deadline, or an impatient user; a sign of life every few seconds."""
    began = shown = time.monotonic()
    while not done() and time.monotonic() < deadline and not signals.stop.wait(POLL_S):
        check_ray()
        if time.monotonic() - shown > WORD_EVERY_S:
            shown = time.monotonic()
            console.print(
                f"  still draining after {shown - began:.0f} s, at most {deadline - shown:.0f} s more"
            )
