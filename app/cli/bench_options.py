"""What `twinpool bench` is told on its command line, checked before anything is measured."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from app.bench.asked import Asked
from app.bench.plan import QUICK, Plan, full
from app.bench.prompts import Prompt, for_workloads
from app.cli.engine_options import known_engines
from autoscaling.profiling.load import Mix
from deployments.local_config import ServiceSettings

FULL_WORKLOADS = ("chat", "copy", "code", "math", "translate", "grounded", "chat-long", "copy-long")


class BadOptionError(Exception):
    """An option cannot be used; the message names it and what would do."""


def what_is_asked(
    wanted: ServiceSettings,
    given: tuple[Prompt, ...] | None,
    live: bool | None,
    out: Path,
    quick: bool,
    concurrency: str | None,
    lengths: str | None,
    rounds: int | None,
) -> Asked:
    """What to measure; raises BadOptionError."""
    most = check_pair(wanted)
    words = FULL_WORKLOADS if given is None else tuple(sorted({one.workload for one in given}))
    plan: Plan = QUICK if quick else full(most, words)
    if quick:
        plan = replace(plan, lengths=quick_lengths(most))
        if given is not None:
            counted = Counter(one.workload for one in given).most_common(2)
            plan = replace(plan, workloads=tuple(word for word, _ in counted), long_context=None)
    if concurrency is not None:
        batches = numbers("--concurrency", concurrency, least=1, most=1024)
        # Between those that are fitted: beyond them the fit would be judged by what it cannot know.
        between = tuple(b for b in plan.hold_out if b not in batches and min(batches) < b < max(batches))
        plan = replace(plan, batches=batches, hold_out=between)
    if lengths is not None:
        plan = replace(plan, lengths=draft_lengths(lengths, most))
    if rounds is not None:
        plan = replace(plan, rounds=rounds, budget_s=None)
    return Asked(
        wanted.speculative,
        wanted.plain,
        plan,
        given or for_workloads(plan.all_workloads),
        out,
        _live(wanted, live),
    )


def _live(wanted: ServiceSettings, given: bool | None) -> bool:
    """Whether K is changed while the engine runs: on an accelerator its table would cost CUDA graphs."""
    if wanted.speculative.engine.kind != "vllm":
        return False
    return given if given is not None else wanted.speculative.accelerators_per_replica == 0


def numbers(option: str, text: str, *, least: int, most: int) -> tuple[int, ...]:
    """Whole numbers with commas between them, sorted; raises BadOptionError, also for one named twice."""
    found: list[int] = []
    for part in text.split(","):
        try:
            value = int(part)
        except ValueError:
            raise BadOptionError(
                f"{option} {text}: {part.strip()!r} is no whole number: write some with commas between, "
                "such as 1,2,4"
            ) from None
        if not least <= value <= most:
            raise BadOptionError(f"{option} {text}: {value} is not within {least} to {most}")
        if value in found:
            raise BadOptionError(f"{option} {text}: {value} is named twice: name each number once")
        found.append(value)
    return tuple(sorted(found))


def draft_lengths(text: str, most: int) -> tuple[int, ...]:
    """Draft lengths that the engine can have, one of them above 0; raises BadOptionError."""
    found = numbers("--lengths", text, least=0, most=1000)
    if max(found) > most:
        raise BadOptionError(
            f"--lengths: {max(found)} is above {most}, the num_speculative_tokens of the engine: "
            "leave it out, or raise that in --speculation or in the settings file"
        )
    if not any(found):
        raise BadOptionError(f"--lengths {text}: nothing is drafted: name one within 1 to {most} too")
    return found


def quick_lengths(most: int) -> tuple[int, ...]:
    """The draft lengths of a quick measurement: none, half of the engine's largest, and that."""
    return tuple(sorted({0, max(1, most // 2), most}))


def check_price(price: float | None) -> None:
    """Raises BadOptionError for what is no number."""
    if price is not None and not math.isfinite(price):
        raise BadOptionError(f"--accelerator-hour-price {price}: give a number of 0 or more")


def check_engine(kind: str | None) -> None:
    """Raises BadOptionError for an engine that there is not."""
    if kind is not None and kind not in known_engines():
        raise BadOptionError(f"--engine {kind}: there is no such engine: give {' or '.join(known_engines())}")


def nothing_to_measure(given: Mapping[str, object | None]) -> None:
    """Refuse options of a measurement beside --from; raises BadOptionError with those that are not None."""
    named = [option for option, value in given.items() if value is not None]
    if named:
        raise BadOptionError(f"--from measures nothing: leave out {', '.join(named)}")


def check_pair(wanted: ServiceSettings) -> int:
    """The largest draft length of the speculative pool; raises BadOptionError where there is none."""
    most = (wanted.speculative.engine.speculative_config or {}).get("num_speculative_tokens")
    if type(most) is not int or most < 1:
        raise BadOptionError(
            f"speculative_config.num_speculative_tokens is {most!r}: "
            "give a whole number of at least 1 in --speculation or in the settings file"
        )
    return most


def mix_of(
    interactive_at_once: float,
    batch_at_once: int | None,
    interactive: str | None,
    batch: str | None,
    measured: Sequence[str],
) -> Mix:
    """The load that pools are judged for; raises BadOptionError for a kind that is not measured."""
    if not math.isfinite(interactive_at_once):
        raise BadOptionError("--interactive-at-once: give a number")
    return Mix(
        interactive_at_once,
        batch_at_once,
        _kinds("--interactive-class", interactive, measured),
        _kinds("--batch-class", batch, measured),
    )


def _kinds(option: str, text: str | None, measured: Sequence[str]) -> tuple[str, ...]:
    named = () if text is None else tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    wrong = [one for one in named if one not in measured]
    if wrong:
        raise BadOptionError(f"{option}: {wrong[0]!r} is not measured: name one of {', '.join(measured)}")
    return named
