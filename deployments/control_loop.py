"""The control loop: look, decide, write down, publish; one tick after another.

No Ray here: what it looks at and where it writes are ports.  The order of a tick is the promise: a
decision is in the audit before it is in the state, and in the state before it is published, so that
after a kill at any moment no move is lost and none is made twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from autoscaling.decide import decide
from autoscaling.decisions import Memory, Observation, PolicyInForce, Sizes
from autoscaling.demand import Demand
from autoscaling.latencies import Latencies
from autoscaling.observations import Observations
from autoscaling.observe import observe
from autoscaling.profile_match import Served, served
from autoscaling.rules_of_policy import limits_from
from autoscaling.types import Role, ServeStates
from deployments.config import ControllerSettings
from deployments.control_memory import ControlMemory
from deployments.control_shadow import evaluate_shadow, would_differ
from deployments.control_state import ControlState, tells_more
from deployments.default_policy import world
from deployments.kept_state import State
from deployments.policy_book import PolicyBook, PolicyEvent
from deployments.policy_source import Seen
from deployments.policy_use import acting_document, acting_policy, default_policy
from deployments.profile_source import ProfileSource

logger = logging.getLogger("ray.serve")

TICK_S = 0.5
LOOK_LIMIT_S = 2.0
OBSERVATION_EVERY_S = 5.0
SAVE_EVERY_S = 30.0  # windows and cool-downs of a quiet time; what matters is saved at once


@dataclass(frozen=True, slots=True)
class Ports:
    """What the loop touches; `look`, `poll` and the profile's block and run in threads."""

    look: Callable[[], ServeStates | None]
    poll: Callable[[], Seen | None]  # of the policy
    now: Callable[[], float]
    wall: Callable[[], float]
    profile: ProfileSource = field(default_factory=lambda: ProfileSource(None))


class ControlLoop:
    """Ticks over one `ControlState`; touched by one event loop."""

    def __init__(
        self, settings: ControllerSettings, observations: Observations, kept: ControlMemory, ports: Ports
    ) -> None:
        self._settings = settings
        self._ports = ports
        self.default = default_policy(settings)
        # Held from a change of the state until it is written down: what is saved in between, with the line
        # of somebody else, has no line of its own yet, and a kill would lose it.
        self.changing = asyncio.Lock()
        self._observations = observations
        self._kept = kept
        self.demand = Demand()
        self.latencies = Latencies()
        self.state = ControlState(PolicyBook(world(settings)))
        self.serve: ServeStates | None = None
        self.actuated = False  # Serve's targets have once been what was published
        self.stopped = False
        self._ran = False  # a replica of this application has been RUNNING
        self._began_fresh: bool | None = None  # None before Serve was first seen
        self._observed_at = self._saved_at = float("-inf")

    def restore(self) -> None:
        """Bring back what a former life left; blocking, before the first tick."""
        now, wall = self._ports.now(), self._ports.wall()
        left = self._kept.restore(now, wall)
        problems = [left.problem]
        if left.state is not None:
            state = self.state
            state.memory, state.shadow_memory = left.memory, left.shadow_memory
            state.set_hold(left.hold, now, wall)
            state.set_overrides(left.overrides, now, wall)
            state.moves = list(left.state.move_log)
            problems.append(state.book.restore(left.state, self._kept.policy_text, wall))
        for problem in filter(None, problems):
            logger.warning(problem)

    async def run(self) -> None:
        """Tick until stopped or fenced; a tick that fails is logged and the next one tries again."""
        began = {"restored_targets": self.state.memory.targets, "state": self._kept.describe()}
        await self.keep("start", {"controller": began}, ())
        while not self.stopped and not self._kept.fenced:
            try:
                await self.tick()
            except Exception:
                self.state.failures += 1
                logger.exception("a control tick failed; targets stay as they are")
            await asyncio.sleep(TICK_S)

    def stop(self) -> None:
        """End: nothing is decided, written or published from now on."""
        self.stopped = True

    async def tick(self) -> None:
        """Look, judge a changed policy, decide, write down, publish."""
        if self._observations.epoch > self._kept.epoch:
            await self._kept.rise(self._observations.epoch)
        await self._look()
        if self.serve is None:
            return  # nothing was ever seen: whatever is published would be a guess
        seen = await asyncio.to_thread(self._poll)
        if seen is not None:
            await self._judge(seen, self._ports.wall())
        async with self.changing:
            if not self.stopped:
                await self._decide()

    async def _decide(self) -> None:
        """Decide, write down, publish."""
        state, wall, now = self.state, self._ports.wall(), self._ports.now()
        if state.decision is None and self._is_fresh():
            # Of another application: its sizes are not this one's.
            state.memory = Memory(moves=state.memory.moves, decisions=state.memory.decisions)
        state.profile = self._ports.profile.profile
        state.served = self._served()
        policy = acting_policy(state, self.default, wall, now)
        state.observation = self._observe(policy, now, wall)
        before, former_policy, former_shadow = state.decision, state.policy, state.shadow
        decision, state.memory = decide(state.observation, policy, state.memory)
        state.note_move(decision.ended)
        state.note_move(decision.move)
        evaluate_shadow(state, state.observation, now, wall)
        if before is None or former_policy is None or tells_more(decision, before, policy, former_policy):
            self._saved_at = now
            await self.keep("decision", {"decision": decision}, ("memory", "shadow_memory", "move_log"))
        elif now - self._saved_at >= SAVE_EVERY_S:
            self._saved_at = now
            await self._kept.save(self._document)
        if state.shadow is not None and would_differ(state.shadow, former_shadow):
            await self.keep("shadow", {"decision": state.shadow}, ("memory", "shadow_memory"))
        # From here on it is published.
        state.decision, state.policy = decision, policy
        state.ticks += 1
        state.ticked_wall = wall
        self.actuated = self.actuated or self._is_actuated(decision.plan)
        if now - self._observed_at >= OBSERVATION_EVERY_S:
            self._observed_at = now
            await self._kept.keep_observation(
                {"observation": state.observation, "targets": decision.targets, "revision": decision.revision}
            )

    def plan(self) -> dict[str, float]:
        """The plan as Serve's autoscaling statistics; empty while there is none.

        Never None: Serve would stop asking for the life of this replica.
        """
        decision, policy = self.state.decision, self.state.policy
        if decision is None or policy is None or decision.plan is None:
            return {}
        if self.stopped or self._kept.fenced:
            return {}
        found: dict[str, float] = {
            "plan_epoch": self._observations.epoch,
            "plan_seq": self.state.ticks,
            "plan_budget": decision.budget,
        }
        if decision.hold is not None:
            # Held targets may cost more than a budget that was lowered meanwhile.  The actuator would refuse
            # such a plan, and a move that has begun could not end; above its ceiling it still does.
            found["plan_budget"] = max(
                decision.budget,
                sum(decision.plan[role] * policy.pools[role].accelerators for role in Role),
            )
        for role in Role:
            found[f"target_{role.value}"] = decision.plan[role]
            found[f"accelerators_{role.value}"] = policy.pools[role].accelerators
        return found

    def now(self) -> float:
        """The monotonic clock of this life."""
        return self._ports.now()

    def profile_status(self) -> dict[str, object]:
        """The profile's part of the status JSON, and which pools' limits rest on it."""
        state = self.state
        objective = acting_document(state, self.default).spec.objectives.interactive.tpot_seconds
        found = self._ports.profile.status(state.served, objective)
        limits = None if state.policy is None else limits_from(state.policy)
        words = None if limits is None else {role.value: source.value for role, source in limits.items()}
        return found | {"limits": words}

    async def keep(self, kind: str, fields: dict[str, object], changed: tuple[str, ...]) -> None:
        """One audit line and the state; `changed` are the state's fields that the line is about."""
        if not self.stopped:
            await self._kept.keep(kind, msgspec.to_builtins(fields), self._document, changed)

    def _document(self) -> State:
        return self.state.document(self._ports.now(), self._ports.wall())

    async def _look(self) -> None:
        """Ask Serve; without an answer the last look ages until it says nothing."""
        try:
            async with asyncio.timeout(LOOK_LIMIT_S):
                found = await asyncio.to_thread(self._ports.look)
        except Exception as error:
            logger.debug(f"no answer from Ray Serve: {type(error).__name__}: {error}")
            return
        if found is not None:
            self.serve = found
            self._ran = self._ran or any(pool.running_ids for pool in found.pools.values())

    def _served(self) -> Served:
        """What runs, of the one model that may be served."""
        return served(self._observations.served_fingerprint(), self._observations.serving())

    def _poll(self) -> Seen | None:
        self._ports.profile.poll()
        return self._ports.poll()

    def _observe(self, policy: PolicyInForce, now: float, wall: float) -> Observation:
        self._observations.expire(now)
        return observe(
            self._observations.newest(),
            self.serve,
            self.demand,
            self.latencies,
            now=now,
            wall=wall,
            report_expires_s=policy.metrics_after_s,
            young=self._observations.young(now),
            fresh=self._is_fresh(),
        )

    def _is_fresh(self) -> bool:
        """Whether Serve had only just been given the application: its own minimum, and nothing runs yet.

        By the first look: later the targets are ours, and a pool whose replicas all restart, or are found
        again by a new Serve controller, is no new one.
        """
        if self._ran or self.serve is None:
            return False
        if self._began_fresh is None:
            self._began_fresh = all(
                pool.target <= max(1, self._settings.pool(role).floor) and set(pool.states) <= {"STARTING"}
                for role, pool in self.serve.pools.items()
            )
        return self._began_fresh

    def _is_actuated(self, plan: Sizes | None) -> bool:
        return (
            plan is not None
            and self.serve is not None
            and all(self.serve.pools[role].target == plan[role] for role in Role)
        )

    async def _judge(self, seen: Seen, wall: float) -> None:
        # What a former application had is not taken away by this edit.
        targets = None if self._is_fresh() else self.state.memory.targets
        book = self.state.book
        read = await asyncio.to_thread(book.judge, seen, targets, wall)
        async with self.changing:
            if not self.stopped:
                await self._settle(book.settle(seen, read, wall))

    async def _settle(self, event: PolicyEvent | None) -> None:
        if event is None:
            return
        record = event.record
        words = f"policy revision {record.revision} is {record.state.value}"
        logger.warning(f"{words}: {record.message}" if event.problems else words)
        if event.text is not None:
            await self._kept.keep_text(record.revision, event.text)
        await self.keep(
            "policy",
            {"revision": record, "problems": event.problems},
            ("revisions", "active_revision", "seen_revision"),
        )
