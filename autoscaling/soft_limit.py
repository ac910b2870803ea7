"""The soft limit of a replica: its own or a measured one, lowered by the policy; the only place for it."""

from __future__ import annotations

from autoscaling.decisions import PoolRules


def soft_limit(own: int | None, most: int | None, rules: PoolRules | None) -> int | None:
    """Sequences in flight up to which new work is welcome; None when nothing is known.

    `own` is the replica's; a limit that a profile gives replaces it, up or down, but stays within `most`:
    what the replica takes at all and runs at once.  The policy's soft limit only lowers.
    """
    measured = None if rules is None else rules.measured_limit
    bounds = [own]
    if rules is not None:
        bounds = [own, rules.soft_limit]
        if measured is not None:
            bounds = [measured, most, rules.hard_limit, rules.soft_limit]
    return min((bound for bound in bounds if bound is not None), default=None)
