"""Where speculation pays, in words that claim no more than was measured; for the report and the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from app.bench.report import chosen
from app.report.words import joined, name, number, objective, percent, sequences
from autoscaling.profile import MEAN
from autoscaling.profiling.findings import (
    Crossover,
    Estimate,
    Findings,
    PoolAnswer,
    PoolPrediction,
    PoolsAt,
    Verdict,
)
from autoscaling.types import Role

CANNOT_BE_TOLD = "cannot be told"
ALL_PROMPTS = "all prompts together"
NOTHING_SURE = "No batch was measured well enough to say for sure whether speculation pays at it."


def headline(findings: Findings) -> tuple[str, ...]:
    """Of every kind of prompts at the K that gains most; by what was measured where no model is relied on."""
    if findings.fits and not findings.relied:
        sure = [f"Measured for sure: {words}." for words in sure_words(findings)]
        return (refused_words(findings), *(sure or (NOTHING_SURE,)))
    found = [
        chosen.crossover(findings, workload, chosen.best_length(findings, workload))
        for workload in chosen.workloads(findings)
    ]
    said = tuple(
        f"For {names} (K = {length}) speculation {words}."
        for names, length, words in grouped([one for one in found if one is not None])
    )
    pools = pools_sentence(findings)
    return (*(said or ("Whether speculation pays was not measured.",)), *([pools] if pools else []))


def _told_first(one: Crossover) -> tuple[bool, bool, tuple[int, float, int]]:
    """What is surest, then what pays furthest."""
    return one.sure is not False, bool(one.gains), chosen.reach(one)


def pools_sentence(findings: Findings) -> str:
    """Whether a second pool pays, and at which load; empty where nothing was predicted."""
    if not any(pool.kept for one in findings.loads for pool in one.pools):
        return ""
    at = {one.load.batch_streams: two_pools_at(one) for one in findings.loads}
    enough = [size for size, pools in at.items() if not pools]
    best = [pool for pools in at.values() for pool in pools]
    one = (
        "One pool is enough at every promised time per token that can be kept, with "
        f"{_span(enough)} batch requests at once"
    )
    if not best:
        return f"{one}."
    most = max(pool.margin for pool in best)
    where = joined([objective(tpot_s) for tpot_s in sorted({pool.tpot_s for pool in best})])
    times = f"up to {number(most)} times as much" if math.isfinite(most) else "more"
    sizes = _span([size for size, pools in at.items() if pools])
    if not enough:
        return f"With {sizes} two pools sell {times} at {where}, compared with one."
    return f"{one}; with {sizes} two pools sell {times} at {where}."


def two_pools_at(one: PoolsAt) -> tuple[PoolPrediction, ...]:
    """The objectives at which two pools sell more for one load."""
    return tuple(pool for pool in one.pools if pool.kept and pool.answer is PoolAnswer.TWO_POOLS)


def _span(sizes: Sequence[int]) -> str:
    return joined([str(size) for size in sizes])


def grouped(found: Sequence[Crossover]) -> Iterator[tuple[str, str, str]]:
    """Kinds of prompts, K and outcome, each outcome once; what pays furthest comes first."""
    lengths: dict[tuple[str, str], list[int]] = {}  # kind and outcome -> K
    for one in sorted(found, key=_told_first, reverse=True):
        lengths.setdefault((kind(one.workload), pays_words(one)), []).append(one.draft_length)
    kinds: dict[tuple[str, str], list[str]] = {}  # K and outcome -> kinds
    for (workload, words), values in lengths.items():
        kinds.setdefault((joined([str(value) for value in sorted(values)]), words), []).append(workload)
    for (values_of, words), names in kinds.items():
        yield joined(names), values_of, words


def mix_words(findings: Findings) -> str:
    """Of what `all prompts together` consists: the steps of each kind, of those of all."""
    steps: dict[str, int] = {}
    for run in findings.measurement.runs:
        if run.cell.engine is Role.SPECULATIVE and run.drafting.request_steps:
            steps[run.cell.workload] = steps.get(run.cell.workload, 0) + run.drafting.request_steps
    whole = sum(steps.values())
    return joined([f"{100 * part / whole:.0f} % {kind(one)}" for one, part in steps.items()]) or "not known"


def kind(workload: str) -> str:
    """A kind of prompts as a reader sees it."""
    return ALL_PROMPTS if workload == MEAN else name(workload)


def pays_words(one: Crossover) -> str:
    """What speculation does at one K, as the end of a sentence."""
    if one.sure is False:
        return "may or may not pay: the rounds do not agree on it"
    match one.verdict:
        case Verdict.PAYS_ALWAYS:
            return f"{_seems(one)} {_everywhere(one)}{_surely(one)}"
        case Verdict.NEVER_PAYS:
            return f"does not pay {_everywhere(one).replace('at every', 'at any')}"
        case Verdict.MIXED:
            return "pays at some batches and not at others"
        case Verdict.PAYS_BELOW:
            return _below(one, one.sequences)


def _seems(one: Crossover) -> str:
    """A model that no measured batch bears out is not told as a fact."""
    return "pays" if one.gains else "seems to pay"


def _surely(one: Crossover) -> str:
    return f", for sure with {joined([str(size) for size in one.gains])}" if one.gains else ""


def _everywhere(one: Crossover) -> str:
    if one.largest is None:
        return "at every batch that was measured"
    if one.only:
        return f"at the only batch that was measured, {sequences(one.largest)}"
    return f"at every batch that was measured, up to {sequences(one.largest)}"


def _below(one: Crossover, found: Estimate | None) -> str:
    """A crossover beyond what was measured is no number to act on; an open bound is said as what it means."""
    if found is None:
        return "pays up to some batch"
    about = _everywhere(one) if one.beyond else f"up to about {_short(found.value)} sequences at once"
    match found.low, found.high:
        case None, None:
            return f"{_seems(one)} {about}{_surely(one)}"
        case None, float(high):
            most = "" if one.beyond else f", at most {_short(high)}"
            return f"may pay {about}{most}{_surely(one) or ', and perhaps at none'}"
        case float(low), _ if one.beyond:
            least = f", and perhaps only up to about {_short(low)}" if low < (one.largest or 0) else ""
            return f"{_seems(one)} {about}{_surely(one)}{least}"
        case float(low), float(high) if one.largest is None or high <= one.largest:
            return f"pays {about} ({_short(low)} to {_short(high)})"
        case low, _:
            return f"pays {about}, at least {_short(low or 0.0)}, and perhaps {_everywhere(one)}"


def _short(value: float) -> str:
    """A batch that lies between two: one digit behind the point, and none where it tells nothing."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def sure_words(findings: Findings) -> tuple[str, ...]:
    """At which batches the measured ratio alone says it, for each kind at the K that gains most."""
    said = []
    for workload in chosen.workloads(findings):
        length = chosen.best_length(findings, workload)
        if length is None:
            continue
        gains, loses = chosen.surely(findings, workload, length)
        parts = [
            f"{verb} with {joined([str(size) for size in sizes])}"
            for verb, sizes in (("gains", gains), ("loses", loses))
            if sizes
        ]
        if parts:
            said.append(f"{kind(workload)} (K = {length}) {joined(parts)} at once")
    return tuple(said)


def refused_words(findings: Findings) -> str:
    """Whose cost model is refused, and by how much it is off."""
    refused = [fit for fit in findings.fits.values() if not fit.accepted]
    errors = [error for fit in refused for error in (fit.error, fit.hold_out_error) if error is not None]
    off = f", off by up to {percent(max(errors))}" if errors else ""
    models = "cost model" if len(refused) == 1 else "cost models"
    whose = joined([fit.role.value for fit in refused])
    verb = "is" if len(refused) == 1 else "are"
    return (
        f"Up to which batch speculation pays {CANNOT_BE_TOLD}: the {models} of the {whose} "
        f"{'engine' if len(refused) == 1 else 'engines'} {verb} refused{off}."
    )
