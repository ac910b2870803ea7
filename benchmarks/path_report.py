"""From the samples of `benchmarks.path` to figures and tables; pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.load import Measured
from benchmarks.quantiles import bootstrap_interval, median_difference, percentile
from benchmarks.results import Target, markdown_table, number

DIRECT, PROXY, HAPROXY, PEER = "direct", "proxy", "haproxy", "peer"
PATHS = (DIRECT, PEER, HAPROXY, PROXY)
TITLES = {
    DIRECT: "direct to an engine",
    PEER: "vllm-router",
    HAPROXY: "twinpool, HAProxy",
    PROXY: "twinpool, Serve's proxy",
}
TARGETS: Mapping[str, Target] = {
    "haproxy_minus_peer_ttft_p50_ms_1": ("<=", 3.0),
    "haproxy_minus_peer_ttft_p50_ms_8": ("<=", 3.0),
    "haproxy_minus_peer_ttft_p50_ms_32": ("<=", 3.0),
    "haproxy_minus_peer_ttft_p50_ms_64": ("<=", 10.0),
}
HEAD = ("streams", "path", "TTFT p50 ms", "p99 ms", "added p50 ms", "added p99 ms", "chunks/s", "requests")


@dataclass(frozen=True, slots=True)
class Block:
    """What was measured within a minute of each other: one round with one front of ours."""

    round: int
    front: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One path at one number of streams in one block."""

    block: Block
    path: str
    streams: int
    measured: Measured


class Samples:
    """All cells of a run, looked up the way the figures need them."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._cells = {(cell.path, cell.streams, cell.block): cell.measured for cell in cells}
        self.levels = sorted({cell.streams for cell in cells})

    def measured(self, path: str, streams: int) -> dict[Block, Measured]:
        """A path's cells by block, in the order they were measured."""
        return {
            block: found
            for (of_path, of_streams, block), found in self._cells.items()
            if (of_path, of_streams) == (path, streams)
        }

    def pairs(self, path: str, other: str, streams: int) -> list[tuple[list[float], list[float]]]:
        """TTFTs in ms of two paths, block by block where both were measured."""
        one, two = self.measured(path, streams), self.measured(other, streams)
        return [(_ms(one[block]), _ms(two[block])) for block in one if block in two]

    def all(self) -> Iterator[Measured]:
        """Every cell."""
        return iter(self._cells.values())


def figures(samples: Samples) -> dict[str, float]:
    """All figures; those of a path that was not measured are absent."""
    found: dict[str, float] = {}
    for streams in samples.levels:
        for path in PATHS:
            found |= _path_figures(samples, path, streams)
        for path in (PROXY, HAPROXY):
            pairs = samples.pairs(path, PEER, streams)
            if pairs:
                name = f"{path}_minus_peer_ttft_p50_ms_{streams}"
                low, high = bootstrap_interval(pairs)
                found |= {name: median_difference(pairs), f"{name}_low": low, f"{name}_high": high}
    found["generator_cpu_ratio_max"] = max(cell.cpu_s / cell.window_s for cell in samples.all())
    return {name: round(value, 3) for name, value in found.items()}


def _path_figures(samples: Samples, path: str, streams: int) -> dict[str, float]:
    cells = samples.measured(path, streams)
    if not cells:
        return {}
    pooled = [ttft for cell in cells.values() for ttft in _ms(cell)]
    found = {
        f"{path}_ttft_p50_ms_{streams}": statistics.median(
            statistics.median(_ms(cell)) for cell in cells.values()
        ),
        f"{path}_ttft_p99_ms_{streams}": percentile(pooled, 99),
        f"{path}_chunks_per_s_{streams}": statistics.median(
            cell.tokens / cell.window_s for cell in cells.values()
        ),
    }
    pairs = samples.pairs(path, DIRECT, streams)
    if path != DIRECT and pairs:
        floor = [ttft for _, direct in pairs for ttft in direct]
        found[f"{path}_added_ttft_p50_ms_{streams}"] = median_difference(pairs)
        found[f"{path}_added_ttft_p99_ms_{streams}"] = percentile(pooled, 99) - percentile(floor, 99)
    return found


def table_rows(samples: Samples, found: Mapping[str, float]) -> list[list[str]]:
    """One row per number of streams and path that was measured."""
    rows = []
    for streams in samples.levels:
        for path in PATHS:
            cells = samples.measured(path, streams)
            if cells:
                names = (
                    "ttft_p50_ms",
                    "ttft_p99_ms",
                    "added_ttft_p50_ms",
                    "added_ttft_p99_ms",
                    "chunks_per_s",
                )
                values = [number(found.get(f"{path}_{name}_{streams}")) for name in names]
                requests = sum(len(cell.ttft_s) for cell in cells.values())
                rows.append([str(streams), TITLES[path], *values, str(requests)])
    return rows


def difference_rows(samples: Samples, found: Mapping[str, float]) -> list[list[str]]:
    """One row per number of streams: the two fronts against the peer, with their intervals."""
    rows = []
    for streams in samples.levels:
        row = [str(streams)]
        for path in (HAPROXY, PROXY):
            name = f"{path}_minus_peer_ttft_p50_ms_{streams}"
            low, high = found.get(f"{name}_low"), found.get(f"{name}_high")
            row.append(
                "-" if name not in found else f"{number(found[name])} ({number(low)} to {number(high)})"
            )
        rows.append(row)
    return rows


def _ms(cell: Measured) -> list[float]:
    return [1000 * seconds for seconds in cell.ttft_s]


def page(samples: Samples, found: Mapping[str, float], rounds: int, peer: str | None) -> str:
    """The Markdown above the verdicts."""
    middle = markdown_table(HEAD, table_rows(samples, found))
    against = markdown_table(
        ("streams", "HAProxy minus vllm-router, TTFT p50 ms", "Serve's proxy minus vllm-router"),
        difference_rows(samples, found),
    )
    compared = (
        f"## Against vllm-router {peer}\n\n{against}" if peer else "vllm-router could not be installed."
    )
    return f"{METHOD.format(rounds=rounds)}\n\n{middle}\n\n{compared}"


METHOD = """What the way through twinpool adds to a request; the load generator runs on the same machine.

Every path ends at two simulated engines alike: a step takes 20 ms and gives each stream one chunk.
*direct* goes to the engines' own servers; *vllm-router* stands before these with its power-of-two policy.
twinpool runs two replicas of the same engine in its plain pool, to which every request is pinned.
Its speculative pool has one idle replica beside them, which the other paths do not have.
Rounds: {rounds}, each once per front; the same load goes over direct, vllm-router and twinpool in turn.
*added* is against direct in the same round; for p99 it is the difference of two p99s.
Of every TTFT 20 ms are the engine's with one stream, and 20 to 40 ms with several.
Intervals cover 95 % of the chance within the rounds, not what differs between machines or days."""
