"""The page, the figures and the plot of `benchmarks.engine_check`."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.simulation.engine_check import Checked
from autoscaling.profiling.measured import Measurement
from autoscaling.types import Role
from benchmarks.engine_check_plan import PROMPTS, TARGET, Plan
from benchmarks.results import Target, markdown_table

HEAD: Final = (
    *("engine", "prompts", "K", "sequences", "tokens/s", "simulated", "error"),
    *("step ms", "simulated", "tokens per step", "simulated", "TPOT ms", "simulated"),
)
TARGETS: Final[Mapping[str, Target]] = {"engine_check_worst_error": ("<=", TARGET)}
PLOT: Final = "engine-check.svg"
COLOURS: Final = ("tab:blue", "tab:orange", "tab:green")  # by kind of prompts
MARKERS: Final = {Role.SPECULATIVE: "o", Role.PLAIN: "s"}


@dataclass(frozen=True, slots=True)
class Run:
    """One run, and what it found."""

    plan: Plan
    measurement: Measurement
    checked: Sequence[Checked]

    @property
    def by_error(self) -> list[Checked]:
        """The held-out cells, the worst first."""
        return sorted(self.checked, key=lambda one: -abs(one.error))


def figures(checked: Sequence[Checked]) -> dict[str, float]:
    """Of the held-out cells; errors of tokens per second are shares of what was measured."""
    errors = [abs(one.error) for one in checked]
    tpots = [abs(found) for one in checked if (found := one.tpot_error) is not None]
    return {
        "engine_check_worst_error": max(errors),
        "engine_check_mean_error": statistics.fmean(errors),
        "engine_check_cells": float(len(checked)),
        **({"engine_check_mean_tpot_error": statistics.fmean(tpots)} if tpots else {}),
    }


def rows(checked: Sequence[Checked]) -> list[list[str]]:
    """One line of the table for each cell, in the order of `HEAD`."""
    return [
        [
            one.cell.engine.value,
            one.cell.workload,
            str(one.cell.draft_length),
            str(one.cell.sequences),
            *(f"{pace.tokens_per_s:.1f}" for pace in (one.measured, one.simulated)),
            f"{one.error:+.1%}",
            *(f"{1000 * pace.step_s:.1f}" for pace in (one.measured, one.simulated)),
            *(f"{pace.tokens_per_step:.2f}" for pace in (one.measured, one.simulated)),
            *(_ms(pace.tpot_s) for pace in (one.measured, one.simulated)),
        ]
        for one in checked
    ]


def page(run: Run) -> str:
    """What was measured and held out, the plot, and every held-out cell, the worst first."""
    plan, found = run.plan, run.measurement
    rounds = len({one.round for one in found.runs})
    made = (
        f"The model of `make serve` on one core for each engine, one speculative (n-gram) and one plain, "
        f"vLLM {found.fingerprint.engine_version}.\n"
        f"Cells: batches {_words(plan.batches)}, K {_words(plan.lengths)}, prompts {', '.join(plan.kinds)}; "
        f"answers of {plan.answer_tokens} tokens; {rounds} {'round' if rounds == 1 else 'rounds'}, "
        "interleaved; the median of the rounds counts.\n"
        f"Every cell answers the same {PROMPTS} prompts of its length, which lie in the prefix cache.\n"
        "Held out of the fit is every other cell, as on a chess board: each batch, K and length of prompts "
        "is in the fit, and no held-out combination of them.\n"
        "The other cells make a profile, as `twinpool bench` makes it, and the profile makes the simulated "
        "engines; these run each held-out cell as the real ones did.\n"
        "Tokens per second are those of whole answers: what all decode steps bring over their seconds. "
        "Errors are simulated over measured, less 1.\n"
        "TPOT is what a caller sees, and has the way through the HTTP server in it where it was measured."
    )
    if plan.quick:
        made = f"A quick run, which shows that it runs and little more.\n{made}"
    notes = "\n".join(f"- {words}" for words in found.cut)
    parts = [
        made,
        f"![Tokens per second of every held-out cell, measured and simulated]({PLOT})",
        "## Held-out cells, the worst first",
        markdown_table(HEAD, rows(run.by_error)),
        f"## Notes\n\n{notes}" if notes else "",
    ]
    return "\n\n".join(part for part in parts if part)


def plot(folder: Path, checked: Sequence[Checked]) -> str:
    """Write measured against simulated tokens per second, with the line of equals; the file's name."""
    import matplotlib as mpl  # noqa: PLC0415  # a second, and nothing else needs it
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter  # noqa: PLC0415

    figure = Figure(figsize=(6.5, 6), layout="constrained")
    axes = figure.subplots()
    paces = [pace.tokens_per_s for one in checked for pace in (one.measured, one.simulated)]
    ends = (0.8 * min(paces), 1.25 * max(paces))
    axes.plot(ends, ends, color="black", linewidth=1, label="as measured")
    low, high = ([end * factor for end in ends] for factor in (1 - TARGET, 1 + TARGET))
    axes.fill_between(ends, low, high, color="black", alpha=0.08, linewidth=0, label=f"within {TARGET:.0%}")
    for colour, kind in zip(COLOURS, dict.fromkeys(one.cell.workload for one in checked), strict=False):
        for role, marker in MARKERS.items():
            here = [one for one in checked if (one.cell.workload, one.cell.engine) == (kind, role)]
            axes.plot(
                [one.measured.tokens_per_s for one in here],
                [one.simulated.tokens_per_s for one in here],
                marker,
                color=colour,
                alpha=0.7,
                label=f"{kind}, {role}",
            )
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("tokens per second of a real engine")
    axes.set_ylabel("tokens per second of the simulated engine")
    axes.set_title("Cells that the fit has not seen")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    folder.mkdir(parents=True, exist_ok=True)
    # Without a date and with fixed ids the same data make the same file.
    with mpl.rc_context({"svg.hashsalt": PLOT}):
        figure.savefig(folder / PLOT, format="svg", metadata={"Date": None})
    return PLOT


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1000 * seconds:.1f}"


def _words(numbers: Sequence[int]) -> str:
    return ", ".join(str(number) for number in numbers)
