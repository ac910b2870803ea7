"""A running `serve`: what it watches until it is told to stop."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console

from app.cli.ray_watch import check_ray
from app.cli.settings import SettingsError, unchanging
from app.cli.signals import Signals
from app.cli.startup import StartFailed, failed_pool
from autoscaling.types import Role
from deployments import local_cluster
from deployments.local_config import ServiceSettings

TICK_S = 0.2
LOOK_S = 1.0


def until_stopped(
    wanted: ServiceSettings, read: Callable[[], ServiceSettings], signals: Signals, console: Console
) -> ServiceSettings:
    """Wait for a stop signal; returns the settings in force then.

    On SIGUSR1 what the settings file says now is deployed, without losing a stream; what cannot start is
    taken back.  Raises RayGone.
    """
    slots = wanted.ceiling
    before: ServiceSettings | None = None  # to go back to, while a rollout is under way
    looked_at = 0.0
    while not signals.stop.wait(TICK_S):
        if signals.reload.is_set():
            signals.reload.clear()
            try:
                changed = unchanging(wanted, read(), slots)
            except SettingsError as error:
                console.print(f"settings not taken, the old ones stay: {error}", style="red")
                continue
            if changed == wanted:
                console.print("settings taken: nothing has changed")
                continue
            local_cluster.redeploy(changed)
            console.print("settings taken: what changed is being rolled out")
            before, wanted = wanted, changed
        if time.monotonic() - looked_at > LOOK_S:
            looked_at = time.monotonic()
            check_ray()
            if before is not None:
                before, wanted = _follow(before, wanted, console)
    return wanted


def _follow(
    before: ServiceSettings, wanted: ServiceSettings, console: Console
) -> tuple[ServiceSettings | None, ServiceSettings]:
    """One look at a rollout: done, under way, or failed and taken back."""
    counts = local_cluster.replica_counts()
    try:
        for role in Role:
            found = counts.get(role.value)
            if found is not None:
                failed_pool(role, found)
    except StartFailed as error:
        console.print(f"the new settings cannot start, going back to the old ones: {error}", style="red")
        local_cluster.redeploy(before)
        return None, before
    complete = all(
        (found := counts.get(role.value)) is not None and found.status == "HEALTHY" and found.running > 0
        for role in Role
    )
    if complete:
        console.print("rollout complete")
        return None, wanted
    return before, wanted
