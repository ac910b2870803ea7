"""`twinpool replay`: what another policy would have brought on the requests that a service recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from app.cli import simulated, simulated_report, simulated_run, simulated_words, valid_policy
from app.cli.output import AsJson, Output, fail, fail_as_said, wants_json
from app.cli.simulation_options import (
    IngressesOption,
    KindOption,
    LogOption,
    OutOption,
    PolicyArgument,
    PriceOption,
    ProfileOption,
    SeedOption,
    StartOption,
)
from autoscaling.policy import CapacityPolicy
from autoscaling.types import Tier

if TYPE_CHECKING:
    from app.simulation.log.read import Log

OWN = "twinpool"  # the contender that the policy itself is
RECORDED = "recorded"


def replay(
    policy: PolicyArgument,
    log: LogOption = None,
    profile: ProfileOption = None,
    seed: SeedOption = 1,
    start_seconds: StartOption = None,
    ingresses: IngressesOption = 1,
    model: KindOption = None,
    accelerator_hour_price: PriceOption = None,
    out: OutOption = None,
    output: Output = "text",
    as_json: AsJson = False,
) -> None:
    """Simulate the requests of a record folder under a policy, beside what really happened.

    The simulation begins with the replicas that the service had.  Without --profile a profile.json in the
    folder says how fast the engines are.
    Exit codes: 0 the policy would have kept every objective; 1 it would have missed one; 2 it cannot be
    simulated; 130 after Ctrl-C.
    """
    wanted_json = wants_json(output, as_json)
    simulated.above_zero("--start-seconds", start_seconds)
    simulated.above_zero("--accelerator-hour-price", accelerator_hour_price)
    wanted = valid_policy.of_file(policy)
    if log is None:
        fail("--log is missing", "name the folder of `twinpool serve --record DIR`")
    from app.simulation.compared import Entry, Ground, delays_of, first_sizes, model_for  # noqa: PLC0415
    from app.simulation.contenders import CONTENDERS  # noqa: PLC0415
    from app.simulation.log.again import share_made_again  # noqa: PLC0415
    from app.simulation.log.read import PROFILE, read_log  # noqa: PLC0415
    from app.simulation.log.reality import what_happened  # noqa: PLC0415
    from app.simulation.report.match import match  # noqa: PLC0415
    from app.simulation.report.subject import Subject, promises_of  # noqa: PLC0415
    from app.simulation.scaled_policy import SizeError  # noqa: PLC0415
    from app.simulation.score import objective_of  # noqa: PLC0415
    from app.simulation.traces.errors import TraceError  # noqa: PLC0415
    from app.simulation.traces.rates import rates  # noqa: PLC0415

    named = simulated.named_engines(profile, log / PROFILE)
    engines = named.engines
    own = wanted.metadata.name if wanted.metadata.name != RECORDED else f"{RECORDED} (the policy)"
    try:
        kind = simulated.model_of(model, model_for(wanted))
        simulated_report.make_folder(out)
        with simulated_run.telling() as showing:
            showing.wait(f"reading {log}", "all of it is read first")
            found = read_log(log)
            arrivals = found.requests.arrivals
            ground = Ground(
                engines, arrivals, delays_of(engines, start_seconds), seed, ingresses, found.began
            )
            simulated.some_fit(ground)
            sizes = found.first_targets() or first_sizes(wanted, found.began)
            entry = Entry(own, CONTENDERS[OWN], wanted, sizes)
            scores = simulated_run.run_all([entry], ground, kind, showing)
            showing.say("comparing with what was recorded")
            promised = {tier: objective_of(wanted, tier) for tier in Tier}
            happened = what_happened(found, ground.trace_s, engines.accelerators, promised)
            same = None if happened is None else share_made_again(found, wanted, named.profile)
    except SizeError as error:
        fail_as_said(str(policy), error)
    except TraceError as error:
        fail(f"--log: {error}", "name the folder of `twinpool serve --record DIR`")
    except ValueError as error:
        fail_as_said("this cannot be simulated", error)
    except KeyboardInterrupt:
        raise typer.Exit(simulated.INTERRUPTED) from None
    promises = promises_of(wanted)
    subject = Subject(
        title=f"What the policy {wanted.metadata.name} would have brought",
        about=simulated_words.about(f"records:{log}", [wanted], ground, kind),
        scores=scores if happened is None else {**scores, RECORDED: happened},
        promises=promises,
        rates=rates(ground.trace, ground.trace_s),
        words={
            own: "the policy, simulated on the requests that the engines had run",
            RECORDED: "what really happened, every answer judged by the objectives of this policy",
        },
        notes=(
            *_notes(found, wanted, happened=happened is not None),
            *simulated_words.notes(wanted, ground),
        ),
        match=None if happened is None else match(scores[own], happened, promises, same),
        recorded=frozenset() if happened is None else frozenset({RECORDED}),
        price_per_hour=accelerator_hour_price,
    )
    simulated_report.end(subject, out, wanted_json)


def _notes(log: Log, policy: CapacityPolicy, *, happened: bool) -> list[str]:
    from app.simulation.scaled_policy import replicas_of  # noqa: PLC0415

    found = [f"Of the recorded requests, {sentence}." for sentence in log.requests.sentences()]
    found += [f"{note[0].upper()}{note[1:]}." for note in log.notes]
    most, size = log.most_replicas(), replicas_of(policy)
    if most is not None and most != size:
        found.append(
            f"The service had at most {most} replicas while it recorded, and the policy's budget holds "
            f"{size}: "
            "what differs from the record is that, too."
        )
    if not happened:
        found.append("The folder has no observations, so what really happened is not shown.")
    return found
