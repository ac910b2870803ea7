"""What Ray's processes find in their environment."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from deployments.local_cluster import ray_environment
from deployments.local_config import default_settings

PERIOD = "RAY_SERVE_PROXY_HEALTH_CHECK_PERIOD_S"


@pytest.mark.parametrize("front", ["proxy", "haproxy"])
def test_a_dead_front_is_soon_noticed(front: str) -> None:
    """Ray replaces it after three failed checks; at its own period nobody is served for half a minute."""
    found = ray_environment(default_settings("simulated", front=front))

    assert 3 * float(found[PERIOD]) <= 10


@pytest.mark.contract
def test_ray_reads_the_period() -> None:
    """By this name, and as seconds."""
    ask = "from ray.serve._private import constants; print(constants.PROXY_HEALTH_CHECK_PERIOD_S)"
    done = subprocess.run(
        [sys.executable, "-c", ask],
        env=os.environ | {PERIOD: "2"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert "2.0" == done.stdout.strip()
