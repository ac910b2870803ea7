"""Findings as the profile file that a running service reads."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from autoscaling.profile import MEAN, SCHEMA_VERSION, ProfileError, read_profile
from autoscaling.profiling.findings import Estimate, Findings, Fit, PoolAnswer, PoolPrediction, Survival
from autoscaling.profiling.gains import drafting_by_length, gains_of
from autoscaling.profiling.measured import Fingerprint, Measurement
from autoscaling.types import Role

NAME = "profile.json"

Plain = dict[str, Any]


def profile_text(findings: Findings) -> str:
    """The profile, as JSON with a final line end; what is unknown is not in it.

    Raises ProfileError, whose words name the field, for findings that are no profile: no drafts of the
    speculative engine, or an engine without any cost.
    """
    made = findings.measurement
    if MEAN not in findings.survivals:
        raise ProfileError(f"{NAME}: no drafts were measured: let the speculative engine draft")
    kv = {facts.role: facts.kv_cache_tokens for facts in made.engines}
    gains = {name: _gains(findings, one) for name, one in findings.survivals.items()}
    tree = {
        "schemaVersion": SCHEMA_VERSION,
        "fingerprint": made.fingerprint.model,
        "measuredOn": _measured_on(made.fingerprint),
        "madeAt": made.made_at,
        "contextTokens": findings.context_tokens,
        "pools": {
            role.value: _pool(fit, kv.get(role), _drafted(made, fit)) for role, fit in findings.fits.items()
        },
        "tokensPerStep": {name: by_length[max(by_length)] for name, by_length in gains.items() if by_length},
        "tokensPerStepByLength": {
            name: {str(length): by_length[length] for length in sorted(by_length)}
            for name, by_length in gains.items()
        },
        "survival": {name: _falling(one.survival) for name, one in findings.survivals.items()},
        "syntheticAcceptance": made.synthetic_acceptance,
        "draftTable": [[row.first, row.last, row.draft_length] for row in findings.recommended_table],
        "k0Tax": [{"sequences": batch, "ratio": tax.value} for batch, tax in findings.k0_tax],
        "moveSeconds": _without_unknown(
            {
                "start": _longest(facts.start_s for facts in made.engines),
                "stop": _longest(facts.stop_s for facts in made.engines),
            }
        ),
        "twoPools": [_answer(one) for one in _surest(findings) if one.kept],
    }
    try:
        text = json.dumps(tree, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    except ValueError as error:
        raise ProfileError(f"{NAME}: {error}: measure anew") from None
    read_profile(text, NAME)
    return text


def _measured_on(found: Fingerprint) -> Plain:
    return _without_unknown(
        {
            "engine": found.engine,
            "engineVersion": found.engine_version,
            "device": found.device,
            "tensorParallel": found.tensor_parallel,
            "maxModelLen": found.max_model_len,
            "method": found.method,
            "draft": found.draft,
            "draftLengthMax": found.draft_length_max,
        }
    )


def _drafted(made: Measurement, fit: Fit) -> float | None:
    """Draft tokens in a step of a sequence, on average over the same steps as the tokens that it gains.

    The fit's own is the mean over its cells, in which large batches count no more than small ones.
    """
    gain = gains_of(drafting_by_length(made, MEAN)).get(fit.cost.draft_length)
    return fit.cost.drafted if gain is None or fit.cost.draft_length == 0 else gain.drafted


def _pool(fit: Fit, kv_cache_tokens: int | None, drafted: float | None) -> Plain:
    cost = fit.cost
    return _without_unknown(
        {
            "baseSeconds": cost.base_s,
            "perTokenSeconds": cost.per_token_s,
            "perContextSeconds": cost.per_context_s,
            "draftSeconds": cost.draft_s,
            "draftLength": cost.draft_length,
            "perDraftSeconds": cost.per_draft_s,
            "draftPerTokenSeconds": cost.draft_per_token_s,
            "draftPerContextSeconds": cost.draft_per_context_s,
            "draftedTokens": drafted,
            "perPrefillSeconds": cost.per_prefill_s,
            "hingeTokens": cost.hinge_tokens,
            "pastHingeSeconds": cost.past_hinge_s,
            "kvCacheTokens": kv_cache_tokens,
            "fit": _without_unknown(
                {
                    "points": fit.points,
                    "error": fit.error,
                    "holdOutError": fit.hold_out_error,
                    "accepted": fit.accepted,
                    "refusedBecause": fit.refused_because,
                }
            ),
        }
    )


def _gains(findings: Findings, found: Survival) -> dict[int, float]:
    """Tokens per step by K, up to the K of the cost; a step without drafts brings one.

    A mean of counts may lie a little beyond what a single step can bring.
    """
    speculative = findings.fits.get(Role.SPECULATIVE)
    most = math.inf if speculative is None else speculative.cost.draft_length
    return {
        length: min(1.0 + length, max(1.0, gain.value))
        for length, gain in found.tokens_per_step.items()
        if length <= most
    }


def _falling(survival: Iterable[Estimate]) -> list[float]:
    """Shares that never grow: each position is estimated on its own drafts, and may lie above the last."""
    shares: list[float] = []
    for one in survival:
        shares.append(min(max(0.0, one.value), shares[-1] if shares else 1.0))
    return shares


def _surest(findings: Findings) -> list[PoolPrediction]:
    """The answer at each objective; two pools where they sell more at any load that was asked about.

    The service's own load is not known, so that one pool is enough is said only where it is at all of them.
    """
    at: dict[float, PoolPrediction] = {one.tpot_s: one for one in findings.pools}
    for other in findings.other_loads:
        for one in other.pools:
            if one.kept and one.answer is PoolAnswer.TWO_POOLS and one.tpot_s in at:
                at[one.tpot_s] = max(
                    (at[one.tpot_s], one),
                    key=lambda found: (found.answer is PoolAnswer.TWO_POOLS, found.margin),
                )
    return [at[tpot_s] for tpot_s in sorted(at)]


def _answer(found: PoolPrediction) -> Plain:
    return _without_unknown(
        {
            "tpotSeconds": found.tpot_s,
            "answer": found.answer.value,
            # Without a rival that sells anything there is no ratio.
            "margin": found.margin if math.isfinite(found.margin) else None,
        }
    )


def _longest(seconds: Iterable[float | None]) -> float | None:
    return max((one for one in seconds if one is not None), default=None)


def _without_unknown(found: Mapping[str, Any]) -> Plain:
    return {name: value for name, value in found.items() if value is not None}
