"""The curves of `benchmarks.goodput` as SVG files, one per method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.goodput_figures import Block, curve, of
from benchmarks.goodput_plan import CONDITIONS, TTFT_S, WEIGHT, Configuration, Method, RoutingKind
from benchmarks.goodput_tables import words

COLOURS: Final = {
    Configuration.ALL_PLAIN: "tab:gray",
    Configuration.ALL_SPECULATIVE: "tab:orange",
    Configuration.ONE_POOL_TABLE: "tab:blue",
    Configuration.TWO_POOLS: "tab:green",
}
STYLES: Final = {RoutingKind.OURS: "-", RoutingKind.LEAST_LOADED: ":"}


def plot(folder: Path, method: Method, blocks: Sequence[Block]) -> str:
    """Write goodput against the objective with its 95 % bands; the file's name."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # a second, and nothing else needs it

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots()
    for condition in CONDITIONS:
        found = curve(of(blocks, method, condition))
        if not found:
            continue
        at_ms = [1000 * tpot_s for tpot_s in found]
        colour = COLOURS[condition.configuration]
        values = [one.value for one in found.values()]
        axes.plot(
            at_ms, values, STYLES[condition.routing], color=colour, marker="o", ms=3, label=words(condition)
        )
        low = [one.value if one.low is None else one.low for one in found.values()]
        high = [one.value if one.high is None else one.high for one in found.values()]
        axes.fill_between(at_ms, low, high, color=colour, alpha=0.08, linewidth=0)
    axes.set_xlabel(f"TPOT objective in ms (TTFT objective {TTFT_S:g} s)")
    axes.set_ylabel(f"goodput: {WEIGHT:g} x interactive tokens in time + batch tokens, per second")
    axes.set_ylim(bottom=0)
    axes.set_title(method.in_words)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, ncols=2)
    name = f"goodput-{method.value.replace('_', '-')}.svg"
    folder.mkdir(parents=True, exist_ok=True)
    # Without a date and with fixed ids the same data make the same file.
    import matplotlib as mpl  # noqa: PLC0415

    with mpl.rc_context({"svg.hashsalt": method.value}):
        figure.savefig(folder / name, format="svg", metadata={"Date": None})
    return name
