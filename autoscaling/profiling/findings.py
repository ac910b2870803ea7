"""What a measurement says: the values that the profile, the report and the recommendation rest on.

Made by `autoscaling.profiling.analyse`.  Speed-ups and ratios are speculative over plain unless said.
What a cost model predicts is there only where both models are relied on.
`None` is unknown, or not within what was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from autoscaling.profiling.load import Load, Mix
from autoscaling.profiling.measured import Measurement
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role

TIE: Final = 0.05  # two ways that differ by less sell the same, and the simpler one is named


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and where it lies with 95 %; without any bound it is not known how far it can be trusted."""

    value: float
    low: float | None = None
    high: float | None = None

    def holds(self, value: float) -> bool:
        """Whether `value` may be the true one; a bound that is missing beside the other one is open."""
        if self.low is None and self.high is None:
            return False
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)


@dataclass(frozen=True, slots=True)
class Fit:
    """The cost model of one engine, and how well it holds."""

    role: Role
    cost: StepCost  # draft_length is the largest K that was measured
    points: int  # cells and rounds that it rests on
    error: float | None  # mean |predicted - measured| / measured on those; None where there are none
    hold_out_error: float | None  # the same on cells that the fit has not seen
    hold_out_points: int
    accepted: bool  # whether it passes the quality gate
    refused_because: str | None = None


@dataclass(frozen=True, slots=True)
class Survival:
    """Acceptance of one kind of prompts; position i (0 first) is s_(i+1)."""

    workload: str
    survival: tuple[Estimate, ...]  # P(first i+1 draft tokens all accepted), of steps that drafted
    draft_rate: float  # request steps that carried a draft / request steps, at the largest K
    drafted: float  # mean draft tokens per request step, at the largest K
    acceptance_rate: float | None  # r: accepted / drafted, at the largest K
    tokens_per_step: Mapping[int, Estimate]  # by K, steps without a draft included; K = 0 is 1


@dataclass(frozen=True, slots=True)
class SpeedUp:
    """Tokens per second of the speculative engine at K over the plain one, same batch and prompts."""

    workload: str
    sequences: int
    draft_length: int
    measured: Estimate
    modelled: float | None  # by the fits and the survival
    # What 1 / measured consists of, in shares of the plain step: see `losses`.
    verification: float | None = None
    drafting: float | None = None
    rest: float | None = None


class Verdict(StrEnum):
    """Where speculation pays for one kind of prompts."""

    PAYS_BELOW = "pays_below"  # up to the crossover
    PAYS_ALWAYS = "pays_always"  # at every batch up to `crossings.BEYOND` times the largest measured one
    NEVER_PAYS = "never_pays"  # at none
    MIXED = "mixed"  # more than one crossing


@dataclass(frozen=True, slots=True)
class Crossover:
    """The batch at which the speed-up at K passes 1."""

    workload: str
    draft_length: int
    verdict: Verdict
    sequences: Estimate | None  # None unless there is one
    sure: bool | None = None  # whether draws of the rounds and every measured batch agree; None: unknown
    largest: int | None = None  # batch that was measured for these prompts: beyond it the models speak alone
    gains: tuple[int, ...] = ()  # batches at which the measured ratio alone is above 1 with 95 %
    only: bool = False  # whether no other batch than the largest was measured

    @property
    def beyond(self) -> bool:
        """Whether the engines are equally fast only beyond every batch that was measured."""
        at = self.sequences
        return at is not None and self.largest is not None and at.value > self.largest


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Theta*: the acceptance rate above which the largest K pays at a batch; 1 or more: none can."""

    workload: str
    sequences: int
    context_tokens: float
    theta: float


@dataclass(frozen=True, slots=True)
class Capacity:
    """What one replica can sell at an objective."""

    tpot_s: float
    plain_sequences: int  # B*(tau)
    plain_tokens_per_s: float  # X(tau)
    draft_length: int  # the best K of the speculative engine
    speculative_sequences: int
    speculative_tokens_per_s: float
    limited_by_kv: bool = False


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """One measured point of time per token against throughput."""

    engine: Role
    draft_length: int
    workload: str
    sequences: int
    tpot_s: Estimate
    tokens_per_s: Estimate


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row of the engine's K table: from `first` to `last` sequences, draft `draft_length` tokens."""

    first: int
    last: int
    draft_length: int


class PoolAnswer(StrEnum):
    """The answer to `do I need two pools?`."""

    TWO_POOLS = "two_pools"
    ONE_PLAIN = "one_plain_pool"
    ONE_SPECULATIVE = "one_speculative_pool"  # with the engine's K table


@dataclass(frozen=True, slots=True)
class PoolPrediction:
    """Predicted goodput of each configuration at one objective, under our routing."""

    tpot_s: float
    goodput: Mapping[PoolAnswer, float]  # weighted tokens per second of two replicas
    answer: PoolAnswer
    margin: float  # the answer's goodput over that of the best other kind of configuration
    in_time: float = 1.0  # share of the interactive tokens that the best configuration for them has in time

    @property
    def tied(self) -> bool:
        """Whether the best other kind sells as much, by the rule that names the simpler one."""
        return self.kept and abs(self.margin - 1.0) <= TIE

    @property
    def kept(self) -> bool:
        """Whether any configuration has half of the interactive tokens in time; else there is no answer."""
        return self.in_time >= 0.5


@dataclass(frozen=True, slots=True)
class PoolsAt:
    """What is predicted for one load, by growing objective."""

    load: Load
    pools: tuple[PoolPrediction, ...]


@dataclass(frozen=True, slots=True)
class PolicyValue:
    """One value to set in the policy file."""

    path: str  # such as spec.pools.speculative.limits.softInflight
    value: float | int | str | bool
    because: str


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that the report shows."""

    measurement: Measurement
    fits: Mapping[Role, Fit]
    survivals: Mapping[str, Survival]  # by workload, and "mean" over all
    speed_ups: tuple[SpeedUp, ...]
    crossovers: tuple[Crossover, ...]
    break_evens: tuple[BreakEven, ...]
    capacities: tuple[Capacity, ...]
    frontier: tuple[FrontierPoint, ...]
    k0_tax: tuple[tuple[int, Estimate], ...]  # sequences, plain tokens/s over the speculative engine's at K=0
    draft_s: float | None  # what drafting costs one step at the largest K and one sequence
    kv_loss: float | None  # share of the plain engine's KV tokens that the speculative one lacks
    context_tokens: float  # S that is typical of the prompts
    table: tuple[TableRow, ...] = ()  # by the costs, however good their fit is: see `recommended_table`
    policy: tuple[PolicyValue, ...] = ()
    pools: tuple[PoolPrediction, ...] = ()  # for `load`
    mix: Mix = field(default_factory=Mix)  # what was said of the load
    load: Load | None = None
    other_loads: tuple[PoolsAt, ...] = ()  # the same with other numbers of batch requests
    notes: tuple[str, ...] = field(default_factory=tuple)

    @property
    def relied(self) -> bool:
        """Whether both cost models are good enough: nothing is predicted without."""
        return set(self.fits) == set(Role) and all(fit.accepted for fit in self.fits.values())

    @property
    def loads(self) -> tuple[PoolsAt, ...]:
        """Every load that the pools were judged for, by growing number of batch requests."""
        first = () if self.load is None else (PoolsAt(self.load, self.pools),)
        return tuple(sorted((*first, *self.other_loads), key=lambda one: one.load.batch_streams))

    @property
    def recommended_table(self) -> tuple[TableRow, ...]:
        """The K table, where the costs of the engine that drafts are relied on."""
        fit = self.fits.get(Role.SPECULATIVE)
        return self.table if fit is not None and fit.accepted else ()
