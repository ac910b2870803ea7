"""A place at a replica: counted from the moment it is given until it is given back; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType

from app.membership import Membership
from app.routing.route import Route
from app.routing.verdicts import Verdict
from autoscaling.types import Role


class Seat:
    """One open request at a replica, counted until `with` ends."""

    def __init__(
        self, membership: Membership, route: Route, tokens: float, released: Callable[[], None]
    ) -> None:
        self.route = route
        self.waited_for: Mapping[Role, Verdict] | None = None  # what stood against each pool at first
        self._membership = membership
        self._released = released
        self._sequences = route.decision.ask.sequences
        self._left = round(tokens)  # whole tokens: sums of fractions would drift
        self._open = True
        membership.started(self._id, self._sequences, self._left)

    @property
    def _id(self) -> str:
        return self.route.replica.replica_id

    def advance(self, tokens: int) -> None:
        """Note tokens that came: less work is left there."""
        if self._open and self._left:
            done = min(self._left, tokens)
            self._left -= done
            self._membership.advanced(self._id, done)

    def release(self) -> None:
        """Count the request as over; once."""
        if self._open:
            self._open = False
            self._membership.finished(self._id, self._sequences, self._left)
            self._released()

    def __enter__(self) -> Seat:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
