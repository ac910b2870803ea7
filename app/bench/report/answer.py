"""The answer, in sentences: where speculation pays, one pool or two, what to set, and how far to trust it."""

from __future__ import annotations

import json
import math

from app.bench.report import chosen
from app.bench.report.blocks import Block, Code, Heading, Points, Section, Table, Text, Warning
from app.bench.report.words import joined, name, number, objective, percent, sequences, share, with_bounds
from autoscaling.profiling.findings import Findings, PoolAnswer, PoolPrediction, Verdict

KIND = {
    PoolAnswer.TWO_POOLS: "two pools",
    PoolAnswer.ONE_PLAIN: "one plain pool",
    PoolAnswer.ONE_SPECULATIVE: "one speculative pool with the engine's K table",
}
TABLE_KEY = "num_speculative_tokens_per_batch_size"
TIE = 1.02  # below it the margin says nothing: runs of the same engine differ by as much


def answer(findings: Findings) -> Section:
    """Section 1."""
    blocks: list[Block] = [Text(_headline(findings), lead=True)]
    if any(not fit.accepted for fit in findings.fits.values()) or not findings.fits:
        blocks.append(
            Warning(
                (
                    "The cost model is not good enough to act on.",
                    "What was measured stands; what is predicted below (pools, capacities, what to set) "
                    "may be far off, and a service that reads this profile keeps its unmeasured limits.",
                )
            )
        )
    blocks.append(Points(tuple(_workload(findings, one) for one in chosen.workloads(findings))))
    blocks += [Heading("One pool or two?"), *_pools(findings)]
    blocks += [Heading("What to set"), *_settings(findings)]
    return Section("answer", "The answer", blocks)


def _headline(findings: Findings) -> tuple[str, ...]:
    below, always, never, mixed = [], [], [], []
    for workload in chosen.workloads(findings):
        found = chosen.crossover(findings, workload, chosen.best_length(findings, workload))
        if found is None:
            continue
        match found.verdict:
            case Verdict.PAYS_BELOW if found.sequences is not None:
                below.append(f"{name(workload)} up to about {sequences(found.sequences.value)} at once")
            case Verdict.PAYS_ALWAYS:
                always.append(name(workload))
            case Verdict.NEVER_PAYS:
                never.append(name(workload))
            case _:
                mixed.append(name(workload))
    if not below + always + never + mixed:
        return ("Whether speculation pays was not measured.",)
    if not below + always + mixed:
        return ("Speculation does not pay here, for no kind of prompts and at no batch that was measured.",)
    most = max(chosen.batches(findings), default=0)
    said = []
    if below:
        said.append(f"Speculation pays for {joined(below)}.")
    if always:
        said.append(
            f"It pays for {joined(always)} at every batch that was measured, up to {sequences(most)}."
        )
    if mixed:
        said.append(f"For {joined(mixed)} it pays at some batches and not at others.")
    if never:
        said.append(f"It does not pay for {joined(never)} at any batch that was measured.")
    said[0] = said[0].replace("It pays", "Speculation pays", 1).replace("For", "Speculation: for", 1)
    return tuple(said)


def _workload(findings: Findings, workload: str) -> tuple[str, ...]:
    best = chosen.best_length(findings, workload)
    if best is None:
        return (f"{name(workload)}: the engines were not compared.",)
    line = chosen.line(findings, workload, best)
    first, last = line[0], line[-1]
    said = [
        f"{name(workload)}: drafting {best} {'token' if best == 1 else 'tokens'} (K = {best}) gives "
        f"{with_bounds(first.measured)} times the plain engine's tokens per second with "
        f"{sequences(first.sequences)}"
        + (f", and {with_bounds(last.measured)} times with {last.sequences}." if last != first else ".")
    ]
    found = chosen.crossover(findings, workload, best)
    if found is not None and found.sequences is not None:
        said.append(f"Both are equal at {with_bounds(found.sequences)} sequences.")
    far = chosen.furthest(findings, workload)
    if far is not None and far.draft_length != best:
        if found is None or found.sequences is None or far.sequences.value > found.sequences.value:  # type: ignore[union-attr]
            said.append(f"K = {far.draft_length} pays further, up to {with_bounds(far.sequences)} sequences.")
    return tuple(said)


def _pools(findings: Findings) -> list[Block]:
    if not findings.pools:
        return [Text(("Whether a second pool pays could not be predicted from this measurement.",))]
    pools = sorted(findings.pools, key=lambda one: one.tpot_s)
    said = []
    for kind in PoolAnswer:
        at = [one for one in pools if one.answer is kind]
        if not at:
            continue
        where = joined([objective(one.tpot_s) for one in at])
        verb = "are recommended" if kind is PoolAnswer.TWO_POOLS else "is enough"
        said.append(
            f"{KIND[kind][0].upper()}{KIND[kind][1:]} {verb} where {where} per output token is promised."
        )
    if all(one.answer is not PoolAnswer.TWO_POOLS for one in pools):
        said.append("A second pool would not pay for itself at any of these objectives.")
    said += [
        "Find the row of the time per token that you promise to your callers.",
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
        *(share(None if value is None or best <= 0 else value / best) for value in shares),
        KIND[one.answer],
        _margin(one),
    )


def _margin(one: PoolPrediction) -> str:
    others = "two pools" if one.answer is not PoolAnswer.TWO_POOLS else "the best single pool"
    if not math.isfinite(one.margin):
        return f"{others} cannot keep the promise"
    if 1 / TIE < one.margin < TIE:
        return f"as good as {others}, with less to run" if others == "two pools" else f"as good as {others}"
    return f"{number(one.margin)} times {others}"


def _settings(findings: Findings) -> list[Block]:
    blocks: list[Block] = []
    if findings.policy:
        rows = tuple((name_of(one.path), _value(one.value), one.because) for one in findings.policy)
        blocks.append(
            Table("Policy values", ("field of the policy file", "value", "why"), rows, frozenset({0, 2}))
        )
    else:
        blocks.append(Text(("No policy value follows from this measurement.",)))
    if findings.table:
        rows_of_k = joined([_range(row.first, row.last, row.draft_length) for row in findings.table])
        text = json.dumps([[row.first, row.last, row.draft_length] for row in findings.table])
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


def name_of(path: str) -> str:
    """A field of the policy file in full: a shortened path could not be pasted."""
    return path


def _range(first: int, last: int, length: int) -> str:
    where = f"{first} to {sequences(last)}" if first != last else sequences(first)
    return f"{where} K = {length}" + (" (no drafts)" if length == 0 else "")


def _value(value: float | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def trust(findings: Findings) -> Section:
    """Whether the measurement can be trusted."""
    found = findings.measurement
    rounds = len({run.round for run in found.runs})
    failed, answers = sum(run.failed for run in found.runs), sum(run.answers for run in found.runs)
    said = [
        f"Both engines answered the same prompts at the same time, in {rounds} "
        f"{'round' if rounds == 1 else 'rounds'} of all cells, each in another order.",
        f"{answers:,} answers came whole and {failed:,} failed; those are in no average.",
        "Ranges in brackets are 95 % intervals from what differs between the rounds.",
        "The cost model of an engine is fitted to some batches and judged on others that it has not seen: "
        "it may be off by 15 % there.",
    ]
    if found.quick:
        said.append("This was a quick measurement: few batches and two kinds of prompts.")
    rows = tuple(
        (
            fit.role.value,
            f"{fit.points}",
            percent(fit.error),
            percent(fit.hold_out_error),
            f"{fit.hold_out_points}",
            "good enough" if fit.accepted else f"refused: {fit.refused_because or 'no reason given'}",
        )
        for fit in findings.fits.values()
    )
    head = ("engine", "cells fitted", "mean error", "mean error unseen", "cells unseen", "verdict")
    blocks: list[Block] = [Text(tuple(said))]
    if rows:
        blocks.append(Table("How well the cost model predicts a step", head, rows, frozenset({0, 5})))
    else:
        blocks.append(Warning(("No cost model could be fitted.",)))
    if found.cut:
        blocks += [Heading("What was left out"), Points(tuple((words,) for words in found.cut))]
    else:
        blocks.append(Text(("Nothing was left out.",)))
    if findings.notes:
        blocks += [Heading("To note"), Points(tuple((words,) for words in findings.notes))]
    return Section("trust", "Can this be trusted?", blocks, acceptance=False)
