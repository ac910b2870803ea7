"""The part of `twinpool policy diff` for a log: decisions made again, and both policies simulated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from app.cli import simulated, simulated_run
from app.cli.output import fail, fail_as_said
from autoscaling.policy import CapacityPolicy

if TYPE_CHECKING:
    from app.simulation.log.difference import LogDifference
    from app.simulation.log.read import Log
    from app.simulation.report.subject import Subject

OWN = "twinpool"  # the contender that a policy itself is


@dataclass(frozen=True, slots=True)
class Named:
    """A policy, and the file or the revision that it comes from."""

    place: str
    policy: CapacityPolicy


@dataclass(frozen=True, slots=True)
class OnLog:
    """What differs on a log, and both policies simulated on its requests where the engines are known."""

    log: Log
    names: tuple[str, str]  # of the old and the new policy, for people
    difference: LogDifference
    simulation: Subject | None

    def document(self) -> dict[str, Any]:
        """For programs."""
        from app.simulation.log.difference import as_json as decisions_json  # noqa: PLC0415
        from app.simulation.report.document import as_json  # noqa: PLC0415

        simulation = None if self.simulation is None else as_json(self.simulation, series=False)
        old, new = self.names
        return {"old": old, "new": new} | decisions_json(self.difference) | {"simulation": simulation}


def on_log(folder: Path, old: Named, new: Named, profile: str | None) -> OnLog:
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
    names = names_of(old, new)
    try:
        with simulated_run.telling() as showing:
            showing.wait(f"reading {folder}", "all of it is read first")
            log = read_log(folder)
            showing.expect(how_many(folder))
            showing.say("requests of the log, decided on again")
            found = difference(
                log,
                old.policy,
                new.policy,
                None if engines is None else engines.profile,
                lambda _number: showing.done(1),
            )
        simulation = None if engines is None else _simulated(log, names, old.policy, new.policy, engines)
    except TraceError as error:
        fail(f"--log: {error}", "name the folder of `twinpool serve --record DIR`")
    except KeyboardInterrupt:
        raise typer.Exit(simulated.INTERRUPTED) from None
    return OnLog(log, names, found, simulation)


def names_of(old: Named, new: Named) -> tuple[str, str]:
    """How both are told apart: by their own names, else by where they come from, else as old and new."""
    first, second = old.policy.metadata.name, new.policy.metadata.name
    if first != second:
        return first, second
    if old.place != new.place:
        return f"{first} ({old.place})", f"{second} ({new.place})"
    return f"{first} (old)", f"{second} (new)"


def _simulated(
    log: Log,
    names: tuple[str, str],
    old: CapacityPolicy,
    new: CapacityPolicy,
    engines: simulated.Engines,
) -> Subject:
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
    from app.simulation.traces.rates import rates  # noqa: PLC0415

    try:
        ground = Ground(engines.engines, log.requests.arrivals, delays_of(engines.engines), wall=log.began)
        simulated.some_fit(ground)
        kinds = {model_for(old), model_for(new)}
        kind = Model.FLUID if Model.FLUID in kinds else Model.EVENT  # the same for both
        entries = [
            Entry(name, CONTENDERS[OWN], policy, log.first_targets() or first_sizes(policy, log.began))
            for name, policy in zip(names, (old, new), strict=True)
        ]
        with simulated_run.telling() as showing:
            scores = simulated_run.run_all(entries, ground, kind, showing)
    except SizeError as error:
        fail_as_said("one of the policies cannot be simulated, and --profile asks for it", error)
    except ValueError as error:
        fail_as_said("this cannot be simulated, and --profile asks for it", error)
    return Subject(
        title="Old and new policy",
        about=(f"records:{log.folder}", f"engines {engines.engines.name}"),
        scores=scores,
        promises=promises_of(new),
        rates=rates(ground.trace, ground.trace_s),
        own_promises={names[0]: promises_of(old)},
        notes=tuple(f"Of the recorded requests, {sentence}." for sentence in log.requests.sentences()),
    )
