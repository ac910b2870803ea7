"""`twinpool demo`: a mixed load against the running service, looked at live, and a verdict per tier."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.console import Console

from app.cli.client import MEND, NotReachableError, RefusedError, address, get, quoted
from app.cli.output import AsJson, Output, Url, fail, print_json, printable_values, wants_json
from app.cli.status import fetch
from app.cli.try_it import own_command
from app.demo import seen
from app.demo.answers import Objective
from app.demo.document import document
from app.demo.plan import LEAST_S, MOST_S, Load, lengths, load_for
from app.demo.report import Report, next_steps, render
from app.demo.run import Ended, Run
from app.demo.service import NotStartedError, free_port, running, serve_command
from app.demo.showing import go, say
from app.demo.stops import Stops
from app.demo.summary import by_phase, copies, rows, slowest, totals
from app.demo.verdict import exit_code, judge
from app.samples import samples
from autoscaling.types import Tier
from autoscaling.why_request import explain_request

INTERRUPTED = 130  # as a shell says of a command that Ctrl-C ended
ENGINES = ("vllm", "simulated")


def demo(
    seconds: Annotated[
        int, typer.Option(min=LEAST_S, max=MOST_S, help="How long requests are sent; open ones end after it.")
    ] = 75,
    seed: Annotated[
        int, typer.Option(min=0, max=999_999, help="The same seed sends the same requests in the same order.")
    ] = 1,
    serve: Annotated[
        bool, typer.Option("--serve", help="Start a service for the demo where none answers, and stop it.")
    ] = False,
    engine: Annotated[
        str | None, typer.Option(help="vllm or simulated; of the service of --serve. (default: vllm)")
    ] = None,
    output: Output = "text",
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Send a mixed load to the running service, show what becomes of it, and judge each tier.

    Exit codes: 0 every tier met its objective, or has none and lost nothing; 1 one missed it or lost
    requests; 2 it cannot be told; 130 after Ctrl-C.
    """
    wanted_json = wants_json(output, as_json)
    if engine is not None and not serve:
        fail("--engine is of the service that --serve starts", "add --serve, or leave --engine out")
    if engine is not None and engine not in ENGINES:
        fail(f"--engine is vllm or simulated, not {engine}", "correct the word")
    # What programs read is alone on standard output.
    console = Console(stderr=wanted_json, highlight=False)
    stops = Stops()
    try:
        with stops.installed(), _service(address(url), serve, engine or "vllm", console) as (at, own):
            report = measured(at, seconds, seed, console, stops)
            with stops.held():
                if wanted_json:
                    print_json(document(report))
                else:
                    console.print(render(report))
                    # Now: a service of the demo's own is gone afterwards, and its records with it.
                    explain(at, report, console)
    except NotStartedError as error:
        fail(f"the demo's own service did not start: {error}", "see its lines above; try `twinpool serve`")
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    if not wanted_json:
        say(console, "")
        for line in next_steps(report, own_command(), stopped=own):
            say(console, line)
    raise typer.Exit(report.exit_code)


def explain(url: str, report: Report, console: Console) -> None:
    """Why the slowest interactive request took its way and its time, in the words of `twinpool why`."""
    if report.slowest is None:
        return
    path = f"/admin/why/request?id={quoted(report.slowest.id)}"
    with contextlib.suppress(NotReachableError, RefusedError):
        record = get(url, path)["record"]
        say(console, "")
        say(console, "the slowest interactive request, as `twinpool why` tells it:")
        for line in explain_request(printable_values(record)).splitlines():
            say(console, f"  {line}")


@contextlib.contextmanager
def _service(url: str, serve: bool, engine: str, console: Console) -> Iterator[tuple[str, bool]]:
    """The address of the service, and whether it is the demo's own."""
    if not serve or _answers(url):
        yield url, False
        return
    port = free_port()
    say(console, f"no service answers at {url}: starting one for the demo on port {port}")
    with running(serve_command(engine, port), lambda line: say(console, f"  {line}")):
        yield f"http://127.0.0.1:{port}", True


def _answers(url: str) -> bool:
    try:
        fetch(url)
    except RefusedError:
        return True
    except NotReachableError:
        return False
    return True


def measured(url: str, seconds: float, seed: int, console: Console, stops: Stops) -> Report:
    """Look at the service, run the demo, and add up; ends the command where there is nothing to measure."""
    status, ready, policy = _look(url)
    replicas = seen.replicas(ready)
    load = load_for(replicas, seen.soft_limits(status))
    sizes = ", ".join(f"{count} {role}" for role, count in replicas.items())
    say(console, f"{url}: {sizes}; open at once: {_words(load)}")
    run = Run(load, lengths(seconds), samples(), seed, status, both_pools=all(replicas.values()))
    began = time.perf_counter()
    with stops.held():
        with contextlib.suppress(asyncio.CancelledError):  # `run.ended` says so
            asyncio.run(go(run, url, console, stops))
        took = time.perf_counter() - began
        return _report(run, url, seed, took, load, policy, shares_cores=seen.shares_cores(status))


def _report(
    run: Run,
    url: str,
    seed: int,
    took_s: float,
    load: Load,
    objectives: dict[Tier, Objective | None],
    *,
    shares_cores: bool,
) -> Report:
    found = totals(run.answers, objectives)
    verdicts = tuple(judge(total, objectives[total.tier]) for total in found)
    code = exit_code(verdicts, complete=run.ended is Ended.COMPLETE)
    return Report(
        url=url,
        seed=seed,
        seconds=took_s,
        ended=run.ended,
        load=load,
        rows=rows(run.answers),
        totals=found,
        objectives=objectives,
        phases=by_phase(run.answers, Tier.INTERACTIVE),
        copies=copies(run.copies),
        moves=run.moves,
        verdicts=verdicts,
        slowest=slowest(run.answers),
        shares_cores=shares_cores,
        exit_code=INTERRUPTED if run.ended is Ended.INTERRUPTED else code,
    )


def _look(url: str) -> tuple[dict[str, Any], dict[str, Any], dict[Tier, Objective | None]]:
    """The status, `/ready`, and the objectives of the policy that acts."""
    try:
        status, ready = fetch(url), get(url, "/ready")
    except NotReachableError as error:
        fail(str(error), MEND)
    except RefusedError as error:
        fail(f"the service at {url} is not ready: {error}", "wait until `twinpool status` says ready")
    revision = seen.acting_revision(status)
    text = None
    if revision is not None:
        # Without the text the objectives are unknown, and the verdicts say so.
        with contextlib.suppress(NotReachableError, RefusedError):
            text = get(url, f"/admin/policy/{revision}").get("text")
    return status, ready, seen.objectives(text)


def _words(load: Load) -> str:
    return ", ".join(f"{tier} {count}" for tier, count in load.streams.items())
