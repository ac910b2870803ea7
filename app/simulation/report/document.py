"""What was simulated, as JSON values for programs: seconds, tokens, ratios 0 to 1, null for unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.simulation.report.advice import advice
from app.simulation.report.answer import details, lead
from app.simulation.report.judged import best, misses, promised
from app.simulation.report.match import Match
from app.simulation.report.sizes import smallest
from app.simulation.report.subject import Promise, Subject
from app.simulation.scores import Moment, MoveMade, Scores, TierScore
from app.simulation.traces.rates import WINDOW_S
from autoscaling.types import Role, Tier

SCHEMA_VERSION = 1


def as_json(subject: Subject, *, series: bool = True) -> dict[str, Any]:
    """Everything that the report rests on; `series` are the pools over time, which may be long."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "about": list(subject.about),
        "found": [*lead(subject), *details(subject)],
        "advice": list(advice(subject, subject.asked)),
        "notes": list(subject.notes),
        "requests": _requests(subject),
        "sizes": dict(subject.sizes),
        "smallestThatKeepsAll": subject.sizes.get(smallest(subject) or "") if subject.sizes else None,
        "asked": subject.asked,
        "best": best(subject),
        "objectives": _promises(subject, None),
        "match": None if subject.match is None else _match(subject.match),
        "policies": {name: _policy(subject, name, series=series) for name in subject.scores},
    }


def _requests(subject: Subject) -> dict[str, Any]:
    """How many requests the trace has, and how many a second."""
    return {
        "peakWindowSeconds": WINDOW_S,
        "tiers": {
            "all" if one.tier is None else one.tier.value: {
                "requests": one.requests,
                "meanPerSecond": one.mean,
                "peakPerSecond": one.peak,
            }
            for one in subject.rates
        },
    }


def _match(found: Match) -> dict[str, Any]:
    """How near the simulation comes to a record."""
    return {
        "trusted": found.trusted,
        "decisionsMadeAgain": found.same,
        "words": list(found.sentences),
        "sides": [
            {
                "of": one.name,
                "requests": one.requests,
                "attainment": dict(zip(("simulated", "recorded"), one.attainment, strict=True)),
                "tokensPerSecond": dict(zip(("simulated", "recorded"), one.tokens_per_s, strict=True)),
            }
            for one in found.sides
        ],
    }


def _policy(subject: Subject, name: str, *, series: bool) -> dict[str, Any]:
    scores = subject.scores[name]
    missed = {miss.tier for miss in misses(subject, name)}
    found = {
        "means": subject.words.get(name),
        "simulated": name not in subject.recorded,
        "knowsTheTrace": name in subject.foresight,
        "missed": [tier.value for tier in subject.tiers() if tier in missed],
        "objectives": _promises(subject, name),
        "seconds": scores.seconds,
        "tiers": {
            tier.value: _tier(score, judged=subject.promise(tier, name).is_any)
            | {"tokensPerSecond": scores.tier_tokens_per_s(tier)}
            for tier, score in scores.tiers.items()
        },
        "tokensPerSecond": scores.tokens_per_s,
        "acceleratorHours": scores.accelerator_hours,
        "switchingHours": scores.switching_hours,
        "cost": subject.cost(scores),
        "reversals": scores.reversals,
        "moves": [_move(move) for move in scores.moves],
    }
    return found | (_series(scores, frozenset(promised(subject, name))) if series else {})


def _series(scores: Scores, judged: frozenset[Tier]) -> dict[str, Any]:
    return {
        "intervalSeconds": scores.interval_s,
        "series": [_moment(moment, judged) for moment in scores.series],
    }


def _promises(subject: Subject, name: str | None) -> dict[str, Any]:
    return {tier.value: _promise(subject.promise(tier, name)) for tier in subject.tiers()}


def _promise(promise: Promise) -> dict[str, Any]:
    return {"ttftSeconds": promise.ttft_s, "tpotSeconds": promise.tpot_s}


def _tier(score: TierScore, *, judged: bool) -> dict[str, Any]:
    """Without an objective nothing is in time or late: that is unknown."""
    return {
        "arrived": score.arrived,
        "answered": score.in_time + score.late,
        "inTime": score.in_time if judged else None,
        "late": score.late if judged else None,
        "refused": score.refused,
        "failed": score.failed,
        "tokens": score.tokens,
        "attainment": score.attainment if judged else None,
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


def _moment(moment: Moment, judged: frozenset[Tier]) -> dict[str, Any]:
    return {
        "atSeconds": moment.at_s,
        "running": _pools(moment.running),
        "starting": _pools(moment.starting),
        "draining": _pools(moment.draining),
        "demand": _pools(moment.demand),
        "capacity": _pools(moment.capacity),
        "attainment": {
            tier.value: share if tier in judged else None for tier, share in moment.attainment.items()
        },
        "tpotP95Seconds": {tier.value: value for tier, value in moment.tpot_p95_s.items()},
    }


def _pools(each: Mapping[Role, float]) -> dict[str, float | None]:
    return {role.value: each.get(role) for role in Role}
