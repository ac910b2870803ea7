"""How drafts fare: the section on acceptance, by kind of prompts and by draft position."""

from __future__ import annotations

from app.bench.report.plots import REGIMES, SURVIVAL, survivals
from app.report.blocks import Block, Plot, Section, Table, Text
from app.report.words import NOT_MEASURED, UNKNOWN, name, number, percent, share, with_bounds
from autoscaling.profiling.findings import Findings, Survival


def acceptance(findings: Findings) -> Section:
    """Section 3."""
    title = "How many draft tokens are accepted"
    found = survivals(findings)
    if not found:
        return Section("acceptance", title, [Text((f"Acceptance: {NOT_MEASURED}.",))])
    deepest = max(len(one.survival) for one in found)
    at_k = sorted({length for one in found for length in one.tokens_per_step} - {0})
    text = Text(
        (
            "A draft is a guess of the next K tokens, which the model checks in one step and accepts up to "
            "the "
            "first wrong one.",
            "Survival at a position is the share of drafts whose tokens were all accepted up to there, at "
            "the "
            "largest K that was measured.",
            "The grey bands are a rule of thumb from published guides: an acceptance rate below 0.3 is low "
            "and "
            "drafting hardly helps, 0.4 to 0.6 is moderate and means 1.5 to 2 times the speed, 0.7 and "
            "more is "
            "high and means 2 to 3 times; between them they name no regime.",
        )
    )
    blocks: list[Block] = [
        text,
        Plot(SURVIVAL, "Survival with 95 % intervals, before the regimes of the rule of thumb."),
    ]
    head = (
        "prompts",
        "steps with a draft",
        "drafted per step",
        "acceptance rate",
        "regime",
        *(f"K = {length}: tokens per step" for length in at_k),
    )
    rows = tuple(
        (
            name(one.workload),
            percent(one.draft_rate),
            number(one.drafted),
            share(one.acceptance_rate),
            regime(one.acceptance_rate),
            *(with_bounds(one.tokens_per_step.get(length)) for length in at_k),
        )
        for one in found
    )
    blocks.append(Table("Acceptance and what it brings", head, rows, frozenset({0, 4})))
    head = ("prompts", *(f"position {position + 1}" for position in range(deepest)))
    rows = tuple((name(one.workload), *_positions(one, deepest)) for one in found)
    blocks.append(Table("Survival by draft position", head, rows))
    blocks.append(
        Text(
            (
                "Take the regimes for orientation only.",
                "The guides disagree: below 0.3 one of them promises up to 1.2 times the speed in one place "
                "and a loss in another, and the next draws its line at 1.3 tokens per step, which is a rate "
                "of 0.3 for K = 1 and of less than 0.08 for K = 4.",
                "The acceptance rate falls when K grows though the drafts are as good as before, and no such "
                "line knows how many sequences share the step.",
                "What counts is the break-even below.",
            )
        )
    )
    return Section("acceptance", title, blocks)


def regime(rate: float | None) -> str:
    """The word of the rule of thumb for an acceptance rate."""
    if rate is None:
        return UNKNOWN
    (_, low_ends, low), (moderate_begins, moderate_ends, moderate), (high_begins, _, high) = REGIMES
    if rate < low_ends:
        return low
    if rate < moderate_begins:
        return f"between {low} and {moderate}"
    if rate <= moderate_ends:
        return moderate
    return high if rate >= high_begins else f"between {moderate} and {high}"


def _positions(one: Survival, deepest: int) -> tuple[str, ...]:
    known = [with_bounds(point, share) for point in one.survival]
    return (*known, *[UNKNOWN] * (deepest - len(known)))
