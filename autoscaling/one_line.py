"""Words of people that are shown on one line: not blank, and nothing in them that a terminal obeys."""

from __future__ import annotations

import re

# C0 and C1 controls, line separators, and what turns the direction of writing; for a class of a pattern.
UNSEEN = r"\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"
# The rule as JSON Schema has it: one character at least that is no blank.
PATTERN = rf"^[^{UNSEEN}]*[^\s{UNSEEN}][^{UNSEEN}]*$"

_UNSEEN = re.compile(f"[{UNSEEN}]")


def one_line(value: str) -> str:
    """`value` itself; raises ValueError for a blank one and for one with control characters."""
    found = _UNSEEN.search(value)
    if found is not None:
        what = "a line break" if found[0] in "\n\r" else f"the control character U+{ord(found[0]):04X}"
        raise ValueError(f"must be one line of plain text; it holds {what}")
    if value and not value.strip():
        raise ValueError("must not be blank")
    return value
