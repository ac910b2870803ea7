"""The outcome of a measurement on a terminal: the answer first, then what it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.text import Text

from app.bench.next_step import next_words
from app.bench.outcome import Outcome
from app.bench.report.where import grouped, headline, sure_words
from app.bench.store import HTML
from app.cli.output import labelled, printable
from autoscaling.profiling.findings import TIE, Fit, PoolPrediction


def render(outcome: Outcome) -> RenderableType:
    """Everything that fits on one screen."""
    return Group(labelled(_rows(outcome)))


def _rows(outcome: Outcome) -> Iterator[tuple[str, Text]]:
    found = outcome.findings
    for words in found.notes:
        yield "note", Text(printable(words), style="yellow")
    for words in headline(found):
        yield "answer", Text(printable(words), style="bold")
    if found.relied:
        for words in sure_words(found):
            yield "measured", Text(printable(words))
    for names, lengths, words in grouped(found.crossovers):
        yield "by K", Text(printable(f"{names}, K = {lengths}: {words}"))
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
    yield "profile", Text(printable(str(outcome.profile)))
    for words in next_words(found, outcome.profile):
        yield "next", Text(printable(words))


def pools_words(found: Sequence[PoolPrediction]) -> Iterator[str]:
    """Which pools sell most, once for neighbouring objectives that have the same answer."""
    for (answer, tied), same in groupby(found, lambda one: (one.answer if one.kept else None, one.tied)):
        run = list(same)
        where = f"{_span([f'{1000 * one.tpot_s:g}' for one in run])} ms per token"
        if answer is None:
            yield f"{where}: no pools have half of the interactive tokens in time"
            continue
        margins = sorted(one.margin for one in run if math.isfinite(one.margin))
        beside = f", {_span([f'{one:.2f}' for one in margins])} times the next best" if margins else ""
        if tied:
            beside = f", as good as the next best within {100 * TIE:.0f} %"
        yield f"{where}: {answer.value.replace('_', ' ')}{beside}"


def fit_words(fit: Fit) -> str:
    """How well the cost model of one engine holds."""
    held = "" if fit.hold_out_error is None else f", {fit.hold_out_error:.1%} on cells it had not seen"
    known = "nothing fitted" if fit.error is None else f"off by {fit.error:.1%} on average"
    words = f"{fit.role}: {known}{held}"
    return words if fit.accepted else f"{words}: not good enough: {fit.refused_because}"


def _span(found: Sequence[str]) -> str:
    return found[0] if found[0] == found[-1] else f"{found[0]} to {found[-1]}"
