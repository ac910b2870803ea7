"""Are Ray's own processes still there?  Without them nothing can be served, drained or asked."""

from __future__ import annotations

import psutil

RAY_PROCESSES = ("raylet", "gcs_server")


class RayGone(Exception):  # noqa: N818  # an outcome for the user
    """Ray's own processes have ended; nothing can be served or drained any more."""


def check_ray() -> None:
    """Raise RayGone when the raylet or the GCS of our cluster has ended."""
    alive = set()
    for child in psutil.Process().children():
        try:
            if child.status() != psutil.STATUS_ZOMBIE:
                alive.add(child.name())
        except psutil.Error:
            continue
    for name in RAY_PROCESSES:
        if name not in alive:
            raise RayGone(
                f"Ray's {name} has ended, and with it the service; everything else is being stopped\n"
                "mend: look for the reason (memory?) in {local_cluster.log_folder()}, then start again"
            )
