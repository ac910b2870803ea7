"""What a measurement does, and in which order."""

from __future__ import annotations

from collections import Counter

from app.bench.plan import QUICK, full, pairs


def test_a_round_has_every_cell_once():
    """Quick: three batches, two kinds of prompts, three draft lengths, long prompts at both ends of K."""
    found = Counter(pairs(QUICK, 0, QUICK.lengths))
    assert {1} == set(found.values())
    assert (20, 12) == (
        sum(not one.hold_out for one in found),
        sum(one.hold_out for one in found),
    )


def test_hold_out_cells_are_measured_in_two_rounds():
    """They judge the fit; the time goes to the cells that make it."""
    assert [12, 12, 0, 0] == [sum(one.hold_out for one in pairs(QUICK, r, QUICK.lengths)) for r in range(4)]


def test_every_round_has_an_order_of_its_own_and_the_same_in_every_run():
    """What drifts over a run hits every cell alike."""
    first, second = (list(pairs(QUICK, r, QUICK.lengths)) for r in (2, 3))
    assert first != second
    assert set(first) == set(second)
    assert first == list(pairs(QUICK, 2, QUICK.lengths))


def test_the_full_grid_halves_the_draft_length():
    """From the engine's largest down to 1, and 0."""
    assert [(0, 1, 2, 4), (0, 1, 3, 7), (0, 1)] == [full(most, ["chat"]).lengths for most in (4, 7, 1)]
