"""The plot of one policy's pools over time: demand against capacity, and replicas, with every move marked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from app.report.canvas import GREY, colour, legend
from app.simulation.report.over_time import line, unit
from app.simulation.scores import Moment, Scores
from autoscaling.types import Role

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (9.0, 6.8)  # inches
DEMAND = colour(0)
REPLICAS: Mapping[Role, tuple[str, str]] = {Role.SPECULATIVE: (colour(2), "-"), Role.PLAIN: (colour(1), "--")}
COMES, GOES = "^", "v"
MOST_MARKS = 60  # moves that can be told apart; more are in the table alone


def draw_capacity(scores: Scores, title: str, figure: Figure) -> None:
    """A panel for each pool with demand, capacity and moves, and one with the replicas of both."""
    panels = figure.subplots(3, 1, sharex=True, gridspec_kw={"height_ratios": [1, 1, 0.8]})
    for axes, role in zip(panels, Role, strict=False):
        _pool(axes, scores, role)
    _replicas(panels[-1], scores)
    per, label = unit(scores.seconds)
    panels[-1].set_xlabel(f"{label} since the trace began")
    panels[-1].set_xlim(0.0, scores.seconds / per)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    legend(figure, panels[0], 4)


def _pool(axes: Axes, scores: Scores, role: Role) -> None:
    x, capacity = line(scores, lambda moment: moment.capacity.get(role))
    _, demand = line(scores, lambda moment: moment.demand.get(role))
    axes.fill_between(
        x, capacity, step="post", color="#d1d5db", linewidth=0, label="capacity inside the limits"
    )
    axes.plot(x, demand, color=DEMAND, linewidth=1.6, label="demand")
    axes.set_ylim(bottom=0.0)
    axes.set_title(role.value)
    axes.set_ylabel("sequences")
    per, _ = unit(scores.seconds)
    for shape, words, moves in (
        (COMES, "a replica comes", [move.at_s for move in scores.moves if move.receiver is role]),
        (GOES, "a replica goes", [move.at_s for move in scores.moves if move.source is role]),
    ):
        # The legend is that of the first panel, also where only the other one has a move.
        axes.plot([], [], linestyle="none", marker=shape, markersize=7, color="black", label=words)
        (marks,) = axes.plot(
            [at_s / per for at_s in moves[:MOST_MARKS]],
            [0.96] * len(moves[:MOST_MARKS]),
            transform=axes.get_xaxis_transform(),
            linestyle="none",
            marker=shape,
            markersize=7,
            color="black",
            clip_on=False,
        )
        marks.set_in_layout(False)  # without any it has no size


def _replicas(axes: Axes, scores: Scores) -> None:
    for role, (ink, style) in REPLICAS.items():
        x, running = line(scores, partial(_running, role))
        axes.plot(
            x, running, drawstyle="steps-post", color=ink, linestyle=style, linewidth=1.8, label=role.value
        )
    x, switching = line(scores, _switching)
    axes.fill_between(
        x, switching, step="post", color=GREY, alpha=0.45, linewidth=0, label="starting or draining"
    )
    axes.set_ylim(0.0, 1.45 * axes.get_ylim()[1])  # the legend has a place of its own
    axes.set_title("replicas of both pools")
    axes.set_ylabel("replicas")
    axes.legend(loc="upper right", ncols=3, fontsize=9, frameon=True, framealpha=0.8)


def _running(role: Role, moment: Moment) -> float | None:
    return moment.running.get(role)


def _switching(moment: Moment) -> float:
    return sum((*moment.starting.values(), *moment.draining.values()))
