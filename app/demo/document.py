"""What a run found, as the JSON document of `twinpool demo -o json`; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from app.demo.answers import Objective
from app.demo.report import Report
from app.demo.summary import Row, Spread, Total
from app.demo.verdict import TierVerdict, compared
from autoscaling.types import Role

SCHEMA_VERSION = 1


def document(report: Report) -> dict[str, Any]:
    """The JSON document; unknown is None, seconds end in `_seconds`, shares are 0..1."""
    return {
        "schema_version": SCHEMA_VERSION,
        "url": report.url,
        "seed": report.seed,
        "seconds": round(report.seconds, 3),
        "ended": report.ended.value,
        "load": {tier.value: count for tier, count in report.load.streams.items()},
        "fills_plain_pool": report.load.fills,
        "shares_cores": report.shares_cores,
        "tiers": {
            total.tier.value: _tier(total, report.objectives[total.tier], verdict, report.rows)
            for total, verdict in zip(report.totals, report.verdicts, strict=True)
        },
        "interactive_by_phase": [
            {"phase": one.phase.value, "answers": one.answers, **_times(one.ttft, one.tpot)}
            for one in report.phases
        ],
        "copying_task": {
            "ratio": _rounded(report.copies.ratio),
            "acceptance": _rounded(report.copies.acceptance),
            "tpot_seconds": {role.value: _rounded(report.copies.tpot_s[role]) for role in Role},
            "answers": {role.value: report.copies.answers[role] for role in Role},
            "words": compared(report.copies),
        },
        "moves": [asdict(move) for move in report.moves],
        "slowest_interactive": None if report.slowest is None else report.slowest.id,
        "exit_code": report.exit_code,
    }


def _tier(
    total: Total, objective: Objective | None, verdict: TierVerdict, rows: Iterable[Row]
) -> dict[str, Any]:
    return {
        "objective": None
        if objective is None
        else {"ttft_seconds": objective.ttft_s, "tpot_seconds": objective.tpot_s},
        "attainment": _rounded(total.attainment),
        "verdict": verdict.verdict.value,
        "words": verdict.words,
        "requests": total.requests,
        "answered": total.answered,
        "refused": total.refused,
        "sent_again": total.again,
        "failed": total.failed,
        "cut": total.cut,
        "codes": dict(total.codes),
        "pools": {row.pool or "unknown": _pool(row) for row in rows if row.tier is total.tier},
    }


def _pool(row: Row) -> dict[str, Any]:
    return {
        "answers": row.answers,
        **_times(row.ttft, row.tpot),
        "tokens_per_second": _rounded(row.tokens_per_s),
        "draft_acceptance_rate": _rounded(row.acceptance),
        "mean_acceptance_length": _rounded(row.tokens_per_draft),
        "reasons": dict(row.reasons),
    }


def _times(ttft: Spread, tpot: Spread) -> dict[str, float | None]:
    return {
        "ttft_p50_seconds": _rounded(ttft.p50_s),
        "ttft_p95_seconds": _rounded(ttft.p95_s),
        "tpot_p50_seconds": _rounded(tpot.p50_s),
        "tpot_p95_seconds": _rounded(tpot.p95_s),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
