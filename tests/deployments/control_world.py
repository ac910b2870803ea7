"""A control loop over a real folder, with a virtual Ray Serve, a policy text and clocks that a test moves.

`World` outlives its controllers: `start` begins a new life over the same folder, by another clock if told.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from autoscaling.decisions import Sizes
from autoscaling.observations import Observations
from autoscaling.request_book import RequestBook
from autoscaling.types import IngressLoad, Role, ServePool, ServeStates
from deployments.config import ControllerSettings, PoolWorld
from deployments.control_loop import ControlLoop, Ports
from deployments.control_memory import ControlMemory
from deployments.orders import Orders
from deployments.policy_source import FixedPolicy, Seen
from deployments.record_reader import read
from tests.autoscaling.reports import report
from tests.policies import policy

SPECULATIVE, PLAIN = Role.SPECULATIVE, Role.PLAIN
WALL = 1_800_000_000.0  # 2027-01-15T08:00:00Z
BOTH_TWO = policy(2, 2)


def sizes(speculative: int, plain: int) -> Sizes:
    """Replicas per pool."""
    return {SPECULATIVE: speculative, PLAIN: plain}


def controller_settings(
    folder: Path | None, *, slots: int = 4, floor: int = 1, **more: Any
) -> ControllerSettings:
    """Two pools of two replicas, and `slots` accelerators for both."""
    pool = PoolWorld(replicas=2, share=1, floor=floor, most=slots)
    return ControllerSettings(
        state_dir=None if folder is None else str(folder),
        ceiling=slots,
        speculative=pool,
        plain=pool,
        **more,
    )


@dataclass
class World:
    """What is around a controller: Serve's pools, the policy file, the clocks."""

    settings: ControllerSettings
    policy: str | None = BOTH_TWO  # None: the file is not there
    now: float = 1000.0
    wall: float = WALL
    targets: dict[Role, int] = field(default_factory=lambda: {SPECULATIVE: 1, PLAIN: 1})
    running: dict[Role, int] = field(default_factory=lambda: {SPECULATIVE: 0, PLAIN: 0})
    draining: dict[Role, int] = field(default_factory=lambda: {SPECULATIVE: 0, PLAIN: 0})
    recovering: dict[Role, int] = field(default_factory=lambda: {SPECULATIVE: 0, PLAIN: 0})
    asleep: bool = False  # Serve does not answer
    there: bool = True  # the application exists
    loop: ControlLoop = field(init=False)
    kept: ControlMemory = field(init=False)
    orders: Orders = field(init=False)
    requests: RequestBook = field(init=False)
    observations: Observations = field(init=False)
    plans: list[dict[str, float]] = field(default_factory=list)  # every change of the published plan
    _read: Seen | None = field(default=None, init=False)
    _seq: int = field(default=0, init=False)

    def start(self, *, restore: bool = True, monotonic: float | None = None) -> ControlLoop:
        """A new life of the controller."""
        if monotonic is not None:
            self.now = monotonic
        self._read = None
        self.kept = ControlMemory(self.settings, lambda: self.wall)
        self.observations = Observations(self.kept.open(), self.now)
        ports = Ports(look=self._look, poll=self._poll, now=lambda: self.now, wall=lambda: self.wall)
        self.loop = ControlLoop(self.settings, self.observations, self.kept, ports)
        self.requests = RequestBook()
        self.orders = Orders(self.settings, self.loop, self.kept, self.requests, lambda: self.wall)
        if restore:
            self.loop.restore()
        return self.loop

    def _look(self) -> ServeStates | None:
        if self.asleep:
            raise TimeoutError("Serve does not answer")
        if not self.there:
            return None
        return ServeStates(
            self.now,
            {
                role: ServePool(
                    self.targets[role],
                    self._states(role),
                    frozenset(self.ids(role)),
                )
                for role in Role
            },
        )

    def _states(self, role: Role) -> dict[str, int]:
        counts = {
            "RUNNING": self.running[role],
            "STOPPING": self.draining[role],
            "RECOVERING": self.recovering[role],
        }
        return {state: count for state, count in counts.items() if count}

    def _poll(self) -> Seen | None:
        found = (
            Seen(None, None, "the file is gone") if self.policy is None else FixedPolicy(self.policy).poll()
        )
        news, self._read = (found if found != self._read else None), found
        return news

    def ids(self, role: Role) -> list[str]:
        """The running replicas of a pool."""
        return [f"{role.value}-{number}" for number in range(self.running[role])]

    async def tick(self, count: int = 1, *, every_s: float = 0.5, wanted: Sizes | None = None) -> None:
        """Time passes, everyone reports, and the controller ticks."""
        for _ in range(count):
            self.now += every_s
            self.wall += every_s
            self.hear(wanted or sizes(0, 0))
            await self.loop.tick()
            plan = self.loop.plan()
            if plan and (not self.plans or published(self.plans[-1]) != published(plan)):
                self.plans.append(plan)

    def hear(self, wanted: Sizes) -> None:
        """One report of every running replica, one load of one ingress."""
        self._seq += 1
        for role in Role:
            for replica in self.ids(role):
                self.observations.take(report(replica, self._seq, role=role), self.now)
        load = IngressLoad(wanted=dict(wanted), refused=dict.fromkeys(Role, 0))
        self.loop.demand.take("ingress", load, self.now)

    def obey(self) -> None:
        """Serve does what the plan says, at once and completely."""
        plan = self.loop.plan()
        if plan:
            self.targets = {role: int(plan[f"target_{role.value}"]) for role in Role}
            self.running = dict(self.targets)
            self.draining = dict.fromkeys(Role, 0)

    async def settle(self, count: int = 6, *, wanted: Sizes | None = None) -> None:
        """Ticks in which Serve obeys."""
        for _ in range(count):
            await self.tick(wanted=wanted)
            self.obey()

    @property
    def folder(self) -> Path:
        """The folder of the state."""
        assert self.settings.state_dir is not None
        return Path(self.settings.state_dir)

    def audit(self, *kinds: str) -> list[dict[str, Any]]:
        """The audit so far, of these kinds; all without."""
        return [line for line in read(self.folder, "audit") if not kinds or line["kind"] in kinds]

    def state(self) -> dict[str, Any]:
        """The state file."""
        found: dict[str, Any] = msgspec.json.decode((self.folder / "state.json").read_bytes())
        return found


def published(plan: dict[str, float]) -> tuple[float, float]:
    """The targets of a published plan, speculative first."""
    return plan["target_speculative"], plan["target_plain"]


async def running(folder: Path | None, text: str | None = BOTH_TWO, **options: Any) -> World:
    """A world whose controller has brought the application up."""
    world = World(controller_settings(folder, **options), policy=text)
    world.start()
    await world.settle()
    return world
