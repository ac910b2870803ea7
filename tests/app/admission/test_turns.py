"""Whose turn it is, and that the lower tiers get their shares of the turns."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.admission.turns import Turns, shares
from autoscaling.types import Tier

EVERYONE = frozenset(Tier)


def taken(turns: Turns, count: int, share: float, waiting: frozenset[Tier] = EVERYONE) -> str:
    """The first letters of those who get `count` turns, when whoever is first in order can use his."""
    found = []
    for _ in range(count):
        first = turns.order(waiting, share)[0]
        turns.granted(first, waiting, share)
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
        (0.1, "iiiiiiiiibsi"),
        (0.25, "iiibsiibsiib"),
        (0.3, "iiibsibsibsi"),
        (0.5, "ibibsbibsbib"),
        (0.75, "ibbbibbbsbbb"),
        (1.0, "bbbbbbbbbbbb"),
    ],
)
def test_lower_tiers_that_wait_get_their_shares(share: float, expected: str) -> None:
    """At a share of 0.1 batch and standard get every tenth turn each; at 1 batch gets all, at 0 none."""
    assert expected == taken(Turns(), 12, share)


@pytest.mark.parametrize(
    ("batch", "standard"), [(0.0, 0.0), (0.1, 0.1), (0.3, 0.3), (0.5, 0.25), (0.8, 0.1), (1.0, 0.0)]
)
def test_standard_gets_as_much_as_batch_and_half_of_the_rest_at_most(batch: float, standard: float) -> None:
    """So interactive requests keep half of what batch leaves, whatever the share."""
    assert {Tier.BATCH: batch, Tier.STANDARD: pytest.approx(standard)} == shares(batch)


@pytest.mark.parametrize("waiting", [EVERYONE, frozenset({Tier.INTERACTIVE, Tier.STANDARD})])
def test_standard_has_its_share_with_and_without_batch(waiting: frozenset[Tier]) -> None:
    """Under interactive overload standard does not starve while batch goes on."""
    assert 10 == taken(Turns(), 101, 0.1, waiting).count("s")


@given(st.integers(0, 100), st.integers(1, 400))
def test_the_share_is_exact(percent: int, count: int) -> None:
    """Of any number of turns batch work gets its share rounded down, however odd the share is."""
    found = taken(Turns(), count, percent / 100)
    assert Fraction(percent * count, 100).__floor__() == found.count("b")
    standard = min(Fraction(percent, 100), Fraction(100 - percent, 200)) * count
    assert standard.__floor__() - found.count("s") in (0, 1)  # its turn may come one after batch's


@given(st.integers(1, 100), st.lists(st.sampled_from(list(Tier)), max_size=60))
def test_turns_that_others_cannot_use_are_no_debt(percent: int, given_out: list[Tier]) -> None:
    """Whatever came before, batch work that waits for 100 turns gets its share of them."""
    turns, share = Turns(), percent / 100
    for tier in given_out:
        turns.granted(tier, EVERYONE, share)
    assert taken(turns, 100, share).count("b") >= percent


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3, 0.49])
def test_no_burst_after_a_pause(share: float) -> None:
    """Batch work that could use no turn for long is owed one turn and no second one."""
    turns = Turns()
    for _ in range(1000):
        turns.granted(Tier.INTERACTIVE, EVERYONE, share)
    assert "b" == taken(turns, 2, share).replace("s", "").replace("i", "")


def test_who_does_not_wait_is_owed_nothing() -> None:
    """The count begins anew when nobody of the tier waits."""
    turns = Turns()
    taken(turns, 9, 0.1)
    turns.granted(Tier.INTERACTIVE, {Tier.INTERACTIVE}, 0.1)
    assert "iiiiiiiiibs" == taken(turns, 11, 0.1)
