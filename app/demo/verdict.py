"""Whether each tier got what it was promised, in words and as an exit code; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from app.demo.answers import Objective
from app.demo.summary import Copies, Total
from autoscaling.types import Role, Tier

ASKED = 0.95  # share of requests inside an objective: the policy's are 95th percentiles
NO_DIFFERENCE = 0.05  # of the ratio of two medians of a few rounds; less is chance
OK, FINDING, CANNOT_TELL = 0, 1, 2  # as the exit codes of all commands


class Verdict(StrEnum):
    """What became of a tier."""

    MET = "met"
    MISSED = "missed"
    NO_OBJECTIVE = "no_objective"  # and nothing was lost
    LOST = "lost"  # without an objective, and some requests were never answered
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TierVerdict:
    """The verdict on one tier, and its line."""

    tier: Tier
    verdict: Verdict
    words: str


def judge(total: Total, objective: Objective | None) -> TierVerdict:
    """The verdict on one tier; an objective of None is unknown."""
    tier = total.tier
    if total.requests == total.cut:
        return TierVerdict(tier, Verdict.UNKNOWN, f"{tier}: cannot tell, no request of it came to an end")
    if objective is None:
        words = f"{tier}: cannot tell, the objectives of the policy could not be read"
        return TierVerdict(tier, Verdict.UNKNOWN, words)
    if not objective.promised:
        if total.lost:
            words = f"no objective set for {tier}, and {total.lost} of its requests lost: {_lost(total)}"
            return TierVerdict(tier, Verdict.LOST, words)
        words = f"no objective set for {tier}: {_answers(total.answered)}, none lost"
        return TierVerdict(tier, Verdict.NO_OBJECTIVE, words)
    attainment, promise = total.attainment, promised(objective)
    if attainment is None:
        words = f"{tier}: cannot tell, no answer tells its time per token; promised is {promise}"
        return TierVerdict(tier, Verdict.UNKNOWN, words)
    met = attainment >= ASKED
    judged = total.met + total.missed
    words = (
        f"{tier}: {'met' if met else 'MISSED'}, {total.met} of {judged} ({percent(attainment)}) "
        f"within {promise}; asked are {percent(ASKED)}"
    )
    if total.lost:
        words += f"; lost: {_lost(total)}"
    unjudged = total.answered + total.refused + total.failed - judged
    if unjudged:
        words += f"; {unjudged} without a time per token not judged"
    return TierVerdict(tier, Verdict.MET if met else Verdict.MISSED, words)


def exit_code(verdicts: Iterable[TierVerdict], *, complete: bool) -> int:
    """1 when any tier missed or lost something, else 2 when it cannot be told, else 0."""
    found = {one.verdict for one in verdicts}
    if found & {Verdict.MISSED, Verdict.LOST}:
        return FINDING
    return CANNOT_TELL if Verdict.UNKNOWN in found or not complete else OK


def promised(objective: Objective | None) -> str:
    """An objective in words, such as `TTFT 1 s and TPOT 50 ms`."""
    if objective is None:
        return "unknown"
    parts = [] if objective.ttft_s is None else [f"TTFT {objective.ttft_s:g} s"]
    parts += [] if objective.tpot_s is None else [f"TPOT {objective.tpot_s * 1000:g} ms"]
    return " and ".join(parts) or "none set"


def compared(copies: Copies) -> str:
    """One line about the copying task: whether speculation helped, and by how much."""
    speculative, plain = copies.tpot_s[Role.SPECULATIVE], copies.tpot_s[Role.PLAIN]
    ratio = copies.ratio
    if speculative is None or plain is None or ratio is None:
        without = [role.value for role in Role if copies.tpot_s[role] is None] or [Role.PLAIN.value]
        return f"the same copying task on both pools: not compared, no time from {' and '.join(without)}"
    if ratio < 1 - NO_DIFFERENCE:
        outcome = f"with drafts {1 / ratio:.1f} times as fast"
    elif ratio <= 1 + NO_DIFFERENCE:
        outcome = "speculation made no difference here"
    else:
        outcome = f"speculation did NOT help here: with drafts {ratio:.1f} times as slow"
    drafts = "" if copies.acceptance is None else f", {percent(copies.acceptance)} of the drafts accepted"
    return (
        f"the same copying task, one at a time: speculative {speculative * 1000:.1f} ms per token, "
        f"plain {plain * 1000:.1f} ms: {outcome} "
        f"({min(copies.answers.values())} rounds, medians{drafts})"
    )


def percent(share: float) -> str:
    """Write a share, 0..1, rounded down, so that 94.9 % never reads as the 95 % that are asked."""
    return f"{int(share * 100 + 1e-9)} %"  # 1e-9: 0.29 * 100 is 28.999...


def _lost(total: Total) -> str:
    parts = ((total.refused - total.again, "refused"), (total.failed, "failed"))
    words = ", ".join(f"{count} {what}" for count, what in parts if count)
    codes = ", ".join(f"{code} {count}" for code, count in total.codes.items())
    return f"{words} ({codes})"


def _answers(count: int) -> str:
    return f"{count} answer{'' if count == 1 else 's'}"
