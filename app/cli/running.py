"""A running `serve`: what it watches until it is told to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from rich.console import Console

from app.cli.ray_watch import check_ray
from app.cli.rollout import is_over, said
from app.cli.settings import SettingsError, unchanging
from app.cli.signals import Signals
from app.cli.startup import StartFailed
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
    words: Mapping[str, str] = {}  # of Serve on each deployment, before that
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
            words = said(local_cluster.application())
            local_cluster.redeploy(changed)
            console.print("settings taken: what changed is being rolled out")
            # What is still on its way itself has shown nothing yet that one could go back to.
            before, wanted = before or wanted, changed
        if time.monotonic() - looked_at > LOOK_S:
            looked_at = time.monotonic()
            check_ray()
            if before is not None:
                before, wanted = _follow(before, wanted, words, console)
    return wanted


def _follow(
    before: ServiceSettings, wanted: ServiceSettings, words: Mapping[str, str], console: Console
) -> tuple[ServiceSettings | None, ServiceSettings]:
    """One look at a rollout: done, under way, or failed and taken back."""
    try:
        if not is_over(local_cluster.application(), words):
            return before, wanted
    except StartFailed as error:
        console.print(f"the new settings cannot start, going back to the old ones: {error}", style="red")
        local_cluster.redeploy(before)
        return None, before
    console.print("rollout complete")
    return None, wanted
