"""The answer, in sentences: where speculation pays, one pool or two, and what to set."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from app.bench.report import chosen
from app.report.blocks import Block, Caution, Code, Heading, Points, Section, Table, Text
from app.report.words import joined, name, number, objective, percent, sequences, share, with_bounds
from autoscaling.profiling.findings import Crossover, Findings, PoolAnswer, PoolPrediction, Verdict
from autoscaling.profiling.two_pools import TIE

KIND = {
    PoolAnswer.TWO_POOLS: "two pools",
    PoolAnswer.ONE_PLAIN: "one plain pool",
    PoolAnswer.ONE_SPECULATIVE: "one speculative pool with the engine's K table",
}
TABLE_KEY = "num_speculative_tokens_per_batch_size"


def answer(findings: Findings) -> Section:
    """Section 1."""
    blocks: list[Block] = [Text(_headline(findings), lead=True)]
    refused = [fit.role.value for fit in findings.fits.values() if not fit.accepted]
    if refused or not findings.fits:
        whose = f" of the {joined(refused)} engine" if refused else ""
        blocks.append(
            Caution(
                (
                    f"The cost model{whose} is not good enough to act on.",
                    "What was measured stands; what is predicted (where both engines are equally fast, "
                    "pools, capacities, what to set) may be far off, and a service that reads this profile "
                    "keeps its unmeasured limits.",
                )
            )
        )
    blocks.append(Points(tuple(_workload(findings, one) for one in chosen.workloads(findings))))
    unseen = [fit.hold_out_error for fit in findings.fits.values() if fit.hold_out_error is not None]
    if unseen and not refused:
        off = f"it is off by {percent(max(unseen))} on average, for the worse of the engines"
        blocks.append(Text((f"The cost model may be trusted: on batches that it has not seen {off}.",)))
    blocks += [Heading("One pool or two?"), *_pools(findings)]
    blocks += [Heading("What to set"), *_settings(findings)]
    return Section("answer", "The answer", blocks)


def _headline(findings: Findings) -> tuple[str, ...]:
    """By the K that pays furthest, since K is ours to set."""
    far = [chosen.furthest(findings, workload) for workload in chosen.workloads(findings)]
    known = [one for one in far if one is not None and one.sure is not False]
    found = {kind: [one for one in known if one.verdict is kind] for kind in Verdict}
    names = {kind: joined([name(one.workload) for one in of_kind]) for kind, of_kind in found.items()}
    doubtful = joined([name(one.workload) for one in far if one is not None and one.sure is False])
    below = [one for one in found[Verdict.PAYS_BELOW] if not _may_never(one)]
    perhaps = [one for one in found[Verdict.PAYS_BELOW] if _may_never(one)]
    parts = (
        (joined([_up_to(one) for one in below]), "pays for {}"),
        (_everywhere(findings, found[Verdict.PAYS_ALWAYS]), "pays for {}"),
        (joined([_up_to(one) for one in perhaps]), "may pay for {}"),
        (names[Verdict.MIXED], "pays for {} at some batches and not at others"),
        (names[Verdict.NEVER_PAYS], "does not pay for {} at any batch that was measured"),
        (doubtful, "may or may not pay for {}: the rounds do not agree on it"),
    )
    said = [words.format(who) for who, words in parts if who]
    if not said:
        return ("Whether speculation pays was not measured.",)
    return (f"Speculation {said[0]}.", *(f"It {words}." for words in said[1:]))


def _everywhere(findings: Findings, found: Sequence[Crossover]) -> str:
    """Kinds for which it pays at all their batches, and how far those go, which may differ."""
    largest: dict[int, list[str]] = {}
    for one in found:
        sizes = [speed.sequences for speed in findings.speed_ups if speed.workload == one.workload]
        largest.setdefault(max(sizes, default=0), []).append(name(one.workload))
    if len(largest) == 1:
        ((most, names),) = largest.items()
        return f"{joined(names)} at every batch that was measured, up to {sequences(most)}"
    each = [f"{one} (up to {sequences(most)})" for most, names in largest.items() for one in names]
    return f"{joined(each)} at every batch that was measured" if each else ""


def _may_never(one: Crossover) -> bool:
    """Whether it may well lie below a single sequence, where it never pays."""
    found = one.sequences
    return found is not None and found.low is None and found.high is not None


def _up_to(one: Crossover) -> str:
    if one.sequences is None:
        return f"{name(one.workload)} up to some batch (K = {one.draft_length})"
    at = sequences(round(one.sequences.value))
    return f"{name(one.workload)} up to about {at} at once (K = {one.draft_length})"


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
    found, far = chosen.crossover(findings, workload, best), chosen.furthest(findings, workload)
    if found is not None and found.sequences is not None:
        doubt = ", but the rounds do not agree on it" if found.sure is False else ""
        said.append(f"Both engines are equally fast at {with_bounds(found.sequences)} sequences{doubt}.")
    if found is None or far is None or chosen.reach(far)[:2] <= chosen.reach(found)[:2]:
        return tuple(said)
    if far.sequences is not None:
        said.append(
            f"K = {far.draft_length} gives less but pays up to {with_bounds(far.sequences)} sequences."
        )
    elif far.verdict is Verdict.PAYS_ALWAYS:
        said.append(f"K = {far.draft_length} gives less but pays at every batch that was measured.")
    return tuple(said)


def _pools(findings: Findings) -> list[Block]:
    if not findings.pools:
        return [Text(("Whether a second pool pays could not be predicted from this measurement.",))]
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
    if abs(one.margin - 1.0) <= TIE:
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
