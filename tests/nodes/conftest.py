"""One cluster for the whole package: five Ray nodes, each in a network namespace of its own.

Needs Linux and root; the head's restart needs `redis-server`, too.  Without them the tests skip and say so.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.errors import UnfitError
from benchmarks.nodes import running
from benchmarks.nodes_events import Events
from benchmarks.nodes_network import check_fit
from benchmarks.nodes_outcome import Outcome
from benchmarks.nodes_redis import redis_program
from benchmarks.nodes_report import figures, targets
from benchmarks.results import Verdict, judge


@pytest.fixture(scope="package")
def events() -> Iterator[Events]:
    try:
        check_fit()
    except UnfitError as error:
        pytest.skip(str(error))
    with running("haproxy") as (_, found):
        yield found


@pytest.fixture
def redis() -> None:
    if redis_program() is None:
        pytest.skip("redis-server is not installed, and without it no head comes back")


def broken(found: Outcome) -> dict[str, float | None]:
    """The figures of one event whose target does not hold, as `make bench-nodes` judges them."""
    measured = figures([found])
    verdicts = judge(measured, targets([found.event]))
    return {name: measured.get(name) for name, verdict in verdicts.items() if verdict is not Verdict.HOLDS}
