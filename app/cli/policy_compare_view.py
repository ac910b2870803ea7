"""What `twinpool policy diff --log` found, on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli.output import printable, table
from app.cli.simulated_report import print_scores, print_wide
from autoscaling.instants import rfc3339

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.cli.policy_compare_log import OnLog
    from app.simulation.report.subject import Subject

MOST_SHOWN = 20  # rows of a table; JSON has more


def show(found: OnLog) -> None:
    """Print the decisions that differ first, then what both policies bring in simulation."""
    old, new = found.names
    print()
    print(printable(f"on the log {found.log.folder}, whose requests begin at {rfc3339(found.log.began)};"))
    print(printable(f"the old policy is {old}, the new one {new}:"))
    _show_capacity(found)
    _show_routes(found)
    if found.simulation is None:
        print("\nnothing was simulated: --profile would say how fast the engines are")
    else:
        print("\nits requests simulated under both policies:")
        _show_simulation(found.simulation)


def _show_capacity(found: OnLog) -> None:
    from app.simulation.log.difference import capacity_row  # noqa: PLC0415

    again = found.difference.capacity
    print(
        f"\n{again.elsewhere} of {again.remade} observations give other targets, {again.otherwise} only "
        f"another reason; in {again.as_recorded} the old policy has the targets of the record"
    )
    # Stable, so that each half stays sorted by time.
    changes = sorted(again.changes, key=lambda change: not change.moves_differ)
    rows = [capacity_row(change) for change in changes[:MOST_SHOWN]]
    _table(("time", "lasts", *found.names), rows, len(changes))


def _show_routes(found: OnLog) -> None:
    from app.simulation.log.difference import kind_row, route_row  # noqa: PLC0415

    again = found.difference.routes
    print(
        f"\n{again.elsewhere} of {again.remade} routes go to another pool, {again.otherwise} only for "
        f"another reason; in {again.as_recorded} the old policy decides as was recorded"
    )
    for why, count in again.unknown.items():
        print(printable(f"{count} more cannot be made again: {why}"))
    if not again.kinds:
        return
    kinds = [kind_row(kind) for kind in again.kinds[:MOST_SHOWN]]
    _table(("requests", "tier", *found.names), kinds, len(again.kinds))
    print("\none example of each:")
    examples = [route_row(kind.first) for kind in again.kinds[:MOST_SHOWN]]
    _table(("time", "request", "tier", *found.names), examples, again.elsewhere + again.otherwise)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], total: int) -> None:
    if rows:
        print_wide(table(tuple(printable(cell) for cell in head), rows))
    if total > len(rows):
        print(f"and {total - len(rows):,} more; -o json has them")


def _show_simulation(simulation: Subject) -> None:
    from app.simulation.report.answer import kept  # noqa: PLC0415
    from app.simulation.report.rows import promises_rows  # noqa: PLC0415

    print("what each tier is promised:")
    for row in promises_rows(simulation):
        print(printable(f"  {row}"))
    for name in simulation.scores:
        print(printable(kept(simulation, name)))
    print_scores(simulation)
    for note in simulation.notes:
        print(printable(f"note: {note}"))
