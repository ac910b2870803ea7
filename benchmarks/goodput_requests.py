"""The requests of `benchmarks.goodput`, the same for every condition of a round; pure but for the samples."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.bench.prompt import Prompt, context_of
from app.samples import Sample, samples
from autoscaling.types import Tier
from benchmarks.goodput_plan import BATCH_TOKENS, INTERACTIVE_TOKENS, SEED, Window
from benchmarks.mixed_requests import Known, editing, known_samples

EDIT, CHATS, BATCHES = "edit", "chat", "batch"  # kinds of prompts in calibration
CHAT: Final = ("chat", "creative")
BATCH: Final = (*CHAT, "summarize")
# Of a sample's body; its limits, its stop strings and its grammar would end answers at lengths of their own.
SENT: Final = ("messages",)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One request to send."""

    tier: Tier
    sample: str
    body: dict[str, Any]  # of /v1/chat/completions, without `model`


@dataclass(frozen=True, slots=True)
class Arrival:
    """One interactive request and when it comes, in seconds since the condition began."""

    at_s: float
    wanted: Wanted


def interactive_decks() -> tuple[list[Sample], list[Sample]]:
    """What interactive callers send: edits of code or text that they give, and chat."""
    return [one.sample for one in editing(known_samples())], [
        one for one in samples() if one.workload in CHAT
    ]


def batch_deck() -> list[Sample]:
    """What batch sends: chat and summaries."""
    return [one for one in samples() if one.workload in BATCH]


def prompts() -> tuple[Prompt, ...]:
    """The load's own prompts for calibration: edits and chat of interactive callers, and batch."""
    edits, chat = interactive_decks()
    decks = {EDIT: edits, CHATS: chat, BATCHES: batch_deck()}
    return tuple(
        Prompt(
            f"{kind}-{one.id}",
            kind,
            {name: one.body[name] for name in SENT},
            context_of(one.body["messages"]),
        )
        for kind, deck in decks.items()
        for one in deck
    )


def prompt_tokens(tier: Tier) -> float:
    """The mean length of a tier's prompts, estimated, template included."""
    known = {one.sample.id: one for one in known_samples()}
    if tier is Tier.BATCH:
        return _mean([known[one.id] for one in batch_deck()])
    edits, chat = interactive_decks()
    return (_mean([known[one.id] for one in edits]) + _mean([known[one.id] for one in chat])) / 2


def arrivals(window: Window, index: int, salt: str) -> list[Arrival]:
    """The interactive requests of a round: Poisson arrivals, in every two one edit and one chat.

    `salt` keeps requests of different conditions from sharing a cached prefix.
    """
    chance = random.Random(f"{SEED}/{index}/interactive")
    decks = [_endless(deck, chance) for deck in interactive_decks()]
    found: list[Arrival] = []
    at_s, pair = 0.0, [0, 1]
    while (at_s := at_s + chance.expovariate(window.rate_per_s)) < window.end_s + window.tail_s:
        number = len(found)
        if number % 2 == 0:
            chance.shuffle(pair)
        sample = next(decks[pair[number % 2]])
        found.append(
            Arrival(at_s, _wanted(Tier.INTERACTIVE, sample, INTERACTIVE_TOKENS, f"{salt}.i{number}"))
        )
    return found


def batch_stream(index: int, stream: int, salt: str) -> Iterator[Wanted]:
    """The requests of one batch stream in a round, for ever."""
    chance = random.Random(f"{SEED}/{index}/batch/{stream}")
    for number, sample in enumerate(_endless(batch_deck(), chance)):
        yield _wanted(Tier.BATCH, sample, BATCH_TOKENS, f"{salt}.b{stream}-{number}")


def _endless(deck: Sequence[Sample], chance: random.Random) -> Iterator[Sample]:
    left = list(deck)
    while True:
        chance.shuffle(left)
        yield from left


def _wanted(tier: Tier, sample: Sample, tokens: int, salt: str) -> Wanted:
    """Greedy, streamed, of exactly so many tokens; no two requests share a cached prefix."""
    return Wanted(
        tier,
        sample.id,
        {
            **{name: sample.body[name] for name in SENT},
            "temperature": 0,
            "max_tokens": tokens,
            "ignore_eos": True,
            "cache_salt": salt,
            "stream": True,
            "stream_options": {"include_usage": True},
        },
    )


def _mean(found: Sequence[Known]) -> float:
    return sum(one.prompt_tokens for one in found) / len(found)
