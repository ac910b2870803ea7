"""The answers of a log, judged: what callers of a tier got, and what a pool did for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from app.simulation.score import keeps, promises
from app.simulation.scores import PoolScore, TierScore, middle_and_high
from app.simulation.traces.errors import TraceError
from app.simulation.traces.records import MOST_TOKENS, REQUESTS
from autoscaling.policy import TierObjective
from autoscaling.request_line import Outcome
from autoscaling.request_record import Verdict
from autoscaling.types import Role, Tier
from deployments.kept_files import StoreError, UnknownSchemaError
from deployments.record_reader import read

REFUSED = (Outcome.SHED, Outcome.NO_CAPACITY)
_Seconds = Annotated[float, msgspec.Meta(ge=0)]
Objectives = Mapping[Tier, TierObjective]


class Answered(msgspec.Struct):
    """A request that ended, and its verdict by the objectives that are asked about."""

    wall: Annotated[float, msgspec.Meta(ge=0)]
    tier: Tier
    outcome: Outcome
    pool: Role | None = None
    e2e_s: _Seconds | None = None
    verdict: Verdict | None = None
    generated_tokens: Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)] | None = None
    ttft_s: _Seconds | None = None
    tpot_s: _Seconds | None = None

    @property
    def counts(self) -> bool:
        """Whether it is known to have been served in time or not; a caller's own doing is neither."""
        if self.outcome in (Outcome.CALLER, Outcome.CANCELLED) and self.verdict is not Verdict.MISSED:
            return False
        return self.verdict is not Verdict.UNKNOWN

    @property
    def in_time(self) -> bool:
        """Answered whole and inside every objective that it was judged by."""
        return self.outcome is Outcome.OK and self.verdict in (Verdict.MET, None)


def answered(folder: Path, objectives: Objectives) -> Iterator[Answered]:
    """Those that are understood, judged by `objectives`; raises TraceError.

    How many are not understood is among the notes of the trace.
    """
    try:
        for record in read(folder, REQUESTS):
            try:
                found = msgspec.convert(record.get("request"), Answered)
            except msgspec.ValidationError:
                continue
            yield _judged(found, objectives.get(found.tier))
    except (StoreError, UnknownSchemaError) as error:
        raise TraceError(str(error)) from error


def tier_score(found: Sequence[Answered], until: float) -> TierScore:
    """What callers of one tier got; `until` is the trace's end, Unix seconds."""
    outcomes = Counter(one.outcome for one in found)
    in_time = sum(one.in_time for one in found)
    refused = sum(outcomes[outcome] for outcome in REFUSED)
    whole = [one for one in found if one.outcome is Outcome.OK]
    ttft_p50, ttft_p95 = middle_and_high(one.ttft_s for one in whole)
    tpot_p50, tpot_p95 = middle_and_high(one.tpot_s for one in whole)
    return TierScore(
        arrived=len(found),
        in_time=in_time,
        late=len(found) - in_time - refused - outcomes[Outcome.FAILED],
        refused=refused,
        failed=outcomes[Outcome.FAILED],
        tokens=_tokens(found, until),
        ttft_p50_s=ttft_p50,
        ttft_p95_s=ttft_p95,
        tpot_p50_s=tpot_p50,
        tpot_p95_s=tpot_p95,
    )


def pool_score(found: Sequence[Answered], objectives: Objectives, until: float) -> PoolScore:
    """What one pool did for the requests that it took."""
    judged = [one for one in found if one.tier in objectives and promises(objectives[one.tier])]
    return PoolScore(len(judged), sum(one.in_time for one in judged), _tokens(found, until))


def _tokens(found: Sequence[Answered], until: float) -> int:
    """Of whole answers that ended before the trace did; one whose time is not known is taken to have."""
    return sum(
        one.generated_tokens or 0
        for one in found
        if one.outcome is Outcome.OK and one.wall + (one.e2e_s or 0.0) <= until
    )


def _judged(one: Answered, objective: TierObjective | None) -> Answered:
    """The request with a verdict by this objective; one that was not answered keeps its own."""
    if one.outcome is not Outcome.OK:
        return one
    verdict = None
    if objective is not None:
        unknown = objective.ttft_seconds is not None and one.ttft_s is None
        met = Verdict.UNKNOWN if unknown else Verdict.MET
        verdict = met if keeps(one.ttft_s, one.tpot_s, objective) else Verdict.MISSED
    return msgspec.structs.replace(one, verdict=verdict)
