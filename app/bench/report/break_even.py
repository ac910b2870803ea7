"""What acceptance is worth: the section on the break-even, and on the formulas that guides quote."""

from __future__ import annotations

from app.bench.report import chosen
from app.bench.report.plots import BREAK_EVEN
from app.report.blocks import Block, Plot, Section, Table, Text
from app.report.words import UNKNOWN, count, name, number, share, with_bounds
from autoscaling.goodput import effective_alpha, leviathan, rule_of_thumb
from autoscaling.profiling.findings import Findings
from autoscaling.step_cost import step_s
from autoscaling.types import Role

CLOSE = 0.1  # of the rate: cost models that are off by a few percent do not tell which is larger


def break_even(findings: Findings) -> Section:
    """Section 7."""
    blocks: list[Block] = []
    if findings.break_evens:
        rows, good, bad = _rows(findings)
        head = (
            "prompts",
            "B",
            "context tokens of each",
            "needed",
            "measured",
            "so it",
            "measured speed-up",
        )
        blocks += [
            Text(
                (
                    "A draft token pays when it is accepted more often than its price: the time that it "
                    "adds to a step, in plain steps.",
                    "This break-even acceptance depends on how many sequences share the step, on how long "
                    "their contexts are, and on how much is drafted for these prompts, so one threshold for "
                    "all loads cannot be right.",
                    "It is computed by the cost model, and compared with the acceptance rate that was "
                    "measured at the largest K.",
                    "A verdict is coloured where the measured speed-up says the same for sure.",
                )
            ),
            Plot(BREAK_EVEN, "Drafting pays where the dashed level lies above the line of its colour."),
            Table(
                "Acceptance needed against acceptance measured",
                head,
                rows,
                frozenset({0, 5}),
                good,
                bad,
            ),
        ]
    else:
        blocks.append(Text((f"Break-even acceptance: {chosen.missing(findings)}.",)))
    return Section("break-even", "When a draft pays", [*blocks, *formulas(findings)])


def _rows(
    findings: Findings,
) -> tuple[tuple[tuple[str, ...], ...], frozenset[tuple[int, int]], frozenset[tuple[int, int]]]:
    """Of each kind of prompts by growing batch; cells that are good, and bad."""
    rows: list[tuple[str, ...]] = []
    good: set[tuple[int, int]] = set()
    bad: set[tuple[int, int]] = set()
    for one in findings.break_evens:
        survival = findings.survivals.get(one.workload)
        rate = None if survival is None else survival.acceptance_rate
        if survival is None or rate is None:
            continue
        line = chosen.line(findings, one.workload, max(survival.tokens_per_step))
        measured = next((speed.measured for speed in line if speed.sequences == one.sequences), None)
        words = "pays" if rate > one.theta else "does not pay"
        if abs(rate - one.theta) < CLOSE * rate:
            words = "is about even"
        # Coloured where the speed-up that was measured says the same for sure.
        if words == "pays" and measured is not None and (measured.low or 0.0) > 1.0:
            good.add((len(rows), 5))
        if words == "does not pay" and measured is not None and (measured.high or 2.0) < 1.0:
            bad.add((len(rows), 5))
        rows.append(
            (
                name(one.workload),
                count(one.sequences),
                count(one.context_tokens),
                _needed(one.theta),
                share(rate),
                words,
                with_bounds(measured),
            )
        )
    return tuple(rows), frozenset(good), frozenset(bad)


def _needed(theta: float) -> str:
    """No draft costs less than nothing: below 0 the speculative engine is faster before any is accepted."""
    if theta <= 0:
        return "any is enough"
    return share(theta) if theta < 1 else f"{share(theta)}: none is enough"


def formulas(findings: Findings) -> list[Block]:
    """The rule of thumb beside the exact formula and the measurement; nothing without drafts."""
    batches = chosen.batches(findings)
    rows = []
    for workload in chosen.workloads(findings):
        length, survival = chosen.best_length(findings, workload), findings.survivals.get(workload)
        gain = None if survival is None or length is None else survival.tokens_per_step.get(length)
        if length is None or gain is None:
            continue
        alpha, cost = effective_alpha(gain.value, length), cost_ratio(findings)
        measured = {one.sequences: one.measured for one in chosen.line(findings, workload, length)}
        rows.append(
            (
                name(workload),
                str(length),
                share(alpha),
                number(rule_of_thumb(alpha, length)),
                UNKNOWN if cost is None else number(leviathan(alpha, length, cost)),
                with_bounds(measured.get(batches[0])),
                with_bounds(measured.get(batches[-1])),
            )
        )
    if not rows:
        return []
    head = (
        "prompts",
        "K",
        "alpha",
        "rule of thumb",
        "exact formula",
        f"measured, B = {batches[0]}",
        f"measured, B = {batches[-1]}",
    )
    text = Text(
        (
            "Guides often quote the speed-up as 1 / (1 - alpha (1 - 1/K)), where alpha is the chance that a "
            "draft token is accepted when those before it were.",
            "This alpha is not the acceptance rate: 0.7 at every position is a rate of 0.44 at K = 4.",
            "The formula is wrong: it says 1 for K = 1 whatever alpha is, it is never below 1, and it knows "
            "neither the price of a draft nor the batch.",
            "The exact formula for a single sequence is (1 - alpha^(K+1)) / ((1 - alpha) (c K + 1)), with c "
            f"the time to make one draft token, in plain steps (here {_digits(cost_ratio(findings))}).",
            "It still takes verification for free, which holds for one sequence on a large accelerator and "
            "for nothing else.",
            "Alpha is the one that gives the measured tokens per step, steps without a draft included.",
        )
    )
    return [text, Table("Speed-up by formulas and as measured", head, tuple(rows))]


def _digits(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2g}"


def cost_ratio(findings: Findings) -> float | None:
    """C of the exact formula: seconds of one draft token over those of a plain step, at one sequence."""
    plain, drafting = findings.fits.get(Role.PLAIN), findings.fits.get(Role.SPECULATIVE)
    if findings.draft_s is None or plain is None or drafting is None or drafting.cost.draft_length < 1:
        return None
    step = step_s(plain.cost, 1, findings.context_tokens, draft_length=0)
    return findings.draft_s / drafting.cost.draft_length / step if step > 0 else None
