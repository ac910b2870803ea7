"""From measured answers to what a class and the features say about drafts; pure."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from itertools import groupby
from typing import Final

import msgspec

from app.workload.acceptance import DRAFTABLE, draftable, tokens_per_step
from app.workload.classify import Reason, Workload, WorkloadClass, classify
from app.workload.features import Features, read_features
from benchmarks.workload_lines import Line
from benchmarks.workload_prompts import Prompt

METHOD: Final = "ngram"
LEAST: Final = 5  # answers that make a mean; of fewer the prior stays
CHAT: Final = "/v1/chat/completions"
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Answered:
    """A prompt as the router sees it, and what its answer measured."""

    category: str
    features: Features
    workload: Workload
    line: Line

    @property
    def measured(self) -> float:
        """Tokens per step."""
        return self.line.tokens_per_step

    @property
    def calibrates(self) -> bool:
        """Whether it is of the half that thresholds and means were taken from, by a hash of its id."""
        return bool(blake2b(self.line.id.encode(), digest_size=1).digest()[0] & 1)


Means = Mapping[str, float]
Predict = Callable[[Answered, Means], float | None]


class Predictor(StrEnum):
    """Who predicts; each knows more than the one before."""

    TIER = "tier_only"
    FEATURES = "features_only"
    CLASS = "class_only"
    PRIOR = "prior"  # class and features, without any measurement
    ALL = "all"  # class and features, with the measured means


def _tier(_one: Answered, _means: Means) -> float | None:
    return DRAFTABLE  # all prompts are asked in one tier: it tells them apart by nothing


def _features(one: Answered, means: Means) -> float | None:
    unknown = Workload(WorkloadClass.OTHER, Reason.FREE_TEXT)
    return tokens_per_step(METHOD, unknown, one.features, means)


def _class(one: Answered, means: Means) -> float | None:
    return tokens_per_step(METHOD, one.workload, Features(temperature=0.0), means)


def _prior(one: Answered, _means: Means) -> float | None:
    return tokens_per_step(METHOD, one.workload, one.features, {})


def _all(one: Answered, means: Means) -> float | None:
    return tokens_per_step(METHOD, one.workload, one.features, means)


PREDICT: Final[Mapping[Predictor, Predict]] = {
    Predictor.TIER: _tier,
    Predictor.FEATURES: _features,
    Predictor.CLASS: _class,
    Predictor.PRIOR: _prior,
    Predictor.ALL: _all,
}


@dataclass(frozen=True, slots=True)
class Scored:
    """One answer and what was predicted for it."""

    predicted: float
    measured: float


def joined(prompts: Iterable[Prompt], lines: Iterable[Line]) -> list[Answered]:
    """The answers whose prompts are known, in the order of the prompts."""
    by_id = {line.id: line for line in lines}
    found = []
    for prompt in prompts:
        line = by_id.get(prompt.id)
        if line is not None:
            features = read_features(CHAT, _fields.decode(json.dumps(prompt.body, ensure_ascii=False)))
            found.append(Answered(prompt.category, features, classify(features), line))
    return found


def pooled(answers: Iterable[Answered]) -> float:
    """Tokens per step of all of them together; raises ZeroDivisionError on none."""
    lines = [one.line for one in answers]
    return sum(line.tokens for line in lines) / sum(line.steps for line in lines)


def by_class(answers: Iterable[Answered]) -> dict[WorkloadClass, list[Answered]]:
    """The answers of each class that occurs, in the order of the classes."""
    groups = defaultdict(list)
    for one in answers:
        groups[one.workload.kind].append(one)
    return {kind: groups[kind] for kind in WorkloadClass if kind in groups}


def means(answers: Sequence[Answered]) -> dict[str, float]:
    """What a profile made of these answers would hold."""
    found = {kind.value: pooled(group) for kind, group in by_class(answers).items() if len(group) >= LEAST}
    return found | ({"mean": pooled(answers)} if len(answers) >= LEAST else {})


def held_out(answers: Sequence[Answered], predict: Predict) -> list[Scored]:
    """The half that nothing was taken from, predicted with the means of the other one."""
    learned = means([one for one in answers if one.calibrates])
    return _scored([one for one in answers if not one.calibrates], predict, learned)


def crossed(answers: Sequence[Answered], predict: Predict) -> list[Scored]:
    """All answers, each half predicted with the means of the other one."""
    learned = means([one for one in answers if not one.calibrates])
    other = _scored([one for one in answers if one.calibrates], predict, learned)
    return held_out(answers, predict) + other


def _scored(answers: Iterable[Answered], predict: Predict, learned: Means) -> list[Scored]:
    found = []
    for one in answers:
        predicted = predict(one, learned)
        if predicted is not None:
            found.append(Scored(predicted, one.measured))
    return found


def sent_auc(scored: Sequence[Scored]) -> float | None:
    """The chance that an answer of what is sent to speculation has more tokens per step than one of the rest.

    None where all or none is sent.
    """
    return rank_auc([(one.measured, draftable(one.predicted)) for one in scored])


def ranking_auc(scored: Sequence[Scored]) -> float | None:
    """The chance that an answer for which drafts paid was predicted higher than another."""
    return rank_auc([(one.predicted, one.measured >= DRAFTABLE) for one in scored])


def rank_auc(pairs: Sequence[tuple[float, bool]]) -> float | None:
    """The chance that a value marked True is above one marked False; a tie is half.  None without both."""
    marked = sum(mark for _, mark in pairs)
    rest = len(pairs) - marked
    if not marked or not rest:
        return None
    below = 0
    wins = 0.0
    for _, tied in groupby(sorted(pairs, key=lambda pair: pair[0]), key=lambda pair: pair[0]):
        marks = [mark for _, mark in tied]
        here = len(marks) - sum(marks)
        wins += sum(marks) * (below + here / 2)
        below += here
    return wins / (marked * rest)


def moved(answers: Sequence[Answered], others: Sequence[Answered], predict: Predict) -> int:
    """How many of the answers are sent elsewhere when they are classified as `others` are."""
    pairs = zip(crossed(answers, predict), crossed(others, predict), strict=True)
    return sum(draftable(one.predicted) is not draftable(two.predicted) for one, two in pairs)


def without(answers: Sequence[Answered], kind: WorkloadClass) -> list[Answered]:
    """The answers as they would be classified if there were no such class, and its requests were chat."""
    chat = Workload(WorkloadClass.CHAT, Reason.FREE_TEXT)
    return [
        Answered(one.category, one.features, chat, one.line) if one.workload.kind is kind else one
        for one in answers
    ]
