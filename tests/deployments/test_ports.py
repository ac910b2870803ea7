"""Ports and addresses of this machine."""

from __future__ import annotations

import pytest

from deployments.ports import free_ports, is_loopback


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("x", False),
        ("", False),
    ],
)
def test_loopback(host: str, expected: bool) -> None:
    """A name that cannot be judged counts as reachable by others."""
    assert expected == is_loopback(host)


def test_free_ports_differ() -> None:
    """As many as asked for, each once."""
    found = free_ports(5)
    assert 5 == len(set(found))
    assert all(1024 <= port <= 65535 for port in found)
