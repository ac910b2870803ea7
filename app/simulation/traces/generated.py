"""Traces that are made, not read: fitted to published statistics, so that everything runs without data.

What each kind reproduces, at rate 1 and over hours (tests hold the tolerances; one hour alone scatters):

- `conversation`: the Azure conversation trace of 2023 in rate, mean and median lengths, and variation of the
  gaps (CV).  Not its slow swell of an hour, so the fullest 10 s have about 1.5 times the mean and not 1.8;
  not the tail of its prompts, whose 95th percentile is 4,083 there and about 2,300 here.
- `code`: the Azure code trace of 2023 in rate, mean and median lengths, CV of the gaps, and the
  fullest 10 s of an hour (longer traces have higher peaks).
- `mixed`: both at once, at their own rates.
- `day`: 24 hours of the requests of `mixed`, one swing a day from midnight, gaps as ServeGen has them
  within ten minutes, the fullest ten minutes against the mean.  Not the sudden steps of ServeGen's clients.

Lengths of prompt and answer are independent of each other and of the time: in both Azure traces the
correlation of their logarithms is below 0.1.  No request belongs to a conversation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from numpy.random import Generator

from app.simulation.arrival import Arrival
from app.simulation.traces.errors import TraceError
from app.simulation.traces.lengths import LengthModel
from app.simulation.traces.renewal import Bursty, Steady, Swing
from autoscaling.types import Tier


class Kind(StrEnum):
    """What is made."""

    CONVERSATION = "conversation"
    CODE = "code"
    MIXED = "mixed"
    DAY = "day"


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests of one kind of work."""

    workload: str
    prompt: LengthModel
    answer: LengthModel
    arrivals: Steady | Bursty


CONVERSATION_RATE: Final = 5.53  # per second, counted in azure2023: see below
CODE_RATE: Final = 2.57  # per second, as the bursts below bring it; counted in azure2023
# "azure2023": Azure/AzurePublicDataset, AzureLLMInferenceTrace_{conv,code}.csv, CC-BY-4.0; what is
# marked "counted" was counted in the files for this module.
CONVERSATION: Final = Traffic(
    workload="chat",
    prompt=LengthModel(median=1020, mean=1155, largest=14050),  # azure2023; the largest counted
    answer=LengthModel(median=129, mean=211, largest=1000),  # azure2023; the largest counted
    # 19,366 requests in 3,502 s (counted; published as 58 minutes); CV 1.09 published.
    arrivals=Steady(CONVERSATION_RATE, cv=1.09),
)
CODE: Final = Traffic(
    workload="code",
    prompt=LengthModel(median=1469, mean=2048, largest=7437),  # mean azure2023; median, largest counted
    answer=LengthModel(median=13, mean=28, largest=1899),  # azure2023; the largest counted
    # One bursty client.  Counted, where a gap of 2 s ends a burst: 96 bursts of mean 92, median 52; silences
    # of mean 27 s, CV 1.53; speed of median 9.6/s, logarithm's deviation 0.47; correlation 0.41; gaps inside
    # of CV 1.6.  The silence, deviation and correlation are set a little higher, which brings rate 2.57, CV
    # 13.2 and 10 s peak over mean 12.8 (published, but for the rate: 8,819 requests in 3,436 s, counted).
    arrivals=Bursty(
        silence_s=28.0,
        silence_cv=1.53,
        size_mean=92.0,
        size_median=52.0,
        speed_median=9.6,
        speed_spread=0.55,
        correlation=0.6,
        gap_cv=1.6,
    ),
)
DAY_CV: Final = 2.0  # ServeGen (alibaba/ServeGen): 1 to 3 is normal
DAY_PEAK: Final = 3.1  # ServeGen: peak over mean 3.0 to 3.2, in windows of 600 s
DAY_PEAK_AT_S: Final = 14 * 3600.0  # in the afternoon: nothing rests on the hour
_DAY: Final = tuple(
    Traffic(one.workload, one.prompt, one.answer, Steady(rate, DAY_CV))
    for one, rate in ((CONVERSATION, CONVERSATION_RATE), (CODE, CODE_RATE))
)
_SWING: Final = Swing(DAY_PEAK, DAY_PEAK_AT_S)
TRAFFIC: Final[dict[Kind, tuple[Traffic, ...]]] = {
    Kind.CONVERSATION: (CONVERSATION,),
    Kind.CODE: (CODE,),
    Kind.MIXED: (CONVERSATION, CODE),
    Kind.DAY: _DAY,
}
# Requests a second of one source, on average: what a rate of 1 brings.
BASE_RATE: Final[dict[Kind, float]] = {
    Kind.CONVERSATION: CONVERSATION_RATE,
    Kind.CODE: CODE_RATE,
    Kind.MIXED: CONVERSATION_RATE + CODE_RATE,
    Kind.DAY: CONVERSATION_RATE + CODE_RATE,
}
HOURS: Final[dict[Kind, float]] = {kind: 24.0 if kind is Kind.DAY else 1.0 for kind in Kind}


def generate(
    kind: Kind, rng: Generator, *, hours: float | None = None, rate: float = 1.0
) -> tuple[Arrival, ...]:
    """A trace of so many hours (None: 24 for a day, else 1), sorted; every request is interactive.

    `rate` is the number of independent sources like the published one that are superposed; a fraction is a
    source of which each request stays with that probability.  So bursts even out as the rate grows, as with
    more clients; the swing of a day does not.  Raises TraceError.
    """
    until_s = (HOURS[kind] if hours is None else hours) * 3600
    if not (0 < until_s < math.inf and 0 < rate < math.inf):
        raise TraceError(f"{until_s / 3600:g} hours at rate {rate:g} cannot be made: give numbers above 0")
    found: list[Arrival] = []
    for traffic, stream in zip(TRAFFIC[kind], rng.spawn(len(TRAFFIC[kind])), strict=True):
        for source in range(math.ceil(rate)):
            found += _source(traffic, _SWING if kind is Kind.DAY else None, until_s, rate - source, stream)
    found.sort(key=lambda one: one.at_s)
    return tuple(found)


def _source(
    traffic: Traffic, swing: Swing | None, until_s: float, share: float, rng: Generator
) -> list[Arrival]:
    """The requests of one source, or a share of them."""
    if swing is None:
        times = traffic.arrivals.times(until_s, rng)
    else:
        times = swing.warped(traffic.arrivals.times(swing.elapsed(until_s), rng), until_s)
    if share < 1:
        times = times[rng.random(len(times)) < share]
    prompts = traffic.prompt.draw(len(times), rng).tolist()
    answers = traffic.answer.draw(len(times), rng).tolist()
    return [
        Arrival(round(at_s, 6), Tier.INTERACTIVE, traffic.workload, prompt, answer)
        for at_s, prompt, answer in zip(times.tolist(), prompts, answers, strict=True)
    ]
