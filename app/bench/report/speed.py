"""Where speculation is faster and what a replica can sell: sections on speed-up, capacity and losses."""

from __future__ import annotations

from app.bench.report import chosen
from app.bench.report.plots import FRONTIER, PARTS, SPEED_UP
from app.bench.report.plots_cost import parts
from app.bench.report.where import CANNOT_BE_TOLD
from app.report.blocks import Block, Plot, Section, Table, Text
from app.report.words import NOT_MEASURED, UNKNOWN, count, name, number, objective, percent, with_bounds
from autoscaling.profiling.findings import Capacity, Crossover, Estimate, Findings, Verdict
from autoscaling.types import Role

NOTHING = "none"  # an objective that not even one sequence can keep


def speed_up(findings: Findings) -> Section:
    """Section 2."""
    batches = chosen.batches(findings)
    rows: list[tuple[str, ...]] = []
    good: set[tuple[int, int]] = set()
    bad: set[tuple[int, int]] = set()
    for workload in chosen.workloads(findings):
        for length in chosen.lengths(findings, workload):
            line = {one.sequences: one.measured for one in chosen.line(findings, workload, length)}
            for column, batch in enumerate(batches, start=2):
                side = _side(line.get(batch))
                (good if side > 0 else bad if side < 0 else set()).add((len(rows), column))
            rows.append(
                (
                    name(workload),
                    str(length),
                    *(with_bounds(line.get(batch)) for batch in batches),
                    _even(chosen.crossover(findings, workload, length)),
                )
            )
    if not rows:
        return Section("speed-up", "Speed-up against concurrency", [Text((f"Speed-up: {NOT_MEASURED}.",))])
    text = Text(
        (
            "Speed-up is the tokens per second of the speculative engine over those of the plain one, "
            "with the same prompts and as many sequences at once.",
            "Above 1 drafting pays; it costs more the more sequences share a step, since every draft token "
            "is computed whether it is accepted or not.",
            "The band is the 95 % interval and the dashed line the cost model; the mark on the line at 1 is "
            "where both engines are equally fast, and its bar the 95 % interval of that.",
        )
    )
    head = ("prompts", "K", *(f"B = {batch}" for batch in batches), "equal at B")
    table = Table(
        "Speed-up of every draft length K at every batch of B sequences",
        head,
        tuple(rows),
        good=frozenset(good),
        bad=frozenset(bad),
    )
    caption = "Each kind of prompts at its best draft length."
    return Section("speed-up", "Speed-up against concurrency", [text, Plot(SPEED_UP, caption), table])


def _side(found: Estimate | None) -> int:
    """1 where it surely pays, -1 where it surely does not, else 0."""
    if found is None or found.low is None or found.high is None:
        return 0
    return 1 if found.low > 1.0 else -1 if found.high < 1.0 else 0


def _even(found: Crossover | None) -> str:
    if found is None or found.sure is False:
        return CANNOT_BE_TOLD
    if found.beyond:
        return f"beyond {found.largest}"
    match found.verdict:
        case Verdict.PAYS_ALWAYS:
            return "pays at all"
        case Verdict.NEVER_PAYS:
            return "pays at none"
        case Verdict.MIXED:
            return "more than once"
        case Verdict.PAYS_BELOW:
            return with_bounds(found.sequences)


def capacity(findings: Findings) -> Section:
    """Section 4."""
    text = Text(
        (
            "Each point is one batch: more sequences at once give more tokens per second together and make "
            "each of them wait longer for its next token.",
            "Lower and further right is better.",
            "The small numbers beside the plain line are its batches.",
        )
    )
    blocks: list[Block] = []
    if findings.frontier:
        blocks += [
            text,
            Plot(FRONTIER, "Times per token without prompts beside them; dashed lines are objectives."),
        ]
    else:
        blocks.append(Text((f"Time per token against throughput: {NOT_MEASURED}.",)))
    if findings.capacities:
        head = (
            "promised time per token",
            "plain: sequences",
            "plain: tokens/s",
            "speculative: best K",
            "speculative: sequences",
            "speculative: tokens/s",
            "speculative / plain",
        )
        rows = tuple(
            _capacity(one) for one in sorted(findings.capacities, key=lambda capacity: capacity.tpot_s)
        )
        blocks += [
            Text(
                (
                    "What one replica can sell is the largest batch that keeps a promised time per token, "
                    "and "
                    "the tokens per second that come out of it.",
                    "It is computed by the cost model for the mean of all kinds of prompts.",
                    "Here every replica is full; the answer on pools is for a stated load, which need not "
                    "fill them.",
                )
            ),
            Table("What one replica can sell at a promised time per token", head, rows),
        ]
    elif not findings.relied:
        blocks.append(Text((f"What one replica can sell is {chosen.missing(findings)}.",)))
    if findings.capacities:
        if most := _most(findings):
            blocks.append(Text((f"An engine runs no more sequences at once than it is set to: {most}.",)))
        if any(one.limited_by_kv for one in findings.capacities):
            blocks.append(
                Text(("Rows with a star are limited by the memory for the KV cache, not by time.",))
            )
    return Section("capacity", "Time per token against throughput", blocks)


def _most(findings: Findings) -> str:
    """What each engine runs at once, where some capacity ends at it."""
    most = {one.role: one.max_num_seqs for one in findings.measurement.engines}
    ended = any(
        (Role.PLAIN in most and one.plain_sequences == most[Role.PLAIN])
        or (Role.SPECULATIVE in most and one.speculative_sequences == most[Role.SPECULATIVE])
        for one in findings.capacities
    )
    return ", ".join(f"{role.value} {count(number)}" for role, number in most.items()) if ended else ""


def _capacity(one: Capacity) -> tuple[str, ...]:
    both = one.plain_tokens_per_s > 0 and one.speculative_sequences > 0
    return (
        objective(one.tpot_s) + (" *" if one.limited_by_kv else ""),
        count(one.plain_sequences) if one.plain_sequences else NOTHING,
        number(one.plain_tokens_per_s) if one.plain_sequences else NOTHING,
        str(one.draft_length) if one.speculative_sequences else UNKNOWN,
        count(one.speculative_sequences) if one.speculative_sequences else NOTHING,
        number(one.speculative_tokens_per_s) if one.speculative_sequences else NOTHING,
        number(one.speculative_tokens_per_s / one.plain_tokens_per_s) if both else UNKNOWN,
    )


def losses(findings: Findings) -> Section:
    """Section 5."""
    found = parts(findings)
    blocks: list[Block] = []
    if found:
        text = Text(
            (
                "A bar is the time of one speculative step, with the plain step of the same batch as 1.",
                "It grows by computing the draft tokens (verification), by making them (drafting), and by "
                "what the speculative engine takes longer even when it drafts nothing (rest).",
                "The diamond is the mean number of tokens that come out of the step for each sequence; a "
                "plain step gives 1.",
                "Tokens over time is the speed-up.",
            )
        )
        head = ("prompts", "K", "B", "verification", "drafting", "rest", "whole step", "tokens that come out")
        rows = tuple(
            (
                name(one.workload),
                str(one.draft_length),
                str(one.sequences),
                number(one.verification),
                number(one.drafting),
                number(one.rest),
                number(one.whole),
                number(one.gain),
            )
            for one in found
        )
        table = Table("Parts of a speculative step, in plain steps", head, rows)
        blocks += [text, Plot(PARTS, "Each kind of prompts at its best draft length."), table]
    else:
        blocks.append(Text((f"The parts of a speculative step: {chosen.missing(findings)}.",)))
    return Section("losses", "Where the time goes", [*blocks, _kv(findings)])


def _kv(findings: Findings) -> Text:
    held = {one.role: one.kv_cache_tokens for one in findings.measurement.engines}
    plain, speculative = held.get(Role.PLAIN), held.get(Role.SPECULATIVE)
    if findings.kv_loss is None:
        return Text((f"Memory that drafting takes from the KV cache: {NOT_MEASURED}.",))
    less = "no less room" if findings.kv_loss <= 0 else f"{percent(findings.kv_loss)} less room"
    sizes = "" if None in (plain, speculative) else f" ({count(speculative)} tokens against {count(plain)})"
    return Text((f"The speculative engine has {less} in its KV cache than the plain one{sizes}.",))
