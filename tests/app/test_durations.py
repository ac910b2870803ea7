"""Durations on the command line: what is read, what is refused, how they are shown."""

from __future__ import annotations

import pytest

from app.cli.durations import DurationError, parse, show


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1s", 1.0),
        ("90s", 90.0),
        ("15m", 900.0),
        ("2h", 7200.0),
        ("1d", 86400.0),
        ("1h30m", 5400.0),
        ("1d12h", 129600.0),
        ("1d1h1m1s", 90061.0),
        (" 2h ", 7200.0),
        ("0h5m", 300.0),
        ("366d", 31622400.0),
        ("0000000000001h", 3600.0),
    ],
)
def test_what_is_a_duration(text: str, expected: float) -> None:
    """Whole numbers with a unit, larger units first."""
    assert expected == parse(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "write for example 90s, 15m, 2h, 1d or 1h30m"),
        ("90", "the unit is missing, such as 90s or 90m"),
        ("1.5h", "is no duration"),
        ("-5m", "is no duration"),
        ("5 m", "is no duration"),
        ("5M", "is no duration"),
        ("1w", "is no duration"),
        ("30m1h", "is no duration"),
        ("2h2h", "is no duration"),
        ("PT1H", "is no duration"),
        ("inf", "is no duration"),
        ("\u0665m", "is no duration"),
        ("0s", "write at least 1s"),
        ("0d0h", "write at least 1s"),
        ("367d", "longer than 366d"),
        ("99999999999999999999d", "longer than 366d"),
        ("1d9999999999s", "longer than 366d"),
    ],
)
def test_what_is_none(text: str, words: str) -> None:
    """The message repeats what was written and says what would do."""
    with pytest.raises(DurationError) as raised:
        parse(text)

    assert repr(text) in str(raised.value)
    assert words in str(raised.value)


@pytest.mark.parametrize("unit", ["s", "m", "h", "d", "", "x"])
def test_thousands_of_digits_are_refused_in_few_words(unit: str) -> None:
    """Python reads no number of so many digits; the message repeats only the beginning."""
    with pytest.raises(DurationError) as raised:
        parse("9" * 5000 + unit)

    assert f"'{'9' * 60}'..." in str(raised.value)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (None, "-"),
        (0.2, "0s"),
        (7.4, "7s"),
        (90.0, "1m30s"),
        (3600.0, "1h"),
        (5400.0, "1h30m"),
        (90061.0, "1d1h"),
        (-3.0, "0s"),
    ],
)
def test_how_a_duration_is_shown(seconds: float | None, expected: str) -> None:
    """In the words that are read, the two largest units; unknown is a dash."""
    assert expected == show(seconds)
