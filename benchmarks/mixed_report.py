"""From the figures of `benchmarks.mixed` to its page: tables, and sentences that say what they show; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchmarks.mixed_figures import LOSS, OVER_TIER, PROMISED, SPILLED, TARGETS
from benchmarks.mixed_fit import LEAST_RATE, draft_length
from benchmarks.mixed_plan import MEASURED, OBJECTIVES, SWITCHES
from benchmarks.mixed_records import agreement
from benchmarks.mixed_requests import BATCH_STREAMS, INTERACTIVE_STREAMS
from benchmarks.mixed_tables import (
    HEAD,
    Run,
    calibration_rows,
    comparison_rows,
    condition_rows,
    conditions,
    guest_rows,
    reason_table,
)
from benchmarks.results import Target, markdown_table, number


def targets(found: Mapping[str, float]) -> dict[str, Target]:
    """The targets; without a single spill there is nothing to hold against that one."""
    return {name: target for name, target in TARGETS.items() if name != SPILLED or found.get("spilled")}


def sentences(run: Run) -> list[str]:
    """What the figures say, and what they do not."""
    said = []
    over = run.compared.get(OVER_TIER)
    if over is None:
        said.append("Nothing was in time with the tier alone, so classes cannot be compared with it.")
    elif over.low is None:
        said.append("One round has no interval: it says nothing about what classes add over the tier alone.")
    elif over.holds(1.0):
        said.append(
            "The interval of classes over tier alone includes 1: "
            "this run does not show that classes add anything in in-time tokens."
        )
    else:
        word = "more" if over.value > 1 else "fewer"
        said.append(f"With classes there were {word} in-time tokens than with the tier alone.")
    loss = run.compared.get(LOSS)
    if loss is not None and loss.low is not None and loss.holds(0.0):
        said.append("The interval of the loss by backfill includes 0.")
    if not run.found.get("spilled"):
        said.append("No request was spilled, so nothing is said about spills.")
    same, judged = agreement([one for block in run.blocks for one in block.answers], run.records)
    said.append(f"The service's own verdict was the client's for {same} of {judged} requests.")
    if not run.with_profile:
        said.append(
            "Without a profile, decisions rest on the last minute, "
            "which reaches back into the condition before."
        )
    if run.calibration.rate_per_s <= LEAST_RATE:
        said.append("Batch alone needs more of the plain pool than that: standard has the least rate.")
    if run.calibration.refused:
        said.append(f"Left out, since an engine refuses them: {', '.join(run.calibration.refused)}.")
    return said


def page(run: Run) -> str:
    """The Markdown above the verdicts."""
    calibration, window = run.calibration, run.blocks[0].window
    rounds = len({block.round for block in run.blocks})
    length = draft_length(calibration.drafting, run.most_drafts)
    method = METHOD.format(
        engine=run.engine,
        rounds=rounds,
        window=window,
        rate=number(calibration.rate_per_s),
        interactive=INTERACTIVE_STREAMS,
        batch=BATCH_STREAMS,
        measured=MEASURED,
        profile="in force" if run.with_profile else "not used",
    )
    promises = "\n".join(
        f"- `{tier}`: TTFT {OBJECTIVES[tier].ttft_s:g} s, TPOT {OBJECTIVES[tier].tpot_s:g} s."
        for tier in PROMISED
    )
    switches = "\n".join(
        f"- `{one}`: classify {_on(SWITCHES[one].classify)}, backfill {_on(SWITCHES[one].backfill)}, "
        f"reserve {SWITCHES[one].reserve}."
        for one in conditions(run.blocks)
    )
    head, rows = reason_table(run)
    guests = guest_rows(run)
    gains = ", ".join(
        f"{name} {number(value)}" for name, value in sorted(calibration.drafting.tokens_per_step.items())
    )
    parts = [
        f"{method}\n\n{promises}\n\n{switches}",
        markdown_table(HEAD, condition_rows(run)),
        "## Compared, round by round",
        markdown_table(("", "value", "95 % from", "to"), comparison_rows(run.compared)),
        "\n".join(sentences(run)),
        "## Routes",
        markdown_table(head, rows),
        *(
            [
                "Requests that left their own pool, and how many kept their own objectives:",
                markdown_table(("condition", "reason", "tier", "requests", "in time"), guests),
            ]
            if guests
            else []
        ),
        "## Calibration",
        markdown_table(
            ("pool", "streams", "tokens per step", "step ms", "profile ms"), calibration_rows(run)
        ),
        f"Tokens per step with drafts: {gains}; {number(calibration.drafting.drafted)} drafted per step, "
        f"draft length {length} in the profile.",
    ]
    return "\n\n".join(parts)


def _on(switch: bool) -> str:
    return "on" if switch else "off"


METHOD: Final = """Ways to route a mixed load over one speculative and one plain replica ({engine} engine).

The policy file is edited while the service runs; everything else stays.
Load: {interactive} interactive streams that edit code or text, one request each at a time;
standard requests of every kind, {rate} per second, at random;
{batch} batch streams that chat, without a pause.
Arrivals and prompts of a round are the same in every condition; rounds: {rounds}, each in another order.
A condition takes {window.total_s:g} s, of which the first {window.warm_up_s:g} s do not count.
The rate is such that the plain pool, batch included, needs 80 % of standard's time per token.
The profile measured at the beginning is {profile}.
New work is welcome up to {measured} sequences a replica, the most that was measured for the profile.
The load generator runs on the same machine; times are its own, tokens are the engine's count.
Intervals are Student's t over rounds; standard requests count by their arrival, all others by their end."""
