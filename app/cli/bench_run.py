"""One measurement for `twinpool bench`: what is told before it, its end by a signal, what is left then."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rich.console import Console

from app.bench import others
from app.bench.asked import Asked
from app.bench.duration import about, run_s
from app.bench.progress import Showing
from app.bench.run import Keep, measured
from app.bench.store import MEASUREMENT, has_logs, write_measurement
from app.cli.checks import check_machine, prepare_models
from app.cli.client import NotReachableError, RefusedError, address
from app.cli.output import printable
from app.cli.status import fetch
from app.demo.service import free_port
from app.demo.stops import Stops
from autoscaling.profiling.measured import Measurement
from deployments.local_config import ServiceSettings

WORTH_QUICK_S = 900.0  # what takes no longer needs nothing shorter


@contextlib.contextmanager
def endable() -> Iterator[Stops]:
    """SIGTERM and a closed terminal end as Ctrl-C does; what is ignored from the start stays ignored.

    Under `nohup`, or behind `&` in a script, a measurement of hours goes on.
    """
    ignored = [
        number for number in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(number) == signal.SIG_IGN
    ]
    stops = Stops()
    with stops.installed():
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
        yield stops


def measure(asked: Asked, wanted: ServiceSettings, console: Console, out: Path, stops: Stops) -> Measurement:
    """Check the machine, measure, and write the measurement; raises KeyboardInterrupt after a signal.

    Raises CannotServe, BenchEngineError, PromptsError and StoreError too; no engine is left in any case.
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    _tell_of_service(console)
    check_machine(wanted.model_copy(update={"port": free_port()}), console)
    prepare_models(wanted, console)
    _tell_of_others(console)
    _tell_of_time(asked, console)
    with Showing(console) as showing, stops.held():
        try:
            found = asyncio.run(_measured(asked, showing, partial(write_measurement, out), stops))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
    write_measurement(out, found)
    return found


def tell(console: Console, text: str) -> None:
    """One line with words of others in it."""
    console.print(printable(text), markup=False)


def kept(out: Path | None) -> str:
    """What becomes of a measurement that broke off; empty where nothing of it was kept."""
    if out is None or not (out / MEASUREMENT).exists():
        return ""
    return f"its whole rounds are kept, and `twinpool bench --from {out}` concludes from them"


def broken_off(out: Path | None) -> str:
    """What is left after a signal, and where."""
    if words := kept(out):
        return words
    logs = f"; the engines' logs are in {out}" if out is not None and has_logs(out) else ""
    return f"nothing can be concluded, measure anew: {MEASUREMENT} is written after the second round{logs}"


async def _measured(asked: Asked, showing: Showing, keep: Keep, stops: Stops) -> Measurement:
    with stops.cancelling():
        ticking = asyncio.create_task(showing.ticking())
        try:
            return await measured(asked, showing, keep)
        finally:
            ticking.cancel()


def _tell_of_service(console: Console) -> None:
    """One line when a service runs here: its engines take from the same cores."""
    url = address(None)
    try:
        fetch(url)
    except (NotReachableError, RefusedError):
        return
    _note(
        console,
        f"a service answers at {url}; if it runs on this machine, both engines are measured beside it: stop "
        "it first",
    )


def _tell_of_others(console: Console) -> None:
    """One line when other processes use our cores."""
    found = others.look()
    if found is not None and found.busy:
        _note(console, f"{found.words()}: the result will not be relied upon unless they are stopped")


def _tell_of_time(asked: Asked, console: Console) -> None:
    if asked.plan.quick:
        return
    seconds = run_s(asked)
    shorter = "; `twinpool bench --quick` takes 10 minutes" if seconds > WORTH_QUICK_S else ""
    tell(console, f"with the embedded model on two CPU cores this takes {about(seconds)}{shorter}")


def _note(console: Console, text: str) -> None:
    console.print(f"note: {printable(text)}", style="yellow", markup=False)
