"""Simulates the cells of `benchmarks.evaluate`, several side by side, each in a process of its own."""

from __future__ import annotations

import gc
import signal
from collections.abc import Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import active_children, get_context
from pathlib import Path

from app.simulation.belief import BelievedError
from app.simulation.built_in_profiles import built_in
from app.simulation.contenders import CONTENDERS, Scene
from app.simulation.contenders.static import static_split
from app.simulation.fleet import Delays
from app.simulation.fluid.load import load_of as fluid_load_of
from app.simulation.fluid.model import simulate_fluid
from app.simulation.fluid.setup import fluid_of
from app.simulation.score import scores
from app.simulation.scores import Scores
from app.simulation.service import simulate
from app.simulation.setup import Setup
from autoscaling.policy import CapacityPolicy
from autoscaling.policy_file import read_policy
from benchmarks.errors import BenchError
from benchmarks.evaluate_load import Load, load_of
from benchmarks.evaluate_outcomes import Outcome, outcome_of
from benchmarks.evaluate_plan import (
    DRAIN_LIMIT_S,
    INGRESSES,
    POLICY,
    PROFILE,
    REPLICAS,
    STOP_S,
    Cell,
    Model,
    Traffic,
)


@dataclass(frozen=True, slots=True)
class Done:
    """A cell that was simulated, and what its load is made of."""

    outcome: Outcome
    load_words: tuple[str, ...]


def run_all(cells: Sequence[Cell], folder: Path | None, processes: int) -> Generator[Done, None, None]:
    """Simulate these cells, and give each as soon as it is done, in whatever order.  Raises BenchError.

    Closing it ends the processes, and so does whatever goes wrong.
    """
    with ProcessPoolExecutor(processes, get_context("spawn"), initializer=_begin) as pool:
        try:
            for one in as_completed([pool.submit(run, cell, folder) for cell in cells]):
                yield one.result()
        except BrokenProcessPool as error:
            raise BenchError("a simulation was ended from outside, for want of memory perhaps") from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in active_children():
                child.terminate()
            raise


def run(cell: Cell, folder: Path | None) -> Done:
    """Simulate one cell.  Raises BenchError for a load or a contender that cannot be made."""
    load = _load(cell.traffic, cell.seed, cell.minutes, folder)
    return Done(outcome_of(cell, _scores(cell, setup_of(cell, load), load)), load.words)


def setup_of(cell: Cell, load: Load) -> Setup:
    """A contender on the cell's scene; raises BenchError for a name that is none."""
    scene = Scene(
        engines=built_in(PROFILE),
        policy=policy(backfill=cell.backfill),
        replicas=REPLICAS,
        delays=Delays(cell.delay_s, STOP_S, DRAIN_LIMIT_S),
        seed=cell.seed,
        ingresses=INGRESSES,
        snapshot_delay_s=cell.snapshot_delay_s,
        believed_error=BelievedError(cell.acceptance, cell.cost),
        trace=load.arrivals,
    )
    if cell.split is not None:
        return static_split(scene, cell.split / REPLICAS)
    if cell.contender not in CONTENDERS:
        raise BenchError(f"{cell.contender} is no contender: name one of {', '.join(CONTENDERS)}")
    return CONTENDERS[cell.contender].make(scene)


def policy(*, backfill: bool = True) -> CapacityPolicy:
    """The policy that is evaluated; raises BenchError where its text is none."""
    found = read_policy(POLICY)
    if found.policy is None:
        raise BenchError(f"the policy cannot be read: {'; '.join(map(str, found.problems))}")
    spec = found.policy.spec
    changed = spec.backfill.model_copy(update={"enabled": backfill})
    return found.policy.model_copy(update={"spec": spec.model_copy(update={"backfill": changed})})


@lru_cache(maxsize=1)  # cells of one load and seed follow one another
def _load(traffic: Traffic, seed: int, minutes: float, folder: Path | None) -> Load:
    return load_of(traffic, built_in(PROFILE), seed, minutes, folder)


def _scores(cell: Cell, setup: Setup, load: Load) -> Scores:
    if cell.model is Model.EVENT:
        until_s = 60.0 * cell.minutes
        return scores(simulate(setup, load.arrivals, until_s=until_s), setup, until_s)
    engines = setup.engines
    longest = engines.longest
    return simulate_fluid(fluid_of(setup), fluid_load_of(load.arrivals, longest=longest))


def _begin() -> None:
    """Ctrl-C reaches every process of a terminal; only the parent acts on it."""
    gc.set_threshold(50_000, 20, 100)  # tasks come and go without cycles: 5 % of a run
    signal.signal(signal.SIGINT, signal.SIG_IGN)
