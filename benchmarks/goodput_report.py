"""From the figures of `benchmarks.goodput` to its page: tables, and what they show in words; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from autoscaling.profiling.findings import PoolAnswer
from benchmarks.goodput_engines import SYNTHETIC_RATES
from benchmarks.goodput_figures import Block, Compared
from benchmarks.goodput_plan import (
    BATCH_SLOT_LIMIT,
    BATCH_STREAMS,
    BATCH_TOKENS,
    FLAT,
    IN_FORCE_S,
    INTERACTIVE_TOKENS,
    MAX_NUM_SEQS,
    RESERVE,
    SURE_WIN,
    TABLE_AT,
    TPOTS_S,
    TTFT_S,
    UNMEASURED_LIMIT,
    WEIGHT,
    WIN,
    Method,
    Plan,
)
from benchmarks.goodput_records import Calibration, LeftOut
from benchmarks.goodput_tables import (
    BATCH_HEAD,
    COMPARED_HEAD,
    CURVE_HEAD,
    PREDICTION_HEAD,
    attainment_rows,
    batch_rows,
    compared_rows,
    curve_rows,
    engine_rows,
    gain_words,
    prediction_rows,
    table_words,
    words,
)
from benchmarks.results import markdown_table, number

COMPARED_WORDS: Final = """The best other is the one of seven with the highest mean, which is in part chance.
`worse than` counts the others that are better for sure: Dunnett's test over rounds, so that with 95 % none
of all comparisons of the run is wrong.
`two over one` is two pools under our routing over the best condition of a single pool, by their means."""
ENGINE_HEAD: Final = ("engine", "base ms", "per token ms", "drafting ms", "mean error of the fit")


@dataclass(frozen=True, slots=True)
class Run:
    """Everything that a run has found."""

    plan: Plan
    calibrations: Mapping[Method, Calibration]
    left_out: Mapping[Method, LeftOut]
    blocks: Sequence[Block]  # of whole rounds
    compared: Sequence[Compared]
    plots: Mapping[Method, str]  # file names beside the page


def sentences(run: Run) -> list[str]:
    """What the figures say, and what they do not."""
    said = []
    for method in dict.fromkeys(one.method for one in run.compared):
        said += _of_method(method, [one for one in run.compared if one.method is method])
    if len({block.round for block in run.blocks}) < 2:
        said.append("One round has no interval: nothing is shown to be better or worse.")
    said += [f"{one.method.in_words} was left out: {one.words}." for one in run.left_out.values()]
    return said


def _of_method(method: Method, found: Sequence[Compared]) -> list[str]:
    said = []
    two = [one for one in found if one.answer is PoolAnswer.TWO_POOLS]
    sure = [one for one in two if one.predicted_win]
    if not two:
        said.append(f"{method.in_words}: by its profile one pool is enough at every objective.")
    elif not sure:
        said.append(
            f"{method.in_words}: its profile names two pools at {_at(two)}, "
            f"nowhere {number(SURE_WIN)} x the best single pool or more."
        )
    else:
        held = [one for one in sure if (one.two_over_one or 0.0) >= WIN]
        said.append(
            f"{method.in_words}: its profile predicts that two pools win at {_at(sure)}; "
            f"at {len(held)} of {len(sure)} they sold {number(WIN)} x the best single pool or more."
        )
    for one in found:
        if one.worse_than:
            others = " and ".join(words(rival) for rival in one.worse_than)
            said.append(
                f"{method.in_words} at {_at([one])}: {others} sold more for sure than {words(one.ours)}, "
                "which the profile names."
            )
    return said


def _at(found: Sequence[Compared]) -> str:
    return ", ".join(f"{1000 * one.tpot_s:.0f}" for one in found) + " ms"


def page(run: Run) -> str:
    """The Markdown above the verdicts."""
    parts = [_method_text(run.plan), "## Our configuration against the others"]
    parts += [COMPARED_WORDS, markdown_table(COMPARED_HEAD, compared_rows(run.compared))]
    parts.append("\n".join(sentences(run)))
    for method in dict.fromkeys(block.method for block in run.blocks):
        parts += _method_parts(run, method)
    return "\n\n".join(part for part in parts if part)


def _method_parts(run: Run, method: Method) -> list[str]:
    found = run.calibrations[method].found
    plot = run.plots.get(method)
    rates = ", ".join(number(one) for one in SYNTHETIC_RATES)
    return [
        f"## {method.in_words}",
        f"vLLM accepts drafts here with prescribed chances, {rates} for positions 1, 2, 3 and all before: "
        "what is measured is a drafter's cost with that gain, not this drafter's quality."
        if method.synthetic
        else "",
        f"![Goodput against the objective, {method.in_words}]({plot})" if plot else "",
        f"Goodput, interactive tokens in time weighing {WEIGHT:g}, with 95 % intervals over rounds:",
        markdown_table(CURVE_HEAD, curve_rows(run.blocks, method)),
        f"The same with a weight of {FLAT:g}:",
        markdown_table(CURVE_HEAD, curve_rows(run.blocks, method, FLAT)),
        "Share of interactive requests in time:",
        markdown_table(CURVE_HEAD, attainment_rows(run.blocks, method)),
        "Batch alone, and the interactive requests that arrived:",
        markdown_table(BATCH_HEAD, batch_rows(run.blocks, method)),
        f"Calibration of {run.calibrations[method].at}, before the first load:",
        markdown_table(ENGINE_HEAD, engine_rows(found)),
        "Predicted goodput under our routing, as shares of the best:",
        markdown_table(PREDICTION_HEAD, prediction_rows(found)),
        f"Tokens per step: {gain_words(found)}.\nK table of the engine: {table_words(found.table)}.",
    ]


def _method_text(plan: Plan) -> str:
    return METHOD.format(
        rounds=plan.rounds,
        window=plan.window,
        conditions=len(plan.conditions),
        rate=plan.window.rate_per_s,
        interactive=INTERACTIVE_TOKENS,
        streams=BATCH_STREAMS,
        batch=BATCH_TOKENS,
        ttft=TTFT_S,
        tpots=", ".join(f"{1000 * one:.0f}" for one in TPOTS_S),
        in_force=", ".join(f"{1000 * one:.0f}" for one in IN_FORCE_S),
        unmeasured=UNMEASURED_LIMIT,
        weight=WEIGHT,
        most=MAX_NUM_SEQS,
        limit=BATCH_SLOT_LIMIT,
        reserve=RESERVE,
        at=" and ".join(str(one) for one in TABLE_AT),
    )


METHOD: Final = """Two engine slots, each one CPU core, under one load: does a second pool pay?

Configurations: both slots plain; both speculative with a fixed K; both speculative with the engine's K table;
one speculative with the table and one plain.
Routing: the slot with fewest open requests, or our own rules with slot 0 in the role speculative and slot 1
in the role plain, whatever engines lie there: a single pool is routed with regard to tiers, too.
Load: {rate:g} interactive requests per second, at random, half of them edits of code or text and half chat,
{interactive} tokens each; {streams} batch streams of chat and summaries without a pause, {batch} tokens each.
Arrivals and prompts of a round are the same in every condition; no two requests share a cached prefix.
Rounds: {rounds}, each with all {conditions} conditions of a method, in an order of its own.
A condition counts {window.measured_s:g} s after {window.warm_s:g} s of the same load.
Interactive requests count by their arrival, and full load goes on until all of these have ended.
Batch tokens count by time: of an answer's tokens, by the engine's usage, the share of its events in it.
An interactive answer is in time when its first token came within {ttft:g} s of its arrival, wait included,
and its mean time per later token within the objective; one that was refused or failed is not.
The same answers are judged at {tpots} ms per token.
Our rules obey {in_force} ms, each in conditions of its own, and are compared at that objective.
Up to {most} sequences run in an engine.
New work is welcome at slot 1 up to {limit}, and at slot 0 while the profile predicts the objective there,
or up to {unmeasured} where not even one sequence is predicted to keep it.
Of slot 0, {reserve} sequences are kept for interactive requests.
A K table counts for the rules as its K at {at} sequences.
One that never changes K is the fixed K by another name, and is not measured a second time.
Goodput is {weight:g} x interactive tokens in time + batch tokens, per second.
Price lists sell a priority token at about four times a flex token; tables without that weight are there, too.
Our configuration at an objective is what the profile of this run names, written down before the first load.
Intervals are Student's t over rounds, ratios are paired by round.
The load generator runs on the same machine; times are its own."""
