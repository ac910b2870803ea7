"""What `benchmarks.evaluate` holds fixed: fleet, promise, size of the load, delays; committed before the run.

Pure.  These stand since before the first run; a change makes all results void.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

REPLICAS: Final = 32
PROFILE: Final = "h100-8b"
DELAYS_S: Final = (1.0, 30.0, 90.0)  # until a replica that was asked for serves
DELAY_S: Final = 30.0  # where there is only one
STOP_S: Final = 1.0  # of an idle replica; drains come on top
DRAIN_LIMIT_S: Final = 300.0
TTFT_S: Final = 1.0
# A plain engine of this profile takes 7.1 ms per token alone: with a few sequences it keeps the objective,
# full of batch work it does not.
TPOT_S: Final = 0.010
SIZED_AT: Final = 0.6  # of it, on average: so many requests come that those who fare worse are in time, too
STANDARD_TPOT_S: Final = 0.05  # what the plain pool is held to
INTERACTIVE_REPLICAS: Final = 10.0  # speculative replicas that interactive work needs on average
BATCH_EXCESS: Final = 1.2  # batch work that arrives, over what all replicas could do of it
BATCH_PROMPT, BATCH_ANSWER = 6000, 600  # tokens of a batch request that is no part of a trace
PLAIN_LIMIT: Final = 64  # so many of those fit into the memory of a plain engine
# More than the mean need, as an operator would begin; short runs cannot show how long a bad begin lasts.
FIRST_SPECULATIVE: Final = 12
INGRESSES: Final = 2
SNAPSHOT_DELAY_S: Final = 1.0
BELIEVED: Final = (0.8, 1.2)  # of the truth, which is the third value
SNAPSHOT_DELAYS_S: Final = (10.0, 30.0)  # beside the one above
FLEET: Final = 1000
FLEET_HOURS: Final = 24.0
FLEET_TICK_S: Final = 1.0

OURS: Final = "twinpool"
NO_BACKFILL: Final = "-no-backfill"  # behind the name of a policy in which backfill is off
RIVAL: Final = "one-pool-k-table-our-routing"  # the strongest: the same routing over one kind of engine
BOUNDS: Final = ("hindsight",)  # they know the trace: what could be had, and no competitors
# No replica of theirs ever starts, so the delay changes nothing: each is run once for all delays.
SAME_AT_ANY_DELAY: Final = (
    "all-plain",
    "all-speculative",
    "one-pool-k-table",
    RIVAL,
    "static-25",
    "static-50",
    "static-75",
)
# Rivals that move replicas by a rule of one line: how late a replica comes is tried for them on one load.
RULES: Final = ("threshold", "hpa-like", "dynamo-like")
MOST_STATIC_MISSES: Final = 0.01  # the best static split is that with most batch tokens within these
# Differences below these are called ties: of the share of misses, and of batch tokens as a ratio.
MISSES_TIE: Final = 0.001
BATCH_TIE: Final = 0.005

POLICY: Final = f"""\
apiVersion: twinpool.dev/v1alpha1
kind: CapacityPolicy
metadata: {{name: evaluated}}
spec:
  budget: {{max: {REPLICAS}}}
  bootstrap: {{speculative: {FIRST_SPECULATIVE}, plain: {REPLICAS - FIRST_SPECULATIVE}}}
  objectives:
    interactive: {{ttftSeconds: {TTFT_S:g}, tpotSeconds: {TPOT_S:g}}}
    standard: {{tpotSeconds: {STANDARD_TPOT_S:g}}}
  pools:
    speculative: {{minReplicas: 1, maxReplicas: {REPLICAS - 1}}}
    plain: {{minReplicas: 1, maxReplicas: {REPLICAS - 1}, limits: {{softInflight: {PLAIN_LIMIT}}}}}
"""


class Traffic(StrEnum):
    """What arrives."""

    CODE = "code"
    CONVERSATION = "conversation"
    MIXED = "mixed"


class Model(StrEnum):
    """Which simulation."""

    EVENT = "event"
    FLUID = "fluid"


@dataclass(frozen=True, slots=True)
class Cell:
    """One run: everything that its result depends on, but for the data files."""

    model: Model
    traffic: Traffic
    contender: str
    seed: int
    minutes: float  # of the trace
    delay_s: float
    split: int | None = None  # speculative replicas of a static split that is no contender of its own
    snapshot_delay_s: float = SNAPSHOT_DELAY_S
    acceptance: float = 1.0  # believed over true
    cost: float = 1.0  # believed over true
    backfill: bool = True  # whether batch work may use what is free of the speculative pool

    @property
    def name(self) -> str:
        """The policy, as panels name it."""
        return self.contender if self.backfill else f"{self.contender}{NO_BACKFILL}"

    @property
    def words(self) -> str:
        """As progress names it."""
        where = f"{self.traffic.value}, {self.name}, {self.delay_s:g} s"
        return f"{where}, seed {self.seed}, {self.model.value}"
