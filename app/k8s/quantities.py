"""Numbers as Kubernetes and Ray write them in YAML."""

from __future__ import annotations

import math
import re
from typing import Any

_QUANTITY = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e\d+|E\d+)?", re.ASCII)
_PARTS = {"n": 1e9, "u": 1e6, "m": 1e3}  # a division is exact where a factor of 0.001 is not
_SCALES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_SCALES |= {f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", 1)}


def whole(value: Any) -> int | None:
    """A whole number, also one in quotes; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value, re.ASCII):
        return int(value)
    return None


def quantity(value: Any) -> float | None:
    """A quantity of Kubernetes as a number; None when it is none, or beyond every number."""
    try:
        number = _number(value)
    except OverflowError:
        return None
    return number if number is not None and math.isfinite(number) else None


def _number(value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    matched = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if matched is None:
        return None
    number, unit = float(matched[1]), matched[2] or ""
    if unit in _PARTS:
        return number / _PARTS[unit]
    return number * (_SCALES[unit] if unit in _SCALES else 10.0 ** int(unit[1:]))
