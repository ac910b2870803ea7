"""What a run found, as one value, and as text for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from app.cli.output import UNKNOWN, labelled, printable, table
from app.demo.answers import Answer, Objective
from app.demo.plan import Load
from app.demo.run import Ended
from app.demo.seen import MoveSeen
from app.demo.summary import ByPhase, Copies, Row, Spread, Total
from app.demo.verdict import TierVerdict, Verdict, compared, percent
from app.demo.view import move_words
from autoscaling.types import Tier

WHERE = "objectives are set in the policy file, under spec.objectives: docs/policy.md"
TIMES = ("TTFT p50", "p95 s", "TPOT p50", "p95 ms")
# Verdicts that a reader has to look at; the others are good or neutral.
STYLES = {Verdict.MET: "green", Verdict.MISSED: "red", Verdict.LOST: "red", Verdict.UNKNOWN: "yellow"}


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that is shown at the end."""

    url: str
    seed: int
    seconds: float  # that the run took
    ended: Ended
    load: Load
    rows: tuple[Row, ...]
    totals: tuple[Total, ...]
    objectives: Mapping[Tier, Objective | None]
    phases: tuple[ByPhase, ...]  # of interactive
    copies: Copies
    moves: tuple[MoveSeen, ...]
    verdicts: tuple[TierVerdict, ...]
    slowest: Answer | None
    shares_cores: bool
    exit_code: int


def render(report: Report) -> RenderableType:
    """The tables, what there is to say about them, and the verdicts."""
    return Group(*_tables(report), labelled(_notes(report)), *_verdicts(report.verdicts))


def next_steps(report: Report, command: str, *, stopped: bool) -> list[str]:
    """Lines with the commands to go on with; `stopped`: the service was the demo's own and is gone."""
    if stopped:
        head = "the demo's own service has stopped; for one that stays, in two terminals"
        return [head, *(f"  {step}" for step in (f"{command} serve", f"{command} demo"))]
    steps = [] if report.slowest is None else [f"{command} why {report.slowest.id}"]
    steps.append(f"{command} status")
    return ["go on with", *(f"  TWINPOOL_URL={report.url} {step}" for step in steps)]


def _tables(report: Report) -> Iterator[RenderableType]:
    """Each at most 80 columns wide, but for long reasons, which wrap."""
    if report.rows:
        yield table(("tier", "pool", "answers", *TIMES), map(_times_of, report.rows))
        yield Text()
        yield table(
            ("tier", "pool", "tok/s", "acceptance", "tok/draft", "reasons"), map(_work_of, report.rows)
        )
        yield Text()
    yield table(
        ("tier", "requests", "answered", "refused", "again", "failed", "cut", "in time"),
        (
            (
                one.tier,
                *map(str, (one.requests, one.answered, one.refused, one.again, one.failed, one.cut)),
                UNKNOWN if one.attainment is None else percent(one.attainment),
            )
            for one in report.totals
        ),
    )
    yield Text()
    if report.phases:
        yield table(
            ("interactive", "answers", *TIMES),
            (
                (one.phase, str(one.answers), *_seconds(one.ttft), *_milliseconds(one.tpot))
                for one in report.phases
            ),
        )
        yield Text()


def _times_of(row: Row) -> tuple[str, ...]:
    times = (*_seconds(row.ttft), *_milliseconds(row.tpot))
    return row.tier, row.pool or UNKNOWN, str(row.answers), *times


def _work_of(row: Row) -> tuple[str, ...]:
    numbers = (_fixed(row.tokens_per_s, 0), _fixed(row.acceptance, 2), _fixed(row.tokens_per_draft, 2))
    return row.tier, row.pool or UNKNOWN, *numbers, _counts(row.reasons)


def _notes(report: Report) -> Iterator[tuple[str, Text]]:
    for total in report.totals:
        if total.codes:
            yield "errors", Text(printable(f"{total.tier}: {_counts(total.codes)}"), style="yellow")
    for move in report.moves:
        yield "moves", Text(move_words(move))
    if not report.moves:
        yield "moves", Text("none while it ran")
    if not report.load.fills:
        words = (
            f"the batch backlog, {report.load.streams[Tier.BATCH]} at once, did not fill the plain pool, "
            f"which welcomes {report.load.plain_room}"
        )
        yield "note", Text(words)
    if report.shares_cores:
        yield "note", Text("replicas share CPU cores: the times mean little", style="yellow")
    yield "copying", Text(compared(report.copies))
    if report.ended is not Ended.COMPLETE:
        why = "interrupted" if report.ended is Ended.INTERRUPTED else "the service no longer answers"
        yield "ended", Text(f"early, after {report.seconds:.0f} s: {why}", style="yellow")


def _verdicts(verdicts: Iterable[TierVerdict]) -> Iterator[RenderableType]:
    yield Text()
    silent = False
    for one in verdicts:
        yield Text(printable(one.words), style=STYLES.get(one.verdict, ""))
        silent = silent or one.verdict in (Verdict.NO_OBJECTIVE, Verdict.LOST)
    if silent:
        yield Text(WHERE)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{word} {count}" for word, count in counts.items())


def _seconds(spread: Spread) -> tuple[str, str]:
    return _fixed(spread.p50_s, 2), _fixed(spread.p95_s, 2)


def _milliseconds(spread: Spread) -> tuple[str, str]:
    values = [None if value is None else value * 1000 for value in (spread.p50_s, spread.p95_s)]
    return _fixed(values[0], 1), _fixed(values[1], 1)


def _fixed(value: float | None, digits: int) -> str:
    return UNKNOWN if value is None else f"{value:.{digits}f}"
