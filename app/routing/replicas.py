"""Which replica of the chosen pool: the conversation's own, else the one of two with less work left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from zlib import crc32

from app.candidates import Candidate

Choose = Callable[[int], int]  # choose(n) is a random index in 0..n-1
# A replica keeps its conversations until it has a quarter more than the mean: consistent hashing with
# bounded loads (Mirrokni et al., 2016).
BOUND: Final = 1.25
# A checksum alone is linear: names of one length would keep their order for half of all conversations.
# The product with this odd number (Knuth's, 2^32 over the golden ratio) mixes the upper bits.
MIX: Final = 2654435761


class Pick(StrEnum):
    """Why this replica."""

    ONLY_ONE = "only_one"
    LESS_WORK = "less_work"
    SAME_CONVERSATION = "same_conversation"


@dataclass(frozen=True, slots=True)
class ReplicaChoice:
    """The replica, and what it was compared with."""

    taken: Candidate
    pick: Pick
    drawn: tuple[Candidate, ...]  # those that were compared, the taken one included
    members: int  # replicas with room
    home: Candidate | None = None  # of the conversation
    mean_load: float | None = None  # of the replicas with room; None where no conversation asks for it


def choose_replica(members: Sequence[Candidate], conversation: str | None, choose: Choose) -> ReplicaChoice:
    """Pick one of at least one member.

    Two at random, and less predicted work: a burst on one snapshot does not land on one replica.  The
    turns of a conversation meet the same replica, which has their beginning in its prefix cache.
    """
    if len(members) == 1:
        return ReplicaChoice(members[0], Pick.ONLY_ONE, (members[0],), 1)
    home, mean_load = None, None
    if conversation is not None:
        home = home_of(members, conversation)
        mean_load = sum(one.load for one in members) / len(members)
        if is_kept(home, mean_load):
            return ReplicaChoice(home, Pick.SAME_CONVERSATION, (home,), len(members), home, mean_load)
    drawn = _two(members, choose)
    return ReplicaChoice(less_work(*drawn), Pick.LESS_WORK, drawn, len(members), home, mean_load)


def home_of(members: Sequence[Candidate], conversation: str) -> Candidate:
    """The member that a conversation belongs to: highest hash, so that each leaves only its own behind."""
    seed = crc32(conversation.encode())
    return max(members, key=lambda one: crc32(one.replica.replica_id.encode(), seed) * MIX & 0xFFFFFFFF)


def is_kept(home: Candidate, mean_load: float) -> bool:
    """Whether a conversation stays with its home."""
    return home.load <= BOUND * mean_load + 1


def less_work(one: Candidate, other: Candidate) -> Candidate:
    """The one with fewer tokens to generate, or else fewer sequences; the first of equals."""
    return other if (other.work, other.load) < (one.work, one.load) else one


def _two(members: Sequence[Candidate], choose: Choose) -> tuple[Candidate, Candidate]:
    count = len(members)
    first = choose(count) % count
    second = choose(count - 1) % (count - 1)
    return members[first], members[second + (second >= first)]
