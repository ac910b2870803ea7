"""With which error a request ends that gets no seat; pure."""

from __future__ import annotations

from typing import Final

from app import errors
from app.errors import ApiError
from app.routing.route import Decision, Refusal, refusal_of, route_of

RETRY_AFTER_S: Final = 1.0  # a slot frees at the pace of requests


class NoSeatError(ApiError):
    """A request that got no place, with what was decided last."""

    def __init__(self, error: ApiError, decision: Decision) -> None:
        super().__init__(error.answer)
        self.decision = decision


def what_stands_against(decision: Decision) -> Refusal:
    """Why a request has to wait: where there is room, it is for those before it."""
    return Refusal.NO_ROOM if route_of(decision) is not None else refusal_of(decision)


def refusal(why: Refusal, decision: Decision, retry_after_s: int) -> NoSeatError:
    """The error; `retry_after_s` is for one that found no room."""
    ask = decision.ask
    if why is Refusal.CAPABILITY:
        error = errors.parameter_not_supported(ask.parameters)
    elif why is Refusal.NO_REPLICA:
        pool = "a replica" if ask.pin is None else f"a replica of the {ask.pin} pool"
        error = errors.not_ready(f"{pool} to take work", RETRY_AFTER_S)
    else:
        error = errors.no_capacity(retry_after_s)
    return NoSeatError(error, decision)
