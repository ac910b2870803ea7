"""Times per token of requests that fare differently, and percentiles of such times."""

from __future__ import annotations

from typing import Final

import numpy as np

from app.simulation.fluid.load import Numbers

# Five equally likely values that stand for a standard normal one: the means of its fifths.
NODES: Final = np.array((-1.400, -0.532, 0.0, 0.532, 1.400))


def tpot_s(
    stay_s: Numbers, further: Numbers, prompt_share: Numbers, lumps: Numbers, uneven: Numbers
) -> Numbers:
    """Seconds per token for five equally likely fates, in a last axis that is added.

    `stay_s` is what a request decodes for at the mean pace, to bring `further` tokens.  Of it `prompt_share`
    goes to prompts of others, of which `lumps` are expected to come: their number varies as random arrivals
    do.  The rest varies with the load of its replica by the share `uneven`.  All broadcast together.
    """
    few = 1.0 / (9.0 * np.maximum(lumps, 0.05))
    # Wilson and Hilferty: a gamma variate is about the cube of a normal one.  Where a tenth of a lump is
    # expected they hardly count, so that it need not hold there.
    prompts = np.maximum(0.0, 1.0 - few[..., None] + np.sqrt(few)[..., None] * NODES) ** 3
    own = np.maximum(0.1, 1.0 + uneven[..., None] * NODES)
    share = prompt_share[..., None]
    return np.asarray((stay_s / further)[..., None] * (own * (1.0 - share) + prompts * share))


def percentiles(values: Numbers, weights: Numbers, shares: tuple[float, ...]) -> tuple[float, ...]:
    """The values below which these shares, 0 to 1, of the weights lie."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    places = np.searchsorted(reached, np.array(shares) * reached[-1])
    return tuple(float(values[order[min(place, len(order) - 1)]]) for place in places)
