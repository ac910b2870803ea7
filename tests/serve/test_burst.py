"""A burst that meets two ingresses and eight idle replicas: nobody is flooded, no limit is broken."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.policies import policy
from tests.serve.conftest import settings
from tests.serve.flood import Hit, Shot, by, flood
from tests.service import Service

# Eight engines and two ingresses start together.
pytestmark = [pytest.mark.serve, pytest.mark.long, pytest.mark.timeout(400)]

SOFT, HARD = 8, 12
TOKENS = 40  # about a second: every request of the burst is still open when the last one is routed
SIMULATION = {"step_base_s": 0.05, "step_per_token_s": 0.0001}


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    pools = {
        role: {
            "replicas": 4,
            "soft_limit": SOFT,
            "hard_limit": HARD,
            "engine": {"simulation": SIMULATION, "max_num_seqs": SOFT},
        }
        for role in ("speculative", "plain")
    }
    text = policy(
        4,
        4,
        most=8,
        admission={tier: {"deadlineSeconds": 60, "maxWaiting": 1000} for tier in ("interactive", "standard")},
        behavior={way: {"selectPolicy": "Disabled"} for way in ("scaleUp", "scaleDown")},
    )
    configured = settings(**pools, ingresses=2)
    with Service(tmp_path_factory.mktemp("burst"), configured, policy=text) as running:
        running.wait(lambda: running.ready(4, 4), 60, "all eight replicas")
        yield running


class Watch:
    """The most that each replica had in flight by its own word."""

    def __init__(self, service: Service) -> None:
        self.most: Counter[str] = Counter()
        self._service = service
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            for pool in self._service.status()["pools"].values():
                for replica in pool["replicas"]:
                    key = replica["id"]
                    self.most[key] = max(self.most[key], replica["inflight"] or 0)


def at_once(tier: str, count: int) -> list[Shot]:
    return [Shot(0.5, tier, TOKENS, prompt=f"Tell story number {number}") for number in range(count)]


def spread(hits: list[Hit]) -> dict[str, list[int]]:
    counts = by(hits, "pool", "replica")
    return {
        pool: sorted(n for (where, _), n in counts.items() if where == pool)
        for pool in ("speculative", "plain")
    }


@pytest.mark.parametrize(
    ("tier", "count", "own", "most"),
    # The front does not halve the burst: an ingress that got more finds its half of a limit used up, and
    # sends the rest to the other pool, or lets it wait for the first slot that frees.
    [("interactive", 64, "speculative", 48), ("batch", 32, "plain", 32)],
)
def test_a_burst_is_spread(eight: Service, tier: str, count: int, own: str, most: int) -> None:
    """Case B10: 64 at once over two ingresses and 8 idle replicas: a factor of 2, and both pools.

    What two ingresses do at once goes unseen for one poll of 0.25 s and one report of 1 s: each keeps to its
    half of every limit, so that a soft limit is exceeded by the rounding of the halves at most.
    """
    eight.wait(eight.idle, 15, "an idle service")
    with Watch(eight) as watch:
        hits = flood(eight, at_once(tier, count), 60)
    assert {(200,): count} == by(hits, "status"), by(hits, "status", "code")
    found = spread(hits)
    print(tier, found, by(hits, "pool", "reason"), dict(watch.most))
    for counts in (counts for counts in found.values() if sum(counts) >= 8):  # a few say nothing
        assert len(counts) == 4, found
        assert counts[-1] <= 2 * counts[0], found
    assert count / 4 <= sum(found[own]) <= most, found
    assert max(watch.most.values()) <= SOFT + 1, watch.most


def test_more_than_the_limits_wait(eight: Service) -> None:
    """200 at once: the soft limits hold at every look, the rest waits its turn, and all are served."""
    eight.wait(eight.idle, 15, "an idle service")
    shots = at_once("standard", 120) + at_once("interactive", 80)
    with Watch(eight) as watch:
        hits = flood(eight, shots, 120)
    print(spread(hits), by(hits, "tier", "pool", "reason"), dict(watch.most))
    assert {(200,): 200} == by(hits, "status"), by(hits, "tier", "status", "code")
    assert max(watch.most.values()) <= SOFT + 1 <= HARD
