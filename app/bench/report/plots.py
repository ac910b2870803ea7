"""The plots of a report, by name; each is left out when there is nothing to draw."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from app.bench.report import chosen
from app.bench.report.plots_cost import draw_frontier, draw_parts, frontier_size, parts, parts_size
from app.bench.report.synthetic import SYNTHETIC
from app.report.canvas import GREY, colour, legend, marker, panel, svg
from app.report.words import name, too_wide
from autoscaling.profile import MEAN
from autoscaling.profiling.findings import Estimate, Findings, Survival

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SPEED_UP, SURVIVAL, FRONTIER, PARTS, BREAK_EVEN = "speed-up", "acceptance", "frontier", "parts", "break-even"
TITLES: Mapping[str, str] = {
    SPEED_UP: "Speed-up of drafting against concurrency",
    SURVIVAL: "How many drafts survive to each position",
    FRONTIER: "Time per token against throughput",
    PARTS: "What a speculative step costs against what it brings",
    BREAK_EVEN: "Acceptance that drafting needs, against what was measured",
}
FILES: Final = re.compile(rf"(?:{'|'.join(TITLES)})\.svg")
# The regimes of the white papers' rule of thumb: acceptance rate from, to, word.
REGIMES = ((0.0, 0.3, "low"), (0.4, 0.6, "moderate"), (0.7, 1.0, "high"))
SMALLEST = 0.01  # a logarithmic axis has no 0
Draw = Callable[["Figure"], None]


def plots(findings: Findings) -> dict[str, str]:
    """Every plot that can be drawn: name -> SVG text."""
    return {
        key: svg(key, title_of(findings, key), draw, size) for key, (draw, size) in _all(findings).items()
    }


def plot_names(findings: Findings) -> tuple[str, ...]:
    """What `plots` draws, without drawing it."""
    return tuple(_all(findings))


def title_of(findings: Findings, key: str) -> str:
    """The title; it says when acceptance was prescribed."""
    return TITLES[key] + (f" ({SYNTHETIC})" if findings.measurement.synthetic_acceptance else "")


def _all(findings: Findings) -> dict[str, tuple[Draw, tuple[float, float]]]:
    def drawn(draw: Callable[[Findings, str, Figure], None], key: str) -> Draw:
        return partial(draw, findings, title_of(findings, key))

    found: dict[str, tuple[Draw, tuple[float, float]]] = {}
    if any(one.draft_length > 0 for one in findings.speed_ups):
        found[SPEED_UP] = drawn(draw_speed_up, SPEED_UP), (9.0, 4.9)
    if survivals(findings):
        found[SURVIVAL] = drawn(draw_survival, SURVIVAL), (9.0, 4.2)
    if findings.frontier:
        found[FRONTIER] = drawn(draw_frontier, FRONTIER), frontier_size(findings)
    if parts(findings):
        found[PARTS] = drawn(draw_parts, PARTS), parts_size(findings)
    if findings.break_evens:
        found[BREAK_EVEN] = drawn(draw_break_even, BREAK_EVEN), (9.0, 4.0)
    return found


def survivals(findings: Findings) -> tuple[Survival, ...]:
    """Kinds of prompts whose drafts have reached a position."""
    return tuple(one for key, one in findings.survivals.items() if key != MEAN and one.survival)


def draw_speed_up(findings: Findings, title: str, figure: Figure) -> None:
    """One line per kind of prompts at its best K, its band, the model, and where it crosses 1."""
    with panel(figure.subplots(), title, y="tokens per second, speculative / plain") as axes:
        axes.axhline(1.0, color="black", linewidth=1.2, label="as fast as plain")
        highest = [1.0]
        for at, workload in enumerate(chosen.workloads(findings)):
            length = chosen.best_length(findings, workload)
            if length is None:
                continue
            line = chosen.line(findings, workload, length)
            x = [one.sequences for one in line]
            found = chosen.crossover(findings, workload, length)
            even = None if found is None or found.sure is False or found.beyond else found.sequences
            label = f"{name(workload)}, K = {length}" + (f", even at {even.value:.1f}" if even else "")
            axes.plot(
                x, [one.measured.value for one in line], color=colour(at), marker=marker(at), label=label
            )
            banded = [
                one
                for one in line
                if one.measured.low is not None
                and one.measured.high is not None
                and not too_wide(one.measured)
            ]
            axes.fill_between(
                [one.sequences for one in banded],
                [one.measured.low or 0.0 for one in banded],
                [one.measured.high or 0.0 for one in banded],
                color=colour(at),
                alpha=0.18,
                linewidth=0,
            )
            modelled = [(one.sequences, one.modelled) for one in line if one.modelled is not None]
            highest += [one.measured.value for one in line] + [value for _, value in modelled]
            if modelled:
                axes.plot(*zip(*modelled, strict=True), color=colour(at), linestyle="--", linewidth=1.2)
            if even is not None:
                _crossing(axes, even, colour(at))
        if any(one.modelled is not None for one in findings.speed_ups):
            axes.plot([], [], color=GREY, linestyle="--", linewidth=1.2, label="cost model")
        # An interval of two rounds may reach far beyond: the lines are what is read.
        axes.set_ylim(0.0, 1.35 * max(highest))
        batches = chosen.batches(findings)
        batch_axis(axes, batches)
        axes.set_xlim(batches[0] / 1.2, batches[-1] * 1.2)  # an interval may reach far beyond
        legend(figure, axes)


def _crossing(axes: Axes, at: Estimate, ink: str) -> None:
    """Its number is in the legend: beside the line those of several kinds of prompts would overlap."""
    if at.low is not None and at.high is not None:
        low = max(at.low, SMALLEST)
        axes.plot([low, at.high], [1.0, 1.0], color=ink, linewidth=7, alpha=0.45, solid_capstyle="butt")
    axes.plot([at.value], [1.0], marker="|", markersize=18, markeredgewidth=3, color=ink)


def draw_survival(findings: Findings, title: str, figure: Figure) -> None:
    """Survival by position with intervals, before the regimes of the rule of thumb."""
    found = survivals(findings)
    deepest = max(len(one.survival) for one in found)
    with panel(figure.subplots(), title, "draft position", "share of drafts accepted up to here") as axes:
        for low, high, word in REGIMES:
            axes.axhspan(low, high, color="#f3f4f6", zorder=0)
            axes.text(deepest + 0.45, (low + high) / 2, word, color=GREY, ha="right", va="center")
        for at, one in enumerate(found):
            apart = 0.05 * (at - (len(found) - 1) / 2)  # so that the intervals do not lie on each other
            x = [position + 1 + apart for position in range(len(one.survival))]
            axes.errorbar(
                x,
                [point.value for point in one.survival],
                yerr=[[_below(point) for point in one.survival], [_above(point) for point in one.survival]],
                color=colour(at),
                marker=marker(at),
                capsize=3,
                label=name(one.workload),
            )
        axes.set_xlim(0.6, deepest + 0.5)
        axes.set_xticks(range(1, deepest + 1))
        axes.set_ylim(0.0, 1.0)
        axes.grid(visible=False, axis="x")
        legend(figure, axes, 4)


def draw_break_even(findings: Findings, title: str, figure: Figure) -> None:
    """Theta* of each kind of prompts by batch, and its acceptance rate as a level."""
    with panel(figure.subplots(), title, y="acceptance rate") as axes:
        highest = 0.4
        for at, workload in enumerate(chosen.workloads(findings)):
            points = sorted(
                (one for one in findings.break_evens if one.workload == workload),
                key=lambda one: one.sequences,
            )
            found = findings.survivals.get(workload)
            if not points or found is None or found.acceptance_rate is None:
                continue
            thetas = [one.theta for one in points]
            axes.plot(
                [one.sequences for one in points],
                thetas,
                color=colour(at),
                marker=marker(at),
                label=f"needed: {name(workload)}",
            )
            axes.axhline(
                found.acceptance_rate, color=colour(at), linestyle="--", label=f"measured: {name(workload)}"
            )
            highest = max(highest, found.acceptance_rate, *thetas)
        # Above 1 no acceptance is enough; how far above tells nothing.
        axes.set_ylim(0.0, min(1.05, 1.15 * highest))
        batch_axis(axes, sorted({one.sequences for one in findings.break_evens}))
        legend(figure, axes, 4)


def batch_axis(axes: Axes, batches: Sequence[int]) -> None:
    """A logarithmic x axis whose ticks are the batches that were measured."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(batches), [str(batch) for batch in batches])
    axes.minorticks_off()
    axes.set_xlabel("sequences at once (B)")


def _below(point: Estimate) -> float:
    return 0.0 if point.low is None else max(0.0, point.value - point.low)


def _above(point: Estimate) -> float:
    return 0.0 if point.high is None else max(0.0, point.high - point.value)
