"""The controller over a fluid: what its reports and loads would say in, plans and routing rules out."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace

from app.simulation.control import Believed
from app.simulation.engine_profile import EngineProfile
from app.simulation.fluid.fleet import Fleet, Pool
from app.simulation.replica import Lies, Limits
from autoscaling.decide import decide
from autoscaling.decisions import (
    Memory,
    Mode,
    Move,
    Observation,
    PolicyInForce,
    PoolObservation,
    Sizes,
)
from autoscaling.demand import REFUSED_WINDOW_S
from autoscaling.policy_in_force import in_force
from autoscaling.profile_match import Served
from autoscaling.routing_rules import PoolSpeed, RoutingRules
from autoscaling.rules_of_policy import routing_rules, with_measured_limits
from autoscaling.soft_limit import soft_limit
from autoscaling.types import Role


class Control:
    """One controller's life; `rules` and `limits` are those of its last tick."""

    def __init__(
        self,
        believed: Believed,
        engines: EngineProfile,
        lies: Mapping[Role, Lies],
        limits: Mapping[Role, Limits],
    ) -> None:
        self.rules = RoutingRules()
        self.limits: Mapping[Role, Limits] = limits
        self._believed = believed
        self._engines = engines
        self._lies = lies
        self._own = limits
        self._memory = Memory()
        self._moves: dict[str, Move] = {}
        self._refused: dict[Role, deque[tuple[float, float]]] = {role: deque() for role in Role}

    @property
    def moves(self) -> tuple[Move, ...]:
        """Every move that has begun, as it stands now, the oldest first."""
        return tuple(self._moves.values())

    def refuse(self, role: Role, count: float, now: float) -> None:
        """Note requests that found no room, by the pool that they prefer."""
        self._refused[role].append((now, count))

    def tick(
        self, now: float, fleet: Fleet, wanted: Mapping[Role, float], speeds: Mapping[Role, PoolSpeed]
    ) -> Sizes | None:
        """Decide; the plan to follow, None where there is none to enforce.

        `wanted` are sequences open for callers who prefer a pool, waiting ones included.
        """
        believed, wall = self._believed, self._believed.wall + now
        served = self._served(fleet)
        policy = with_measured_limits(
            in_force(believed.policy, 1, "", overrides=(), hold=None, wall=wall), believed.profile, served
        )
        self.limits = {role: self._limits(role, policy) for role in Role}
        self.rules = _steady(routing_rules(believed.policy, believed.profile, served, speeds))
        pools = {role: self._seen(role, fleet.pools[role], wanted[role], speeds[role], now) for role in Role}
        decision, self._memory = decide(Observation(now=now, wall=wall, pools=pools), policy, self._memory)
        for move in (decision.ended, decision.move):
            if move is not None:
                self._moves[move.id] = move
        return decision.plan if policy.mode is Mode.ENFORCE else None

    def _seen(self, role: Role, pool: Pool, wanted: float, speed: PoolSpeed, now: float) -> PoolObservation:
        refused = self._refused[role]
        while refused and now - refused[0][0] > REFUSED_WINDOW_S:
            refused.popleft()
        speaking, own = pool.running > 0, self._own[role]
        return PoolObservation(
            target=pool.target,
            running=pool.running,
            starting=pool.starting,
            draining=pool.draining,
            reporting=pool.running,
            inflight=round(pool.cell.total) if speaking else None,
            wanted=round(wanted),
            refused=round(sum(count for _, count in refused)),
            soft_limit=own.soft if speaking else None,
            ttft_p95_s=speed.ttft_p95_s,
            tpot_p95_s=speed.tpot_p95_s,
            batch_limit=self._most(role) if speaking else None,
        )

    def _limits(self, role: Role, policy: PolicyInForce) -> Limits:
        """What a replica takes, as ingresses obey it."""
        own, rules = self._own[role], policy.pools[role]
        soft = soft_limit(own.soft, self._most(role), rules)
        hard = own.hard if rules.hard_limit is None else min(own.hard, rules.hard_limit)
        return Limits(own.soft if soft is None else soft, hard)

    def _most(self, role: Role) -> int:
        return min(self._own[role].hard, self._engines.max_num_seqs)

    def _served(self, fleet: Fleet) -> Served:
        """What replicas that run would report of themselves, as far as a profile of simulated ones tells."""
        running = [role for role in Role if fleet.pools[role].running > 0]
        tokens = {role: self._engines.kv_tokens[self._lies[role].role] for role in running}
        return Served(self._engines.name if running else None, {}, tokens)


def _steady(rules: RoutingRules) -> RoutingRules:
    """Without the times of late where costs of both pools are believed: then no route rests on them.

    So rules stay the same for longer, and with them what is known of routes.
    """
    if set(rules.costs) != set(Role):
        return rules
    speeds = {
        role: replace(speed, ttft_p50_s=None, ttft_p95_s=None, tpot_p50_s=None, tpot_p95_s=None)
        for role, speed in rules.speeds.items()
    }
    return replace(rules, speeds=speeds)
