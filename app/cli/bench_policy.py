"""What a policy file promises per token, for `twinpool bench --policy`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from app.cli import policy_text, problem_lines
from app.cli.bench_options import BadOptionError
from autoscaling.policy_file import read_policy
from autoscaling.profiling.load import LIMITED_BY
from autoscaling.types import Tier


def promised(path: Path, say: Callable[[str], None]) -> dict[Tier, float]:
    """Seconds per token by tier; what it does not promise, and its warnings, are told by `say`.

    Raises BadOptionError with every problem of the file in its place.
    """
    try:
        read = policy_text.read(path)
    except policy_text.UnreadableError as error:
        raise BadOptionError(f"--policy {error}\nmend: {error.mend}, or leave --policy out") from error
    found = read_policy(read.text, time.time())
    if found.policy is None:
        lines = "\n".join(problem_lines.line(read.file, problem) for problem in found.problems)
        raise BadOptionError(
            f"--policy cannot be used:\n{lines}\nmend: correct the file, or leave --policy out"
        )
    for warning in found.warnings:
        say(problem_lines.line(read.file, warning, "warning: "))
    tiers = found.policy.spec.objectives
    given = {
        Tier.INTERACTIVE: tiers.interactive.tpot_seconds,
        Tier.STANDARD: tiers.standard.tpot_seconds,
        Tier.BATCH: tiers.batch.tpot_seconds,
    }
    kept = {tier: seconds for tier, seconds in given.items() if seconds is not None}
    missing = {role: tiers[0] for role, tiers in LIMITED_BY.items() if not any(one in kept for one in tiers)}
    if missing:
        tiers_named = " or ".join(f"spec.objectives.{tier}.tpotSeconds" for tier in missing.values())
        pools = " and ".join(missing)
        say(
            f"note: {read.file} has no {tiers_named}: nothing is promised, so no limit is recommended for "
            f"the {pools} pool{'s' if len(missing) > 1 else ''}"
        )
    return kept
