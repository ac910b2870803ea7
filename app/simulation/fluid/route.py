"""Which pool takes how much of each kind of request: the rule of the ingress, asked where it may change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from app.routing.ask import Ask
from app.routing.rule import choose_pool, preferred_role
from app.routing.standin import replica_like
from app.routing.views import pool_view
from app.simulation.fluid.level import Level
from app.simulation.fluid.load import FluidLoad
from app.simulation.fluid.standin import below, candidate
from app.simulation.replica import Limits
from app.workload.acceptance import draftable
from autoscaling.profile import MEAN
from autoscaling.routing_rules import RoutingRules
from autoscaling.types import Role, Tier

ROLES: Final = tuple(Role)  # a pool's place is its role's here
MOST_PARTS: Final = 12  # into which a kind's requests of one tick are cut at most
CRUMB: Final = 1e-6  # sequences per replica; less is a rounding error, and must not make room
ALONE: Final = -1  # the place of a load on which an answer does not depend

Known = dict[tuple[int, int, int], int | None]  # pools' places, by kind and loads
Borne = dict[tuple[int, int], int]  # loads, by kind and pool
# What each kind bears where it goes now, by the loads of both: pools' places, and the most of each.
Bearing = dict[tuple[int, int], list[list[tuple[int, int]]]]


class Router:
    """Asks `choose_pool` about a mean request of a kind, at replicas that are all as full as their mean.

    Answers are kept while rules and limits stay, by the whole sequences of the replicas; one that rests on a
    single pool's load is good for every load of the other one.
    """

    def __init__(self, load: FluidLoad) -> None:
        self._kinds = [(kind.flow, load.flows[kind.flow], kind.prompt_tokens) for kind in load.kinds]
        self._state: tuple[object, ...] = ()
        self._rules = RoutingRules()
        self._limits: Sequence[Limits] = ()
        self._open = [False, False]
        # How far the emptiest replica is below the mean, in roots of its sequences.
        self._below: tuple[float, ...] = (0.0, 0.0)
        self._asks: list[Ask] = []
        self._views = [replica_like(role, role.value) for role in ROLES]
        self._known: Known = {}
        self._borne: Borne = {}
        self._bearing: Bearing = {}
        # All three, by `_below`.
        self._found: dict[tuple[float, ...], tuple[Known, Borne, Bearing]] = {}

    def renew(
        self,
        rules: RoutingRules,
        limits: Mapping[Role, Limits],
        replicas: Mapping[Role, int],
        seen: Mapping[Role, float],
    ) -> None:
        """Go by these rules and limits per replica from now on; `replicas` are those that take work.

        `seen` is the variance over mean of their loads, as an ingress sees them.
        """
        state = (rules, dict(limits), dict(replicas))
        if state != self._state:
            self._state, self._rules, self._found = state, rules, {}
            self._open = [replicas[role] > 0 for role in ROLES]
            self._limits = [limits[role] for role in ROLES]
            self._asks = [
                self._ask(flow.tier, flow.workload, prompt_tokens) for _, flow, prompt_tokens in self._kinds
            ]
        self._look_at(tuple(below(replicas[role], seen[role]) for role in ROLES))

    def by_tolerance(self, kinds: Sequence[int], levels: Sequence[Level]) -> list[list[int]]:
        """The kinds first that bear most more sequences where they go now; equals of a tier together.

        Those keep a pool so full that others do not come in, whoever would have the first turn.
        """
        now = levels[0].now, levels[1].now
        borne_by = self._borne_at(int(now[0]), int(now[1]))

        def more(kind: int) -> float:
            return max(most - now[place] for place, most in borne_by[kind])

        found: list[list[int]] = []
        last: tuple[float, Tier] | None = None
        for borne, kind in sorted(((more(kind), kind) for kind in kinds), key=lambda one: -one[0]):
            this = borne, self._kinds[kind][1].tier
            if this == last:
                found[-1].append(kind)
            else:
                found.append([kind])
            last = this
        return found

    def fill(
        self, kind: int, mass: float, levels: Sequence[Level], *, at_home: bool = False
    ) -> tuple[float, float]:
        """Let requests of a kind in as far as there is room: how much each pool takes.

        In a pool that is not its own a kind is a guest, and finds room only at emptier replicas; with
        `at_home` it finds none.
        """
        flow = self._kinds[kind][0]
        own = ROLES.index(preferred_role(self._kinds[kind][1].tier, None))
        taken = [0.0, 0.0]
        left, least = mass, mass / MOST_PARTS
        closed: int | None = 1 - own if at_home else None  # a pool that has no room for guests left
        while left > 0:
            loads = int(levels[0].load), int(levels[1].load)
            if closed is not None:
                full = self._limits[closed].hard
                loads = (full, loads[1]) if closed == 0 else (loads[0], full)
            place = self.choose(kind, *loads)
            if place is None:
                break
            level, most = levels[place], left
            if place != own:
                refused = self._refused(kind, place)
                most = min(left, level.room(refused))
                if most < left:
                    closed = place
                    level.close(refused)
            per = level.staying[flow] / level.replicas
            last = int(level.load + most * per)
            edge = None
            if last > loads[place] and self._moved(kind, loads, place, last) != place:
                edge = self._edge(kind, loads, place, last)
            part = most if edge is None else max(least, (edge - level.load) / per)
            if edge is None or part >= most or part == least:
                part = min(part, most)
                raised = level.load + part * per
                level.load = float(round(raised)) if abs(raised - round(raised)) < CRUMB else raised
            else:
                level.load = float(edge)  # not a rounding error below it
            if place != own:
                level.let_in(part, flow)
            taken[place] += part
            left -= part
        return taken[0], taken[1]

    def choose(self, kind: int, speculative: int, plain: int) -> int | None:
        """The pool's place for one more request, at these loads per replica; None where it has to wait."""
        known = self._known
        for key in ((kind, speculative, ALONE), (kind, ALONE, plain), (kind, speculative, plain)):
            if key in known:
                return known[key]
        ask = self._asks[kind]
        candidates = [
            candidate(self._views[place], self._limits[place], load, self._below[place])
            for place, load in enumerate((speculative, plain))
            if self._open[place]
        ]
        choice = choose_pool(ask, {role: pool_view(role, ask, candidates, ()) for role in Role}, self._rules)
        found = None if choice.option is None else ROLES.index(choice.option.role)
        judged = [role in choice.judged for role in ROLES]
        known[
            kind,
            speculative if judged[0] else ALONE,
            plain if judged[1] else ALONE,
        ] = found
        return found

    def _borne_at(self, speculative: int, plain: int) -> list[list[tuple[int, int]]]:
        """By kind, the pool where it goes at these loads and the most that it bears there; or both pools."""
        found = self._bearing.get((speculative, plain))
        if found is None:
            found = []
            for kind in range(len(self._kinds)):
                place = self.choose(kind, speculative, plain)
                places = (0, 1) if place is None else (place,)
                found.append([(one, self._most(kind, one)) for one in places])
            self._bearing[speculative, plain] = found
        return found

    def _most(self, kind: int, place: int) -> int:
        """The lowest load at which a pool is refused to a kind for which the other one has no room."""
        if (kind, place) not in self._borne:
            full = self._limits[1 - place].hard
            loads = (0, full) if place == 0 else (full, 0)
            self._borne[kind, place] = self._edge(kind, loads, place, self._limits[place].hard)
        return self._borne[kind, place]

    def _refused(self, kind: int, place: int) -> float:
        """The sequences at which a single replica is refused to guests of a kind: as if all had as many.

        Of what refuses them its sequences are less than the mean's, and its room is not.
        """
        pools = self._below
        self._look_at((0.0, 0.0))
        most = float(self._most(kind, place))
        self._look_at(pools)
        return most

    def _look_at(self, below: tuple[float, ...]) -> None:
        """Ask about pools whose emptiest replicas are so far below the mean."""
        self._below = below
        self._known, self._borne, self._bearing = self._found.setdefault(below, ({}, {}, {}))

    def _moved(self, kind: int, loads: tuple[int, int], place: int, load: int) -> int | None:
        """The choice with another load in one of the pools."""
        return self.choose(kind, load, loads[1]) if place == 0 else self.choose(kind, loads[0], load)

    def _edge(self, kind: int, loads: tuple[int, int], place: int, last: int) -> int:
        """The lowest load of a pool at which it is no longer chosen; at `last` it is not."""
        low, high = loads[place], last
        while high - low > 1:
            middle = (low + high) // 2
            if self._moved(kind, loads, place, middle) == place:
                low = middle
            else:
                high = middle
        return high

    def _ask(self, tier: Tier, workload: str, prompt_tokens: float) -> Ask:
        rules, gain = self._rules, None
        if self._open[ROLES.index(Role.SPECULATIVE)]:
            gain = rules.tokens_per_step.get(workload, rules.tokens_per_step.get(MEAN))
        return Ask(
            tier=tier,
            prompt_tokens=round(prompt_tokens),
            tokens_per_step=gain,
            draftable=rules.classify and draftable(gain) if gain is not None else False,
        )
