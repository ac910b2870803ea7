"""The running demo as a picture or as lines, from plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from app.cli.output import labelled, printable, show, table
from app.demo.answers import Answer, Phase
from app.demo.plan import SAYS
from app.demo.seen import MoveSeen, PoolSeen
from autoscaling.types import Tier

SENDING = [phase for phase in Phase if phase is not Phase.FINISHING]
MOVES_SHOWN = 3
RATE_WINDOW_S = 10.0  # of the tokens per second
FREE = "budget"  # where a move's replicas come from or go to when it is no pool
COUNTS = ("in flight", "done", "refused", "failed")


@dataclass(frozen=True, slots=True)
class TierNow:
    """One tier at this moment: what is open, what ended so far, and the tokens of late."""

    tier: Tier
    in_flight: int
    done: int
    refused: int
    failed: int
    tokens_per_s: float


@dataclass(frozen=True, slots=True)
class View:
    """What there is to show of a running demo."""

    phase: Phase
    left_s: float
    tiers: tuple[TierNow, ...]
    pools: tuple[PoolSeen, ...]
    moves: tuple[MoveSeen, ...]
    looks: bool  # whether the status came at the last look
    copied: int  # timed answers of the copying task


def tiers_now(answers: Sequence[Answer], in_flight: Mapping[Tier, int], now_s: float) -> tuple[TierNow, ...]:
    """Each tier `now_s` seconds after the beginning; tokens count when their answer has ended."""
    begin = max(0.0, now_s - RATE_WINDOW_S)
    found = []
    for tier in Tier:
        own = [one for one in answers if one.tier is tier]
        late = [one.tokens or 0 for one in own if one.began_s + one.e2e_s >= begin]
        found.append(
            TierNow(
                tier,
                in_flight=in_flight[tier],
                done=sum(one.answered for one in own),
                refused=sum(one.refused for one in own),
                failed=sum(one.failed for one in own),
                tokens_per_s=sum(late) / max(now_s - begin, 1.0),
            )
        )
    return tuple(found)


def picture(view: View) -> RenderableType:
    """The panel that is drawn again and again."""
    parts: list[RenderableType] = [
        Text(SAYS[view.phase]),
        table(
            ("tier", *COUNTS, "tok/s"),
            (
                (
                    one.tier,
                    *map(str, (one.in_flight, one.done, one.refused, one.failed)),
                    f"{one.tokens_per_s:.0f}",
                )
                for one in view.tiers
            ),
        ),
        labelled(("pool", Text(pool_words(pool))) for pool in view.pools),
    ]
    if view.phase is Phase.QUIET:
        parts.append(labelled([("copying", Text(f"{view.copied} answers timed"))]))
    if view.moves:
        newest = view.moves[:MOVES_SHOWN]
        parts.append(labelled(("moves", Text(move_words(move))) for move in newest))
    if not view.looks:
        parts.append(Text("the status does not come", style="yellow"))
    return Panel(Group(*parts), title=heading(view.phase, view.left_s), title_align="left")


def heading(phase: Phase, left_s: float) -> str:
    """Such as `2 of 4, mixed, 41 s left`."""
    number = f"{SENDING.index(phase) + 1} of {len(SENDING)}, " if phase in SENDING else ""
    return f"{number}{phase}, {'at most ' if not number else ''}{left_s:.0f} s left"


def announcement(view: View) -> str:
    """The line that begins a phase."""
    return f"{heading(view.phase, view.left_s)}: {SAYS[view.phase]}"


def progress(view: View) -> str:
    """One line of where the demo stands, for an output that cannot be redrawn."""
    tiers = "; ".join(
        f"{one.tier} {one.in_flight} open, {one.done} done"
        + (f", {one.refused} refused" if one.refused else "")
        + (f", {one.failed} failed" if one.failed else "")
        + f", {one.tokens_per_s:.0f} tok/s"
        for one in view.tiers
    )
    pools = "; ".join(pool_words(pool) for pool in view.pools)
    moves = "" if not view.moves else f" | move {move_words(view.moves[0])}"
    if view.phase is Phase.QUIET:
        tiers += f" | copying task: {view.copied} answers timed"
    return f"  {view.left_s:.0f} s left | {tiers} | {pools or 'no status'}{moves}"


def pool_words(pool: PoolSeen) -> str:
    """Such as `plain 2 of 3 replicas`."""
    return printable(f"{pool.name} {show(pool.running)} of {show(pool.target)} replicas")


def move_words(move: MoveSeen) -> str:
    """Such as `m4 draining: 1 replica from plain to speculative, shortfall`."""
    noun = "replica" if move.count == 1 else "replicas"
    way = f"from {move.source or FREE} to {move.receiver or FREE}"
    return printable(f"{move.id} {move.state}: {show(move.count)} {noun} {way}, {move.reason}")
