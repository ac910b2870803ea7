"""The part of `twinpool policy diff` for a log: decisions that differ, and both policies simulated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from app.bench.progress import Showing
from app.cli import simulated, simulated_report
from app.cli.output import fail, printable, table
from autoscaling.instants import rfc3339
from autoscaling.policy import CapacityPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.simulation.log.difference import LogDifference
    from app.simulation.log.read import Log
    from app.simulation.report.subject import Subject

OWN = "twinpool"  # the contender that a policy itself is
MOST_SHOWN = 20  # rows of a table; JSON has more
OLD, NEW = "old", "new"


@dataclass(frozen=True, slots=True)
class OnLog:
    """What differs on a log, and both policies simulated on its requests where the engines are known."""

    log: Log
    difference: LogDifference
    simulation: Subject | None

    def document(self) -> dict[str, Any]:
        """For programs."""
        from app.simulation.log.difference import as_json as decisions_json  # noqa: PLC0415
        from app.simulation.report.document import as_json  # noqa: PLC0415

        simulation = None if self.simulation is None else as_json(self.simulation, series=False)
        return decisions_json(self.difference) | {"simulation": simulation}


def on_log(folder: Path, old: CapacityPolicy, new: CapacityPolicy, profile: str | None) -> OnLog:
    """Make every decision of a log again under both policies; ends the command where the log cannot be read.

    `profile` names the engines; without it a profile.json in the folder does, and without one nothing is
    simulated.
    """
    from app.simulation.log.difference import difference  # noqa: PLC0415  # scipy is heavy
    from app.simulation.log.read import PROFILE, read_log  # noqa: PLC0415
    from app.simulation.log.routes import how_many  # noqa: PLC0415
    from app.simulation.traces.errors import TraceError  # noqa: PLC0415

    beside = folder / PROFILE
    known = profile is not None or beside.is_file()
    engines = simulated.named_engines(profile, beside) if known else None
    try:
        log = read_log(folder)
        with Showing(Console(stderr=True, highlight=False, soft_wrap=True)) as showing:
            showing.expect(how_many(folder))
            showing.say("requests of the log, decided on again")
            found = difference(
                log, old, new, None if engines is None else engines.profile, lambda _number: showing.done(1)
            )
        simulation = None if engines is None else _simulated(log, old, new, engines)
    except TraceError as error:
        fail(f"--log: {error}", "name the folder of `twinpool serve --record DIR`")
    except KeyboardInterrupt:
        raise typer.Exit(simulated.INTERRUPTED) from None
    return OnLog(log, found, simulation)


def _simulated(log: Log, old: CapacityPolicy, new: CapacityPolicy, engines: simulated.Engines) -> Subject:
    from app.simulation.compared import (  # noqa: PLC0415
        Entry,
        Ground,
        Model,
        delays_of,
        first_sizes,
        model_for,
    )
    from app.simulation.contenders import CONTENDERS  # noqa: PLC0415
    from app.simulation.report.subject import Subject, promises_of  # noqa: PLC0415
    from app.simulation.scaled_policy import SizeError  # noqa: PLC0415

    ground = Ground(engines.engines, log.requests.arrivals, delays_of(engines.engines), wall=log.began)
    simulated.some_fit(ground)
    try:
        kinds = {model_for(old), model_for(new)}
        kind = Model.FLUID if Model.FLUID in kinds else Model.EVENT  # the same for both
        entries = [
            Entry(name, CONTENDERS[OWN], policy, log.first_targets() or first_sizes(policy, log.began))
            for name, policy in ((OLD, old), (NEW, new))
        ]
        scores = simulated.run_all(entries, ground, kind)
    except SizeError as error:
        fail(f"spec of old or new: {error}", "correct the policy, or leave --profile out")
    except ValueError as error:
        fail(f"this cannot be simulated: {error}", "leave --profile out")
    return Subject(
        title="Old and new policy",
        about=(f"records:{log.folder}", f"engines {engines.engines.name}"),
        scores=scores,
        promises=promises_of(new),
        notes=tuple(f"Of the recorded requests, {sentence}." for sentence in log.requests.sentences()),
    )


def show(found: OnLog) -> None:
    """Print the decisions that differ first, then what both policies bring in simulation."""
    from app.simulation.report import table as report  # noqa: PLC0415

    print()
    print(printable(f"on the log {found.log.folder}, whose requests begin at {rfc3339(found.log.began)}:"))
    _show_capacity(found.difference)
    _show_routes(found.difference)
    if found.simulation is None:
        print("\nnothing was simulated: --profile would say how fast the engines are")
        return
    print("\nits requests simulated under both policies:")
    simulated_report.print_wide(report.table(found.simulation))
    for note in found.simulation.notes:
        print(printable(f"note: {note}"))


def _show_capacity(found: LogDifference) -> None:
    from app.simulation.log.difference import capacity_row  # noqa: PLC0415

    again = found.capacity
    print(
        f"\n{again.elsewhere} of {again.remade} observations give other targets, {again.otherwise} only "
        f"another reason; in {again.as_recorded} the old policy has the targets of the record"
    )
    # Stable, so that each half stays sorted by time.
    changes = sorted(again.changes, key=lambda change: not change.moves_differ)
    _table(
        ("time", "lasts", OLD, NEW), [capacity_row(change) for change in changes[:MOST_SHOWN]], len(changes)
    )


def _show_routes(found: LogDifference) -> None:
    from app.simulation.log.difference import route_row  # noqa: PLC0415

    again = found.routes
    print(
        f"\n{again.elsewhere} of {again.remade} routes go to another pool, {again.otherwise} only for "
        f"another reason; in {again.as_recorded} the old policy decides as was recorded"
    )
    for why, count in again.unknown.items():
        print(printable(f"{count} more cannot be made again: {why}"))
    changes = sorted(again.changes, key=lambda change: (change.old.pool is change.new.pool, change.wall))
    total = again.elsewhere + again.otherwise
    _table(("time", "request", "tier", OLD, NEW), [route_row(one) for one in changes[:MOST_SHOWN]], total)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], total: int) -> None:
    if rows:
        simulated_report.print_wide(table(head, rows))
    if total > len(rows):
        print(f"and {total - len(rows)} more; -o json has them")
