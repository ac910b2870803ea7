"""One real service for the whole package: vLLM on the CPU, one replica per pool, the embedded model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.service import Service


def settings(**changes: Any) -> dict[str, Any]:
    """The defaults of `twinpool serve`, with room for one more replica's start in the limits."""
    return {
        role: {"longest_generation_s": 120.0} | changes.get(role, {}) for role in ("speculative", "plain")
    }


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("real"), settings(), engine="vllm") as running:
        yield running
