"""`twinpool bench`: measure both engines, fit what they cost, and say what follows from it."""

from __future__ import annotations

import asyncio
import math
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console

from app.bench.asked import Asked
from app.bench.engine_process import BenchEngineError
from app.bench.progress import Showing
from app.bench.prompts import PromptsError, for_both, read_prompts
from app.bench.run import Keep, measured
from app.bench.store import (
    MEASUREMENT,
    StoreError,
    new_folder,
    prepare_folder,
    read_measurement,
    read_prior,
    write_measurement,
)
from app.cli.bench_options import BadOptionError, nothing_to_measure, what_is_asked
from app.cli.checks import CannotServe, check_machine, prepare_models
from app.cli.client import NotReachableError, RefusedError, address
from app.cli.engine_options import EngineOption, ModelOption, SpeculationOption
from app.cli.output import CANNOT_TELL, AsJson, Output, print_json, printable, wants_json
from app.cli.settings import Options, SettingsError, load
from app.cli.status import fetch
from app.demo.service import free_port
from autoscaling.profiling.measured import Measurement
from deployments.local_config import ServiceSettings

if TYPE_CHECKING:
    from app.bench.outcome import Outcome

INTERRUPTED = 130  # as a shell says of a command that Ctrl-C ended


def bench(
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the measurement, the profile, the report and the engines' logs. "
            "(default: twinpool-bench, twinpool-bench-2, ...; with --from that of the measurement)"
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
    try:
        if accelerator_hour_price is not None and not math.isfinite(accelerator_hour_price):
            raise BadOptionError("--accelerator-hour-price: give a number")
        former = None if prior is None else read_prior(prior)
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
            found = read_measurement(again)
            beside = again if again.is_dir() else again.parent
            out = out or beside
            elsewhere = out.absolute() != beside.absolute()
            prepare_folder(out, anew=elsewhere)
            if elsewhere:
                write_measurement(out, found)  # the report speaks of the file beside it
        else:
            options = Options(engine=engine, model=model, speculation=speculation, settings=settings)
            wanted = load(options)
            tell = partial(_tell, console)
            given = None if prompts is None else for_both(read_prompts(prompts, tell), prompts, tell)
            out = out or new_folder()
            asked = what_is_asked(wanted, given, live, out, quick, concurrency, lengths, rounds)
            prepare_folder(out, anew=True)
            found = _measure(asked, wanted, console, out)
            write_measurement(out, found)
        outcome = conclude(found, out, former, accelerator_hour_price)
    except (BadOptionError, SettingsError, PromptsError, StoreError, CannotServe) as error:
        _fail(error, "correct it and run `twinpool bench` again")
    except NothingFoundError as error:
        _fail(error, "name smaller batches with --concurrency, and run `twinpool bench` again")
    except BenchEngineError as error:
        _fail(error, f"see the engines' logs in {out}, then run `twinpool bench` again{_kept(out)}")
    except KeyboardInterrupt:
        if words := _kept(out):
            print(printable(words.removeprefix("; ")), file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    _show(outcome, console, wanted_json)
    raise typer.Exit(outcome.exit_code)


def _measure(asked: Asked, wanted: ServiceSettings, console: Console, out: Path) -> Measurement:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    _tell_of_service(console)
    check_machine(wanted.model_copy(update={"port": free_port()}), console)
    prepare_models(wanted, console)
    with Showing(console) as showing:
        return asyncio.run(_measured(asked, showing, partial(write_measurement, out)))


async def _measured(asked: Asked, showing: Showing, keep: Keep) -> Measurement:
    ticking = asyncio.create_task(showing.ticking())
    try:
        return await measured(asked, showing, keep)
    finally:
        ticking.cancel()


def _tell(console: Console, text: str) -> None:
    console.print(printable(text), markup=False)


def _tell_of_service(console: Console) -> None:
    """One line when a service runs here: its engines take from the same cores."""
    url = address(None)
    try:
        fetch(url)
    except (NotReachableError, RefusedError):
        return
    console.print(
        f"note: a service answers at {printable(url)}; if it runs on this machine, both engines are measured "
        "beside it: stop it first",
        style="yellow",
        markup=False,
    )


def _kept(out: Path | None) -> str:
    """What becomes of a measurement that broke off; empty where nothing of it was kept."""
    if out is None or not (out / MEASUREMENT).exists():
        return ""
    return f"; its whole rounds are kept, and `twinpool bench --from {out}` concludes from them"


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
