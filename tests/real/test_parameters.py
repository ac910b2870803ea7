"""Every parameter of vLLM on both engines, against docs/parameters.md."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.parameters import POOLS, PROBES, Measured, measure, rows_of, table
from tests.service import Service

pytestmark = [pytest.mark.real, pytest.mark.long, pytest.mark.timeout(900)]

PAGE = Path(__file__).parents[2] / "docs" / "parameters.md"
JOINED_S = 6.0  # a line whose engine record does not come is counted after 5 s
WIDER = re.compile(r"^twinpool_wider_retries_total (\S+)$", re.MULTILINE)


def wider_retries(service: Service) -> float:
    """Requests that a narrow replica refused and a wider one answered, once every line has been counted."""
    service.settled("finished")
    time.sleep(JOINED_S)
    (found,) = WIDER.findall(service.get("/metrics").text)
    return float(found)


@pytest.fixture(scope="module")
def before(service: Service) -> tuple[float, dict[str, list[int]]]:
    """The counter of second attempts, and the replicas, before the first probe."""
    return wider_retries(service), pids(service)


@pytest.fixture(scope="module")
def measured(service: Service, before: tuple[float, dict[str, list[int]]]) -> Measured:
    assert before
    return measure(service.url)


def pids(service: Service) -> dict[str, list[int]]:
    return {pool: [replica["pid"] for replica in service.replicas(pool)] for pool in POOLS}


def test_the_page_is_what_both_engines_say(measured: Measured) -> None:
    """When it differs: python docs/generate_parameters.py --url URL."""
    assert rows_of(PAGE.read_text(encoding="utf-8")) == table(measured)


def test_a_caller_gets_what_the_plain_pool_serves(measured: Measured) -> None:
    """An interactive request that names no pool is not refused for what only the speculative one refuses."""
    lost = [
        (path, name, measured[path, name, None])
        for path, names in PROBES.items()
        for name in names
        if measured[path, name, "plain"].code is None and measured[path, name, None].code is not None
    ]

    assert [] == lost


def test_the_capability_record_has_no_gap(
    service: Service, measured: Measured, before: tuple[float, dict[str, list[int]]]
) -> None:
    """What one engine refuses and the other serves is known beforehand: no request took a second attempt."""
    assert measured
    assert before[0] == wider_retries(service)


def test_no_parameter_harms_an_engine(
    service: Service, measured: Measured, before: tuple[float, dict[str, list[int]]]
) -> None:
    """No probe ended in a 5xx, and the same replicas serve afterwards."""
    assert [] == [(key, result) for key, result in measured.items() if result.status >= 500]
    assert before[1] == pids(service)
    assert service.ready()
