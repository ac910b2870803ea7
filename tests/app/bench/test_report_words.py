"""Numbers and names as the report shows them."""

from __future__ import annotations

import math

import pytest

from app.bench.report.acceptance import regime
from app.bench.report.chosen import best_length, furthest
from app.bench.report.cost import cost_per_million
from app.report.words import joined, name, number, percent, sequences, share, with_bounds
from autoscaling.profiling.findings import Estimate
from tests.app.bench.findings_sample import sample


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0, "0.00"), (1.005, "1.00"), (9.2, "9.20"), (31.07, "31.1"), (12345.6, "12,346"), (-0.5, "-0.50")],
)
def test_a_number_has_about_three_digits(value: float, expected: str) -> None:
    """Small ones two behind the point, large ones none."""
    assert expected == number(value)


@pytest.mark.parametrize("shown", [number, percent, share])
@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_what_is_unknown_is_a_dash(shown: object, value: float | None) -> None:
    """Never 0, and never nan."""
    assert callable(shown)
    assert "-" == shown(value)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, "-"),
        (Estimate(1.5), "1.50"),
        (Estimate(1.5, 1.2, 1.8), "1.50 (1.20 to 1.80)"),
        (Estimate(1.5, 1.2), "1.50 (at least 1.20)"),
        (Estimate(1.5, None, 1.8), "1.50 (at most 1.80)"),
        (Estimate(1.7, 0.01, 285.0), "1.70 (too few rounds)"),
        (Estimate(0.1, 0.0, 0.4), "0.10 (0.00 to 0.40)"),
    ],
)
def test_an_interval_follows_its_value(found: Estimate | None, expected: str) -> None:
    """Where it is known."""
    assert expected == with_bounds(found)


def test_words_are_joined_as_people_say_them() -> None:
    """None, one, two, three."""
    assert ["", "a", "a and b", "a, b and c"] == [joined(list(words)) for words in ("", "a", "ab", "abc")]


def test_sequences_have_their_plural() -> None:
    """One, many, and a value between two batches."""
    assert ["1 sequence", "16 sequences", "10.4 sequences"] == [sequences(at) for at in (1, 16, 10.4)]


def test_a_name_is_one_short_line() -> None:
    """Nothing that a terminal or a page would obey."""
    assert ["-", "a\\x0ab", 37 * "x" + "..."] == [name(text) for text in (None, "a\nb", 50 * "x")]


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (None, "-"),
        (0.0, "low"),
        (0.29, "low"),
        (0.3, "between low and moderate"),
        (0.4, "moderate"),
        (0.6, "moderate"),
        (0.65, "between moderate and high"),
        (0.7, "high"),
        (1.0, "high"),
    ],
)
def test_the_regimes_have_exact_cut_offs(rate: float | None, expected: str) -> None:
    """Below 0.3, 0.4 to 0.6, 0.7 and above; what lies between has no name of its own."""
    assert expected == regime(rate)


def test_the_best_draft_length_is_that_with_most_tokens() -> None:
    """Copying gains most with 4; 2 pays further; chat loses least with 2."""
    found, far = sample(), furthest(sample(), "copy")

    assert (4, 2) == (best_length(found, "copy"), best_length(found, "chat"))
    assert far is not None
    assert 2 == far.draft_length
    assert best_length(found, "unknown") is None


def test_cost_per_million_tokens() -> None:
    """100 tokens per second are 0.36 million an hour."""
    assert pytest.approx(10.0) == cost_per_million(100.0, 3.6, 1)
    assert pytest.approx(40.0) == cost_per_million(100.0, 3.6, 4)
    assert cost_per_million(0.0, 3.6, 1) is None
