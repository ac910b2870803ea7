"""What the commands that simulate share: engines by name, runs with progress, files, and their end."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from app.bench.progress import Showing
from app.bench.store import StoreError, prepare_folder, write_text
from app.cli.output import FINDING, OK, fail, print_json, printable
from autoscaling.profile import Profile, ProfileError, read_profile

if TYPE_CHECKING:
    from app.simulation.compared import Entry, Ground, Model
    from app.simulation.engine_profile import EngineProfile
    from app.simulation.report.subject import Subject
    from app.simulation.scores import Scores

WIDEST = 300  # columns of a table
INTERRUPTED = 130  # as a shell says of a command that Ctrl-C ended
SCORES, MARKDOWN, HTML, PLOTS = "scores.json", "report.md", "report.html", "plots"


@dataclass(frozen=True, slots=True)
class Engines:
    """The engines of a profile, and what a measurement says of them."""

    engines: EngineProfile
    profile: Profile


def named_engines(name: str | None, beside: Path | None = None) -> Engines:
    """The engines that --profile names; without it those of a profile `beside` a log, if one lies there."""
    if name is None and beside is not None and beside.is_file():
        name = str(beside)
    if name is None:
        fail(
            "--profile is missing, so nobody knows how fast the engines are",
            "name a profile.json of `twinpool bench`, or a built-in profile such as h100-8b",
        )
    return engines_of(name)


def engines_of(name: str) -> Engines:
    """Those of a built-in profile or of a file; ends the command where a pool is missing."""
    from app.simulation.belief import believed_profile  # noqa: PLC0415
    from app.simulation.built_in_profiles import BUILT_IN  # noqa: PLC0415
    from app.simulation.engine_profile import from_profile  # noqa: PLC0415
    from autoscaling.types import Role  # noqa: PLC0415

    if name in BUILT_IN:
        found = BUILT_IN[name]
        return Engines(found, believed_profile(found))
    measured = _profile(Path(name), ", ".join(BUILT_IN))
    engines = from_profile(measured, Path(name).stem if Path(name).stem != "profile" else name)
    for role in Role:
        if role not in engines.costs:
            fail(
                f"--profile {name}: no {role} engine was measured, and a service has both",
                "run `twinpool bench`, which measures both, or name a built-in profile",
            )
    return Engines(engines, measured)


def _profile(path: Path, known: str) -> Profile:
    mend = f"name a profile.json that `twinpool bench` wrote, or one of {known}"
    try:
        return read_profile(path.read_text(encoding="utf-8"), f"--profile {path}")
    except OSError as error:
        fail(f"--profile {path}: is not built in, and no file that can be read: {error.strerror}", mend)
    except UnicodeDecodeError:
        fail(f"--profile {path}: no text", mend)
    except ProfileError as error:
        fail(str(error), mend)


def above_zero(option: str, value: float | None) -> None:
    """End the command for a number that is none, or not above 0."""
    if value is not None and not 0 < value < math.inf:
        fail(f"{option} is {value:g}", "give a number above 0, or leave it out")


def model_of(word: str | None, default: Model) -> Model:
    """The model by its word."""
    from app.simulation.compared import Model  # noqa: PLC0415

    if word is not None and word not in set(Model):
        fail(f"--model is {word}", f"write one of {', '.join(Model)}, or leave it out")
    return default if word is None else Model(word)


def some_fit(ground: Ground) -> None:
    """End the command where no request of the trace fits into the engines."""
    longest = ground.engines.max_model_len
    if all(one.prompt_tokens >= longest for one in ground.trace):
        fail(
            f"every prompt of the trace is too long: {ground.engines.name} holds {longest:,} tokens",
            "name another --profile, or a trace with shorter prompts",
        )


def run_all(entries: Sequence[Entry], ground: Ground, model: Model) -> dict[str, Scores]:
    """Simulate one after the other, with the time that is left on standard error."""
    from app.simulation.compared import prepared  # noqa: PLC0415

    found: dict[str, Scores] = {}
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    with Showing(console) as showing:
        runs = {}
        for entry in entries:
            showing.say(f"{entry.name}: getting ready")
            runs[entry.name] = prepared(entry, ground, model)
        showing.expect(ground.trace_s * len(entries))
        for number, (name, run) in enumerate(runs.items(), 1):
            showing.say(f"{name} ({number} of {len(runs)})")
            passed = _Passed(showing, ground.trace_s)
            found[name] = run(passed)
            passed(ground.trace_s)
    return found


class _Passed:
    """Tells the seconds of one trace on as they pass."""

    def __init__(self, showing: Showing, seconds: float) -> None:
        self._showing = showing
        self._seconds = seconds
        self._told = 0.0

    def __call__(self, at_s: float) -> None:
        """So much of the trace is done."""
        until = min(at_s, self._seconds)
        if until > self._told:
            self._showing.done(until - self._told)
            self._told = until


def make_folder(out: Path | None) -> None:
    """Make the folder before anything is simulated; ends the command where it cannot be written."""
    if out is None:
        return
    try:
        prepare_folder(out, anew=False)
    except StoreError as error:
        fail(str(error), "choose a folder that this user may write")


def end(subject: Subject, out: Path | None, wanted_json: bool) -> NoReturn:
    """Write the files, show what was found, and end the command by whether the objectives were kept."""
    from app.simulation.report.advice import advice  # noqa: PLC0415
    from app.simulation.report.answer import details, lead  # noqa: PLC0415
    from app.simulation.report.document import as_json  # noqa: PLC0415
    from app.simulation.report.judged import misses  # noqa: PLC0415
    from app.simulation.report.table import table  # noqa: PLC0415

    files = {} if out is None else _written(subject, out)
    if wanted_json:
        print_json(as_json(subject, series=False) | {"files": files})
    else:
        console = Console(highlight=False)
        for sentence in (*lead(subject), *details(subject)):
            console.print(printable(sentence), markup=False)
        console.print()
        print_wide(table(subject))
        console.print()
        found = advice(subject, subject.asked)
        for line in (*(f"to do: {one}" for one in found), *(f"note: {one}" for one in subject.notes)):
            console.print(printable(line), markup=False)
        for path in files.values():
            console.print(printable(path), markup=False, soft_wrap=True)
    raise typer.Exit(FINDING if misses(subject, subject.asked) else OK)


def print_wide(found: Table) -> None:
    """Print a table at its full width: a narrow window wraps lines, which is easier to read than cells."""
    console = Console(highlight=False)
    wanted = console.measure(found, options=console.options.update(width=WIDEST)).maximum
    Console(highlight=False, width=max(console.width, wanted)).print(found)


def _written(subject: Subject, out: Path) -> dict[str, str]:
    from app.simulation.report.document import as_json  # noqa: PLC0415
    from app.simulation.report.page import html, markdown, svg_files  # noqa: PLC0415

    texts: dict[str, Any] = {
        SCORES: json.dumps(as_json(subject), indent=1, allow_nan=False) + "\n",
        HTML: html(subject),
        MARKDOWN: markdown(subject, PLOTS),
    }
    try:
        (out / PLOTS).mkdir(exist_ok=True)
        for name, text in (
            *texts.items(),
            *((f"{PLOTS}/{key}", svg) for key, svg in svg_files(subject).items()),
        ):
            write_text(out / name, text)
    except OSError as error:
        fail(f"{out / PLOTS}: cannot be made: {error.strerror}", "name another folder with --out")
    except StoreError as error:
        fail(str(error), "choose a folder that this user may write")
    return {
        "scores": str(out / SCORES),
        "report": str(out / HTML),
        "markdown": str(out / MARKDOWN),
    }
