"""Where speculation pays, in words that claim no more than was measured; for the report and the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.bench.report import chosen
from app.bench.report.words import joined, name, objective, percent, sequences
from autoscaling.profile import MEAN
from autoscaling.profiling.findings import Crossover, Estimate, Findings, PoolAnswer, Verdict

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


def pools_sentence(findings: Findings) -> str:
    """Whether a second pool pays anywhere; empty where nothing was predicted."""
    kept = [one for one in findings.pools if one.kept]
    two = joined([objective(one.tpot_s) for one in kept if one.answer is PoolAnswer.TWO_POOLS])
    if not kept:
        return ""
    if not two:
        return "One pool is enough at every promised time per token that can be kept."
    return f"Two pools sell more than one at a promised time per token of {two}."


def grouped(found: Sequence[Crossover]) -> Iterator[tuple[str, str, str]]:
    """Kinds of prompts, K and outcome, each outcome once; what pays furthest comes first."""
    lengths: dict[tuple[str, str], list[int]] = {}  # kind and outcome -> K
    for one in sorted(found, key=lambda one: (one.sure is not False, chosen.reach(one)), reverse=True):
        lengths.setdefault((kind(one.workload), pays_words(one)), []).append(one.draft_length)
    kinds: dict[tuple[str, str], list[str]] = {}  # K and outcome -> kinds
    for (workload, words), values in lengths.items():
        kinds.setdefault((joined([str(value) for value in sorted(values)]), words), []).append(workload)
    for (values_of, words), names in kinds.items():
        yield joined(names), values_of, words


def kind(workload: str) -> str:
    """A kind of prompts as a reader sees it."""
    return ALL_PROMPTS if workload == MEAN else name(workload)


def pays_words(one: Crossover) -> str:
    """What speculation does at one K, as the end of a sentence."""
    if one.sure is False:
        return "may or may not pay: the rounds do not agree on it"
    up_to = "" if one.largest is None else f", up to {sequences(one.largest)}"
    match one.verdict:
        case Verdict.PAYS_ALWAYS:
            return f"pays at every batch that was measured{up_to}"
        case Verdict.NEVER_PAYS:
            return f"does not pay at any batch that was measured{up_to}"
        case Verdict.MIXED:
            return "pays at some batches and not at others"
        case Verdict.PAYS_BELOW:
            return _below(one.sequences, one.largest)


def _below(found: Estimate | None, largest: int | None) -> str:
    """A crossover beyond what was measured is no number to act on; an open bound is said as what it means."""
    if found is None:
        return "pays up to some batch"
    all_of_them = "at every batch that was measured" + ("" if largest is None else f", up to {largest}")
    beyond = largest is not None and found.value > largest
    about = all_of_them if beyond else f"up to about {_short(found.value)} sequences at once"
    match found.low, found.high:
        case None, None:
            return f"seems to pay {about}"
        case None, float(high):
            most = "" if beyond else f", at most {_short(high)}"
            return f"may pay {about}{most}, and perhaps at none"
        case float(low), _ if beyond:
            sure = largest is not None and low >= largest
            return (
                f"pays {about}"
                if sure
                else f"seems to pay {about}, and perhaps only up to about {_short(low)}"
            )
        case float(low), float(high) if largest is None or high <= largest:
            return f"pays {about} ({_short(low)} to {_short(high)})"
        case low, _:
            return f"pays {about}, at least {_short(low or 0.0)}, and perhaps {all_of_them}"


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
