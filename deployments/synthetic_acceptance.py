"""A speculative_config with a prescribed acceptance, as a drafter that good would have it; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

METHOD: Final = "rejection_sample_method"
RATES: Final = "synthetic_acceptance_rates"
LENGTH: Final = "synthetic_acceptance_length"  # the engine takes one of the two


def synthetic(config: Mapping[str, Any], rates: Sequence[float]) -> dict[str, Any]:
    """A speculative_config whose drafts are accepted at these rates, whatever they are.

    `rates[i]` is the share of drafts whose first i + 1 tokens are all accepted: survival, not acceptance
    given that the position was reached.  A step gives 1 + sum(rates) tokens on average.  The answers are not
    the model's, so such an engine is for measuring only; on the CPU it takes greedy requests alone.
    Raises ValueError for rates that the engine would refuse.
    """
    length = config.get("num_speculative_tokens")
    if type(length) is not int or length < 1:
        raise ValueError(f"num_speculative_tokens is {length!r}: give a whole number of at least 1")
    if len(rates) != length:
        raise ValueError(
            f"{len(rates)} acceptance rates for {length} draft tokens: give one for each position"
        )
    before = 1.0
    for position, rate in enumerate(rates, 1):
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not math.isfinite(rate):
            raise ValueError(f"acceptance rate {position} is {rate!r}: give a number from 0 to 1")
        if not 0.0 <= rate <= 1.0:
            raise ValueError(f"acceptance rate {position} is {rate}: give a number from 0 to 1")
        if rate > before:
            raise ValueError(
                f"acceptance rate {position} is {rate}, above the {before} before it: "
                "a rate is the share of drafts accepted up to that position, so it never rises"
            )
        before = rate
    kept = {name: value for name, value in config.items() if name != LENGTH}
    return kept | {METHOD: "synthetic", RATES: [float(rate) for rate in rates]}


def is_synthetic(config: Mapping[str, Any]) -> bool:
    """Whether a speculative_config prescribes its acceptance."""
    return config.get(METHOD) == "synthetic"
