"""The outcome of a measurement on a terminal: the answer first, then what it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from app.bench.outcome import Outcome
from app.bench.store import HTML
from app.cli.output import labelled, printable
from autoscaling.profiling.findings import Crossover, Estimate, Fit, Verdict

SYNTHETIC = "acceptance was prescribed (synthetic): it says what a drafter as good as that would give"


def render(outcome: Outcome) -> RenderableType:
    """Everything that fits on one screen."""
    return Group(labelled(_rows(outcome)))


def _rows(outcome: Outcome) -> Iterator[tuple[str, Text]]:
    found = outcome.findings
    if found.measurement.synthetic_acceptance:
        yield "note", Text(SYNTHETIC, style="yellow")
    for one in found.crossovers:
        yield "pays", Text(printable(crossover_words(one)))
    for fit in found.fits.values():
        yield "fit", Text(printable(fit_words(fit)), style="" if fit.accepted else "yellow")
    for tpot_ms, words in _pools(outcome):
        yield "pools", Text(f"{tpot_ms:g} ms per token: {words}")
    for row in found.table:
        yield "K table", Text(f"{row.first} to {row.last} sequences: K = {row.draft_length}")
    for value in found.policy:
        yield "policy", Text(printable(f"{value.path}: {value.value}  ({value.because})"))
    for words in found.measurement.cut:
        yield "left out", Text(printable(words))
    yield "report", Text(printable(str(outcome.folder / HTML)))
    yield "profile", Text(printable(f"{outcome.profile}  (twinpool serve --profile {outcome.profile})"))


def _pools(outcome: Outcome) -> Iterator[tuple[float, str]]:
    for one in outcome.findings.pools:
        words = one.answer.value.replace("_", " ")
        beside = "" if math.isinf(one.margin) else f", {one.margin:.2f} times the next best"
        yield 1000 * one.tpot_s, f"{words}{beside}"


def crossover_words(one: Crossover) -> str:
    """Where drafts pay for one kind of prompts."""
    what = f"{one.workload}, K = {one.draft_length}:"
    match one.verdict:
        case Verdict.PAYS_ALWAYS:
            return f"{what} at every batch that was measured"
        case Verdict.NEVER_PAYS:
            return f"{what} at no batch that was measured"
        case Verdict.MIXED:
            return f"{what} at some batches and not at others; see the report"
        case Verdict.PAYS_BELOW:
            return f"{what} below {_interval(one.sequences)} sequences"


def fit_words(fit: Fit) -> str:
    """How well the cost model of one engine holds."""
    held = "" if fit.hold_out_error is None else f", {fit.hold_out_error:.1%} on cells it had not seen"
    words = f"{fit.role}: off by {fit.error:.1%} on average{held}"
    return words if fit.accepted else f"{words}: not good enough: {fit.refused_because}"


def _interval(found: Estimate | None) -> str:
    if found is None:
        return "-"
    low = "?" if found.low is None else f"{found.low:.1f}"
    high = "?" if found.high is None else f"{found.high:.1f}"
    return f"{found.value:.1f} ({low} to {high})"
