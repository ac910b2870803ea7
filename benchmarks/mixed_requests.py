"""The requests of `benchmarks.mixed`, the same for the same seed; pure but for the built-in samples."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from app.demo.plan import Wanted
from app.samples import Sample, samples
from app.workload.classify import Reason, Workload, classify
from app.workload.features import read_features
from autoscaling.types import Tier

CHAT: Final = "/v1/chat/completions"
INTERACTIVE_STREAMS, BATCH_STREAMS = 2, 12
SHORTEST, LONGEST = 64, 96  # tokens of an answer at most, where the sample's own limit is not lower
STEP_TOKENS: Final = 32  # of every answer in the loops that measure steps
SHORT_PROMPT: Final = 150  # tokens: in the loops that measure steps, prefill is a small part
TEMPLATE_TOKENS: Final = 20  # that the chat template adds to a prompt, about
EDITS: Final = (Reason.CODE_GIVEN, Reason.VERB_REWRITE)  # the answer gives back what the prompt holds
TALK: Final = ("chat", "creative")
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request of the open loop."""

    at_s: float
    wanted: Wanted


@dataclass(frozen=True, slots=True)
class Known:
    """A sample and what the service's own code sees in it."""

    sample: Sample
    workload: Workload
    prompt_tokens: int  # estimated, template included


def known_samples(without: Iterable[str] = ()) -> tuple[Known, ...]:
    """All samples but those with tools, which an engine refuses without a parser, and `without` (ids)."""
    left_out = set(without)
    return tuple(_known(one) for one in samples() if "tools" not in one.body and one.id not in left_out)


def editing(found: Sequence[Known]) -> list[Known]:
    """What interactive callers send: edits of code or text that they give."""
    return [one for one in found if one.workload.reason in EDITS]


def talking(found: Sequence[Known]) -> list[Known]:
    """What batch sends: chat, where drafts do not help."""
    return [one for one in found if one.sample.workload in TALK]


def stepping(found: Sequence[Known]) -> list[Known]:
    """What measures steps: short prompts of every kind, without a grammar, which would end an answer."""
    return [
        one for one in found if one.prompt_tokens <= SHORT_PROMPT and "response_format" not in one.sample.body
    ]


def some_of_each(found: Sequence[Known], most: int | None) -> list[Known]:
    """The first `most` samples of each class; all with None."""
    seen: Counter[str] = Counter()
    kept = []
    for one in found:
        seen[one.workload.kind.value] += 1
        if most is None or seen[one.workload.kind.value] <= most:
            kept.append(one)
    return kept


def looped(tier: Tier, deck: Sequence[Known], seed: str, salt: str) -> Iterator[Wanted]:
    """Requests for ever: the deck shuffled, and shuffled again when all were sent.

    Requests of another salt share no cached prefix with these.  Raises ValueError for an empty deck.
    """
    if not deck:
        raise ValueError(f"no sample is left for {tier}")
    chance = random.Random(f"{seed}/{tier}")
    left = list(deck)
    while True:
        chance.shuffle(left)
        for one in left:
            yield wanted(tier, one, chance.randint(SHORTEST, LONGEST), salt)


def arrivals(deck: Sequence[Known], per_s: float, seconds: float, seed: str, salt: str) -> list[Arrival]:
    """Poisson arrivals of the standard tier over all samples."""
    chance, at_s, found = random.Random(f"{seed}/arrivals"), 0.0, []
    source = looped(Tier.STANDARD, deck, seed, salt)
    while (at_s := at_s + chance.expovariate(per_s)) < seconds:
        found.append(Arrival(at_s, next(source)))
    return found


def measuring(deck: Sequence[Known], seed: str) -> Iterator[Wanted]:
    """Requests for ever that measure steps: answers of one length, no prefix cached."""
    chance = random.Random(seed)
    left, number = list(deck), 0
    while True:
        chance.shuffle(left)
        for one in left:
            number += 1
            found = wanted(Tier.INTERACTIVE, one, STEP_TOKENS, f"{seed}-{number}")
            yield Wanted(
                found.tier, found.sample, {**found.body, "max_tokens": STEP_TOKENS, "ignore_eos": True}
            )


def wanted(tier: Tier, one: Known, longest: int, salt: str) -> Wanted:
    """A sample as a request: greedy, streamed, of at most so many tokens."""
    body: dict[str, Any] = {
        **one.sample.body,
        "temperature": 0,
        "max_tokens": min(longest, one.sample.body.get("max_tokens", longest)),
        "cache_salt": salt,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return Wanted(tier, one.sample.id, body)


def _known(sample: Sample) -> Known:
    features = read_features(CHAT, _fields.decode(json.dumps(dict(sample.body), ensure_ascii=False)))
    return Known(sample, classify(features), features.prompt_tokens + TEMPLATE_TOKENS)
