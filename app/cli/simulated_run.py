"""Traces and runs of a simulation, with their progress on standard error from the first second on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from app.bench.progress import Showing
from app.cli.durations import show
from app.cli.output import printable

if TYPE_CHECKING:
    from app.simulation.arrival import Arrival
    from app.simulation.compared import Entry, Ground, Model
    from app.simulation.scores import Scores


@contextlib.contextmanager
def telling() -> Iterator[Showing]:
    """Progress on standard error, also while something takes long that says nothing."""
    with Showing(Console(stderr=True, highlight=False, soft_wrap=True)) as showing, showing.beating():
        yield showing


def trace_of(spec: str, seed: int, say: Callable[[str], None], showing: Showing) -> tuple[Arrival, ...]:
    """The trace that --trace names; raises TraceError."""
    from app.simulation.traces.load import expected, load_trace  # noqa: PLC0415

    about = expected(spec)
    asked = "all of it is read first" if about is None else f"about {about:,.0f} requests"
    showing.wait(printable(f"getting the trace {spec}"), asked)
    return load_trace(spec, seed, say)


def run_all(entries: Sequence[Entry], ground: Ground, model: Model, showing: Showing) -> dict[str, Scores]:
    """Simulate one after the other, with the time that is left."""
    from app.simulation.compared import prepared  # noqa: PLC0415

    requests = len(ground.trace)
    showing.note(f"{requests:,} requests in {show(ground.trace_s)} of the trace, in the {model} model")
    runs = {}
    for entry in entries:
        showing.say(printable(f"{entry.name}: getting ready"))
        runs[entry.name] = prepared(entry, ground, model)
    showing.expect(requests * len(entries))
    found: dict[str, Scores] = {}
    for number, (name, run) in enumerate(runs.items(), 1):
        passed = _Passed(showing, printable(f"{name} ({number} of {len(runs)})"), requests)
        found[name] = run(passed)
        passed(ground.trace_s, requests)
    return found


class _Passed:
    """Tells the requests of one run on as they end."""

    def __init__(self, showing: Showing, name: str, requests: int) -> None:
        self._showing = showing
        self._name = name
        self._requests = requests
        self._told = 0
        showing.say(f"{name}: 0 of {requests:,} requests have ended")

    def __call__(self, at_s: float, ended: int) -> None:
        """So many requests have ended, and so much of the trace has passed."""
        until = min(ended, self._requests)
        self._showing.say(
            f"{self._name}: {until:,} of {self._requests:,} requests have ended, {show(at_s)} of the trace"
        )
        if until > self._told:
            self._showing.done(until - self._told)
            self._told = until
