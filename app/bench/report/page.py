"""A measurement's findings as one HTML page, as Markdown, and as plot files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from app.bench.report.acceptance import acceptance
from app.bench.report.answer import answer
from app.bench.report.appendix import appendix
from app.bench.report.blocks import Section, Table
from app.bench.report.break_even import break_even
from app.bench.report.canvas import SYNTHETIC
from app.bench.report.cost import overheads, prices
from app.bench.report.plots import plot_names, plots, title_of
from app.bench.report.speed import capacity, losses, speed_up
from app.bench.report.trust import trust
from app.bench.report.words import UNKNOWN, name
from autoscaling.profiling.findings import Findings

if TYPE_CHECKING:
    from jinja2 import Environment

TITLE = "Does speculation pay here, and are two pools worth it?"
SYNTHETIC_WORDS = (
    "How many draft tokens are accepted was prescribed to the engine and is not the drafter's.",
    "Costs are real; every gain below is what a drafter as good as that would bring.",
)
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
# What a reader of Markdown would take for markup, in names and in words; an underscore only at a word's edge.
_MARKUP = re.compile(r"[\\`*<>|\[\]~&]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_MARKUP_AT_START = re.compile(r"^(\d*)([-+](?= |$)|#|=|[.)](?= |$))")


def html(findings: Findings, price_per_hour: float | None) -> str:
    """A page that needs nothing else: no script, no font, no picture from elsewhere.

    `price_per_hour` is that of one accelerator, in any currency; None leaves costs out.
    """
    return _rendered("report.html.j2", findings, price_per_hour, drawn=plots(findings))


def markdown(findings: Findings, price_per_hour: float | None, plots: str | None = None) -> str:
    """The same in Markdown, one sentence per line.

    `plots` is the folder in which the files of `svg_files` lie; None leaves the plots out.
    """
    text = _rendered("report.md.j2", findings, price_per_hour, folder=plots, files=_files(findings))
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


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


def _rendered(template: str, findings: Findings, price_per_hour: float | None, **more: object) -> str:
    return (
        _environment()
        .get_template(template)
        .render(
            title=TITLE,
            subject=_subject(findings),
            synthetic=findings.measurement.synthetic_acceptance,
            synthetic_words=SYNTHETIC_WORDS,
            words=WORDS,
            sections=sections(findings, price_per_hour),
            title_of=lambda key: title_of(findings, key),
            **more,
        )
    )


def _subject(findings: Findings) -> Sequence[str]:
    """Who was measured, in one line."""
    found = findings.measurement.fingerprint
    engine = " ".join(part for part in (found.engine, found.engine_version) if part)
    parts = [engine, found.device, found.method and f"drafts by {found.method}", findings.measurement.made_at]
    return [name(part) for part in parts if part] or [UNKNOWN]


def _files(findings: Findings) -> frozenset[str]:
    return frozenset(f"{key}.svg" for key in plot_names(findings))


def _cell(text: str) -> str:
    """Text inside a line as Markdown shows it, with nothing in it taken for markup."""
    escaped = _MARKUP.sub(lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), text)
    return " ".join(escaped.split())


def _md(text: str) -> str:
    """The same at the begin of a line."""
    return _MARKUP_AT_START.sub(r"\1\\\2", _cell(text))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape  # noqa: PLC0415

    made = Environment(
        loader=PackageLoader("app.bench.report", "."),
        autoescape=select_autoescape(("html.j2",), default=False),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(md=_md, cell=_cell)
    return made
