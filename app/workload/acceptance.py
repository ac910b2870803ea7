"""How many tokens a step of an engine with drafts will give for a request; pure.

A table of methods and classes is the prior; what the profile measured for a class wins over it.
docs/concepts/workloads.md tells where each number comes from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from app.workload.classify import Reason, Workload, WorkloadClass
from app.workload.features import Features

DRAFTABLE: Final = 1.3  # tokens per step; below it drafting costs more than it gives
TEMPERATURE_LOSS: Final = 0.25  # of the gain at temperature 1; assumed
USUAL_TEMPERATURE: Final = 0.7  # where the request names none
NEW_CODE_GAIN: Final = 0.25  # of the gain of a class for a program that is written from nothing, n-grams only

MEAN: Final = "mean"  # of a profile: all classes

# Tokens per step by class, without the influence of the single request.
_Row = Mapping[WorkloadClass, float]


def _row(
    structured: float, code: float, translate: float, grounded: float, math_: float, chat: float, other: float
) -> _Row:
    return MappingProxyType(
        {
            WorkloadClass.STRUCTURED: structured,
            WorkloadClass.CODE: code,
            WorkloadClass.TRANSLATE: translate,
            WorkloadClass.GROUNDED: grounded,
            WorkloadClass.MATH: math_,
            WorkloadClass.CHAT: chat,
            WorkloadClass.OTHER: other,
        }
    )


#                 structured code translate grounded math chat other
_NGRAM = _row(1.9, 1.6, 1.1, 1.7, 1.4, 1.2, 1.5)
_EAGLE3 = _row(2.3, 2.3, 1.8, 2.3, 2.4, 2.25, 2.3)
_EAGLE = _row(2.1, 2.1, 1.7, 2.1, 2.2, 2.05, 2.1)
_MEDUSA = _row(2.1, 2.3, 2.2, 2.05, 2.6, 2.4, 2.3)
_DRAFT_MODEL = _row(2.3, 2.3, 1.7, 2.5, 2.2, 2.35, 2.3)

PRIORS: Final[Mapping[str, _Row]] = MappingProxyType(
    {
        "ngram": _NGRAM,
        "ngram_gpu": _NGRAM,
        "suffix": _NGRAM,
        "eagle": _EAGLE,
        "eagle3": _EAGLE3,
        "mtp": _EAGLE,
        "medusa": _MEDUSA,
        "mlp_speculator": _MEDUSA,
        "draft_model": _DRAFT_MODEL,
    }
)

# Bytes of an ordinary prompt of each class: an n-gram drafter finds less in a shorter one, more in a
# longer one, up to MUCH.
MUCH: Final = 1000
_ORDINARY: Final = MappingProxyType(
    {
        WorkloadClass.STRUCTURED: 800,
        WorkloadClass.CODE: 450,
        WorkloadClass.TRANSLATE: 150,
        WorkloadClass.GROUNDED: MUCH,
        WorkloadClass.MATH: 220,
        WorkloadClass.CHAT: 60,
        WorkloadClass.OTHER: MUCH,
    }
)


def tokens_per_step(
    method: str | None, workload: Workload, features: Features, measured: Mapping[str, float]
) -> float | None:
    """Predict the tokens per engine step, >= 1; None when the engine drafts nothing.

    `method` is the engine's word for how it drafts; an unknown one counts as a draft model.
    `measured` holds what the profile found for a class, and under `mean` over all of them; what is no
    number of at least 1 is left out.
    """
    if method is None:
        return None
    row = PRIORS.get(method) or (_EAGLE if method.endswith("mtp") else _DRAFT_MODEL)
    found = measured.get(MEAN if workload.kind is WorkloadClass.OTHER else workload.kind)
    gain = _known(found, row[workload.kind]) - 1.0
    if row is _NGRAM:
        gain *= _found(workload, features)
    heat = USUAL_TEMPERATURE if features.temperature is None else min(1.0, features.temperature)
    gain *= 1.0 - TEMPERATURE_LOSS * heat
    return round(_whole_answer(1.0 + gain, features.max_tokens), 3)


def draftable(tokens: float | None) -> bool:
    """Whether drafts pay for a request of so many tokens per step."""
    return tokens is not None and tokens >= DRAFTABLE


def _known(measured: float | None, prior: float) -> float:
    return measured if measured is not None and math.isfinite(measured) and measured >= 1.0 else prior


def _found(workload: Workload, features: Features) -> float:
    """What of a class's gain a single request has, when drafts are looked up in its own text."""
    share = NEW_CODE_GAIN if workload.reason is Reason.CODE_ASKED else 1.0
    if features.prompt_chars:
        length = (min(MUCH, features.prompt_chars) / _ORDINARY[workload.kind]) ** 0.3
        share *= min(1.5, max(0.5, length)) * (0.85 + 0.5 * features.repetition)
    return share


def _whole_answer(tokens: float, limit: int | None) -> float:
    """The first token of an answer comes with the prompt, before any draft: short answers gain less."""
    return tokens if limit is None else limit / (1.0 + (limit - 1) / tokens)
