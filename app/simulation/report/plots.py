"""The plots of a simulation, by name; each is left out when there is nothing to draw."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from app.report.canvas import GREY, colour, legend, marker, panel, svg
from app.report.words import ms, name
from app.simulation.report import plots_pools
from app.simulation.report.judged import KEPT
from app.simulation.report.over_time import line, unit
from app.simulation.report.subject import Subject
from app.simulation.scores import Moment, Scores
from autoscaling.types import Tier

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 6  # policies that can be told apart in one plot; the tables have all
STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))  # lines that lie on each other stay apart
ATTAINMENT, TPOT, TRADE = "attainment", "time-per-token", "trade"
FILES: Final = re.compile(rf"(?:{ATTAINMENT}|{TPOT}|{TRADE}|capacity-\d+)\.svg")
WIDTH = 9.0  # inches
Draw = Callable[["Figure"], None]


def plots(subject: Subject) -> dict[str, str]:
    """Every plot that can be drawn: name -> SVG text."""
    return {key: svg(key, title_of(subject, key), draw, size) for key, (draw, size) in _all(subject).items()}


def plot_names(subject: Subject) -> tuple[str, ...]:
    """What `plots` draws, without drawing it."""
    return tuple(_all(subject))


def title_of(subject: Subject, key: str) -> str:
    """The title of a plot by its name."""
    known = {
        ATTAINMENT: "Requests in time, by when they arrived",
        TPOT: "Time per output token, by when the requests arrived",
        TRADE: f"What each {subject.kind} brings",
    }
    names = {capacity_key(at): one for at, one in enumerate(shown(subject))}
    return known[key] if key in known else f"Demand and capacity: {name(names[key])}"


def capacity_key(at: int) -> str:
    """The name of the plot of the pools under the policy number `at`."""
    return f"capacity-{at}"


def shown(subject: Subject) -> tuple[str, ...]:
    """The policies that the plots over time have."""
    return tuple(subject.scores)[:MOST]


def tiers_with(subject: Subject, value: Callable[[Moment, Tier], float | None]) -> tuple[Tier, ...]:
    """The tiers of which a value is known at some moment under some policy that is shown."""
    return tuple(
        tier
        for tier in subject.tiers()
        if any(
            value(moment, tier) is not None for one in shown(subject) for moment in subject.scores[one].series
        )
    )


def attainment_of(moment: Moment, tier: Tier) -> float | None:
    """The share of a tier's requests that were in time."""
    return moment.attainment.get(tier)


def tpot_of(moment: Moment, tier: Tier) -> float | None:
    """The 95th percentile of a tier's time per token, in seconds."""
    return moment.tpot_p95_s.get(tier)


def _all(subject: Subject) -> dict[str, tuple[Draw, tuple[float, float]]]:
    found: dict[str, tuple[Draw, tuple[float, float]]] = {}
    if (tier := _trade_tier(subject)) is not None:
        found[TRADE] = partial(_draw_trade, subject, tier), (WIDTH, 4.8)
    for at, one in enumerate(shown(subject)):
        scores = subject.scores[one]
        if scores.series:
            key = capacity_key(at)
            found[key] = partial(plots_pools.draw_capacity, scores, title_of(subject, key)), plots_pools.SIZE
    if tiers := tuple(tier for tier in tiers_with(subject, attainment_of) if subject.promise(tier).is_any):
        found[ATTAINMENT] = partial(_draw_attainment, subject, tiers), _stacked(tiers)
    if tiers := tiers_with(subject, tpot_of):
        found[TPOT] = partial(_draw_tpot, subject, tiers), _stacked(tiers)
    return found


def _stacked(tiers: tuple[Tier, ...]) -> tuple[float, float]:
    return WIDTH, 1.3 + 2.2 * len(tiers)


def _draw_attainment(subject: Subject, tiers: tuple[Tier, ...], figure: Figure) -> None:
    def one_tier(axes: Axes, tier: Tier) -> None:
        _lines(axes, subject, lambda moment: _times(100.0, attainment_of(moment, tier)))
        axes.axhline(
            100 * KEPT, color="black", linewidth=1, linestyle=(0, (6, 3)), label=f"promised: {KEPT:.0%}"
        )
        axes.set_ylim(0.0, 104.0)

    _panels(figure, subject, tiers, title_of(subject, ATTAINMENT), "in time, %", one_tier)


def _draw_tpot(subject: Subject, tiers: tuple[Tier, ...], figure: Figure) -> None:
    def one_tier(axes: Axes, tier: Tier) -> None:
        _lines(axes, subject, lambda moment: _times(1000.0, tpot_of(moment, tier)))
        objective = subject.promise(tier).tpot_s
        if objective is not None:
            axes.axhline(
                1000 * objective, color="black", linewidth=1, linestyle=(0, (6, 3)), label="promised"
            )
            axes.annotate(
                f"{ms(objective)} ms",
                (0.0, 1000 * objective),
                xycoords=("axes fraction", "data"),
                xytext=(3, 2),
                textcoords="offset points",
                fontsize=9,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
            )
        axes.set_ylim(bottom=0.0)

    _panels(figure, subject, tiers, title_of(subject, TPOT), "p95, ms per token", one_tier)


def _panels(
    figure: Figure,
    subject: Subject,
    tiers: tuple[Tier, ...],
    title: str,
    y: str,
    draw: Callable[[Axes, Tier], None],
) -> None:
    """One panel for each tier, below each other, on one time axis."""
    grid = figure.subplots(len(tiers), 1, squeeze=False, sharex=True)
    seconds = subject.scores[subject.asked].seconds
    per, label = unit(seconds)
    for axes, tier in zip(grid.flat, tiers, strict=True):
        last = tier is tiers[-1]
        with panel(axes, tier.value, f"{label} since the trace began" if last else None, y):
            draw(axes, tier)
            axes.set_xlim(0.0, seconds / per)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    legend(figure, max(grid.flat, key=lambda axes: len(axes.get_legend_handles_labels()[1])))


def _lines(axes: Axes, subject: Subject, value: Callable[[Moment], float | None]) -> None:
    for at, one in enumerate(shown(subject)):
        x, y = line(subject.scores[one], value)
        axes.plot(x, y, color=colour(at), linestyle=STYLES[at], linewidth=1.6, label=name(one))


def _trade_tier(subject: Subject) -> Tier | None:
    """The tier whose attainment the plot of all policies shows; None where it would show one point."""
    tiers = [tier for tier in subject.tiers() if subject.promise(tier).is_any]
    return tiers[0] if len(subject.scores) > 1 and tiers else None


def _draw_trade(subject: Subject, tier: Tier, figure: Figure) -> None:
    """All policies as points: up and to the right is better."""
    with panel(
        figure.subplots(),
        title_of(subject, TRADE),
        "answer tokens per second, all tiers",
        f"{tier} in time, %",
    ) as axes:
        for at, (one, scores) in enumerate(subject.scores.items()):
            share = _share(scores, tier)
            if share is not None:
                axes.plot(
                    [scores.tokens_per_s],
                    [100 * share],
                    linestyle="none",
                    marker=marker(at + at // 7),
                    markersize=9,
                    markerfacecolor="none",  # points that lie on each other are both seen
                    markeredgewidth=2,
                    color=colour(at),
                    label=name(one),
                )
        axes.axhline(100 * KEPT, color=GREY, linewidth=1, linestyle=(0, (6, 3)), label="promised")
        axes.set_ylim(0.0, 104.0)
        axes.set_xlim(0.0, max(1.0, 1.08 * max(scores.tokens_per_s for scores in subject.scores.values())))
        legend(figure, axes)


def _share(scores: Scores, tier: Tier) -> float | None:
    return scores.tiers[tier].attainment if tier in scores.tiers else None


def _times(factor: float, value: float | None) -> float | None:
    return None if value is None else factor * value
