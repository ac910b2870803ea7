"""Whether a policy is the one that made a record: which of its decisions it makes again."""

from __future__ import annotations

from itertools import islice

from app.simulation.log.capacity import capacity_again
from app.simulation.log.read import Log
from app.simulation.log.routes import records_of, routes_again
from autoscaling.policy import CapacityPolicy
from autoscaling.profile import Profile

MOST = 2000  # routes from the beginning of the record: enough to tell, and a second's work


def share_made_again(log: Log, policy: CapacityPolicy, profile: Profile | None = None) -> float | None:
    """The share of recorded targets, or of recorded routes where that is smaller; None without either.

    `profile` is what the service had.  Raises TraceError.
    """
    targets = capacity_again(log.seen, policy, policy, profile)
    routes = routes_again(islice(records_of(log.folder), MOST), policy, policy, profile)
    shares = [one.as_recorded / one.remade for one in (targets, routes) if one.remade]
    return min(shares, default=None)
