"""A measurement's findings as one HTML page, as Markdown, and as plot files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from app.bench.report.acceptance import acceptance
from app.bench.report.answer import answer
from app.bench.report.appendix import appendix
from app.bench.report.break_even import break_even
from app.bench.report.cost import overheads, prices
from app.bench.report.plots import plot_names, plots, title_of
from app.bench.report.speed import capacity, losses, speed_up
from app.bench.report.synthetic import SYNTHETIC, SYNTHETIC_WORDS
from app.bench.report.trust import trust
from app.report import render
from app.report.blocks import Section, Table
from app.report.words import UNKNOWN, name
from autoscaling.profiling.findings import Findings

TITLE = "Does speculation pay here, and are two pools worth it?"
WORDS = (
    ("speculation, drafting", "a cheap guess of the next tokens, which the model checks in one step."),
    ("K", "draft length: how many tokens are guessed at a time; K = 0 guesses none."),
    ("B", "batch: how many sequences (requests that are being answered) one replica runs at once."),
    ("speculative, plain", "an engine that drafts, and the same engine without a drafter."),
    ("step", "one pass of the model; each sequence gets 1 token from it, or more with drafts."),
    ("time per token", "what a caller waits for each output token after the first (TPOT)."),
    ("pool", "replicas of one kind, speculative or plain; capacity can move between two pools."),
    ("KV cache", "the engine's memory of what its sequences have read and written so far."),
)


def html(findings: Findings, price_per_hour: float | None) -> str:
    """A page that needs nothing else: no script, no font, no picture from elsewhere.

    `price_per_hour` is that of one accelerator, in any currency; None leaves costs out.
    """
    return render.html(_page(findings, price_per_hour), plots(findings))


def markdown(findings: Findings, price_per_hour: float | None, plots: str | None = None) -> str:
    """The same in Markdown, one sentence per line.

    `plots` is the folder in which the files of `svg_files` lie; None leaves the plots out.
    """
    files = frozenset(f"{key}.svg" for key in plot_names(findings))
    page = _page(findings, price_per_hour)
    return render.markdown(page, lambda key: title_of(findings, key), plots, files)


def svg_files(findings: Findings) -> dict[str, str]:
    """File name -> SVG text of every plot that could be drawn."""
    header = '<?xml version="1.0" encoding="utf-8"?>\n'
    return {f"{key}.svg": f"{header}{text}\n" for key, text in plots(findings).items()}


def sections(findings: Findings, price_per_hour: float | None) -> tuple[Section, ...]:
    """Everything that the report says, in its order; what rests on prescribed acceptance is labelled."""
    found = (
        answer(findings),
        trust(findings),
        speed_up(findings),
        acceptance(findings),
        capacity(findings),
        losses(findings),
        overheads(findings),
        break_even(findings),
        prices(findings, price_per_hour),
        appendix(findings),
    )
    if not findings.measurement.synthetic_acceptance:
        return found
    return tuple(_labelled(one) if one.acceptance else one for one in found)


def _labelled(section: Section) -> Section:
    blocks = [
        replace(block, caption=f"{block.caption} ({SYNTHETIC})") if isinstance(block, Table) else block
        for block in section.blocks
    ]
    return replace(section, title=f"{section.title} ({SYNTHETIC})", blocks=blocks)


def _page(findings: Findings, price_per_hour: float | None) -> render.Page:
    synthetic = findings.measurement.synthetic_acceptance
    return render.Page(
        title=TITLE,
        subject=_subject(findings),
        sections=sections(findings, price_per_hour),
        words=WORDS,
        notice=render.Notice(SYNTHETIC.capitalize(), SYNTHETIC_WORDS) if synthetic else None,
    )


def _subject(findings: Findings) -> Sequence[str]:
    """Who was measured, in one line."""
    found = findings.measurement.fingerprint
    engine = " ".join(part for part in (found.engine, found.engine_version) if part)
    parts = [engine, found.device, found.method and f"drafts by {found.method}", findings.measurement.made_at]
    return [name(part) for part in parts if part] or [UNKNOWN]
