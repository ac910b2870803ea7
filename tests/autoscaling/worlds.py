"""Observations, policies and memories for tests of the decision core, and a fleet in virtual time.

Builders fill in everything but what a test names.  `World` applies plans the way Ray Serve does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from autoscaling.decide import decide
from autoscaling.decisions import (
    Decision,
    Limit,
    Memory,
    Mode,
    Observation,
    PolicyInForce,
    PoolObservation,
    PoolRules,
    ScaleRule,
    Sizes,
)
from autoscaling.types import Role

SPEC, PLAIN = Role.SPECULATIVE, Role.PLAIN
WALL = 1_800_000_000.0  # Unix seconds at the clock's zero
AT_ONCE = ScaleRule(window_s=0.0)
# No window, no cool-down, no limits: what a rule does once nothing has to be waited for.
EAGER: dict[str, Any] = {"scale_up": AT_ONCE, "scale_down": AT_ONCE, "cooldown_s": 0.0}


def both(speculative: int, plain: int) -> Sizes:
    """Replicas per pool."""
    return {SPEC: speculative, PLAIN: plain}


def rules(minimum: int = 1, maximum: int = 7, **changes: Any) -> PoolRules:
    """One pool's rules."""
    return replace(PoolRules(minimum, maximum), **changes)


def policy(
    *, speculative: PoolRules | None = None, plain: PoolRules | None = None, budget: int = 8, **changes: Any
) -> PolicyInForce:
    """Eight accelerators that are all kept assigned, windows of 30 s up and 300 s down, 60 s cool-down."""
    base = PolicyInForce(
        revision=1,
        sha="0" * 64,
        mode=Mode.ENFORCE,
        budget_min=budget,
        budget_max=budget,
        bootstrap=both(4, 4),
        pools={SPEC: speculative or rules(), PLAIN: plain or rules()},
        scale_up=ScaleRule(30.0, (Limit(1, 60.0),)),
        scale_down=ScaleRule(300.0, (Limit(50, 60.0, percent=True),)),
    )
    return replace(base, **changes)


def pool(target: int = 4, **changes: Any) -> PoolObservation:
    """A pool that has what it should have, idle, with a limit of 8 sequences per replica."""
    base = PoolObservation(
        target=target,
        running=target,
        starting=0,
        draining=0,
        reporting=target,
        inflight=0,
        soft_limit=8,
    )
    return replace(base, **changes)


def seen(
    now: float = 1000.0,
    *,
    speculative: PoolObservation | None = None,
    plain: PoolObservation | None = None,
    **changes: Any,
) -> Observation:
    """Two idle pools of four."""
    pools = {SPEC: speculative or pool(), PLAIN: plain or pool()}
    return replace(Observation(now, WALL + now, pools), **changes)


def remembered(speculative: int = 4, plain: int = 4, **changes: Any) -> Memory:
    """A memory of targets that have been published."""
    sizes = both(speculative, plain)
    return replace(Memory(targets=sizes, plan=sizes), **changes)


def long_since(*roles: Role) -> Mapping[Role, float]:
    """Since the clock's zero: longer than any window."""
    return dict.fromkeys(roles, 0.0)


@dataclass
class Replica:
    """One replica of the virtual fleet and when its present state ends."""

    state: str  # "starting", "running" or "draining"
    until: float


class World:
    """A controller, its memory and a fleet; time passes only by `tick` and `run`."""

    def __init__(
        self,
        rules: PolicyInForce,
        speculative: int = 4,
        plain: int = 4,
        *,
        start_s: float = 40.0,
        drain_s: float = 20.0,
        tick_s: float = 5.0,
        now: float = 1000.0,
        lag: int = 0,
    ) -> None:
        # With a lag the controller decides on what was true so many ticks ago.
        self.looks: deque[Observation] = deque(maxlen=lag + 1)
        self.policy = rules
        self.memory = remembered(speculative, plain)
        self.start_s, self.drain_s, self.tick_s, self.now = start_s, drain_s, tick_s, now
        self.plan = both(speculative, plain)
        self.replicas = {
            role: [Replica("running", 0.0) for _ in range(count)] for role, count in self.plan.items()
        }
        self.silent = {SPEC: 0, PLAIN: 0}  # running replicas that do not report
        self.serve_known = True
        self.decisions: list[Decision] = []

    def count(self, role: Role, state: str) -> int:
        """Replicas of a pool in one state."""
        return sum(replica.state == state for replica in self.replicas[role])

    def running(self) -> Sizes:
        """Replicas that run."""
        return both(self.count(SPEC, "running"), self.count(PLAIN, "running"))

    def used(self) -> int:
        """Accelerators that some replica holds."""
        return sum(len(self.replicas[role]) * self.policy.pools[role].accelerators for role in Role)

    def observe(self, speculative: int | None, plain: int | None) -> Observation:
        """What the controller sees, with so much demand; None for demand that nobody reports."""
        return seen(self.now, speculative=self._observe(SPEC, speculative), plain=self._observe(PLAIN, plain))

    def tick(self, speculative: int | None = 0, plain: int | None = 0) -> Decision:
        """One observation, one decision, and Ray Serve does what the plan says; then time passes."""
        self.looks.append(self.observe(speculative, plain))
        look = replace(self.looks[0], now=self.now, wall=WALL + self.now)
        decision, self.memory = decide(look, self.policy, self.memory)
        self.decisions.append(decision)
        if decision.plan is not None:
            self.plan = decision.plan
        self.reconcile()
        self.now += self.tick_s
        self._age()
        return decision

    def run(self, seconds: float, speculative: int | None = 0, plain: int | None = 0) -> list[Decision]:
        """Ticks for so long under constant demand; the decisions that began a move."""
        first, end = len(self.decisions), self.now + seconds
        while self.now < end:
            self.tick(speculative, plain)
        return [decision for decision in self.decisions[first:] if decision.begun]

    def crash(self, role: Role) -> None:
        """A running replica is gone; Ray Serve starts another when it looks next."""
        for replica in self.replicas[role]:
            if replica.state == "running":
                self.replicas[role].remove(replica)
                break

    def reconcile(self) -> None:
        """Ray Serve's own loop: replicas still starting are stopped first, whatever is missing starts."""
        for role in Role:
            living = [replica for replica in self.replicas[role] if replica.state != "draining"]
            living.sort(key=lambda replica: replica.state == "running")
            for replica in living[: max(0, len(living) - self.plan[role])]:
                replica.state, replica.until = "draining", self.now + self.drain_s
            missing = self.plan[role] - len(living)
            self.replicas[role] += [Replica("starting", self.now + self.start_s) for _ in range(missing)]

    def _age(self) -> None:
        for role in Role:
            for replica in self.replicas[role]:
                if replica.state == "starting" and replica.until <= self.now:
                    replica.state = "running"
            self.replicas[role] = [
                replica
                for replica in self.replicas[role]
                if replica.state != "draining" or replica.until > self.now
            ]

    def _observe(self, role: Role, demand: int | None) -> PoolObservation:
        running = self.count(role, "running")
        reporting = max(0, running - self.silent[role])
        if not self.serve_known:
            unknown = dict.fromkeys(("target", "running", "starting", "draining"))
            return replace(pool(0, reporting=reporting, inflight=demand), **unknown)
        return pool(
            self.plan[role],
            running=running,
            starting=self.count(role, "starting"),
            draining=self.count(role, "draining"),
            reporting=reporting,
            inflight=demand,
            soft_limit=8 if reporting else None,
        )
