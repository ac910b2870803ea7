"""The answer, in sentences: where speculation pays, one pool or two, and what to set."""

from __future__ import annotations

import json
import math

from app.bench.report import chosen
from app.bench.report.blocks import Block, Caution, Code, Heading, Points, Section, Table, Text
from app.bench.report.where import headline, pays_words
from app.bench.report.words import joined, name, number, objective, percent, sequences, share, with_bounds
from autoscaling.profiling.findings import Findings, PoolAnswer, PoolPrediction
from autoscaling.profiling.notes import busy_words

KIND = {
    PoolAnswer.TWO_POOLS: "two pools",
    PoolAnswer.ONE_PLAIN: "one plain pool",
    PoolAnswer.ONE_SPECULATIVE: "one speculative pool with the engine's K table",
}
TABLE_KEY = "num_speculative_tokens_per_batch_size"


def answer(findings: Findings) -> Section:
    """Section 1."""
    blocks: list[Block] = [Text(headline(findings), lead=True)]
    if not findings.relied:
        blocks.append(
            Caution(
                (
                    "The cost models are not good enough to act on.",
                    "What was measured stands; nothing is predicted from it (where both engines are equally "
                    "fast, pools, capacities), and a service that reads this profile keeps the unmeasured "
                    "limit of a pool whose model is refused.",
                )
            )
        )
    if words := busy_words(findings.measurement):
        blocks.append(Caution((words,)))
    blocks.append(Points(tuple(_workload(findings, one) for one in chosen.workloads(findings))))
    unseen = [fit.hold_out_error for fit in findings.fits.values() if fit.hold_out_error is not None]
    if unseen and findings.relied:
        off = f"it is off by {percent(max(unseen))} on average, for the worse of the engines"
        blocks.append(Text((f"The cost model may be trusted: on batches that it has not seen {off}.",)))
    blocks += [Heading("One pool or two?"), *_pools(findings)]
    blocks += [Heading("What to set"), *_settings(findings)]
    return Section("answer", "The answer", blocks)


def _workload(findings: Findings, workload: str) -> tuple[str, ...]:
    best = chosen.best_length(findings, workload)
    line = chosen.line(findings, workload, best or 0)
    if best is None or not line:
        return (f"{name(workload)}: the engines were not compared.",)
    first, last = line[0], line[-1]
    said = [
        f"{name(workload)}: drafting {best} {'token' if best == 1 else 'tokens'} (K = {best}) gives "
        f"{with_bounds(first.measured)} times the plain engine's tokens per second with "
        f"{sequences(first.sequences)}"
        + (f", and {with_bounds(last.measured)} times with {last.sequences}." if last != first else ".")
    ]
    gains, loses = chosen.surely(findings, workload, best)
    for verb, sizes in (("gains", gains), ("loses", loses)):
        if sizes and len(line) > 1:
            said.append(f"It surely {verb} with {joined([str(size) for size in sizes])} at once.")
    found, far = chosen.crossover(findings, workload, best), chosen.furthest(findings, workload)
    if found is not None:
        said.append(f"By the cost models it {pays_words(found)}.")
        if far is not None and far.sure is not False and chosen.reach(far)[:2] > chosen.reach(found)[:2]:
            said.append(f"K = {far.draft_length} gives less but {pays_words(far)}.")
    return tuple(said)


def _pools(findings: Findings) -> list[Block]:
    if not findings.pools:
        return [Text((f"Whether a second pool pays is {chosen.missing(findings)}.",))]
    pools = sorted((one for one in findings.pools if one.kept), key=lambda one: one.tpot_s)
    broken = joined([objective(one.tpot_s) for one in findings.pools if not one.kept])
    said = []
    if broken:
        said.append(
            f"A promised time per output token of {broken} is kept by no configuration for half of the "
            "interactive tokens: nothing is recommended for it."
        )
    if not pools:
        return [Text(tuple(said))]
    for kind in PoolAnswer:
        at = [one for one in pools if one.answer is kind]
        if not at:
            continue
        which = KIND[kind][0].upper() + KIND[kind][1:]
        if kind is PoolAnswer.TWO_POOLS:
            where = joined([f"{objective(one.tpot_s)} ({_margin(one)})" for one in at])
            said.append(f"{which} are the better choice at a promised time per output token of {where}.")
        elif len(at) == len(pools) > 1:
            others = " other" if broken else ""
            said.append(f"{which} is enough at every{others} promised time per output token below.")
        else:
            where = joined([objective(one.tpot_s) for one in at])
            said.append(f"{which} is enough at a promised time per output token of {where}.")
    if all(one.answer is not PoolAnswer.TWO_POOLS for one in pools):
        said.append("A second pool would not pay for itself at any of them.")
    said += [
        "The shares are predicted by the cost model for two replicas under this service's own routing: "
        "1.00 is the best configuration of the row.",
    ]
    head = ("promised time per token", *(KIND[kind] for kind in PoolAnswer), "recommended", "margin")
    rows = tuple(_pool_row(one) for one in pools)
    words = frozenset({0, len(head) - 2, len(head) - 1})
    return [Text(tuple(said)), Table("Tokens per second that keep the promise", head, rows, words)]


def _pool_row(one: PoolPrediction) -> tuple[str, ...]:
    best = max((value for value in one.goodput.values() if math.isfinite(value)), default=0.0)
    shares = [one.goodput.get(kind) for kind in PoolAnswer]
    return (
        objective(one.tpot_s),
        *("none" if value == 0 else share(value / best if value and best else None) for value in shares),
        KIND[one.answer],
        _margin(one),
    )


def _margin(one: PoolPrediction) -> str:
    others = "the best single pool" if one.answer is PoolAnswer.TWO_POOLS else "the next best"
    if not math.isfinite(one.margin):
        return f"{others} cannot keep the promise"
    if one.tied:
        return f"as good as {others}"
    return f"{number(one.margin)} times {others}"


def _settings(findings: Findings) -> list[Block]:
    blocks: list[Block] = []
    if findings.policy:
        rows = tuple((one.path, _value(one.value), one.because) for one in findings.policy)
        blocks.append(
            Table("Policy values", ("field of the policy file", "value", "why"), rows, frozenset({0, 2}))
        )
    else:
        blocks.append(Text(("No policy value follows from this measurement.",)))
    if table := findings.recommended_table:
        rows_of_k = joined([_range(row.first, row.last, row.draft_length) for row in table])
        text = json.dumps([[row.first, row.last, row.draft_length] for row in table])
        blocks += [
            Text(
                (
                    "An engine can also switch K by itself, by the number of sequences that it runs.",
                    f"By this measurement: {rows_of_k}.",
                    "Paste this line into the engine's speculative_config.",
                )
            ),
            Code(f'"{TABLE_KEY}": {text}'),
        ]
    else:
        blocks.append(Text(("No K table for the engine follows from this measurement.",)))
    return blocks


def _range(first: int, last: int, length: int) -> str:
    where = f"{first} to {sequences(last)}" if first != last else sequences(first)
    return f"{where} K = {length}" + (" (no drafts)" if length == 0 else "")


def _value(value: float | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
