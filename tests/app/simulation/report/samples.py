"""Scores of small invented policies, for the tests of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.simulation.report.subject import Promise, Subject
from app.simulation.scores import Moment, MoveMade, Scores, TierScore
from app.simulation.traces.rates import Rate
from autoscaling.types import Role, Tier

PROMISES: Mapping[Tier, Promise] = {Tier.INTERACTIVE: Promise(1.0, 0.05), Tier.BATCH: Promise()}


def pools(speculative: float, plain: float) -> dict[Role, float]:
    return {Role.SPECULATIVE: speculative, Role.PLAIN: plain}


def moment(
    at_s: float,
    demand: Mapping[Role, float] | None = None,
    capacity: Mapping[Role, float] | None = None,
    attainment: float | None = 1.0,
) -> Moment:
    """Room for 16 and 64 sequences, of which half are asked for, unless told otherwise."""
    return Moment(
        at_s=at_s,
        running=pools(2, 2),
        starting=pools(0, 0),
        draining=pools(0, 0),
        demand=pools(8, 32) if demand is None else demand,
        capacity=pools(16, 64) if capacity is None else capacity,
        attainment={Tier.INTERACTIVE: attainment, Tier.BATCH: 1.0},
        tpot_p95_s={Tier.INTERACTIVE: 0.031, Tier.BATCH: 0.09},
    )


def tier(
    arrived: float = 1000, in_time: float = 980, refused: float = 0, tokens: float = 60_000
) -> TierScore:
    """What is neither in time nor refused is late."""
    return TierScore(
        arrived=arrived,
        in_time=in_time,
        late=arrived - in_time - refused,
        refused=refused,
        failed=0,
        tokens=tokens,
        ttft_p50_s=0.12,
        ttft_p95_s=0.48,
        tpot_p50_s=0.022,
        tpot_p95_s=0.0312,
    )


MOVE = MoveMade(130.0, Role.PLAIN, Role.SPECULATIVE, 1, "shortfall", "done", 64.0)
BACK = MoveMade(400.0, Role.SPECULATIVE, Role.PLAIN, 1, "shortfall", "done", 71.0)


def scores(
    interactive: TierScore | None = None,
    series: Sequence[Moment] | None = None,
    moves: Sequence[MoveMade] = (MOVE,),
    hours: float = 4.0,
) -> Scores:
    """An hour: 980 of 1000 interactive requests in time, all of 500 batch requests answered."""
    return Scores(
        seconds=3600.0,
        tiers={
            Tier.INTERACTIVE: interactive or tier(),
            Tier.BATCH: replace(tier(500, 500, tokens=300_000), tpot_p95_s=None),
        },
        accelerator_hours=hours,
        switching_hours=0.05,
        moves=tuple(moves),
        series=tuple(moment(10.0 * at) for at in range(360)) if series is None else tuple(series),
        interval_s=10.0,
    )


LATE = scores(tier(in_time=900, refused=20))


def subject(found: Mapping[str, Scores] | None = None, **changes: object) -> Subject:
    """The policy `mine` by itself, or what is given."""
    made = Subject(
        title="Simulation of the policy mine",
        about=("trace generated:mixed: 1,500 requests in 1h", "engines h100-8b (a data sheet)"),
        scores=found or {"mine": scores()},
        promises=PROMISES,
        rates=(
            Rate(None, 1500, 0.4167, 3.1),
            Rate(Tier.INTERACTIVE, 1000, 0.2778, 2.1),
            Rate(Tier.BATCH, 500, 0.1389, 1.3),
        ),
        words={"mine": "the policy as given"},
    )
    return replace(made, **changes)  # type: ignore[arg-type]
