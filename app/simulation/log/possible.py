"""Whether the numbers of a recorded observation or decision can be: a damaged line is no picture; pure."""

from __future__ import annotations

from typing import Any, Final

from autoscaling.policy import MOST_REPLICAS

# What counts replicas; below them a number may stand for each pool.
REPLICAS: Final = frozenset(
    ("targets", "plan", "before", "after", "count", "target", "running", "starting", "draining", "reporting")
)
LARGEST: Final = 1e12  # of anything else: sequences, tokens, Unix seconds


def is_possible(record: Any, field: str = "") -> bool:
    """Whether no number of a JSON value is negative, or far above what there can be of its `field`."""
    match record:
        case bool():
            return True
        case int() | float():
            return 0 <= record <= (MOST_REPLICAS if field in REPLICAS else LARGEST)
        case dict():
            return all(
                is_possible(part, field if field in REPLICAS else name) for name, part in record.items()
            )
        case list():
            return all(is_possible(part, field) for part in record)
    return True
