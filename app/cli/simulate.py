"""`twinpool simulate`: a policy on a trace, before it touches an accelerator."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import simulated, simulated_report, simulated_run, simulated_sizes, simulated_words, valid_policy
from app.cli.output import AsJson, Output, fail, fail_as_said, wants_json
from app.cli.simulation_options import (
    IngressesOption,
    KindOption,
    OutOption,
    PolicyArgument,
    PriceOption,
    ProfileOption,
    SeedOption,
    StartOption,
)
from autoscaling.policy import CapacityPolicy

if TYPE_CHECKING:
    from app.simulation.compared import Entry

OWN = "twinpool"  # the contender that the policy itself is
FORESIGHT = frozenset({"hindsight"})
FIRST_YEAR = 1980  # before it schedules and zones are not looked at
TRACES = (
    "The requests: generated:conversation (5.5 a second), generated:code (2.6), generated:mixed or "
    "generated:day (8.1), azure:FILE, mooncake:FILE or records:DIR; behind it, with commas: hours=0.5 keeps "
    "half "
    "an hour, from=1 leaves out the first hour, rate=4 brings four times the requests in the same time, "
    "stretch=0.5 brings them in half the time, tiers=interactive:0.6/batch:0.4 gives them tiers, and for "
    "azure "
    "and mooncake tier=batch, workload=chat. Without tier or tiers all but those of records are interactive."
)


def simulate(
    policy: PolicyArgument,
    trace: Annotated[str, typer.Option("--trace", metavar="SPEC", help=TRACES)],
    profile: ProfileOption = None,
    replicas: Annotated[
        str | None,
        typer.Option(
            "--replicas",
            metavar="N",
            help="The policy at another size: so many replicas of both pools together, with budget, bounds, "
            "first sizes and steps in proportion; several with commas, such as 2,4,6, to find the smallest "
            "that keeps every objective. (default: as many as budget.max holds)",
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against",
            metavar="NAME",
            help="Run this beside it, more with commas: all-plain, all-speculative, one-pool-k-table, "
            "one-pool-k-table-our-routing, static-25, static-50, static-75, threshold, hpa-like, "
            "dynamo-like, hindsight.",
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="TIME",
            help="When the trace begins, such as 2027-01-04T08:00:00+01:00, for schedules and overrides. "
            "(default: Monday 2027-01-04, 00:00 UTC)",
        ),
    ] = None,
    seed: SeedOption = 1,
    start_seconds: StartOption = None,
    ingresses: IngressesOption = 1,
    model: KindOption = None,
    accelerator_hour_price: PriceOption = None,
    out: OutOption = None,
    output: Output = "text",
    as_json: AsJson = False,
) -> None:
    """Simulate a service under a policy: what callers would get, how capacity would move, what it would cost.

    Needs no service and no accelerator: routing and capacity decisions are the service's own code, engines
    are models.
    Exit codes: 0 the policy keeps every objective, of several sizes at one of them; 1 it misses one; 2 it
    cannot be simulated; 130 after Ctrl-C.
    """
    wanted_json = wants_json(output, as_json)
    simulated.above_zero("--start-seconds", start_seconds)
    simulated.above_zero("--accelerator-hour-price", accelerator_hour_price)
    wall = None if at is None else _wall(at)
    sizes = simulated_sizes.sizes_of(replicas)
    if len(sizes) > 1 and against:
        fail("--against stands beside one size", "name one with --replicas, or leave --against out")
    given = valid_policy.of_file(policy)
    # scipy is heavy
    from app.simulation.compared import MONDAY, Ground, Model, delays_of, model_for  # noqa: PLC0415
    from app.simulation.report.subject import Subject, promises_of  # noqa: PLC0415
    from app.simulation.scaled_policy import SizeError, scaled  # noqa: PLC0415
    from app.simulation.traces.errors import TraceError  # noqa: PLC0415
    from app.simulation.traces.rates import rates  # noqa: PLC0415

    begins = MONDAY if wall is None else wall
    engines = simulated.named_engines(profile).engines
    notes: list[str] = []
    try:
        policies = {size: scaled(given, size, begins) for size in sizes}
        wanted = next(iter(policies.values()), given)
        kinds = {model_for(one) for one in policies.values() or [given]}
        # The same for all sizes, since one may be a little better than the other.
        kind = simulated.model_of(model, Model.FLUID if Model.FLUID in kinds else Model.EVENT)
        if len(sizes) > 1:
            entries = simulated_sizes.entries_of(policies, begins)
        else:
            entries = _entries(wanted, against or [], begins, fluid=kind is Model.FLUID)
        simulated_report.make_folder(out)
        with simulated_run.telling() as showing:
            requests = simulated_run.trace_of(trace, seed, notes.append, showing)
            ground = Ground(engines, requests, delays_of(engines, start_seconds), seed, ingresses, begins)
            simulated.some_fit(ground)
            found = simulated_run.run_all(entries, ground, kind, showing)
    except SizeError as error:
        place = policy if replicas is None else "--replicas"
        fail_as_said(str(place), error)
    except TraceError as error:
        fail(f"--trace: {error}", "`twinpool simulate --help` shows how traces are written")
    except ValueError as error:
        fail_as_said("this cannot be simulated", error)
    except KeyboardInterrupt:
        raise typer.Exit(simulated.INTERRUPTED) from None
    if len(sizes) == 1:
        notes.append(_scaled_words(given, wanted))
    subject = Subject(
        title=f"Simulation of the policy {given.metadata.name}",
        about=simulated_words.about(trace, [*policies.values()] or [given], ground, kind),
        scores=found,
        promises=promises_of(wanted),
        rates=rates(ground.trace, ground.trace_s),
        words={entry.name: entry.contender.words for entry in entries},
        notes=(*notes, *simulated_words.notes(wanted, ground)),
        foresight=FORESIGHT & set(found),
        price_per_hour=accelerator_hour_price,
    )
    if len(sizes) > 1:
        subject = simulated_sizes.sized(subject, policies)
    simulated_report.end(subject, out, wanted_json)


def _entries(policy: CapacityPolicy, against: Sequence[str], wall: float, *, fluid: bool) -> list[Entry]:
    """The policy itself, then the others in the order in which they are named, each once."""
    from app.simulation.compared import EVENT_UP_TO, Entry, first_sizes  # noqa: PLC0415
    from app.simulation.contenders import CONTENDERS  # noqa: PLC0415

    others = [name for name in CONTENDERS if name != OWN]
    names = list(dict.fromkeys(name.strip() for part in against for name in part.split(",")))
    for name in names:
        if name not in others:
            fail(f"--against {name}: is not known", f"name some of {', '.join(others)}")
        if fluid and not CONTENDERS[name].fluid:
            able = ", ".join(other for other in others if CONTENDERS[other].fluid)
            fail(
                f"--against {name}: it routes or moves capacity in another way than twinpool, which the "
                "fluid model cannot",
                f"name some of {able}, or write --model event with {EVENT_UP_TO} replicas or fewer",
            )
    own = policy.metadata.name
    if own in names:
        own = f"{own} (the policy)"
    return [
        Entry(own, CONTENDERS[OWN], policy, first_sizes(policy, wall)),
        *(Entry(name, CONTENDERS[name], policy) for name in names),
    ]


def _wall(text: str) -> float:
    moment: datetime | None = None
    with contextlib.suppress(ValueError):
        moment = datetime.fromisoformat(text)
    if moment is None or moment.tzinfo is None or moment.year < FIRST_YEAR:
        fail(
            f"--at {text}: is no time with a zone from {FIRST_YEAR} on",
            "write it as 2027-01-04T08:00:00Z or ...+01:00",
        )
    return moment.timestamp()


def _scaled_words(given: CapacityPolicy, wanted: CapacityPolicy) -> str:
    from app.simulation.scaled_policy import replicas_of, size_words  # noqa: PLC0415

    return (
        f"The policy is for {replicas_of(given)} replicas and was scaled to {replicas_of(wanted)}: "
        f"{size_words(wanted)}."
    )
