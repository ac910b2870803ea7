"""What was simulated, on a terminal: one row for each policy and tier."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from app.cli.output import printable
from app.simulation.report.rows import TIER_HEAD, policy_cells, policy_head, tier_rows
from app.simulation.report.subject import Subject


def table(subject: Subject) -> Table:
    """Policies one below the other; a tier that missed its objective is marked with `missed`, in red."""
    head = policy_head(subject)
    found = Table(box=None, pad_edge=False)
    found.add_column(subject.kind, overflow="fold")
    found.add_column("tier")
    for column in (*TIER_HEAD, *head):
        found.add_column(column, justify="right")
    for one in subject.scores:
        rows = tier_rows(subject, one)
        cells = policy_cells(subject, one)
        for at, row in enumerate(rows):
            in_time, *others = row.cells
            mark = Text(f"{in_time} missed" if row.late else in_time, style="red" if row.late else "")
            found.add_row(
                Text(printable(one) if at == 0 else ""),
                row.tier.value,
                mark,
                *others,
                *(cells if at == 0 else ("",) * len(cells)),
            )
        if not rows:
            found.add_row(Text(printable(one)), *("-",) * (1 + len(TIER_HEAD)), *cells)
    return found
