"""`twinpool bench`: measure both engines, fit what they cost, and say what follows from it."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console

from app.bench.alone import BusyError, this_folder, this_machine
from app.bench.engine_process import BenchEngineError
from app.bench.prompts import PromptsError, for_both, read_prompts
from app.bench.store import (
    HELD,
    HTML,
    MARKDOWN,
    MEASUREMENT,
    PROFILE,
    StoreError,
    new_folder,
    prepare_folder,
    read_measurement,
    read_prior,
    write_measurement,
)
from app.cli.bench_options import (
    BadOptionError,
    check_engine,
    check_price,
    mix_of,
    nothing_to_measure,
    what_is_asked,
)
from app.cli.bench_policy import promised
from app.cli.bench_run import broken_off, endable, kept, measure, tell
from app.cli.checks import CannotServe
from app.cli.engine_options import EngineOption, ModelOption, SpeculationOption
from app.cli.output import CANNOT_TELL, AsJson, Output, path_of, print_json, printable, wants_json
from app.cli.settings import Options, SettingsError, load
from autoscaling.profiling.measured import Measurement

if TYPE_CHECKING:
    from app.bench.outcome import Outcome

FILES = (MEASUREMENT, PROFILE, HTML, MARKDOWN)
INTERRUPTED = 130  # as a shell says of a command that Ctrl-C ended


def bench(
    out: Annotated[
        Path | None,
        typer.Option(
            parser=path_of,
            metavar="DIR",
            help="Folder for the measurement, the profile, the report and the engines' logs. "
            "(default: twinpool-bench, twinpool-bench-2, ...; with --from that of the measurement)",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Batches 1, 4, 16, K 0, 2, 4, two kinds of prompts; 10 minutes.")
    ] = False,
    prompts: Annotated[
        Path | None, typer.Option(help="Your own prompts as JSON lines; built-in texts without.")
    ] = None,
    concurrency: Annotated[
        str | None, typer.Option(help="Batches to measure, such as 1,4,16. (default: 1 to 128)")
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option(help="Draft lengths K, such as 0,2,4. (default: the engine's, halved down to 1, and 0)"),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=2, max=50, help="Rounds over the whole grid. (default: 5, quick 4)")
    ] = None,
    live: Annotated[
        bool | None,
        typer.Option(
            "--live-k/--no-live-k",
            help="Change K in the running engine, or start one for each K. (default: live on the CPU)",
        ),
    ] = None,
    accelerator_hour_price: Annotated[
        float | None, typer.Option(min=0, help="Price of one accelerator hour, for cost per million tokens.")
    ] = None,
    again: Annotated[
        Path | None,
        typer.Option("--from", help="A former measurement.json: fit and report anew, measure nothing."),
    ] = None,
    prior: Annotated[
        Path | None, typer.Option(help="A former profile.json, of whatever model: where to begin the fit.")
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(help="Policy file whose objectives count; those of the default policy without."),
    ] = None,
    interactive_at_once: Annotated[
        float, typer.Option(min=0, help="Interactive answers that are open on average; for one pool or two.")
    ] = 2.0,
    batch_at_once: Annotated[
        int | None,
        typer.Option(min=0, help="Batch requests at once. (default: as many as the largest batch)"),
    ] = None,
    interactive_class: Annotated[
        str | None,
        typer.Option(help="Kinds of prompts of interactive work, such as chat. (default: all)"),
    ] = None,
    batch_class: Annotated[
        str | None, typer.Option(help="Kinds of prompts of batch work, such as copy. (default: all)")
    ] = None,
    engine: EngineOption = None,
    model: ModelOption = None,
    speculation: SpeculationOption = None,
    settings: Annotated[
        Path | None, typer.Option(help="The settings file that `twinpool serve` will be given.")
    ] = None,
    output: Output = "text",
    as_json: AsJson = False,
) -> None:
    """Measure what both engines cost and give on this machine, and answer whether two pools pay.

    Writes measurement.json, profile.json, report.html and report.md.  Stop a running service first.
    Exit codes: 0 measured and good enough to act on; 1 measured, but the fit is not; 2 it could not be
    measured; 130 after Ctrl-C.
    """
    from app.bench.outcome import NothingFoundError, conclude  # noqa: PLC0415  # scipy and the plots are heavy

    wanted_json = wants_json(output, as_json)
    # What programs read is alone on standard output.
    console = Console(stderr=wanted_json, highlight=False, soft_wrap=True)
    say = partial(tell, console)
    try:
        with endable() as stops, ExitStack() as held:
            check_price(accelerator_hour_price)
            check_engine(engine)
            former = None if prior is None else read_prior(prior)
            objectives = None if policy is None else promised(policy, say)
            if again is not None:
                nothing_to_measure(
                    {
                        "--quick": quick or None,
                        "--prompts": prompts,
                        "--concurrency": concurrency,
                        "--lengths": lengths,
                        "--rounds": rounds,
                        "--live-k or --no-live-k": live,
                        "--engine": engine,
                        "--model": model,
                        "--speculation": speculation,
                        "--settings": settings,
                    }
                )
                found, out = _again(again, out, held)
                mix = mix_of(
                    interactive_at_once, batch_at_once, interactive_class, batch_class, found.workloads
                )
            else:
                options = Options(engine=engine, model=model, speculation=speculation, settings=settings)
                wanted = load(options)
                given = None if prompts is None else for_both(read_prompts(prompts, say), prompts, say)
                out = out or new_folder()
                asked = what_is_asked(wanted, given, live, out, quick, concurrency, lengths, rounds)
                kinds = asked.plan.all_workloads
                mix = mix_of(interactive_at_once, batch_at_once, interactive_class, batch_class, kinds)
                held.enter_context(this_machine(out))
                prepare_folder(out, FILES, spared=HELD)
                held.enter_context(this_folder(out, measures=True))
                found = measure(asked, wanted, console, out, stops)
            outcome = conclude(found, out, former, accelerator_hour_price, objectives, mix)
    except (BadOptionError, SettingsError, PromptsError, StoreError, CannotServe, BusyError) as error:
        _fail(error, "correct it and run `twinpool bench` again")
    except NothingFoundError as error:
        _fail(error, "name smaller batches with --concurrency, and run `twinpool bench` again")
    except BenchEngineError as error:
        left = kept(out)
        also = f"; {left}" if left else ""
        _fail(error, f"see the engines' logs in {out}, then run `twinpool bench` again{also}")
    except KeyboardInterrupt:
        if again is None:
            print(printable(broken_off(out)), file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    _show(outcome, console, wanted_json)
    raise typer.Exit(outcome.exit_code)


def _again(source: Path, out: Path | None, held: ExitStack) -> tuple[Measurement, Path]:
    """A former measurement, and the folder for what follows from it: its own unless told."""
    found = read_measurement(source)
    beside = source if source.is_dir() else source.parent
    out = out or beside
    elsewhere = out.absolute() != beside.absolute()
    prepare_folder(out, FILES, spared=HELD if elsewhere else ())
    held.enter_context(this_folder(out, measures=False))
    if elsewhere:
        write_measurement(out, found)  # the report speaks of the file beside it
    return found, out


def _fail(error: Exception, mend: str) -> NoReturn:
    """As `fail`, for errors of several lines: of a file, or of an engine's log."""
    words = str(error) if "\nmend: " in str(error) else f"{error}\nmend: {mend}"
    print(f"error: {printable(words, lines=True)}", file=sys.stderr)
    raise typer.Exit(CANNOT_TELL)


def _show(outcome: Outcome, console: Console, wanted_json: bool) -> None:
    from app.bench.summary import render  # noqa: PLC0415

    if wanted_json:
        print_json(outcome.document())
    else:
        console.print(render(outcome))
