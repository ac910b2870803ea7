"""From the results of `benchmarks.evaluate` to docs/evaluation.md and the page beside its figures; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.evaluate_figures import Results, growth
from benchmarks.evaluate_page_words import (
    BELIEFS,
    FLEETS,
    FOUND,
    HEAD,
    LIMITS,
    LONG,
    MODELS,
    PANEL_WORDS,
    QUICK_WORDS,
    SIMULATED,
    SPLITS,
)
from benchmarks.evaluate_plan import REPLICAS, Traffic
from benchmarks.evaluate_tables import (
    FLEET_HEAD,
    GAP_HEAD,
    LONG_HEAD,
    PARETO_HEAD,
    SENSED_HEAD,
    SPLIT_HEAD,
    fleet_rows,
    gap_rows,
    long_rows,
    pareto_rows,
    sensed_rows,
    split_rows,
)
from benchmarks.evaluate_words import listed, sensitivities, statics, verdicts
from benchmarks.results import markdown_table, number


@dataclass(frozen=True, slots=True)
class Plots:
    """Names of the plots' files; None for one that cannot be drawn."""

    loads: Mapping[Traffic, str]
    fleet: str | None


def page(found: Results, contenders: Mapping[str, str], plots: Plots, images: str, *, quick: bool) -> str:
    """The whole of docs/evaluation.md; `contenders` are a sentence each, `images` the folder of the plots."""
    parts = [HEAD.strip(), QUICK_WORDS.strip() if quick else ""]
    parts += [
        "## What was simulated",
        SIMULATED.format(**_sizes(found, found.plan.minutes)).strip(),
        _list(_loads(found)),
    ]
    parts += ["## The policies", _list(f"`{name}`: {words}." for name, words in contenders.items())]
    parts += ["## What was found", FOUND.strip(), _lines(verdicts(found))]
    parts += ["## Policies on each load", PANEL_WORDS.strip()]
    for traffic in found.plan.traffics:
        parts += [f"### {traffic.value.capitalize()}", *_load_parts(found, traffic, plots, images)]
    parts += ["## The best static split", SPLITS.strip(), *_split_parts(found), _lines(statics(found))]
    parts += [
        "## Wrong beliefs and late figures",
        BELIEFS.format(sensed=found.plan.sensed_seeds).strip(),
        _sensed_table(found),
    ]
    parts += [_lines(sensitivities(found.sensed))]
    parts += ["## Two models of the same service", MODELS.strip(), _gap_table(found)]
    parts += ["## Whole traces", LONG.format(**_sizes(found, found.plan.long_minutes)).strip()]
    parts += [markdown_table(LONG_HEAD, long_rows(found.hours))]
    parts += ["## Large fleets", FLEETS.strip(), *_fleet_parts(found, plots, images)]
    parts += ["## Limits of the model", LIMITS.strip()]
    return "\n\n".join(part for part in parts if part) + "\n"


def results_text(found: Results) -> str:
    """The page beside the figures: the tables, and what they say of the default policy."""
    parts = ["What these figures are stands in [docs/evaluation.md](../../docs/evaluation.md)."]
    for panel, rows in found.panels.items():
        parts += [
            f"## {panel.traffic.value.capitalize()}, a started replica serves after {panel.delay_s:g} s",
            markdown_table(PARETO_HEAD, pareto_rows(rows, found.best[panel.traffic])),
        ]
    parts += ["## The default policy", _lines(verdicts(found)), "## Static splits", *_split_parts(found)]
    parts += ["## Wrong beliefs and late figures", _sensed_table(found)]
    parts += ["## Two models", _gap_table(found)]
    parts += ["## Whole traces", markdown_table(LONG_HEAD, long_rows(found.hours))]
    parts += ["## Fleets", _fleet_table(found)]
    return "\n\n".join(part for part in parts if part)


def _sizes(found: Results, minutes: float) -> dict[str, object]:
    plan = found.plan
    return {
        "minutes": f"{minutes:g}",
        "seeds": len(plan.seeds),
        "delays": listed([f"{delay_s:g}" for delay_s in plan.delays_s]),
    }


def _loads(found: Results) -> Iterable[str]:
    for traffic, words in found.loads.items():
        for sentence in words:
            yield f"`{traffic.value}`: {sentence}"


def _load_parts(found: Results, traffic: Traffic, plots: Plots, images: str) -> list[str]:
    parts = [f"![Misses against batch tokens, {traffic.value}]({images}/{plots.loads[traffic]})"]
    for panel, rows in found.panels.items():
        if panel.traffic is traffic:
            parts += [
                f"A started replica serves after {panel.delay_s:g} s:",
                markdown_table(PARETO_HEAD, pareto_rows(rows, found.best[traffic])),
            ]
    return parts


def _split_parts(found: Results) -> list[str]:
    parts = []
    for traffic, splits in found.splits.items():
        parts += [
            f"{traffic.value.capitalize()}, of {REPLICAS} replicas:",
            markdown_table(SPLIT_HEAD, split_rows(splits, found.best[traffic])),
        ]
    return parts


def _sensed_table(found: Results) -> str:
    return markdown_table(SENSED_HEAD, sensed_rows(found.sensed))


def _gap_table(found: Results) -> str:
    return markdown_table(GAP_HEAD, gap_rows(found.gaps))


def _fleet_table(found: Results) -> str:
    return markdown_table(FLEET_HEAD, fleet_rows(found.fleets))


def _fleet_parts(found: Results, plots: Plots, images: str) -> list[str]:
    parts = [_fleet_table(found)]
    power = growth(found.fleets)
    if power is not None:
        parts.append(f"The seconds grow with the replicas to the power of {number(power)}; 1 is linear.")
    if plots.fleet is not None:
        parts.append(f"![Seconds for a day against replicas]({images}/{plots.fleet})")
    return parts


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _lines(sentences: Iterable[str]) -> str:
    return "\n".join(sentences)
