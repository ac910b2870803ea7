"""How much `benchmarks.evaluate` simulates, and why so much: two processes take about 75 minutes; pure.

What has to be shown are all policies on three loads, with five seeds, at delays of 1, 30 and 90 s, and what
wrong beliefs and late figures do.  A simulated minute of 32 replicas takes about 9 s of a core, and all of it
in every combination would be a thousand runs.
"""

from __future__ import annotations

from typing import Final

from app.simulation.contenders import CONTENDERS
from benchmarks.evaluate_cells import Plan
from benchmarks.evaluate_plan import DELAY_S, OURS, RIVAL

FULL: Final = Plan(
    contenders=tuple(CONTENDERS),
    # Student's t of five is 2.8 standard errors, of three 4.3: with fewer seeds hardly any order is for sure.
    seeds=(1, 2, 3, 4, 5),
    # An error that matters changes misses by more than the seeds differ: two show which do.
    sensed_seeds=2,
    # Some 17,000 interactive requests, and a queue of batch work that is full after one minute of them.
    # A pool is short after 30 s and gives after 300 s of spare capacity: what moves because of a shortfall is
    # seen, what is given back is not.  15 minutes show that, too, and take five times as long; the
    # fluid model shows it in `long_minutes`.
    minutes=3.0,
    # Interactive work needs 10 on average: around that, and those that are contenders anyway.
    splits=(8, 10, 12, 16),
    fleets=(125, 250, 500, 1000, 2000),
    # The published traces are of an hour, and of some minutes less.  120 runs take ten minutes together.
    long_minutes=55.0,
)
QUICK: Final = Plan(
    contenders=(OURS, RIVAL, "static-50", "hindsight"),
    seeds=(1, 2),
    sensed_seeds=1,
    minutes=0.5,
    splits=(12, 16),
    fleets=(125, 1000),
    long_minutes=2.0,
    delays_s=(DELAY_S,),
)
