"""What a second kind of engine costs beside its steps, and what a million tokens cost."""

from __future__ import annotations

from app.bench.report.chosen import missing
from app.report.blocks import Block, Code, Section, Table, Text
from app.report.words import NOT_MEASURED, UNKNOWN, count, ms, name, number, plain_number, with_bounds
from autoscaling.profiling.findings import Findings, FrontierPoint
from autoscaling.profiling.measured import EngineFacts
from autoscaling.types import Role

HOUR_S = 3600.0
MILLION = 1_000_000
PRICE_OPTION = "--accelerator-hour-price"


def overheads(findings: Findings) -> Section:
    """Section 6."""
    blocks: list[Block] = [
        Text(
            (
                "A speculative engine that drafts nothing (K = 0) may still be slower than a plain one: "
                "that is "
                "what one pool that switches drafts off would pay under load.",
                "Above 1 the plain engine is faster.",
            )
        )
    ]
    if findings.k0_tax:
        taxes = tuple((count(batch), with_bounds(tax)) for batch, tax in findings.k0_tax)
        head = ("B", "tokens per second, plain / speculative at K = 0")
        blocks.append(Table("What drafting costs while it is off", head, taxes))
    else:
        blocks.append(Text((f"The speculative engine at K = 0: {NOT_MEASURED}.",)))
    rows = tuple(
        (
            one.role.value,
            number(one.start_s),
            number(one.stop_s),
            _changes(one),
            count(one.max_num_seqs),
            count(one.kv_cache_tokens),
        )
        for one in findings.measurement.engines
    )
    if rows:
        columns = ("engine", "start, s", "stop, s", "K changes", "most sequences", "KV cache, tokens")
        blocks += [
            Text(
                (
                    "A move of capacity stops a replica of one pool and starts one of the other; while it "
                    "lasts "
                    "that accelerator serves nobody.",
                    "Below is the engines' part of it, idle: a replica that is busy also finishes its "
                    "answers first.",
                )
            ),
            Table("Start, stop and room of the engines", columns, rows, frozenset({0, 3})),
        ]
    latency = missing(findings) if findings.draft_s is None else f"{ms(findings.draft_s)} ms"
    blocks.append(Text((f"Making the drafts of one step at the largest K, for one sequence: {latency}.",)))
    return Section("overheads", "Switching drafts off, and moving capacity", blocks, acceptance=False)


def _changes(one: EngineFacts) -> str:
    if one.role is Role.PLAIN:
        return "it drafts nothing"
    return "while it runs" if one.adjustable else "by a restart"


def cost_per_million(tokens_per_s: float, price_per_hour: float, accelerators: int) -> float | None:
    """Price of a million output tokens; None where nothing comes out."""
    if tokens_per_s <= 0:
        return None
    return price_per_hour * accelerators / (tokens_per_s * HOUR_S) * MILLION


def prices(findings: Findings, price_per_hour: float | None) -> Section:
    """Section 8."""
    title = "Cost per million output tokens"
    if price_per_hour is None:
        how = (
            f"Give the price of one accelerator hour with {PRICE_OPTION} to see this.",
            "With --from the report is made anew from the measurement that you have.",
        )
        return Section("cost", title, [Text(how)], acceptance=False)
    if not findings.frontier:
        return Section("cost", title, [Text((f"Tokens per second: {NOT_MEASURED}.",))], acceptance=False)
    known = findings.measurement.fingerprint.tensor_parallel
    accelerators = known or 1
    batches = sorted({one.sequences for one in findings.frontier})
    keys = dict.fromkeys(_key(one) for one in findings.frontier)
    at = {(*_key(one), one.sequences): one.tokens_per_s.value for one in findings.frontier}
    rows = []
    for workload, engine, length in sorted(keys, key=lambda key: (key[0], key[1] is not Role.PLAIN, key[2])):
        costs = []
        for batch in batches:
            rate = at.get((workload, engine, length, batch))
            cost = None if rate is None else cost_per_million(rate, price_per_hour, accelerators)
            costs.append(UNKNOWN if cost is None else number(cost))
        label = "plain" if engine is Role.PLAIN else f"speculative, K = {length}"
        rows.append((name(workload), label, *costs))
    said = (
        f"One accelerator hour costs {plain_number(price_per_hour)}; a replica takes {accelerators} of them"
        + (".", " (how many is not known; taken as 1).")[known is None],
        "All costs are in the currency of that price, for a replica that is busy with such a batch all the "
        "time.",
        "Prompts come on top: only output tokens are counted, and only the time in which they are made.",
    )
    formula = "cost = price of an hour x accelerators / (tokens per second x 3600) x 1,000,000"
    head = ("prompts", "engine", *(f"B = {batch}" for batch in batches))
    table = Table(title, head, tuple(rows), frozenset({0, 1}))
    return Section("cost", title, [Text(said), Code(formula), table])


def _key(one: FrontierPoint) -> tuple[str, Role, int]:
    return one.workload, one.engine, one.draft_length
