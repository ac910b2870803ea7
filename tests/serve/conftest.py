"""One simulated service for the whole package: two plain replicas, two speculative ones, quick steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.service import Service

SIMULATION = {"step_base_s": 0.01, "step_per_token_s": 0.0002}


def settings(**changes: Any) -> dict[str, Any]:
    """Settings of a small service with short limits; `changes` are per pool or top-level."""
    pools = {}
    for role in ("speculative", "plain"):
        pools[role] = {
            "replicas": 2,
            "hung_after_s": 3.0,
            "longest_generation_s": 60.0,
            "engine": {"simulation": dict(SIMULATION)},
        } | changes.pop(role, {})
    return pools | changes


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("service"), settings()) as running:
        running.wait(lambda: running.ready(2, 2), 30, "all four replicas")
        yield running
