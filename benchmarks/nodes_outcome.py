"""From every caller's word to what an event did to streams; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.nodes_streams import LOST, End, Told


@dataclass(frozen=True, slots=True)
class Seen:
    """One event as it was seen; times are of the machine's monotonic clock."""

    event: str
    at: float
    told: tuple[Told, ...]
    recovery_s: float
    least_serving: int | None  # replicas, at the worst moment


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the streams of one event, and how long it was until all was as before."""

    event: str
    in_flight: int  # streams that were open at that moment
    at_risk: int  # of those on what was hit
    lost: int  # all that did not end whole, from the first to the last
    told: int  # of these with an error event
    cut: int  # of these without a word
    hung: int  # of these given up by the caller
    elsewhere: int  # of these on nothing that was hit
    not_served: int  # requests that were refused, or could not connect
    requests: int
    told_after_s: float | None  # from the event to the last error event of a stream
    silence_s: float  # the longest that any caller waited for anything
    recovery_s: float
    least_serving: int | None
    more: Mapping[str, float] = field(default_factory=dict)


def outcome(
    seen: Seen,
    victims: frozenset[str] | None,
    *,
    recovery_s: float | None = None,
    more: Mapping[str, float] | None = None,
) -> Outcome:
    """Judge one event; `victims` are the replicas that it hit, None for the way of all streams."""
    ends = Counter(one.end for one in seen.told)
    lost = [one for one in seen.told if one.end in LOST]

    def hit(one: Told) -> bool:
        return victims is None or one.replica in victims

    told_after = [one.ended_at - seen.at for one in lost if one.end is End.TOLD and one.ended_at is not None]
    open_then = [one for one in seen.told if one.open_at(seen.at)]
    return Outcome(
        event=seen.event,
        in_flight=len(open_then),
        at_risk=sum(hit(one) for one in open_then),
        lost=len(lost),
        told=ends[End.TOLD],
        cut=ends[End.CUT],
        hung=ends[End.HUNG],
        elsewhere=sum(not hit(one) for one in lost),
        not_served=ends[End.REFUSED] + ends[End.UNREACHABLE],
        requests=len(seen.told),
        told_after_s=max(told_after, default=None),
        silence_s=max((one.silence_s for one in seen.told), default=0.0),
        recovery_s=seen.recovery_s if recovery_s is None else recovery_s,
        least_serving=seen.least_serving,
        more=dict(more or {}),
    )
