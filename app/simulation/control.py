"""The controller in virtual time: reports and loads in, snapshots and plans out, by the same code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.simulation.fleet import Fleet
from autoscaling.decide import decide
from autoscaling.decisions import Decision, Memory, Mode, Move, Observation, PolicyInForce, PoolRules
from autoscaling.demand import Demand
from autoscaling.latencies import Latencies
from autoscaling.observations import Observations
from autoscaling.observe import observe
from autoscaling.policy import CapacityPolicy
from autoscaling.policy_in_force import in_force
from autoscaling.profile import Profile
from autoscaling.profile_match import Served, served
from autoscaling.rules_of_policy import routing_rules, with_measured_limits
from autoscaling.types import IngressLoad, ReplicaReport, ReplicaState, Role, Snapshot

TICK_S = 0.5  # as the controller's


@dataclass(frozen=True, slots=True)
class Believed:
    """What the controller goes by; it may be off what engines really do."""

    policy: CapacityPolicy
    profile: Profile | None
    wall: float = 1_750_000_000.0  # Unix seconds at time 0 of the trace, for schedules


class Control:
    """One controller's life; `decision` is the newest.  A controller with another rule overrides `decide`."""

    def __init__(self, believed: Believed, fleet: Fleet, now: float) -> None:
        self._believed = believed
        self._fleet = fleet
        self._observations = Observations(epoch=1, now=now)
        self._demand = Demand()
        self._latencies = Latencies()
        self._memory = Memory()
        self._served = Served()  # as of the last tick
        self._policy: PolicyInForce | None = None
        self._moves: dict[str, Move] = {}
        self.decision: Decision | None = None

    @property
    def moves(self) -> tuple[Move, ...]:
        """Every move that has begun, as it stands now, the oldest first."""
        return tuple(self._moves.values())

    def rules(self, role: Role) -> PoolRules | None:
        """A pool's rules as of the last tick; None before the first."""
        return None if self._policy is None else self._policy.pools[role]

    def take(self, reports: Iterable[ReplicaReport], now: float) -> None:
        """Take what replicas report."""
        for report in reports:
            self._observations.take(report, now)
            self._latencies.take(report.role, report.finished, now)

    def snapshot(self, ingress: str, load: IngressLoad, now: float) -> Snapshot:
        """The newest picture, for one ingress, which says what its callers want."""
        self._observations.ingress(ingress, now)
        self._demand.take(ingress, load, now)
        believed = self._believed
        return self._observations.snapshot(
            now,
            None if self._policy is None else self._policy.pools,
            believed.policy.spec.overload.retry_after_seconds,
            routing_rules(
                believed.policy,
                believed.profile,
                self._served,
                {role: self._latencies.speed(role, now) for role in Role},
            ),
        )

    def tick(self, now: float) -> None:
        """Observe, decide, and have the fleet follow the plan; one that only changes roles, the targets."""
        believed, wall = self._believed, self._believed.wall + now
        self._served = served(self._observations.served_fingerprint(), self._observations.serving())
        policy = with_measured_limits(
            in_force(believed.policy, 1, "", overrides=(), hold=None, wall=wall),
            believed.profile,
            self._served,
        )
        self._policy = policy
        self._observations.expire(now)
        seen = observe(
            self._observations.newest(),
            self._fleet.states(now),
            self._demand,
            self._latencies,
            now=now,
            wall=wall,
            report_expires_s=policy.metrics_after_s,
            young=self._observations.young(now),
            fresh=False,
        )
        decision, self._memory = self.decide(seen, policy, self._memory)
        self.decision = decision
        for move in (decision.ended, decision.move):
            if move is not None:
                self._moves[move.id] = move
        plan = decision.targets if self._fleet.changes_roles else decision.plan
        if plan is not None and policy.mode is Mode.ENFORCE:
            self._fleet.apply(plan)

    def decide(self, seen: Observation, policy: PolicyInForce, memory: Memory) -> tuple[Decision, Memory]:
        """What to do now, and what the next tick must remember."""
        return decide(seen, policy, memory)

    def _reports(self, role: Role) -> list[ReplicaReport]:
        """The newest report of each replica of a pool that takes work."""
        found = (seen.report for seen in self._observations.newest())
        return [one for one in found if one.role is role and one.state is ReplicaState.RUNNING]
