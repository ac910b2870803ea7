"""What one ingress has open at each replica."""

from __future__ import annotations

from app.own_open import OwnOpen


class Clock:
    """Tells `now` until it is set anew."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_counts_are_by_replica_and_never_negative() -> None:
    """More and fewer add up for each replica; of a finish too many nothing is left to the next request."""
    own = OwnOpen(Clock(0.0), kept_s=3.0)
    assert [2, 3, 0, 1] == [own.change("a", 2), own.change("b", 3), own.change("a", -5), own.change("a", 1)]
    assert (1, 3, 0, 4) == (own.at("a"), own.at("b"), own.at("c"), own.total)


def test_changes_since_a_moment_are_those_after_it() -> None:
    """Each replica has a moment of its own, and a change at that very moment belongs to it."""
    clock = Clock(1.0)
    own = OwnOpen(clock, kept_s=3.0)
    for clock.now in (1.0, 2.0, 3.0):
        own.change("a", 1)
        own.change("b", 10)
    assert {"a": 2, "b": 10} == own.changes_since({"a": 1.0, "b": 2.0, "c": 0.5})
    assert {} == own.changes_since({})


def test_a_finish_too_many_is_no_change() -> None:
    """What was changed is what was counted, not what was asked for."""
    clock = Clock(1.0)
    own = OwnOpen(clock, kept_s=3.0)
    own.change("a", 1)
    clock.now = 2.0
    own.change("a", -4)
    assert {"a": -1} == own.changes_since({"a": 1.0})


def test_changes_are_kept_for_a_time() -> None:
    """Of what is older nothing is known, so that nothing grows while no report comes."""
    clock = Clock(0.0)
    own = OwnOpen(clock, kept_s=3.0)
    for clock.now in (0.0, 1.0, 4.0):
        own.change("a", 1)
    assert {"a": 2} == own.changes_since({"a": 0.5})
    assert {"a": 2} == own.changes_since({"a": -1.0})
