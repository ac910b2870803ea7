"""The outcome of a measurement on a terminal: the answer first, then what it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.text import Text

from app.bench.outcome import Outcome
from app.bench.store import HTML
from app.cli.output import labelled, printable
from autoscaling.profiling.findings import Crossover, Estimate, Fit, PoolPrediction, Verdict

SYNTHETIC = "acceptance was prescribed (synthetic): it says what a drafter as good as that would give"


def render(outcome: Outcome) -> RenderableType:
    """Everything that fits on one screen."""
    return Group(labelled(_rows(outcome)))


def _rows(outcome: Outcome) -> Iterator[tuple[str, Text]]:
    found = outcome.findings
    if found.measurement.synthetic_acceptance:
        yield "note", Text(SYNTHETIC, style="yellow")
    for words in crossovers_words(found.crossovers):
        yield "pays", Text(printable(words))
    for fit in found.fits.values():
        yield "fit", Text(printable(fit_words(fit)), style="" if fit.accepted else "yellow")
    for words in pools_words(found.pools):
        yield "pools", Text(words)
    for row in found.recommended_table:
        yield "K table", Text(f"{row.first} to {row.last} sequences: K = {row.draft_length}")
    for value in found.policy:
        yield "policy", Text(printable(f"{value.path}: {value.value}  ({value.because})"))
    for words in found.measurement.cut:
        yield "left out", Text(printable(words))
    yield "report", Text(printable(str(outcome.folder / HTML)))
    yield "profile", Text(printable(f"{outcome.profile}  (twinpool serve --profile {outcome.profile})"))


def pools_words(found: Sequence[PoolPrediction]) -> Iterator[str]:
    """Which pools sell most, once for neighbouring objectives that have the same answer."""
    for _, same in groupby(found, lambda one: one.answer if one.kept else None):
        run = list(same)
        first, last = f"{1000 * run[0].tpot_s:g}", f"{1000 * run[-1].tpot_s:g}"
        if not run[0].kept:
            yield f"{_span(first, last)} ms per token: no replica keeps that"
            continue
        margins = sorted({f"{one.margin:.2f}" for one in run if math.isfinite(one.margin)}, key=float)
        beside = f", {_span(margins[0], margins[-1])} times the next best" if margins else ""
        yield f"{_span(first, last)} ms per token: {run[0].answer.value.replace('_', ' ')}{beside}"


def crossovers_words(found: Sequence[Crossover]) -> Iterator[str]:
    """Where drafts pay, kinds of prompts and draft lengths with the same outcome in one line."""
    lengths: dict[tuple[str, str], list[str]] = {}  # kind and outcome -> K
    for one in found:
        lengths.setdefault((one.workload, crossover_words(one)), []).append(str(one.draft_length))
    workloads: dict[tuple[str, str], list[str]] = {}  # lengths and outcome -> kinds
    for (workload, words), values in lengths.items():
        workloads.setdefault((", ".join(values), words), []).append(workload)
    for (values_of, words), names in workloads.items():
        yield f"{', '.join(names)}, K = {values_of}: {words}"


def crossover_words(one: Crossover) -> str:
    """Up to which batch drafts pay, by the cost models."""
    doubt = ", which the rounds do not agree on" if one.sure is False else ""
    match one.verdict:
        case Verdict.PAYS_ALWAYS:
            return f"at every batch that was measured{doubt}"
        case Verdict.NEVER_PAYS:
            return f"at no batch that was measured{doubt}"
        case Verdict.MIXED:
            return "at some batches and not at others; see the report"
        case Verdict.PAYS_BELOW:
            return f"below {_interval(one.sequences)} sequences{doubt}"


def fit_words(fit: Fit) -> str:
    """How well the cost model of one engine holds."""
    held = "" if fit.hold_out_error is None else f", {fit.hold_out_error:.1%} on cells it had not seen"
    known = "nothing fitted" if fit.error is None else f"off by {fit.error:.1%} on average"
    words = f"{fit.role}: {known}{held}"
    return words if fit.accepted else f"{words}: not good enough: {fit.refused_because}"


def _span(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"


def _interval(found: Estimate | None) -> str:
    if found is None:
        return "-"
    low = "?" if found.low is None else f"{found.low:.1f}"
    high = "?" if found.high is None else f"{found.high:.1f}"
    return f"{found.value:.1f} ({low} to {high})"
