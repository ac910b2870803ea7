"""How near a simulation comes to the record of the same requests, and what that says of its answers; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.report.words import joined, ms, percent
from app.simulation.report.subject import Promise
from app.simulation.scores import Scores
from autoscaling.types import Role, Tier

FEW = 100  # requests of a tier below which one of them is more than a hundredth
NEAR = 0.05  # of attainment; as near as both models come to each other
NEAR_TOKENS = 0.10  # of recorded tokens
SAME = 0.90  # of recorded decisions that a policy makes again: the one that was in force, or as good as it
CHANCE = 0.01  # a smaller difference may as well be none, in attainment or in tokens
OTHER_SPEED = 1.5  # times the recorded time per token: other engines than those of the profile


@dataclass(frozen=True, slots=True)
class Side:
    """A tier, or a pool, in the simulation and in the record; None is unknown."""

    name: str
    requests: float | None  # recorded
    attainment: tuple[float | None, float | None]  # simulated, recorded
    tokens_per_s: tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class Match:
    """What stands side by side, and what follows from it."""

    sides: tuple[Side, ...]  # tiers, then pools
    same: float | None  # share of the recorded decisions that the policy makes again
    trusted: bool | None  # None: this record cannot tell
    sentences: tuple[str, ...]  # the first one says whether the simulation may be trusted


def match(
    simulated: Scores,
    recorded: Scores,
    promises: Mapping[Tier, Promise],
    same: float | None,
) -> Match:
    """Compare a simulation with the record of its requests; both are judged by the same `promises`."""
    judged = [tier for tier in Tier if tier in recorded.tiers and promises.get(tier, Promise()).is_any]
    tiers = [
        _tier(tier, simulated, recorded, judged=tier in judged) for tier in Tier if tier in recorded.tiers
    ]
    few = [tier for tier in Tier if tier in recorded.tiers and recorded.tiers[tier].arrived < FEW]
    enough = [tier for tier in judged if tier not in few]
    trusted, verdict = _verdict([one for one in tiers if one.name in enough], tiers, same)
    return Match(
        sides=(*tiers, *(_pool(role, simulated, recorded) for role in Role if recorded.pools)),
        same=same,
        trusted=trusted,
        sentences=(verdict, *_few(few, recorded), *_speeds(simulated, recorded)),
    )


def _tier(tier: Tier, simulated: Scores, recorded: Scores, *, judged: bool) -> Side:
    both = (simulated, recorded)
    shares = [one.tiers[tier].attainment if judged and tier in one.tiers else None for one in both]
    first, second = (one.tier_tokens_per_s(tier) for one in both)
    return Side(tier.value, recorded.tiers[tier].arrived, (shares[0], shares[1]), (first, second))


def _pool(role: Role, simulated: Scores, recorded: Scores) -> Side:
    ours, real = simulated.pools.get(role), recorded.pools[role]
    return Side(
        f"{role} pool",
        None,
        (None if ours is None else ours.attainment, real.attainment),
        (None if ours is None else ours.tokens / simulated.seconds, real.tokens / recorded.seconds),
    )


def _verdict(judged: list[Side], tiers: list[Side], same: float | None) -> tuple[bool | None, str]:
    """Whether the simulation may be trusted, and a sentence that says so."""
    gaps = [
        abs(ours - real)
        for ours, real in (one.attainment for one in judged)
        if ours is not None and real is not None
    ]
    off = max(
        (
            abs(ours - real) / real
            for ours, real in (one.tokens_per_s for one in tiers)
            if ours is not None and real
        ),
        default=0.0,
    )
    if not gaps:
        return None, (
            "Whether the simulation may be trusted cannot be told from this record: no tier with an "
            "objective "
            f"has {FEW} requests; record for longer."
        )
    gap = max(gaps)
    measured = (
        f"{_points(max(gap, CHANCE))} of attainment and {percent(max(off, CHANCE))} of a tier's answer tokens"
    )
    if same is None or same < SAME:
        known = "is not known" if same is None else f"is {percent(same)}"
        return None, (
            f"The simulation differs from the record by up to {measured}, and part of that may be the "
            "policy's "
            f"own: the share of recorded decisions that it makes again {known}; replay the policy that was "
            "in "
            "force to see how far the simulation may be trusted."
        )
    if gap <= NEAR and off <= NEAR_TOKENS:
        return True, (
            f"The simulation may be trusted where it shows larger differences than {measured}: so near it "
            "comes "
            f"to the record, in which {percent(same)} of the decisions are this policy's."
        )
    return False, (
        f"Do not trust the simulation's answer: it is off by up to {measured}, though {percent(same)} of the "
        "recorded decisions are this policy's; measure a profile on the machines of the record with "
        "`twinpool bench`."
    )


def _few(few: list[Tier], recorded: Scores) -> Iterator[str]:
    if few:
        counts = joined([f"{recorded.tiers[tier].arrived:,.0f} {tier}" for tier in few])
        yield (
            f"The record has only {counts} requests: with fewer than {FEW} of a tier its shares and "
            "percentiles "
            "are chance."
        )


def _speeds(simulated: Scores, recorded: Scores) -> Iterator[str]:
    """A tier whose engines were of another kind than those of the profile."""
    for tier, real in recorded.tiers.items():
        ours = simulated.tiers.get(tier)
        if ours is None or not ours.tpot_p50_s or not real.tpot_p50_s:
            continue
        if not 1 / OTHER_SPEED < ours.tpot_p50_s / real.tpot_p50_s < OTHER_SPEED:
            yield (
                f"The recorded engines took {ms(real.tpot_p50_s)} ms per token of the middle {tier} "
                "request, those "
                f"of the profile take {ms(ours.tpot_p50_s)}: name the profile of the accelerators that the "
                "record "
                "comes from, or take the answer for another machine."
            )
            return


def _points(gap: float) -> str:
    return f"{100 * gap:.1f} points"
