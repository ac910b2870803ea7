"""A service with one pool, by the settings and the policy of the guide."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.serve.conftest import SIMULATION
from tests.service import Service, chat

pytestmark = [pytest.mark.serve, pytest.mark.long, pytest.mark.timeout(300)]

GUIDE = Path(__file__).parents[2] / "docs" / "concepts" / "two-pools.md"


def test_one_pool_serves_every_tier(tmp_path: Path) -> None:
    """The start waits for no replica of a pool that is to have none, and nothing is refused for it."""
    settings, policy = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    made = yaml.safe_load(settings)
    for pool in ("speculative", "plain"):
        made[pool].setdefault("engine", {})["simulation"] = dict(SIMULATION)
    with Service(tmp_path, made, policy=policy) as running:
        running.wait(lambda: running.ready(2, 0), 30, "both speculative replicas")
        answers = [
            running.post(chat("Hi", max_tokens=2), headers={"x-twinpool-tier": tier}).status_code
            for tier in ("interactive", "standard", "batch")
        ]
        assert [200, 200, 200] == answers
        assert [] == running.replicas("plain")
