"""From what `benchmarks.control` measured to figures, verdicts and a page; pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from autoscaling.observations import Taken
from benchmarks.control_fleet import FLEET
from benchmarks.errors import BenchError
from benchmarks.quantiles import percentile
from benchmarks.results import Target, markdown_table, number

TARGETS: Mapping[str, Target] = {
    "reports_per_s": (">=", 1000.0),
    "controller_cpu_cores": ("<=", 1.0),
    "decide_1000_mean_ms": ("<=", 1.5),
    "decide_1000_p99_ms": ("<=", 10.0),
    "memory_growth_mib_100000_ticks": ("<=", 5.0),
}
GROWN = 1.05  # of the highest rate taken so far; less is no growth
HEAD = ("offered /s", "taken /s", "not taken", "CPU cores", "senders' cores", "age p99 s", "snapshot p99 ms")


@dataclass(frozen=True, slots=True)
class Ticks:
    """What ticks took, each timed alone."""

    replicas: int
    tick_s: list[float]
    moves: int


@dataclass(frozen=True, slots=True)
class Growth:
    """Resident memory of a process that ticks, in bytes."""

    replicas: int
    ticks: int
    settled: int  # the tick after which the memory was read first
    before: int
    after: int
    peak: int  # of one reading per 1,000 ticks
    moves: int


@dataclass(slots=True)
class Fetched:
    """The snapshots that one ingress got."""

    sizes: list[int] = field(default_factory=list)  # bytes of each as JSON
    replicas: list[int] = field(default_factory=list)  # listed in each
    ages_s: list[float] = field(default_factory=list)  # of every replica in every snapshot
    took_s: list[float] = field(default_factory=list)
    lost: int = 0  # not answered in time


@dataclass(frozen=True, slots=True)
class Loaded:
    """One offered rate."""

    offered: float  # reports per second
    answers: dict[str, int]  # reports by what became of them
    seconds: float
    cpu_cores: float  # CPU seconds of the controller's process per second
    senders_cpu_cores: float
    fetched: Fetched

    @property
    def taken_per_s(self) -> float:
        """Reports that the controller took."""
        return self.answers.get(Taken.TAKEN, 0) / self.seconds

    @property
    def not_taken(self) -> int:
        """Reports without an answer in time, or with another one."""
        return sum(self.answers.values()) - self.answers.get(Taken.TAKEN, 0)


def saturated(rates: Sequence[Loaded]) -> bool:
    """Whether the last offered rate brought no more than those before."""
    *before, last = rates
    return bool(before) and last.taken_per_s <= GROWN * max(one.taken_per_s for one in before)


def figures(ticks: Ticks, rates: Sequence[Loaded], growth: Growth) -> dict[str, float]:
    """All figures; the first of the rates is the one that is held against targets.

    Raises BenchError when the ingress did not see the whole fleet, or nothing ever moved.
    """
    first, seen = rates[0], rates[0].fetched
    if not seen.replicas or min(seen.replicas) < FLEET:
        least = min(seen.replicas, default=0)
        raise BenchError(f"a snapshot had {least} of {FLEET} replicas: end other programs and run this again")
    if not growth.moves:
        raise BenchError(f"{growth.ticks} ticks without a move say nothing: look at the policy of the fleet")
    tick_ms = [1000 * seconds for seconds in ticks.tick_s]
    found = {
        "reports_per_s": first.taken_per_s,
        "controller_cpu_cores": first.cpu_cores,
        "reports_per_s_saturation": max(one.taken_per_s for one in rates),
        "reports_not_taken": float(first.not_taken),
        "senders_cpu_cores": first.senders_cpu_cores,
        "snapshot_bytes": statistics.median(seen.sizes),
        "snapshot_p99_ms": 1000 * percentile(seen.took_s, 99),
        "snapshots_lost": float(seen.lost),
        "report_age_p99_s": percentile(seen.ages_s, 99),
        f"decide_{ticks.replicas}_mean_ms": statistics.mean(tick_ms),
        f"decide_{ticks.replicas}_p50_ms": statistics.median(tick_ms),
        f"decide_{ticks.replicas}_p99_ms": percentile(tick_ms, 99),
        f"memory_growth_mib_{growth.ticks}_ticks": (growth.after - growth.before) / 2**20,
        f"memory_peak_growth_mib_{growth.ticks}_ticks": (growth.peak - growth.before) / 2**20,
        "moves": float(growth.moves),
    }
    return {name: round(value, 3) for name, value in found.items()}


def rate_rows(rates: Sequence[Loaded]) -> list[list[str]]:
    """One row per offered rate."""
    return [
        [
            number(one.offered),
            number(one.taken_per_s),
            str(one.not_taken),
            number(one.cpu_cores),
            number(one.senders_cpu_cores),
            number(percentile(one.fetched.ages_s, 99) if one.fetched.ages_s else None),
            number(1000 * percentile(one.fetched.took_s, 99) if one.fetched.took_s else None),
        ]
        for one in rates
    ]


def page(ticks: Ticks, rates: Sequence[Loaded], growth: Growth) -> str:
    """The Markdown above the verdicts."""
    method = METHOD.format(
        fleet=FLEET, ticks=len(ticks.tick_s), growth=growth, settled=growth.settled, moves=growth.moves
    )
    return f"{method}\n\n{markdown_table(HEAD, rate_rows(rates))}"


METHOD = """What one controller takes: reports on Ray Serve, and ticks of its decisions in virtual time.

*Reports*: the controller alone runs on Ray Serve; actors beside it send what {fleet} replicas would.
Each report has five finished requests; a replica has one on its way at most, and gives up after 1 s.
An ingress fetches four snapshots a second meanwhile; the controller ticks as ever over the whole fleet.
Ray Serve's own answer about {fleet} replicas is not in it: there is one replica here, and the rest is told.
The first rate is held against the targets; higher ones follow until no more reports are taken.
*decide*: {ticks} ticks at {fleet} replicas, each timed alone: policy in force, expiry, observation, decision.
*memory*: {growth.ticks} ticks of the whole loop over {growth.replicas} replicas, with {moves} moves.
It is the resident memory at their end less that after tick {settled}."""
