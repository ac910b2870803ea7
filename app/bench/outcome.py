"""What a measurement comes to: findings, the files that hold them, and whether they can be acted on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from app.bench.next_step import next_words
from app.bench.report.page import html, markdown, svg_files
from app.bench.report.plots import FILES
from app.bench.report.where import headline, sure_words, two_pools_at
from app.bench.store import HTML, MARKDOWN, PLOTS, PROFILE, write_plots, write_text
from autoscaling.profiling.analyse import analyse
from autoscaling.profiling.cost_fit import FitError
from autoscaling.profiling.findings import Findings
from autoscaling.profiling.load import Mix
from autoscaling.profiling.measured import Measurement
from autoscaling.profiling.profile_text import profile_text
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role, Tier
from deployments.default_policy import OBJECTIVES

GOOD, NOT_GOOD_ENOUGH = 0, 1
DEFAULTS: Final = (
    "The limits keep the times per token that the default policy promises, which are hardly yours: give your "
    "policy file with --policy, also with --from."
)


class NothingFoundError(Exception):
    """A measurement that no cost can be fitted to; the message says why."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Findings, and where they lie."""

    findings: Findings
    folder: Path
    profile: Path

    @property
    def exit_code(self) -> int:
        """0 when every fit passes its gate."""
        fits = self.findings.fits.values()
        return GOOD if fits and all(fit.accepted for fit in fits) else NOT_GOOD_ENOUGH

    def document(self) -> dict[str, Any]:
        """For programs."""
        found = self.findings
        return {
            "schemaVersion": 1,
            "files": {
                "profile": str(self.profile),
                "report": str(self.folder / HTML),
                "markdown": str(self.folder / MARKDOWN),
            },
            "tookSeconds": found.measurement.took_s,
            "syntheticAcceptance": found.measurement.synthetic_acceptance,
            "fits": {
                role.value: {
                    "accepted": fit.accepted,
                    "error": fit.error,
                    "holdOutError": fit.hold_out_error,
                    "refusedBecause": fit.refused_because,
                }
                for role, fit in found.fits.items()
            },
            "crossovers": [
                {
                    "workload": one.workload,
                    "draftLength": one.draft_length,
                    "verdict": one.verdict.value,
                    "sequences": None if one.sequences is None else one.sequences.value,
                    "low": None if one.sequences is None else one.sequences.low,
                    "high": None if one.sequences is None else one.sequences.high,
                    "sure": one.sure,
                    "largestMeasured": one.largest,
                    "surelyGainsAt": list(one.gains),
                }
                for one in found.crossovers
            ],
            "pools": [
                {
                    "tpotSeconds": one.tpot_s,
                    "answer": one.answer.value if one.kept else None,
                    "margin": _finite(one.margin) if one.kept else None,
                }
                for one in found.pools
            ],
            "loads": [
                {
                    "batchAtOnce": one.load.batch_streams,
                    "twoPoolsAtTpotSeconds": [pool.tpot_s for pool in two_pools_at(one)],
                }
                for one in found.loads
            ],
            "policy": [
                {"path": one.path, "value": one.value, "because": one.because} for one in found.policy
            ],
            "draftTable": [[row.first, row.last, row.draft_length] for row in found.recommended_table],
            "cut": list(found.measurement.cut),
            "answer": list(headline(found)),
            "measuredForSure": list(sure_words(found)),
            "notes": list(found.notes),
            "next": list(next_words(found, self.profile)),
        }


def conclude(
    measurement: Measurement,
    folder: Path,
    prior: Mapping[Role, StepCost] | None,
    price_per_hour: float | None,
    objectives: Mapping[Tier, float] | None = None,
    mix: Mix = Mix(),  # noqa: B008  # frozen
) -> Outcome:
    """Fit, judge, and write profile and report into the folder; raises NothingFoundError, StoreError.

    `objectives` are seconds per token; those of the default policy without.  `mix` is the load that pools are
    judged for.
    """
    try:
        promised = default_objectives() if objectives is None else objectives
        findings = analyse(measurement, prior, promised, None, mix)
        if objectives is None and findings.policy:
            findings = replace(findings, notes=(*findings.notes, DEFAULTS))
        profile = profile_text(findings)
    except FitError as error:
        raise NothingFoundError(f"nothing can be concluded from this measurement: {error}") from error
    except ValueError as error:
        raise NothingFoundError(
            f"nothing can be concluded from this measurement: {error}\n"
            "mend: name a measurement.json as `twinpool bench` wrote it, or measure anew"
        ) from error
    write_text(folder / PROFILE, profile)
    write_text(folder / HTML, html(findings, price_per_hour))
    write_plots(folder, svg_files(findings), FILES)
    write_text(folder / MARKDOWN, markdown(findings, price_per_hour, PLOTS))
    return Outcome(findings, folder, folder / PROFILE)


def default_objectives() -> dict[Tier, float]:
    """Seconds per token that the default policy promises."""
    return {Tier(name): found["tpotSeconds"] for name, found in OBJECTIVES.items()}


def _finite(value: float) -> float | None:
    """JSON has no infinity: without a rival there is no margin."""
    return value if math.isfinite(value) else None
