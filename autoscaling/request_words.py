"""The sentences of `why request`: one for each verdict on a pool, choice of a replica, reason and outcome."""

from __future__ import annotations

from collections.abc import Mapping

from autoscaling.request_line import Outcome
from autoscaling.request_record import Verdict
from autoscaling.route_reasons import RouteReason

ROUTES: Mapping[RouteReason, str] = {
    RouteReason.TIER_INTERACTIVE: "the speculative pool is the interactive tier's own",
    RouteReason.TIER_STANDARD: "the plain pool is the standard tier's own where drafts do not pay",
    RouteReason.TIER_BATCH: "the plain pool is the batch tier's own",
    RouteReason.DRAFTABLE: "drafts are predicted to pay, and the speculative pool had room above its reserve",
    RouteReason.SPILL: "the pool that it prefers had no room inside the objective, and this one had",
    RouteReason.BACKFILL: "the plain pool was full or slower, and the speculative one had room to spare",
    RouteReason.POOL_UNAVAILABLE: "no replica of the pool that it prefers took work",
    RouteReason.CAPABILITY: "the pool that it prefers refuses a parameter of the request",
    RouteReason.PINNED_BY_CALLER: "the caller named the pool",
}
# What became of each pool in the decision; written by the ingress.
POOLS: Mapping[str, str] = {
    "chosen": "taken",
    "slower": "not needed: the other one is predicted to take less time per token",
    "not_preferred": "not needed: the other one comes first for such a request, and was good enough",
    "no_replica": "no replica took work",
    "refuses_parameter": "it refuses a parameter of the request",
    "full": "full",
    "reserve_kept": "what was left of it is reserved for interactive requests",
    "would_miss_tpot": "the time per token there was predicted to miss the objective",
    "would_miss_ttft": "the first token there was predicted to come later than the objective",
    "stay_too_long": "the request was predicted to stay there for longer than backfill may",
    "stay_unknown": "how long the request would stay there could not be predicted",
    "backfill_off": "the policy allows no backfill",
    "tried": "every replica that could serve it had been asked already",
    "pinned_elsewhere": "the caller named the other pool",
    "not_draftable": "drafts are not predicted to pay for such a request",
}
REPLICAS: Mapping[str, str] = {
    "less_work": "less work left than the other one of two drawn at random",
    "same_conversation": "it served the conversation before",
    "only_one": "the only one with room",
}
PREDICTED: Mapping[str, str] = {
    "profile": "by the profile",
    "recent": "by the requests of the last minute",
}
UNMEASURED = "unmeasured"
OUTCOMES: Mapping[Outcome, str] = {
    Outcome.OK: "a complete answer",
    Outcome.CALLER: "the request itself was wrong",
    Outcome.SHED: "refused at once: the tier's queue was full",
    Outcome.NO_CAPACITY: "refused: no room before the tier's deadline, or no replica",
    Outcome.FAILED: "it failed, or the answer broke off",
    Outcome.CANCELLED: "the caller left",
}
VERDICTS: Mapping[Verdict, str] = {
    Verdict.MET: "counts as met",
    Verdict.MISSED: "counts as missed",
    Verdict.UNKNOWN: "cannot be judged: the engine's record of it never came",
}
