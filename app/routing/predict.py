"""What a request would meet in a pool: predicted times, and whether they keep its objective."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.routing.ask import Ask
from app.routing.verdicts import Verdict
from autoscaling.routing_rules import PoolSpeed, RoutingRules, StepCost, TierRules
from autoscaling.step_cost import churn_s, prefill_s, step_s
from autoscaling.types import Role

NO_SPEED = PoolSpeed()


class Source(StrEnum):
    """What a prediction rests on."""

    PROFILE = "profile"  # the cost model at this load
    RECENT = "recent"  # 95th percentiles of the last minute
    UNMEASURED = "unmeasured"  # nothing: only the limits speak


@dataclass(frozen=True, slots=True)
class Prediction:
    """Seconds, None where unknown; `best_tpot_s` is what an idle replica of the pool would give."""

    ttft_s: float | None
    tpot_s: float | None
    source: Source
    best_ttft_s: float | None = None
    best_tpot_s: float | None = None
    churn_s: float = 0.0  # of `tpot_s`: what the prompts of others cost

    def miss(self, objective: TierRules, *, strict: bool = False, at_home: bool = False) -> Verdict | None:
        """Which objective would be missed, if any.

        One that even an idle replica would miss says nothing, unless `strict`: no waiting would help.
        Nor do the prompts of others `at_home`, in the tier's own pool: its limit keeps them few, and their
        cost is a mean that would turn requests away which most often are in time.
        """
        tpot_s = self.tpot_s
        if tpot_s is not None and at_home:
            tpot_s -= self.churn_s
        if _misses(tpot_s, None if strict else self.best_tpot_s, objective.tpot_s):
            return Verdict.WOULD_MISS_TPOT
        if _misses(self.ttft_s, None if strict else self.best_ttft_s, objective.ttft_s):
            return Verdict.WOULD_MISS_TTFT
        return None


def predict(role: Role, load: int, ask: Ask, rules: RoutingRules) -> Prediction:
    """Times of this request in a pool, at a replica that then has `load` sequences.

    Times of the last minute say nothing against an idle replica: what it gives is the pool's best.
    """
    cost = rules.costs.get(role)
    if cost is not None:
        return _by_cost(role, cost, load, ask, rules)
    speed = rules.speeds.get(role, NO_SPEED)
    if speed.ttft_p95_s is None and speed.tpot_p95_s is None:
        return Prediction(None, None, Source.UNMEASURED)
    ttft_s, tpot_s = speed.ttft_p95_s, speed.tpot_p95_s
    if load <= ask.sequences:
        return Prediction(ttft_s, tpot_s, Source.RECENT, best_ttft_s=ttft_s, best_tpot_s=tpot_s)
    return Prediction(ttft_s, tpot_s, Source.RECENT)


def stay_s(role: Role, prediction: Prediction, ask: Ask, rules: RoutingRules) -> float | None:
    """How long the request would hold its place; None when nothing tells.

    Without a cost model by the median speed of the last minute, of the other pool where this one has
    answered too little: a busy plain pool is no faster than a speculative one with room.
    """
    own, other = rules.speeds.get(role, NO_SPEED), rules.speeds.get(role.other, NO_SPEED)
    tokens = ask.longest_answer(other.answer_tokens if own.answer_tokens is None else own.answer_tokens)
    if prediction.source is Source.PROFILE and prediction.tpot_s is not None:
        return (prediction.ttft_s or 0.0) + tokens * prediction.tpot_s
    known = next((speed for speed in (own, other) if speed.tpot_p50_s is not None), None)
    if known is None or known.tpot_p50_s is None:
        return None
    return (known.ttft_p50_s or 0.0) + tokens * known.tpot_p50_s


def _by_cost(role: Role, cost: StepCost, load: int, ask: Ask, rules: RoutingRules) -> Prediction:
    """By the cost model: the step of so full a batch, and the prompts that come into it meanwhile."""
    speed = rules.speeds.get(role, NO_SPEED)
    answer = ask.answer_tokens(speed.answer_tokens)
    context = ask.prompt_tokens + answer / 2
    gain = max(1.0, ask.tokens_per_step or 1.0) if role is Role.SPECULATIVE else 1.0
    step, idle = step_s(cost, load, context), step_s(cost, ask.sequences, context)
    prefill = prefill_s(cost, ask.prompt_tokens)
    prompts = ask.prompt_tokens if speed.prompt_tokens is None else speed.prompt_tokens
    answers = answer if speed.answer_tokens is None else speed.answer_tokens
    churn = churn_s(cost, load - ask.sequences, prompts, answers)
    return Prediction(
        ttft_s=prefill + step,
        tpot_s=step / gain + churn,
        source=Source.PROFILE,
        best_ttft_s=prefill + idle,
        best_tpot_s=idle / gain,
        churn_s=churn,
    )


def _misses(predicted: float | None, best: float | None, objective: float | None) -> bool:
    if predicted is None or objective is None or predicted <= objective:
        return False
    return best is None or best <= objective
