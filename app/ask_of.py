"""From a request's body to what routing knows of it: workload, prediction, conversation; pure."""

from __future__ import annotations

from dataclasses import dataclass

from app.peek import Fields, Peek
from app.routing.ask import Ask
from app.workload.acceptance import draftable, tokens_per_step
from app.workload.classify import Workload, classify
from app.workload.features import Features, read_features
from autoscaling.routing_rules import RoutingRules
from autoscaling.types import Role, Tier

# Tokens of a first prompt from which its prefix is worth a fixed replica; later turns always are.
LONG_PROMPT = 512


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as routing sees it, and how it came to that."""

    ask: Ask
    workload: Workload
    features: Features


def asked(
    path: str,
    fields: Fields,
    seen: Peek,
    tier: Tier,
    pin: Role | None,
    rules: RoutingRules,
    method: str | None,
) -> Asked:
    """Classify a request and predict its drafts; `method` is the speculative pool's, None while unknown."""
    features = read_features(path, fields)
    workload = classify(features)
    predicted = tokens_per_step(method, workload, features, rules.tokens_per_step)
    sticky = features.has_history or features.prompt_tokens >= LONG_PROMPT
    return Asked(
        Ask(
            tier=tier,
            pin=pin,
            parameters=seen.parameters,
            sequences=seen.sequences,
            prompt_tokens=features.prompt_tokens,
            max_tokens=seen.max_tokens,
            tokens_per_step=predicted,
            draftable=rules.classify and draftable(predicted),
            conversation=features.conversation_key if sticky else None,
        ),
        workload,
        features,
    )
