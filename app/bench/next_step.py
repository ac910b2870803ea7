"""What to do after a measurement, by how it came out."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

from app.bench.made import UNFINISHED
from autoscaling.profiling.findings import Findings, PoolAnswer
from autoscaling.profiling.notes import busy_words

# Twice those of a quick measurement: half the noise of a mean would need four times as many.
MORE_ROUNDS: Final = 8
GUIDE: Final = "docs/concepts/two-pools.md"


def next_words(findings: Findings, profile: Path) -> tuple[str, ...]:
    """Commands and settings, the most useful first."""
    serve = f"twinpool serve --profile {shlex.quote(str(profile))}"
    if findings.relied:
        return (*_pools(findings), serve, *_rest(findings))
    said = []
    if busy_words(findings.measurement):
        said.append("stop the other processes, then measure again with the same command")
    elif UNFINISHED in findings.measurement.cut:
        said.append("measure again, to the end: only whole rounds are in this")
    else:
        said.append(_more(findings))
    accepted = [role.value for role, fit in findings.fits.items() if fit.accepted]
    if accepted:
        said.append(f"{serve} would take the limit of the {accepted[0]} pool from it, and nothing else")
    return tuple(said)


def _more(findings: Findings) -> str:
    rounds = len({run.round for run in findings.measurement.runs})
    quiet = "with nothing else on the machine"
    if findings.measurement.quick:
        return (
            f"twinpool bench --quick --rounds {max(MORE_ROUNDS, 2 * rounds)}, {quiet}: more rounds, without "
            "the limit of 10 minutes; twinpool bench without --quick has more batches too"
        )
    return f"twinpool bench --rounds {2 * rounds}, {quiet}: twice the rounds"


def _rest(findings: Findings) -> tuple[str, ...]:
    if UNFINISHED not in findings.measurement.cut:
        return ()
    return ("measure again, to the end, for narrower intervals: only whole rounds are in this",)


def _pools(findings: Findings) -> tuple[str, ...]:
    """Where what was answered on pools is turned into settings."""
    answers = {one.answer for one in findings.pools if one.kept}
    said = ["set the policy values above"] if findings.policy else []
    if answers and answers != {PoolAnswer.TWO_POOLS}:
        said.append(f"to run one pool where one is enough, see {GUIDE}, If one pool is enough")
    return tuple(said)
