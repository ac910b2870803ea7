"""The answer, in sentences: where speculation pays, one pool or two, and what to set."""

from __future__ import annotations

import json

from app.bench.report import chosen
from app.bench.report.pools import pools
from app.bench.report.where import headline, mix_words, pays_words
from app.report.blocks import Block, Caution, Code, Heading, Points, Section, Table, Text
from app.report.words import (
    joined,
    name,
    percent,
    sequences,
    with_bounds,
)
from autoscaling.profiling.findings import Findings
from autoscaling.profiling.notes import busy_words
from autoscaling.profiling.recommend import WORTH

ONE_POOLS_VALUES = (
    "With one pool only the values of that pool count, and with one plain pool no K table; "
    "docs/concepts/two-pools.md has the settings."
)
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
    blocks += [Heading("One pool or two?"), *pools(findings)]
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


def _settings(findings: Findings) -> list[Block]:
    blocks: list[Block] = []
    if findings.policy:
        rows = tuple((one.path, _value(one.value), one.because) for one in findings.policy)
        blocks.append(
            Table("Policy values", ("field of the policy file", "value", "why"), rows, frozenset({0, 2}))
        )
        blocks.append(Text((f"All prompts are {mix_words(findings)}.", ONE_POOLS_VALUES)))
    elif findings.relied:
        blocks.append(Text(("No policy value follows: no time per token is promised, see --policy.",)))
    else:
        blocks.append(Text((f"Policy values are {chosen.missing(findings)}.",)))
    table = findings.recommended_table
    if not table:
        return [*blocks, Text((f"A K table for the engine is {chosen.missing(findings)}.",))]
    rows_of_k = joined([_range(row.first, row.last, row.draft_length) for row in table])
    text = json.dumps([[row.first, row.last, row.draft_length] for row in table])
    return [
        *blocks,
        Text(
            (
                "An engine can also switch K by itself, by the number of sequences that it runs.",
                f"For all prompts together the cost models say {rows_of_k}; K changes where another brings "
                f"{100 * (WORTH - 1):.0f} % more.",
                "Paste this line into the engine's speculative_config"
                + ("; as it has one row, that K without a table does the same." if len(table) == 1 else "."),
            )
        ),
        Code(f'"{TABLE_KEY}": {text}'),
    ]


def _range(first: int, last: int, length: int) -> str:
    where = f"{first} to {sequences(last)}" if first != last else sequences(first)
    return f"{where} K = {length}" + (" (no drafts)" if length == 0 else "")


def _value(value: float | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
