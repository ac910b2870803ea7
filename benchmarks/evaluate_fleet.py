"""A day of a fleet in the fluid model, timed in a process of its own: `python -m benchmarks.evaluate_fleet`.

Prints one JSON object; `benchmarks.evaluate` starts it and reads that.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from typing import Any

import msgspec
import numpy as np

from app.simulation.built_in_profiles import built_in
from app.simulation.contenders import CONTENDERS, Scene
from app.simulation.fleet import Delays
from app.simulation.fluid.load import day_of, load_of
from app.simulation.fluid.model import simulate_fluid
from app.simulation.fluid.setup import fluid_of
from app.simulation.scaled_policy import scaled
from app.simulation.traces.generated import DAY_PEAK
from autoscaling.types import Tier
from benchmarks import evaluate_load
from benchmarks.evaluate_plan import (
    DELAY_S,
    DRAIN_LIMIT_S,
    FLEET_HOURS,
    FLEET_TICK_S,
    OURS,
    PROFILE,
    REPLICAS,
    SNAPSHOT_DELAY_S,
    STOP_S,
    Traffic,
)
from benchmarks.evaluate_records import FleetRun
from benchmarks.evaluate_run import policy

SEED = 1
SAMPLE_MINUTES = 5.0  # of conversations, whose kinds and lengths the day has


def timed(replicas: int, hours: float) -> FleetRun:
    """Simulate the default policy on a day of conversations whose peak is the evaluated load, at this size.

    Seconds are those of the simulation; making the day and what Python loads are not in it.
    """
    engines = built_in(PROFILE)
    arrivals = evaluate_load.load_of(Traffic.CONVERSATION, engines, SEED, SAMPLE_MINUTES).arrivals
    scale = replicas / REPLICAS / DAY_PEAK
    day = day_of(load_of(arrivals, FLEET_TICK_S), np.random.default_rng(SEED), hours=hours, scale=scale)
    scene = Scene(
        engines=engines,
        policy=scaled(policy(), replicas),
        replicas=replicas,
        delays=Delays(DELAY_S, STOP_S, DRAIN_LIMIT_S),
        seed=SEED,
        snapshot_delay_s=SNAPSHOT_DELAY_S,
    )
    setup = fluid_of(CONTENDERS[OURS].make(scene))
    begun = time.perf_counter()
    scores = simulate_fluid(setup, day)
    seconds = time.perf_counter() - begun
    attainment = scores.tiers[Tier.INTERACTIVE].attainment
    if attainment is None:
        raise RuntimeError("nobody arrived in the day: give more replicas or hours")
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss, in bytes
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30
    return FleetRun(replicas, hours, seconds, gib, attainment)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evaluate_fleet", description=__doc__)
    parser.add_argument("--replicas", type=int, required=True)
    parser.add_argument("--hours", type=float, default=FLEET_HOURS)
    given: Any = parser.parse_args()
    sys.stdout.write(msgspec.json.encode(timed(given.replicas, given.hours)).decode() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
