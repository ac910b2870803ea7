"""From the outcomes of `benchmarks.nodes` to figures, verdicts and a page; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from autoscaling.types import Role
from benchmarks.nodes_outcome import Outcome
from benchmarks.nodes_plan import DRAIN_S, LONGEST_S, MOVE_DELAY_S, SIZES, SLOTS
from benchmarks.nodes_streams import SILENCE_LIMIT_S
from benchmarks.results import Target, markdown_table, number

PLANNED: Final = ("move", "drain", "sigterm", "head_restart")
CRASHES: Final = ("node_killed", "node_silent")
RESTORED: Final = ("targets", "policy", "audit")
FRONT_KILLED: Final = "front_killed"
TITLES: Final[Mapping[str, str]] = {
    "move": "moves between the pools, across nodes",
    "drain": "node drained, with a deadline",
    "sigterm": "SIGTERM for a node",
    "node_killed": "node killed",
    "node_silent": "node silent, no reset",
    "head_restart": "head and controller killed, head back on its Redis",
    FRONT_KILLED: "front killed",
}
TOLD_LIMIT_S: Final = 25.0  # until a stream of a silent node is ended: 20 s, and what a busy machine adds
COLUMNS: Final = (
    "event",
    "in flight",
    "of these on what was hit",
    "lost",
    "ended by an error event",
    "cut without a word",
    "hanging",
    "not served",
    "last error event after s",
    "longest silence s",
    "fewest serving",
    "recovery s",
)

SHORT: Final = ("event", "in flight", "lost", "told", "hanging", "recovery s")


def targets(names: Sequence[str]) -> dict[str, Target]:
    """What must hold of the events that were asked for."""
    found: dict[str, Target] = {}
    for name in names:
        found[f"{name}_hung"] = ("==", 0.0)
        if name in PLANNED:
            found[f"{name}_lost"] = ("==", 0.0)
        if name in CRASHES:
            found |= {
                f"{name}_at_risk": (">=", 1.0),  # else it shows nothing
                f"{name}_lost_elsewhere": ("==", 0.0),
                f"{name}_cut": ("==", 0.0),
                f"{name}_silence_s": ("<=", TOLD_LIMIT_S),
            }
    replicas = float(sum(SIZES.values()))
    extra: dict[str, dict[str, Target]] = {
        "move": {
            "move_nodes_added": ("==", 0.0),
            "move_pending_s": ("<=", MOVE_DELAY_S),
            "move_pending_after": ("==", 0.0),
        },
        # A replacement is up before a replica goes.
        "drain": {"drain_fewest_serving": (">=", replicas), "drain_node_gone_s": ("<=", DRAIN_S)},
        "sigterm": {"sigterm_fewest_serving": (">=", replicas), "sigterm_node_gone_s": ("<=", DRAIN_S)},
        "head_restart": {
            f"head_restart_{what}_restored": ("==", 1.0) for what in ("targets", "policy", "audit")
        },
    }
    for name in names:
        found |= extra.get(name, {})
    return found


def figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """All figures, by event."""
    found: dict[str, float | None] = {}
    for one in outcomes:
        values = {
            "in_flight": one.in_flight,
            "at_risk": one.at_risk,
            "lost": one.lost,
            "told": one.told,
            "cut": one.cut,
            "hung": one.hung,
            "lost_elsewhere": one.elsewhere,
            "not_served": one.not_served,
            "requests": one.requests,
            "told_after_s": one.told_after_s,
            "silence_s": one.silence_s,
            "fewest_serving": one.least_serving,
            "recovery_s": one.recovery_s,
            **one.more,
        }
        found |= {f"{one.event}_{name}": value for name, value in values.items()}
    return {name: round(float(value), 3) for name, value in found.items() if value is not None}


def rows(outcomes: Sequence[Outcome]) -> list[list[str]]:
    """One row per event."""
    return [
        [
            TITLES[one.event],
            str(one.in_flight),
            str(one.at_risk),
            str(one.lost),
            str(one.told),
            str(one.cut),
            str(one.hung),
            str(one.not_served),
            number(one.told_after_s),
            number(one.silence_s),
            "-" if one.least_serving is None else str(one.least_serving),
            number(one.recovery_s),
        ]
        for one in outcomes
    ]


def short_rows(outcomes: Sequence[Outcome]) -> list[list[str]]:
    """The columns that a terminal has room for."""
    return [
        [one.event, *map(str, (one.in_flight, one.lost, one.told, one.hung)), number(one.recovery_s)]
        for one in outcomes
    ]


def page(outcomes: Sequence[Outcome], front: str) -> str:
    """The Markdown above the verdicts."""
    method = METHOD.format(
        front={"haproxy": "HAProxy", "proxy": "Ray Serve's own proxy"}[front],
        replicas=" and ".join(f"{SIZES[role]} {role.value}" for role in Role),
        slots=SLOTS,
        longest=LONGEST_S,
        delay=MOVE_DELAY_S,
        drain=DRAIN_S,
        silence=SILENCE_LIMIT_S,
    )
    return f"{method}\n\n{markdown_table(COLUMNS, rows(outcomes))}"


METHOD = """What becomes of open streams when nodes move, leave, die or fall silent.

*Cluster*: `ray start --block` five times, each in a network namespace with an address of its own:
a head without work, a node with two ingresses, the controller and the front ({front}), and three nodes
with {slots} engine slots.
{replicas} replicas with the simulated engine take four of the six slots.
What is free stands for the node that a cluster would bring.
*Timings*: longest generation {longest:.0f} s, move delay {delay:.0f} s; Ray's drain is their sum and 30 s,
{drain:.0f} s.
*Streams*: callers outside the cluster keep interactive and batch answers of 4 to 8 s open, through each event
and until all is as before.
A stream is lost when its caller did not get every token and the closing event.
It hangs when nothing comes for {silence:.0f} s.
*Recovery*: from the event until both pools have all their replicas, and none of these on what was hit.
For moves it is the slowest of three.
For the head it is until an edit of the policy, made while there was no head, has moved a replica; for the
front until it answers.
"""
