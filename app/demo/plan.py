"""What the demo sends and when, for a service of any size; pure, and the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

from app.cli.try_it import TASK
from app.demo.answers import Phase
from app.samples import Sample
from autoscaling.types import Role, Tier

LEAST_S, MOST_S = 20, 600  # a shorter demo shows no phase, a longer one belongs into a benchmark
# Shares of the whole.  The third is the longest: its backlog needs time to build up.
SHARES: Final[Mapping[Phase, float]] = {
    Phase.QUIET: 0.2,
    Phase.MIXED: 0.25,
    Phase.BUSY: 0.35,
    Phase.FALL_OFF: 0.2,
}
SAYS: Final[Mapping[Phase, str]] = {
    Phase.QUIET: "one copying task on each pool in turn, then interactive callers alone.",
    Phase.MIXED: "standard requests of every kind come to the interactive ones.",
    Phase.BUSY: "a backlog of batch requests comes on top, to fill the plain pool.",
    Phase.FALL_OFF: "interactive callers alone again, while what is open of the rest ends.",
    Phase.FINISHING: "nothing new is sent; open answers end.",
}
SENDS: Final[Mapping[Phase, tuple[Tier, ...]]] = {
    Phase.QUIET: (Tier.INTERACTIVE,),
    Phase.MIXED: (Tier.INTERACTIVE, Tier.STANDARD),
    Phase.BUSY: (Tier.INTERACTIVE, Tier.STANDARD, Tier.BATCH),
    Phase.FALL_OFF: (Tier.INTERACTIVE,),
    Phase.FINISHING: (),
}
KINDS: Final[Mapping[Tier, tuple[str, ...] | None]] = {
    Tier.INTERACTIVE: ("chat", "code", "rag", "summarize"),
    Tier.STANDARD: None,  # all
    Tier.BATCH: ("bulk", "creative", "structured", "translate"),
}
# Tokens of an answer at most, so that a small model on a CPU ends many of them in the time.
LONGEST: Final[Mapping[Tier, int]] = {Tier.INTERACTIVE: 64, Tier.STANDARD: 64, Tier.BATCH: 48}
COPY_TOKENS: Final = 64
UNKNOWN_LIMIT: Final = 8  # in flight per replica, where the service does not say: the smallest default
MOST_STREAMS: Final = 64  # of a tier; one process reads them all
MOST_BATCH: Final = 48
NEEDS_A_PARSER: Final = "tools"  # vLLM refuses it unless its operator has named a parser


@dataclass(frozen=True, slots=True)
class Load:
    """How many requests of each tier are open at once where their tier is sent."""

    streams: Mapping[Tier, int]
    plain_room: int  # what the plain pool welcomes

    @property
    def fills(self) -> bool:
        """Whether the backlog is more than the plain pool welcomes."""
        return self.streams[Tier.BATCH] > self.plain_room

    def at(self, phase: Phase) -> dict[Tier, int]:
        """Streams of each tier in a phase."""
        return {tier: self.streams[tier] if tier in SENDS[phase] else 0 for tier in Tier}


def load_for(replicas: Mapping[Role, int], soft_limits: Mapping[Role, int | None]) -> Load:
    """Twice the speculative replicas, twice all replicas, and half more than the plain pool welcomes."""
    plain = max(1, replicas[Role.PLAIN])
    room = plain * (soft_limits[Role.PLAIN] or UNKNOWN_LIMIT)
    return Load(
        streams={
            Tier.INTERACTIVE: min(2 * max(1, replicas[Role.SPECULATIVE]), MOST_STREAMS),
            Tier.STANDARD: min(2 * max(1, sum(replicas.values())), MOST_STREAMS),
            Tier.BATCH: min(ceil(1.5 * room), MOST_BATCH),
        },
        plain_room=room,
    )


def lengths(seconds: float) -> dict[Phase, float]:
    """Seconds of each phase."""
    return {phase: share * seconds for phase, share in SHARES.items()}


@dataclass(frozen=True, slots=True)
class Wanted:
    """One request to send."""

    tier: Tier
    sample: str
    body: Mapping[str, Any]
    path: str = "/v1/chat/completions"


def requests(tier: Tier, samples: Sequence[Sample], seed: int) -> Iterator[Wanted]:
    """Requests of a tier for ever: its kinds of samples, shuffled, and shuffled again when all were sent.

    Raises ValueError, at the first request, without any sample of these kinds.
    """
    kinds = KINDS[tier]
    usable = [one for one in samples if NEEDS_A_PARSER not in one.body]
    deck = [one for one in usable if kinds is None or one.workload in kinds]
    if not deck:
        raise ValueError(f"no sample is of a kind that {tier} sends: {kinds}")
    chance = random.Random(f"{seed} {tier}")  # noqa: S311  # repeatable on purpose, and no secret
    while True:
        chance.shuffle(deck)
        for sample in deck:
            yield Wanted(tier, sample.id, _body(sample.body, LONGEST[tier]))


def copy_task() -> Wanted:
    """The task that is measured on both pools: a drafter finds each continuation in the prompt."""
    fixed = {"prompt": TASK, "temperature": 0, "ignore_eos": True, "max_tokens": COPY_TOKENS}
    return Wanted(Tier.INTERACTIVE, "copy", _body(fixed, COPY_TOKENS), "/v1/completions")


def _body(found: Mapping[str, Any], longest: int) -> dict[str, Any]:
    return {
        **found,
        "max_tokens": min(found.get("max_tokens", longest), longest),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
