"""One pool or two: what is predicted, for which load."""

from __future__ import annotations

import math

from app.bench.report import chosen
from app.bench.report.where import ALL_PROMPTS, two_pools_at
from app.report.blocks import Block, Table, Text
from app.report.words import count, joined, name, number, objective, plain_number, share
from autoscaling.profiling.findings import TIE, Findings, PoolAnswer, PoolPrediction

KIND = {
    PoolAnswer.TWO_POOLS: "two pools",
    PoolAnswer.ONE_PLAIN: "one plain pool",
    PoolAnswer.ONE_SPECULATIVE: "one speculative pool with the engine's K table",
}


def pools(findings: Findings) -> list[Block]:
    """What is assumed, the answer at each objective, and at other loads."""
    if not findings.pools:
        return [Text((f"Whether a second pool pays is {chosen.missing(findings)}.",))]
    kept = sorted((one for one in findings.pools if one.kept), key=lambda one: one.tpot_s)
    broken = joined([objective(one.tpot_s) for one in findings.pools if not one.kept])
    said = []
    if broken:
        said.append(
            f"A promised time per output token of {broken} is kept by no configuration for half of the "
            "interactive tokens: nothing is recommended for it."
        )
    if not kept:
        return [Text(tuple(said))]
    for kind in PoolAnswer:
        at = [one for one in kept if one.answer is kind]
        if not at:
            continue
        which = KIND[kind][0].upper() + KIND[kind][1:]
        if kind is PoolAnswer.TWO_POOLS:
            where = joined([f"{objective(one.tpot_s)} ({_margin(one)})" for one in at])
            said.append(f"{which} are the better choice at a promised time per output token of {where}.")
        elif len(at) == len(kept) > 1:
            others = " other" if broken else ""
            said.append(f"{which} is enough at every{others} promised time per output token below.")
        else:
            where = joined([objective(one.tpot_s) for one in at])
            said.append(f"{which} is enough at a promised time per output token of {where}.")
    said += [
        "The shares are predicted by the cost model for two replicas under this service's own routing: "
        "1.00 is the best configuration of the row.",
        f"Of configurations that differ by less than {100 * TIE:.0f} % the simplest is recommended.",
    ]
    head = ("promised time per token", *(KIND[kind] for kind in PoolAnswer), "recommended", "margin")
    rows = tuple(_pool_row(one) for one in kept)
    words = frozenset({0, len(head) - 2, len(head) - 1})
    return [
        Text(_assumed(findings)),
        Text(tuple(said)),
        Table("Tokens per second that keep the promise", head, rows, words),
        *_loads(findings),
    ]


def _assumed(findings: Findings) -> tuple[str, ...]:
    """The load that nobody has measured, and how to state it."""
    load, mix = findings.load, findings.mix
    if load is None:
        return ()
    kinds = ""
    if mix.interactive or mix.batch:
        first, second = (
            joined([name(one) for one in some]) or ALL_PROMPTS for some in (mix.interactive, mix.batch)
        )
        kinds = f", interactive ones of {first} and batch ones of {second}"
    return (
        f"Assumed are {plain_number(mix.interactive_at_once)} interactive answers open on average and "
        f"{load.batch_streams} batch requests at once on two replicas{kinds}, with answers of "
        f"{count(load.interactive_answer_tokens)} tokens and prompts of "
        f"{count(load.interactive_prompt_tokens)}.",
        f"An interactive token in time counts {plain_number(load.interactive_weight)}, a batch token 1.",
        "State your own load with --interactive-at-once, --batch-at-once, --interactive-class and "
        "--batch-class; with --from nothing is measured again.",
    )


def _loads(findings: Findings) -> list[Block]:
    """Whether the answer depends on how much batch work there is."""
    if len(findings.loads) < 2:
        return []
    rows = tuple(
        (
            count(one.load.batch_streams),
            joined([f"{objective(pool.tpot_s)} ({number(pool.margin)})" for pool in two_pools_at(one)])
            or "none",
            joined(
                [objective(pool.tpot_s) for pool in one.pools if pool.kept and pool not in two_pools_at(one)]
            )
            or "none",
        )
        for one in findings.loads
    )
    head = ("batch requests at once", "two pools sell more at (times)", "one pool is enough at")
    return [Table("The same with less and with more batch work", head, rows, frozenset({1, 2}))]


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
        return f"as good as {others} within {100 * TIE:.0f} %"
    return f"{number(one.margin)} times {others}"
