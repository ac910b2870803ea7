"""The plots of what steps cost: time per token against throughput, and the parts of a speculative step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.bench.report import chosen
from app.report.canvas import GREY, colour, legend, marker
from app.report.words import name, objective
from autoscaling.profiling.findings import Findings, FrontierPoint
from autoscaling.types import Role

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 2  # panels beside each other
MOST_BARS = 24  # of a plot that fits on a screen; with more, few of each kind of prompts are drawn
FEW_BARS = 4


@dataclass(frozen=True, slots=True)
class Part:
    """What a speculative step of one batch consists of, in plain steps, and what it brings."""

    workload: str
    sequences: int
    draft_length: int
    verification: float
    drafting: float
    rest: float
    gain: float | None  # tokens per sequence

    @property
    def whole(self) -> float:
        """The step in plain steps."""
        return 1.0 + self.verification + self.drafting + self.rest


def parts(findings: Findings) -> tuple[Part, ...]:
    """Of each kind of prompts at its best K, by growing batch; those whose parts are known."""
    found = []
    for workload in chosen.workloads(findings):
        length = chosen.best_length(findings, workload)
        if length is None:
            continue
        survival = findings.survivals.get(workload)
        gain = None if survival is None else survival.tokens_per_step.get(length)
        for one in chosen.line(findings, workload, length):
            if one.verification is None or one.drafting is None or one.rest is None:
                continue
            value = None if gain is None else gain.value
            found.append(
                Part(workload, one.sequences, length, one.verification, one.drafting, one.rest, value)
            )
    return tuple(found)


def _bars(findings: Findings) -> tuple[Part, ...]:
    """All, or of each kind of prompts some batches from the smallest to the largest; the table has all."""
    found = parts(findings)
    if len(found) <= MOST_BARS:
        return found
    bars: list[Part] = []
    for workload in dict.fromkeys(one.workload for one in found):
        line = [one for one in found if one.workload == workload]
        places = {round(at * (len(line) - 1) / (FEW_BARS - 1)) for at in range(FEW_BARS)}
        bars += [line[at] for at in sorted(places)]
    return tuple(bars)


def parts_size(findings: Findings) -> tuple[float, float]:
    """Inches: a bar has a height of its own."""
    return 9.0, 1.6 + 0.34 * len(_bars(findings))


def draw_parts(findings: Findings, title: str, figure: Figure) -> None:
    """Stacked bars: the plain step and what drafting adds to it; a diamond for the tokens that come out."""
    found = _bars(findings)
    axes = figure.subplots()
    y = list(range(len(found)))
    left = [0.0] * len(found)
    layers = (
        ("plain step", [1.0] * len(found), "#9ca3af"),
        ("verifying drafts", [one.verification for one in found], colour(0)),
        ("drafting", [one.drafting for one in found], colour(1)),
        ("rest (speculative engine at K = 0)", [one.rest for one in found], colour(4)),
    )
    for label, widths, ink in layers:
        # A part below nothing is noise: it is in the table, and shortens no bar.
        shown = [max(0.0, width) for width in widths]
        axes.barh(y, shown, left=left, color=ink, label=label, height=0.62)
        left = [start + width for start, width in zip(left, shown, strict=True)]
    gains = [(one.gain, at) for at, one in enumerate(found) if one.gain is not None]
    if gains:
        axes.plot(
            *zip(*gains, strict=True),
            linestyle="none",
            marker="D",
            color="black",
            markeredgecolor="white",
            markersize=8,
            label="tokens that come out",
        )
    axes.set_yticks(
        y, [f"{name(one.workload)}, B = {one.sequences}, K = {one.draft_length}" for one in found]
    )
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("plain steps; drafting pays where the diamond lies right of its bar")
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    legend(figure, axes, 3)


def frontier_size(findings: Findings) -> tuple[float, float]:
    """Inches: two panels beside each other."""
    panels = len({one.workload for one in findings.frontier})
    rows = -(-panels // ACROSS)
    return 9.0, 1.0 + 3.3 * rows


def draw_frontier(findings: Findings, title: str, figure: Figure) -> None:
    """A panel for each kind of prompts: every engine and K as a line over its batches."""
    names = list(dict.fromkeys(one.workload for one in findings.frontier))
    columns = min(ACROSS, len(names))
    grid = figure.subplots(-(-len(names) // columns), columns, squeeze=False, sharex=True, sharey=True)
    panels: list[Axes] = list(grid.flat)
    keys = sorted({(one.engine is Role.SPECULATIVE, one.draft_length) for one in findings.frontier})
    for axes, workload in zip(panels, names, strict=False):
        for at, key in enumerate(keys):
            _line(
                axes, [one for one in findings.frontier if one.workload == workload and _key(one) == key], at
            )
        axes.set_title(name(workload), fontweight="normal")
    top = 1.05 * max(1000 * one.tpot_s.value for one in findings.frontier)
    right = 1.05 * max(one.tokens_per_s.value for one in findings.frontier)
    for axes in panels[: len(names)]:
        axes.set_xlim(0.0, right)
        axes.set_ylim(0.0, top)
        labelled = -math.inf
        for tpot_s in (one for one in chosen.objectives(findings) if 1000 * one < top):
            axes.axhline(1000 * tpot_s, color=GREY, linewidth=0.9, linestyle=(0, (6, 3)), label="objective")
            if 1000 * tpot_s - labelled < 0.05 * top:
                continue  # its words would lie on those of the last one
            labelled = 1000 * tpot_s
            axes.annotate(
                objective(tpot_s),
                (0.0, 1000 * tpot_s),
                xycoords=("axes fraction", "data"),
                xytext=(3, 2),
                textcoords="offset points",
                color=GREY,
                fontsize=9,
            )
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    for axes in panels[max(0, len(names) - columns) : len(names)]:
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("tokens per second of one replica")
    figure.supylabel("ms per token of each sequence", fontsize=10.5)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    legend(figure, panels[0], 4)


def _key(one: FrontierPoint) -> tuple[bool, int]:
    return one.engine is Role.SPECULATIVE, one.draft_length


def _line(axes: Axes, points: list[FrontierPoint], at: int) -> None:
    if not points:
        return
    points = sorted(points, key=lambda one: one.sequences)
    plain = points[0].engine is Role.PLAIN
    axes.plot(
        [one.tokens_per_s.value for one in points],
        [1000 * one.tpot_s.value for one in points],
        color="black" if plain else colour(at - 1),
        marker=marker(at),
        markersize=5,
        label="plain" if plain else f"speculative, K = {points[0].draft_length}",
    )
    if not plain:
        return
    for one in points:
        axes.annotate(
            f"{one.sequences}",
            (one.tokens_per_s.value, 1000 * one.tpot_s.value),
            xytext=(4, -12),
            textcoords="offset points",
            fontsize=8.5,
        )
