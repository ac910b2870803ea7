"""YAML that no manifest needs, and which a reader must survive with a finding."""

from __future__ import annotations

import pytest

from app.k8s.documents import Unreadable, read, value_and_lines
from app.k8s.quantities import quantity


@pytest.mark.parametrize("text", ["a:\n  b: &a\n    c: *a\n", "a:\n  b: &a\n    - *a\n"])
def test_an_alias_of_what_it_stands_in_is_refused(text: str) -> None:
    """A text without an end is unreadable at the line of its anchor, and no endless descent."""
    with pytest.raises(Unreadable, match="line 2: an alias names what it stands in"):
        read(text, "file")


def test_an_alias_beside_its_anchor_is_read() -> None:
    """One node in two places is no circle."""
    assert {"a": ["x"], "b": [["x"], ["x"]]} == value_and_lines("a: &a [x]\nb: [*a, *a]\n")[0]


@pytest.mark.parametrize("value", ["1e9999", "9" * 400, 10**400, float("inf"), float("nan")])
def test_a_quantity_beyond_every_number_is_none(value: object) -> None:
    """What cannot be counted is no quantity, which is a finding where one is expected."""
    assert quantity(value) is None
