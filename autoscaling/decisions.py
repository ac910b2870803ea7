"""What a control tick reads and what it returns: observation, policy in force, memory, decision.

Read after `types`.  Frozen, plain and free of IO; `None` means unknown, never zero.  Times called
`at`, `now`, `since` are seconds of the controller's own monotonic clock; `wall` is Unix seconds, UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from autoscaling.types import Role

Sizes = Mapping[Role, int]  # replicas per pool, both pools always present


class Mode(StrEnum):
    """What is done with decisions."""

    ENFORCE = "enforce"
    SHADOW = "shadow"  # decided and recorded; the last enforced revision keeps acting
    HOLD = "hold"


class Reason(StrEnum):
    """Why a decision or one of its steps is what it is; the word on logs, metrics and tests."""

    STEADY = "steady"  # no pool is short
    BOOTSTRAP = "bootstrap"
    SHORTFALL = "shortfall"  # a pool's demand stayed above what it can serve
    UNASSIGNED = "unassigned_budget"  # accelerators below budget.min that no pool had
    SURPLUS = "surplus"  # between budget.min and budget.max, and nobody needs it
    OVER_BUDGET = "over_budget"
    BOUNDS = "bounds"  # a minimum was raised or a maximum lowered
    SCHEDULE = "schedule"
    OVERRIDE = "override"
    WINDOW = "waiting_for_window"
    COOLDOWN = "cooling_down"
    BEHAVIOR = "behavior_limit"
    IN_FLIGHT = "move_in_flight"
    NO_DONOR = "no_donor"  # the other pool would leave its own objective
    AT_MINIMUM = "at_minimum"
    AT_MAXIMUM = "at_maximum"
    STARTING = "still_starting"  # the short pool has replicas that are not up yet
    HELD = "held"  # by an operator, the policy or missing knowledge: see `hold`


class HoldBy(StrEnum):
    """Who holds the targets."""

    OPERATOR = "operator"
    POLICY = "policy"
    METRICS = "metrics_loss"  # too few fresh reports
    SERVE = "serve_unknown"  # Ray Serve's replica states are unknown
    START = "controller_start"  # a young controller has not heard from everyone
    NO_POLICY = "no_policy"  # no valid revision was ever read


@dataclass(frozen=True, slots=True)
class Hold:
    """Targets stay as they are, whatever the cause."""

    by: HoldBy
    reason: str
    since: float  # wall
    expires: float | None = None  # wall; None until it is released or its cause is gone
    who: str | None = None  # the operator's name


@dataclass(frozen=True, slots=True)
class PoolObservation:
    """One pool, as Ray Serve and the replicas' own reports have it."""

    target: int | None = None  # Serve's own target
    running: int | None = None  # by Serve's replica states
    starting: int | None = None
    draining: int | None = None
    reporting: int = 0  # replicas with a fresh report that take work
    inflight: int | None = None  # sequences open at the reporting replicas
    wanted: int | None = None  # sequences open for callers who prefer this pool, wherever they are served
    refused: int | None = None  # requests that preferred this pool and found no room, in the last 10 s
    soft_limit: int | None = None  # in flight per replica, the replicas' own; the smallest
    ttft_p95_s: float | None = None  # over the last minute of finished requests
    tpot_p95_s: float | None = None
    batch_limit: int | None = None  # sequences that a replica takes and runs at once; the smallest


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything a tick knows about the world."""

    now: float
    wall: float
    pools: Mapping[Role, PoolObservation]
    young: bool = False  # the controller has lived for less than two report periods
    fresh: bool = False  # the application is new: no replica of any pool has been RUNNING yet


@dataclass(frozen=True, slots=True)
class Limit:
    """One HPA scaling policy: at most so much in so long."""

    value: int
    period_s: float
    percent: bool = False  # of the pool's replicas at the start of the period, at least one replica


@dataclass(frozen=True, slots=True)
class ScaleRule:
    """HPA's `behavior` in one direction; a move must satisfy the donor's and the receiver's."""

    window_s: float  # stabilizationWindowSeconds
    limits: tuple[Limit, ...] = ()  # empty: no limit
    select: str = "Max"  # of several limits the "Max" or "Min" counts; "Disabled": never


@dataclass(frozen=True, slots=True)
class PoolRules:
    """One pool's rules at this moment, schedules and overrides applied."""

    minimum: int
    maximum: int
    accelerators: int = 1  # per replica
    soft_limit: int | None = None  # in flight per replica; None: the replicas' own
    hard_limit: int | None = None
    drain_timeout_s: float = 300.0
    ttft_s: float | None = None  # objectives of the tier that the pool serves first
    tpot_s: float | None = None
    bound_by: str = "pools"  # "pools", "schedule NAME" or "override ID"
    forced: bool = False  # an override says exactly how many: minimum == maximum
    measured_limit: int | None = None  # by a profile, in place of the replicas' own soft limit


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """The policy as it stands at one moment: what `decide` obeys."""

    revision: int
    sha: str
    mode: Mode
    budget_min: int  # accelerators that are kept assigned
    budget_max: int  # accelerators that are never exceeded
    bootstrap: Sizes
    pools: Mapping[Role, PoolRules]
    scale_up: ScaleRule
    scale_down: ScaleRule
    utilization_above: float = 0.85  # demand / (limit x replicas) above which a pool is short
    utilization_below: float = 0.60  # what a donor must stay below with one replica less
    cooldown_s: float = 60.0  # between the end of a move and the next
    surge: int = 0  # accelerators that may be used above the budget while a donor drains
    max_step: int = 1  # replicas per move
    move_timeout_s: float = 900.0
    metrics_after_s: float = 10.0  # reports older than this are missing
    min_fresh_share: float = 0.5  # of the running replicas; fewer fresh reports: hold
    hold: Hold | None = None


class MoveState(StrEnum):
    """Where a move is."""

    DRAINING = "draining"  # the donor's replicas finish what they have
    STARTING = "starting"  # the receiver's replicas come up
    DONE = "done"
    TIMED_OUT = "timed_out"  # given up after move_timeout_s; targets stay
    REPLACED = "replaced"  # another change of targets came before its end


@dataclass(frozen=True, slots=True)
class Move:
    """Capacity on its way: from one pool to the other, from free budget (source None) or back to it."""

    id: str
    at: float
    wall: float
    source: Role | None
    receiver: Role | None
    count: int  # replicas of the receiver, of the source when there is no receiver
    reason: Reason
    before: Sizes
    after: Sizes
    state: MoveState
    revision: int
    drained_at: float | None = None
    started_at: float | None = None  # when the plan let the receiver grow
    ended_at: float | None = None
    waiting_for: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A past change of one pool's target, kept as long as a scaling policy may ask for it."""

    at: float
    pool: Role
    delta: int
    size: int  # before the change


@dataclass(frozen=True, slots=True)
class Memory:
    """What one tick leaves for the next; a store may keep it across controller lives."""

    targets: Sizes | None = None  # None before the first decision of a service
    plan: Sizes | None = None  # what was published last
    short_since: Mapping[Role, float] = field(default_factory=dict)
    spare_since: Mapping[Role, float] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    move: Move | None = None  # the newest, running or ended
    cooling_until: float | None = None
    moves: int = 0  # ever begun; numbers them
    decisions: int = 0
    hold: Hold | None = None  # of the last decision; says since when


@dataclass(frozen=True, slots=True)
class Signal:
    """One pool's need in numbers."""

    demand: float | None  # sequences
    capacity: float | None  # sequences that the target replicas serve inside the limit
    utilization: float | None  # demand / capacity
    replicas: int
    limit: int | None = None  # sequences per replica


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a decision, and why."""

    name: str  # "know", "bounds", "signals", "want", "stabilize", "stage"
    reason: Reason
    targets: Sizes | None
    detail: str = ""
    waits_for: str = ""  # what would let the change begin; empty: the reason's own words say it


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now.  `targets` is where it ends, `plan` what may be published already."""

    number: int
    wall: float
    reason: Reason
    summary: str
    targets: Sizes | None  # None: nothing is known yet, publish nothing
    plan: Sizes | None
    budget: int  # accelerators; travels with the plan
    steps: tuple[Step, ...]
    signals: Mapping[Role, Signal]
    revision: int
    hold: Hold | None = None
    move: Move | None = None
    begun: bool = False  # a move begins with this decision
    ended: Move | None = None  # the move that ended with this decision: done, timed out or replaced
