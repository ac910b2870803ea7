"""What a policy may say but hardly means: warnings, none of which refuses it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

from autoscaling.instants import rfc3339
from autoscaling.policy import CapacityPolicy, Role, TierObjective
from autoscaling.policy_layers import Bounds, Layer, apply, base, layers
from autoscaling.policy_problem import Finding
from autoscaling.policy_readable import Readable, all_of
from autoscaling.policy_warnings_routing import doubts_about_routing
from autoscaling.zones import always_within

SHORT_WINDOW_S = 10.0  # ten reports: a shorter look says little about the next minute
SHORT_COOLDOWN_S = 30.0  # with a short window, capacity could move back before its effect is seen
NARROW_BAND = 0.1  # one replica more or less moves the utilization of a small pool further than this

YEAR_S = 366 * 86_400.0

# Above these a value is more likely in milliseconds; the models refuse only what is certain.
LONG_WAIT_S = 60.0  # for the first token of a caller who waits
LONG_TOKEN_S = 2.0  # for each token after it
LONG_PAUSE_S = 10_000.0  # for a cooldown, a drain or a move: nearly three hours


def doubts(policy: CapacityPolicy, wall: float | None = None) -> Iterator[Finding]:
    """All warnings about a policy without contradictions; `wall` (Unix seconds) finds expired overrides."""
    parts = all_of(policy)
    yield from _flapping(policy)
    yield from _bounds(policy, parts)
    yield from _objectives(policy)
    yield from _units(policy)
    yield from _times(policy, parts)
    yield from _surge(policy, parts)
    yield from doubts_about_routing(policy)
    yield from _schedules(parts)
    yield from _lowered(parts)
    if wall is not None:
        yield from _ends(parts, wall)


def _ends(parts: Readable, wall: float) -> Iterator[Finding]:
    """Overrides that have ended, or that hardly end."""
    for index, override in parts.overrides.items():
        until = override.until.timestamp()
        if until <= wall:
            yield Finding(
                f"spec.overrides[{index}].until", f"ended at {rfc3339(until)}; it is {rfc3339(wall)}"
            )
        elif until > wall + YEAR_S:
            yield Finding(
                f"spec.overrides[{index}].until",
                f"is {rfc3339(until)}, more than a year ahead; "
                "what should last belongs into the pool's bounds or a schedule",
            )


def _flapping(policy: CapacityPolicy) -> Iterator[Finding]:
    behavior = policy.spec.behavior
    up, down = (
        behavior.scale_up.stabilization_window_seconds,
        behavior.scale_down.stabilization_window_seconds,
    )
    if up < SHORT_WINDOW_S and behavior.cooldown_seconds < SHORT_COOLDOWN_S:
        yield Finding(
            "spec.behavior.scaleUp.stabilizationWindowSeconds",
            f"is {up:g} together with cooldownSeconds {behavior.cooldown_seconds:g}: capacity may move to "
            f"and fro; give a window of {SHORT_WINDOW_S:g} or a cooldown of {SHORT_COOLDOWN_S:g} at least",
        )
    if down < up:
        yield Finding(
            "spec.behavior.scaleDown.stabilizationWindowSeconds",
            f"is {down:g}, shorter than scaleUp's {up:g}: a pool gives sooner than it receives",
        )
    band = behavior.utilization
    if round(band.above - band.below, 9) < NARROW_BAND:
        yield Finding(
            "spec.behavior.utilization.below",
            f"is {band.below:g}, close to above {band.above:g}: capacity may move to and fro; "
            f"leave {NARROW_BAND:g} between them at least",
        )


def _bounds(policy: CapacityPolicy, parts: Readable) -> Iterator[Finding]:
    budget, pools = policy.spec.budget, parts.pools
    if all(pool.min_replicas == pool.max_replicas for pool in pools.values()):
        yield Finding("spec.pools", "minReplicas equals maxReplicas in both pools: nothing can ever move")
    most = sum(pool.max_replicas * pool.accelerators_per_replica for pool in pools.values())
    if most < budget.max:
        yield Finding(
            "spec.budget.max",
            f"is {budget.max}, but both pools' maxReplicas together take {most} accelerators",
        )
    for role, pool in pools.items():
        rest = budget.max - _lowest(parts, role.other) * pools[role.other].accelerators_per_replica
        reachable = rest // pool.accelerators_per_replica
        if pool.max_replicas > reachable:
            yield Finding(
                f"spec.pools.{role}.maxReplicas",
                f"is {pool.max_replicas}, but budget.max {budget.max} less the other pool's minimum "
                f"leaves room for {reachable}",
            )


def _lowest(parts: Readable, role: Role) -> int:
    """The lowest minimum that a pool ever has."""
    every = [base(parts.pools)[role], *(layer.bounds.get(role) for layer in layers(parts, None))]
    return min(bounds.minimum.value for bounds in every if bounds is not None and bounds.minimum is not None)


def _objectives(policy: CapacityPolicy) -> Iterator[Finding]:
    objectives = policy.spec.objectives
    tiers = (
        ("interactive", objectives.interactive),
        ("standard", objectives.standard),
        ("batch", objectives.batch),
    )
    for (_, first), (name, second) in pairwise(tiers):
        yield from _order(first, name, second)


def _order(first: TierObjective, name: str, second: TierObjective) -> Iterator[Finding]:
    for field, sooner, later in (
        ("ttftSeconds", first.ttft_seconds, second.ttft_seconds),
        ("tpotSeconds", first.tpot_seconds, second.tpot_seconds),
    ):
        if sooner is not None and later is not None and sooner > later:
            yield Finding(
                f"spec.objectives.{name}.{field}",
                f"is {later:g}, stricter than {sooner:g} of the more urgent tier before it",
            )


def _units(policy: CapacityPolicy) -> Iterator[Finding]:
    """Values that are allowed in seconds and look like milliseconds."""
    spec = policy.spec
    objectives = spec.objectives
    values: list[tuple[str, float | None, float]] = [
        ("spec.objectives.interactive.ttftSeconds", objectives.interactive.ttft_seconds, LONG_WAIT_S),
        ("spec.objectives.standard.ttftSeconds", objectives.standard.ttft_seconds, LONG_WAIT_S),
        ("spec.objectives.interactive.tpotSeconds", objectives.interactive.tpot_seconds, LONG_TOKEN_S),
        ("spec.objectives.standard.tpotSeconds", objectives.standard.tpot_seconds, LONG_TOKEN_S),
        ("spec.objectives.batch.tpotSeconds", objectives.batch.tpot_seconds, LONG_TOKEN_S),
        (
            "spec.pools.speculative.drainTimeoutSeconds",
            spec.pools.speculative.drain_timeout_seconds,
            LONG_PAUSE_S,
        ),
        ("spec.pools.plain.drainTimeoutSeconds", spec.pools.plain.drain_timeout_seconds, LONG_PAUSE_S),
        ("spec.behavior.cooldownSeconds", spec.behavior.cooldown_seconds, LONG_PAUSE_S),
        ("spec.guardrails.moveTimeoutSeconds", spec.guardrails.move_timeout_seconds, LONG_PAUSE_S),
    ]
    for field, value, most in values:
        if value is not None and value > most:
            yield Finding(field, f"is {value:g}, more than {most:g} seconds; is this milliseconds?")


def _times(policy: CapacityPolicy, parts: Readable) -> Iterator[Finding]:
    """A move that is given up before its drain is late."""
    most = policy.spec.guardrails.move_timeout_seconds
    for role, pool in parts.pools.items():
        drain = pool.drain_timeout_seconds
        # A longer one is warned about as a unit mistake already.
        if most < drain <= LONG_PAUSE_S:
            yield Finding(
                "spec.guardrails.moveTimeoutSeconds",
                f"is {most:g}, below drainTimeoutSeconds {drain:g} of {role}: "
                "a move is given up while its replicas may still finish their answers",
            )


def _surge(policy: CapacityPolicy, parts: Readable) -> Iterator[Finding]:
    surge = policy.spec.surge_slots
    for role, pool in parts.pools.items():
        if 0 < surge < pool.accelerators_per_replica:
            yield Finding(
                "spec.surgeSlots",
                f"is {surge}, below acceleratorsPerReplica {pool.accelerators_per_replica} of {role}: "
                "alone it lets no replica of that pool start",
            )


def _lowered(parts: Readable) -> Iterator[Finding]:
    """Schedules that take away what an earlier one asks for while both hold.

    One that lies wholly within the earlier one is an exception from it, and meant.
    """
    scheduled = [layer for layer in layers(parts, None) if layer.schedule is not None]
    for earlier, later in combinations(scheduled, 2):
        for role, bounds in later.bounds.items():
            asked = earlier.bounds[role].minimum if role in earlier.bounds else None
            low, high = bounds.minimum, bounds.maximum
            less = next((b for b in (low, high) if b is not None and asked and b.value < asked.value), None)
            if asked is not None and less is not None and _overlap(earlier, later):
                one, other = later.by.removeprefix("schedule "), earlier.by.removeprefix("schedule ")
                yield Finding(
                    less.field,
                    f"is {less.value}, below minReplicas {asked.value} of {other}: "
                    f"{one} lowers what {other} asks while both hold; the later one wins",
                )


def _overlap(earlier: Layer, later: Layer) -> bool:
    one, other = later.schedule, earlier.schedule
    return one is not None and other is not None and later.meets(earlier) and not always_within(one, other)


def _schedules(parts: Readable) -> Iterator[Finding]:
    """Schedules that change no bound, whatever else holds."""
    own = base(parts.pools)
    touched: set[Role] = set()  # by an earlier schedule, whose bounds a later one may put back
    for layer in layers(parts, None):
        if layer.schedule is None:
            continue
        after = apply(layer, own)
        if not any(role in touched or _differ(after[role], own[role]) for role in layer.bounds):
            yield Finding(layer.field, f"{layer.by} changes nothing: its bounds are the pools' own")
        touched |= set(layer.bounds)


def _differ(one: Bounds, other: Bounds) -> bool:
    return any(
        mine is not None and theirs is not None and mine.value != theirs.value
        for mine, theirs in ((one.minimum, other.minimum), (one.maximum, other.maximum))
    )
