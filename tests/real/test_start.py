"""Starts of the real engine that cannot work: one message naming the setting, exit code 1, nothing left."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployments.ports import free_ports
from tests.serve.test_start import left_behind, run_serve

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("speculation", "words"),
    [
        pytest.param(
            '{"method": "mtp", "num_speculative_tokens": 2}',
            ["speculative pool", "engine.speculative_config"],
            marks=pytest.mark.long,
        ),
        pytest.param(
            '{"method": "ngram", "num_speculative_tokens": 4, "lookup_max": 4}',
            ["speculative_config"],
            marks=pytest.mark.long,
        ),
        ('{"method": "draft_model", "model": "/no/draft"}', ["/no/draft", "mend"]),
    ],
)
def test_a_draft_that_the_engine_refuses(tmp_path: Path, speculation: str, words: list[str]) -> None:
    """The pool, the setting and the reason are named; the other pool's engine does not stay behind."""
    port = str(free_ports(1)[0])
    ended = run_serve(tmp_path, "--speculation", speculation, "--port", port, limit_s=200)
    assert ended.returncode == 1, ended.stderr
    assert all(word in ended.stderr for word in words), ended.stderr
    assert "Traceback" not in ended.stderr
    assert left_behind(tmp_path) == []


def test_too_little_memory(tmp_path: Path) -> None:
    """More replicas than memory: refused before anything is loaded, with the figures."""
    ended = run_serve(tmp_path, "--plain-replicas", "60", "--port", str(free_ports(1)[0]))
    assert ended.returncode == 1
    assert "memory" in ended.stderr
    assert "mend" in ended.stderr
