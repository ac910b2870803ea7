"""The sections of a simulation's report behind the answer."""

from __future__ import annotations

from app.cli.output import printable
from app.report.blocks import Block, Heading, Plot, Points, Section, Table, Text
from app.report.words import name, plain_number
from app.simulation.report.judged import KEPT
from app.simulation.report.match import Match
from app.simulation.report.over_time import resolution
from app.simulation.report.plots import ATTAINMENT, MOST, TPOT, TRADE, capacity_key, plot_names, shown
from app.simulation.report.rows import (
    MATCH_HEAD,
    RATE_HEAD,
    REQUEST_HEAD,
    TIER_HEAD,
    cost_cells,
    match_rows,
    move_cells,
    policy_cells,
    policy_head,
    promises_rows,
    rate_rows,
    request_cells,
    tier_rows,
)
from app.simulation.report.subject import Subject

FOLDED_FROM = 15  # moves from which their table is closed at first
COST_HEAD = ("accelerator-hours", "of it switching", "answer tokens per accelerator-hour")
MOVE_HEAD = ("since the beginning", "what", "why", "ended as", "took")


def side_by_side(subject: Subject) -> Section:
    """What was promised, what callers got, and what it took."""
    promised = tuple((f"{row}.",) for row in promises_rows(subject))
    blocks: list[Block] = [Text(("What each tier is promised:",)), Points(promised)]
    if asked := rate_rows(subject):
        blocks.append(Table("What callers ask for", RATE_HEAD, asked))
    blocks.append(_callers(subject))
    rows = tuple((name(one), *policy_cells(subject, one)) for one in subject.scores)
    blocks.append(Table("What it took", (subject.kind, *policy_head(subject)), rows))
    if TRADE in plot_names(subject):
        blocks.append(Plot(TRADE, "Higher is better for callers, further right is more work done."))
    meant = tuple((f"{name(one)}: {subject.words[one]}.",) for one in subject.scores if one in subject.words)
    if meant:
        blocks += [Text(("What the names stand for:",)), Points(meant)]
    return Section("side-by-side", "What callers got, and what it took", blocks)


def _callers(subject: Subject) -> Table:
    rows: list[tuple[str, ...]] = []
    bad = set()
    for one in subject.scores:
        for row in tier_rows(subject, one):
            if row.late:
                bad.add((len(rows), 2))
            # How many were refused stands with the other counts.
            counts = request_cells(subject, one, row.tier)
            rows.append((name(one), row.tier.value, *row.cells[:-1], *counts))
    head = (subject.kind, "tier", *TIER_HEAD[:-1], *REQUEST_HEAD)
    return Table("What callers got", head, tuple(rows), frozenset({0, 1}), bad=frozenset(bad))


def matching(found: Match) -> Section:
    """How near the simulation comes to what was recorded, and whether it may be trusted."""
    blocks: list[Block] = [
        Text(found.sentences),
        Table("Simulated and recorded", MATCH_HEAD, match_rows(found)),
    ]
    return Section("match", "How near the simulation comes to the record", blocks)


def pools(subject: Subject) -> Section:
    """Demand, capacity and replicas over time, for each policy."""
    blocks: list[Block] = [
        Text(
            (
                "Where demand is above the grey area, requests wait, go to the other pool or are refused.",
                "A triangle marks where a move begins; the replica serves when the pool's replicas grow.",
            )
        )
    ]
    names, drawn = shown(subject), plot_names(subject)
    for at, one in enumerate(names):
        if len(names) > 1:
            blocks.append(Heading(name(one)))
        if capacity_key(at) in drawn:
            blocks.append(Plot(capacity_key(at), resolution(subject.scores[one])))
        else:
            blocks.append(Text((f"The pools of {name(one)} over time are not known.",)))
    return Section("pools", "Demand and capacity over time", blocks + _left_out(subject))


def over_time(subject: Subject) -> Section:
    """Attainment and time per token over time."""
    drawn = plot_names(subject)
    blocks: list[Block] = []
    if ATTAINMENT in drawn:
        blocks.append(Plot(ATTAINMENT, f"The dashed line is what an objective promises: {KEPT:.0%} in time."))
    if TPOT in drawn:
        blocks.append(Plot(TPOT, "The dashed line is the objective of the tier, where it has one."))
    if blocks:
        said = resolution(subject.scores[subject.asked])
        blocks = [Text((said, "There is a gap where no request arrived.")), *blocks]
    else:
        blocks.append(Text(("No request was answered, so there is nothing to show over time.",)))
    return Section("over-time", "In time, and time per token, over time", blocks + _left_out(subject))


def moves(subject: Subject) -> Section:
    """Every move of every policy, with its reason."""
    blocks: list[Block] = []
    for one, scores in subject.scores.items():
        if not scores.moves:
            blocks.append(Text((f"{name(one)} moved nothing.",)))
            continue
        rows = tuple(move_cells(move) for move in scores.moves)
        caption = f"{name(one)}: {len(rows)} move{'' if len(rows) == 1 else 's'}"
        words = frozenset(range(len(MOVE_HEAD) - 1))
        blocks.append(Table(caption, MOVE_HEAD, rows, words, folded=len(rows) >= FOLDED_FROM))
    return Section("moves", "Moves of capacity, and why", blocks)


def cost(subject: Subject) -> Section:
    """Accelerator-hours, and with a price what they cost."""
    price = subject.price_per_hour
    if price is None:
        head: tuple[str, ...] = (subject.kind, *COST_HEAD)
        said = "Give the price of one accelerator-hour with --accelerator-hour-price to see costs."
    else:
        head = (subject.kind, *COST_HEAD, "cost", "cost per million tokens")
        said = f"One accelerator-hour costs {plain_number(price)}; costs are in the currency of that price."
    rows = tuple(cost_cells(subject, one) for one in subject.scores)
    blocks: list[Block] = [Text((said,)), Table("Accelerators and answer tokens", head, rows)]
    return Section("cost", "What it costs", blocks)


def model(subject: Subject) -> Section:
    """What was simulated, and what rests on models."""
    blocks: list[Block] = [
        Points(tuple((f"{printable(part)}.",) for part in subject.about)),
        Text(
            (
                "Routing, waiting and decisions follow the service's own rules; engines are models.",
                "They take the time that their profile says, so a profile that is off makes everything here "
                "off.",
                "Hold it against a measurement on your machines before you act on a small difference.",
            )
        ),
    ]
    return Section("model", "What was simulated, and how far to trust it", blocks)


def _left_out(subject: Subject) -> list[Block]:
    left = len(subject.scores) - MOST
    if left <= 0:
        return []
    return [
        Text(
            (
                f"The plots show the first {MOST} {'sizes' if subject.sizes else 'policies'}; {left} more "
                "are in the tables.",
            )
        )
    ]
