"""Which replicas are asked again after a 400: those that take more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.candidates import Candidate
from app.capability import wider_than
from autoscaling.types import ReplicaView, Role
from tests.app.views import view

NARROW = ("logit_bias", "min_p")


def able(
    name: str, refuses: tuple[str, ...] = (), length: int = 2048, *, accepting: bool = True
) -> ReplicaView:
    role = Role.SPECULATIVE if refuses else Role.PLAIN
    found = view(name, role, refuses=refuses, accepting=accepting)
    return replace(found, capabilities=replace(found.capabilities, max_model_len=length))


def wider(narrow: ReplicaView, *others: ReplicaView) -> frozenset[str]:
    candidates = [Candidate(one, 0, limit=8, own_free=8, hard_room=True) for one in (narrow, *others)]
    return wider_than(narrow, candidates)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (able("b"), {"b"}),
        (able("b", ("min_p",)), {"b"}),
        (able("b", NARROW), set()),
        (able("b", (*NARROW, "best_of")), set()),
        (able("b", ("best_of",)), set()),  # takes something else, but not all that the first one takes
        (able("b", NARROW, 4096), {"b"}),
        (able("b", (), 1024), set()),  # takes every parameter, but not every length
        (able("b", accepting=False), set()),
    ],
)
def test_wider_is_what_takes_all_that_the_other_takes_and_more(
    other: ReplicaView, expected: set[str]
) -> None:
    """Case D7: fewer refused parameters or a longer context, and in nothing less; and it takes work."""
    assert expected == wider(able("a", NARROW), other)


def test_nothing_is_wider_than_the_widest() -> None:
    """A 400 of a plain replica is the caller's; so it is among replicas that are all alike."""
    assert wider(able("a"), able("b"), able("c", NARROW)) == frozenset()


def test_every_wider_replica_is_named() -> None:
    """Of both pools, so that one with room is among them."""
    assert wider(able("a", NARROW), able("b"), able("c"), able("d", ("min_p",))) == {"b", "c", "d"}
