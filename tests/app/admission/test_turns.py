"""Whose turn it is, and that batch work gets its share of the turns."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.admission.turns import Turns
from autoscaling.types import Tier

EVERYONE = frozenset(Tier)


def taken(turns: Turns, count: int, share: float, waiting: frozenset[Tier] = EVERYONE) -> str:
    """The first letters of those who get `count` turns, when whoever is first in order can use his."""
    found = []
    for _ in range(count):
        first = turns.order(waiting, share)[0]
        turns.granted(first, batch_waits=Tier.BATCH in waiting, share=share)
        found.append(first.value[0])
    return "".join(found)


def test_the_higher_tier_comes_first() -> None:
    """Interactive before standard before batch, of those who wait."""
    turns = Turns()
    assert (Tier.INTERACTIVE, Tier.STANDARD, Tier.BATCH) == turns.order(EVERYONE, 0.1)
    assert (Tier.STANDARD, Tier.BATCH) == turns.order({Tier.BATCH, Tier.STANDARD}, 0.1)
    assert () == turns.order((), 0.1)


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.0, "iiiiiiiiiiii"),
        (0.1, "iiiiiiiiibii"),
        (0.25, "iiibiiibiiib"),
        (0.3, "iiibiibiibii"),
        (0.5, "ibibibibibib"),
        (0.75, "ibbbibbbibbb"),
        (1.0, "bbbbbbbbbbbb"),
    ],
)
def test_waiting_batch_work_gets_its_share(share: float, expected: str) -> None:
    """At a share of 0.1 every tenth turn, at 1 every one, at 0 none."""
    assert expected == taken(Turns(), 12, share)


@given(st.integers(0, 100), st.integers(1, 400))
def test_the_share_is_exact(percent: int, count: int) -> None:
    """Of any number of turns batch work gets its share rounded down, however odd the share is."""
    found = taken(Turns(), count, percent / 100)
    assert Fraction(percent * count, 100).__floor__() == found.count("b")


@given(st.integers(1, 100), st.lists(st.sampled_from(list(Tier)), max_size=60))
def test_turns_that_others_cannot_use_are_no_debt(percent: int, given_out: list[Tier]) -> None:
    """Whatever came before, batch work that waits for 100 turns gets its share of them."""
    turns, share = Turns(), percent / 100
    for tier in given_out:
        turns.granted(tier, batch_waits=True, share=share)
    assert taken(turns, 100, share).count("b") >= percent


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3, 0.49])
def test_no_burst_after_a_pause(share: float) -> None:
    """Batch work that could use no turn for long is owed one turn and no second one."""
    turns = Turns()
    for _ in range(1000):
        turns.granted(Tier.INTERACTIVE, batch_waits=True, share=share)
    assert "bi" == taken(turns, 2, share)


def test_who_does_not_wait_is_owed_nothing() -> None:
    """The count begins anew when nobody of the batch tier waits."""
    turns = Turns()
    taken(turns, 9, 0.1)
    turns.granted(Tier.INTERACTIVE, batch_waits=False, share=0.1)
    assert "iiiiiiiiib" == taken(turns, 10, 0.1)
