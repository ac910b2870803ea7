"""Times per token of requests that fare differently, and percentiles of such times."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.special import ndtri

from app.simulation.fluid.history import Of
from app.simulation.fluid.load import Numbers

FATES: Final = 10  # equally likely ones: so much load of the replica, so many prompts of others
_SHARES: Final = (np.arange(FATES) + 0.5) / FATES
LOADS: Final[Numbers] = ndtri(_SHARES)  # standard deviations above the mean
# Which part of the chances in the prompts each of these meets: a quarter each has little of both, much of
# both, and much of one alone, so that the two are independent.
PROMPTS: Final[Numbers] = _SHARES[[5, 2, 8, 0, 7, 3, 9, 1, 6, 4]]
MOST_PROMPTS: Final = 0.9  # of the time, where a request happens to meet many


def tpot_s(
    stay_s: Numbers, steps: Numbers, further: Numbers, prompts: Numbers | float, rows: Numbers
) -> Numbers:
    """Seconds per token for equally likely fates, in a last axis that is added.

    `stay_s` is what `steps` steps, which bring `further` tokens, take at the mean pace; the own prompt has
    so many tokens as `prompts` says.  `rows` has the columns of `Of` in a last axis.  All broadcast together
    but for that.

    Prompts of others hold all up, and while they do more of them come: those of the mean pace, and such as
    came while the own prompt was computed, less those of the last step; whoever knew of it sent less then.
    Their seconds follow the law of a busy period: none with probability exp(-a), where `a` prompts come in
    the time without any, and by the mean and the variance otherwise.
    """
    share, lumps = rows[..., Of.PROMPT_SHARE], np.maximum(rows[..., Of.LUMPS_PER_S], 1e-9)
    calm_s = stay_s * (1.0 - share)
    own_s = np.minimum(rows[..., Of.TOKEN_S] * prompts, rows[..., Of.CHUNK_S]) + rows[..., Of.LAST_S]
    first_s = share * rows[..., Of.APART] * np.maximum(0.0, own_s - rows[..., Of.STEP_S])
    held_s = np.where(steps > 0, stay_s * share + first_s, 0.0)
    # Loads come and go: over a long stay their mean differs less than at one moment.
    long = np.maximum(stay_s * rows[..., Of.LEAVING_PER_S], 1e-6)
    loads = LOADS * np.sqrt(2.0 / long**2 * (long + np.expm1(-long)))[..., None]
    slower = np.maximum(0.3, 1.0 + rows[..., Of.UNEVEN, None] * loads)
    more = np.maximum(0.0, 1.0 + rows[..., Of.UNEVEN_LUMPS, None] * loads)
    # A long stay meets as many prompts as others do; a short one ends before anything is evened out.
    times = np.maximum(stay_s * rows[..., Of.EVENING_PER_S], 1e-6)
    evened = 1.0 + np.expm1(-times) / times
    by_chance = (1.0 - rows[..., Of.REGULAR] * evened + rows[..., Of.BUNCHED])[..., None]
    met = _prompts(
        (held_s * lumps / np.maximum(share, 1e-9))[..., None] * more,
        np.minimum(share, MOST_PROMPTS)[..., None] * np.minimum(by_chance, 1.0) * rows[..., Of.BLIND, None],
        rows[..., Of.SPREAD, None] - 1.0 + by_chance,
    )
    values = calm_s[..., None] * slower + (share / lumps)[..., None] * met
    return np.asarray(values / further[..., None])


def _prompts(mean: Numbers, busy: Numbers, spread: Numbers) -> Numbers:
    """Prompts that are met, in mean ones: for each fate the quantile at its share."""
    none = np.exp(-mean * (1.0 - busy))
    some = np.maximum(1.0 - none, 1e-12)
    first = mean / some
    second = np.maximum((mean * spread / (1.0 - busy) ** 2 + mean**2) / some - first**2, 1e-9 * first**2)
    wide = np.log1p(second / np.maximum(first, 1e-12) ** 2)
    place = ndtri(np.clip((PROMPTS - none) / some, 1e-9, 1.0))
    # Skewed, and hardly ever near nothing, as first passages are.
    found = first * np.exp(np.sqrt(wide) * np.minimum(place, 3.0) - wide / 2)
    return np.asarray(np.where(none >= PROMPTS, 0.0, found))


def percentiles(values: Numbers, weights: Numbers, shares: tuple[float, ...]) -> tuple[float, ...]:
    """The values below which these shares, 0 to 1, of the weights lie."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    places = np.searchsorted(reached, np.array(shares) * reached[-1])
    return tuple(float(values[order[min(place, len(order) - 1)]]) for place in places)
