"""What was simulated, as JSON values for programs: seconds, tokens, ratios 0 to 1, null for unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.simulation.report.advice import advice
from app.simulation.report.answer import details, lead
from app.simulation.report.judged import best, misses
from app.simulation.report.subject import Promise, Subject
from app.simulation.scores import Moment, MoveMade, Scores, TierScore
from autoscaling.types import Role

SCHEMA_VERSION = 1


def as_json(subject: Subject, *, series: bool = True) -> dict[str, Any]:
    """Everything that the report rests on; `series` are the pools over time, which may be long."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "about": list(subject.about),
        "found": [*lead(subject), *details(subject)],
        "advice": list(advice(subject, subject.asked)),
        "notes": list(subject.notes),
        "asked": subject.asked,
        "best": best(subject),
        "objectives": {tier.value: _promise(subject.promise(tier)) for tier in subject.tiers()},
        "policies": {name: _policy(subject, name, series=series) for name in subject.scores},
    }


def _policy(subject: Subject, name: str, *, series: bool) -> dict[str, Any]:
    scores = subject.scores[name]
    missed = {miss.tier for miss in misses(subject, name)}
    found = {
        "means": subject.words.get(name),
        "simulated": name not in subject.recorded,
        "knowsTheTrace": name in subject.foresight,
        "missed": [tier.value for tier in subject.tiers() if tier in missed],
        "seconds": scores.seconds,
        "tiers": {
            tier.value: _tier(score) | {"tokensPerSecond": scores.tier_tokens_per_s(tier)}
            for tier, score in scores.tiers.items()
        },
        "tokensPerSecond": scores.tokens_per_s,
        "acceleratorHours": scores.accelerator_hours,
        "switchingHours": scores.switching_hours,
        "cost": subject.cost(scores),
        "reversals": scores.reversals,
        "moves": [_move(move) for move in scores.moves],
    }
    return found | (_series(scores) if series else {})


def _series(scores: Scores) -> dict[str, Any]:
    return {
        "intervalSeconds": scores.interval_s,
        "series": [_moment(moment) for moment in scores.series],
    }


def _promise(promise: Promise) -> dict[str, Any]:
    return {"ttftSeconds": promise.ttft_s, "tpotSeconds": promise.tpot_s}


def _tier(score: TierScore) -> dict[str, Any]:
    return {
        "arrived": score.arrived,
        "inTime": score.in_time,
        "late": score.late,
        "refused": score.refused,
        "failed": score.failed,
        "tokens": score.tokens,
        "attainment": score.attainment,
        "ttftP50Seconds": score.ttft_p50_s,
        "ttftP95Seconds": score.ttft_p95_s,
        "tpotP50Seconds": score.tpot_p50_s,
        "tpotP95Seconds": score.tpot_p95_s,
    }


def _move(move: MoveMade) -> dict[str, Any]:
    return {
        "atSeconds": move.at_s,
        "source": None if move.source is None else move.source.value,
        "receiver": None if move.receiver is None else move.receiver.value,
        "count": move.count,
        "reason": move.reason,
        "state": move.state,
        "tookSeconds": move.took_s,
    }


def _moment(moment: Moment) -> dict[str, Any]:
    return {
        "atSeconds": moment.at_s,
        "running": _pools(moment.running),
        "starting": _pools(moment.starting),
        "draining": _pools(moment.draining),
        "demand": _pools(moment.demand),
        "capacity": _pools(moment.capacity),
        "attainment": {tier.value: share for tier, share in moment.attainment.items()},
        "tpotP95Seconds": {tier.value: value for tier, value in moment.tpot_p95_s.items()},
    }


def _pools(each: Mapping[Role, float]) -> dict[str, float | None]:
    return {role.value: each.get(role) for role in Role}
