"""The plots of `benchmarks.evaluate` as SVG files: policies on each load, and what a larger fleet takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.evaluate_cells import Panel
from benchmarks.evaluate_compare import Row, front
from benchmarks.evaluate_figures import Results
from benchmarks.evaluate_plan import BOUNDS, FLEET_HOURS, OURS, Traffic
from benchmarks.evaluate_records import FleetRun
from benchmarks.results import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINEAR_BELOW: Final = 0.1  # percent of misses up to which the axis is linear, since a logarithm has no 0


@dataclass(frozen=True, slots=True)
class Look:
    """How a policy is drawn; the colours are told apart by the colour-blind (Okabe and Ito, 2008)."""

    colour: str
    marker: str
    size: float = 7.0


DEFAULT: Final = Look("#D55E00", "*", 15.0)
VARIANT: Final = Look("#E69F00", "*", 12.0)
ONE_POOL: Final = Look("#0072B2", "s")
STATIC: Final = Look("#999999", "o")
RULE: Final = Look("#009E73", "^", 8.0)
BOUND: Final = Look("#000000", "D")


def look_of(contender: str) -> Look:
    """By what kind of policy it is."""
    if contender.startswith(OURS):
        return DEFAULT if contender == OURS else VARIANT
    if contender in BOUNDS:
        return BOUND
    if contender.startswith("static"):
        return STATIC
    return ONE_POOL if contender.startswith(("all-", "one-pool")) else RULE


def plot_loads(folder: Path, found: Results) -> dict[Traffic, str]:
    """Write a plot per load, a panel per delay; the files' names."""
    names = {}
    for traffic in found.plan.traffics:
        panels = {panel: rows for panel, rows in found.panels.items() if panel.traffic is traffic}
        names[traffic] = f"evaluation-{traffic.value}.svg"
        _save(_loads_figure(panels), folder / names[traffic])
    return names


def plot_fleets(folder: Path, fleets: Mapping[int, FleetRun]) -> str | None:
    """Write seconds over replicas; the file's name, None without two sizes."""
    if len(fleets) < 2:
        return None
    name = "evaluation-fleet.svg"
    _save(_fleet_figure(fleets), folder / name)
    return name


def _loads_figure(panels: Mapping[Panel, Sequence[Row]]) -> Figure:
    from matplotlib.figure import Figure  # noqa: PLC0415  # a second, and nothing else needs it

    figure = Figure(figsize=(9.0, 4.6 * len(panels)), layout="constrained")
    column = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axes, (panel, rows) in zip(column, panels.items(), strict=True):
        _panel(axes, panel, rows)
    column[-1].set_xlabel(
        f"interactive requests that were not in time, % (logarithmic above {LINEAR_BELOW:g} %)"
    )
    return figure


def _panel(axes: Axes, panel: Panel, rows: Sequence[Row]) -> None:
    axes.set_xscale("symlog", linthresh=LINEAR_BELOW, linscale=0.5)
    best = front(rows)
    axes.step(
        [100 * one.misses.value for one in best],
        [one.batch.value for one in best],
        where="post",
        color="0.6",
        linewidth=1.0,
        linestyle="--",
        zorder=1,
    )
    for row in rows:
        look = look_of(row.contender)
        axes.errorbar(
            100 * row.misses.value,
            row.batch.value,
            xerr=_reach(row.misses.value, row.misses.low, row.misses.high, 100.0),
            yerr=_reach(row.batch.value, row.batch.low, row.batch.high, 1.0),
            color=look.colour,
            marker=look.marker,
            markersize=look.size,
            markerfacecolor=look.colour if row in best or row.contender in BOUNDS else "white",
            linestyle="none",
            elinewidth=1.0,
            zorder=4 if row.contender == OURS else 3,
        )
    axes.set_xlim(-0.02, 100.0)
    axes.set_ylim(bottom=0.0)
    axes.set_xticks([0, 0.1, 1, 10, 100], ["0", "0.1", "1", "10", "100"])
    axes.set_ylabel("batch tokens per second")
    axes.set_title(f"{panel.traffic.value}, a started replica serves after {panel.delay_s:g} s", loc="left")
    axes.grid(alpha=0.3)
    _label(axes, rows)


def _label(axes: Axes, rows: Sequence[Row]) -> None:
    """Names in a column at the right, from top to bottom as the markers lie, each with a line to its own."""
    ordered = sorted(rows, key=lambda one: (one.batch.value, -one.misses.value))
    for place, row in enumerate(ordered):
        look = look_of(row.contender)
        axes.annotate(
            row.contender,
            xy=(100 * row.misses.value, row.batch.value),
            xytext=(1.03, (place + 0.5) / len(ordered)),
            textcoords="axes fraction",
            verticalalignment="center",
            fontsize=9,
            fontweight="bold" if row.contender == OURS else "normal",
            color="black",
            arrowprops={
                "arrowstyle": "-",
                "color": look.colour,
                "linewidth": 0.6,
                "alpha": 0.7,
                "relpos": (0.0, 0.5),
                "shrinkA": 1.0,
            },
            annotation_clip=False,
        )


def _reach(value: float, low: float | None, high: float | None, scale: float) -> list[list[float]] | None:
    """How far an interval reaches below and above; a share's ends lie within 0 and 1."""
    if low is None or high is None:
        return None
    return [[scale * (value - max(0.0, low))], [scale * (high - value)]]


def _fleet_figure(fleets: Mapping[int, FleetRun]) -> Figure:
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure.subplots()
    sizes = sorted(fleets)
    seconds = [fleets[size].seconds for size in sizes]
    axes.plot(sizes, seconds, color=ONE_POOL.colour, marker="o")
    for size, taken in zip(sizes, seconds, strict=True):
        axes.annotate(
            f"{number(taken)} s", (size, taken), xytext=(0, 8), textcoords="offset points", ha="center"
        )
    axes.set_xlim(left=0)
    axes.set_ylim(0, 1.15 * max(seconds))
    axes.set_xlabel("replicas")
    axes.set_ylabel("seconds on one core")
    axes.set_title(f"{FLEET_HOURS:g} hours of a fleet in the fluid model", loc="left")
    axes.grid(alpha=0.3)
    return figure


def _save(figure: Figure, path: Path) -> None:
    """Without a date and with fixed ids, so that the same data make the same file."""
    import matplotlib as mpl  # noqa: PLC0415

    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": path.stem}):
        figure.savefig(path, format="svg", metadata={"Date": None})
