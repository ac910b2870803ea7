"""Whether one request met its tier's objectives: the rules of attainment, one request at a time.

Attainment is what met its objectives of all requests that were admitted, shed, timed out or failed.  A
caller's own mistake does not count, nor does one who left before the objective had passed.
"""

from __future__ import annotations

from autoscaling.request_line import Outcome, RequestLine
from autoscaling.request_record import Measured, Verdict, odd, ttft_s
from autoscaling.routing_rules import TierRules

REFUSED_OR_BROKEN = (Outcome.SHED, Outcome.NO_CAPACITY, Outcome.FAILED)


def judge(line: RequestLine, found: Measured | None, rules: TierRules) -> Verdict | None:
    """Judge one request that ended; None when it does not count, or when its tier is promised nothing."""
    if rules.ttft_s is None and rules.tpot_s is None:
        return None
    if line.outcome is Outcome.CALLER:
        return None
    if line.outcome in REFUSED_OR_BROKEN:
        return Verdict.MISSED
    first = ttft_s(line, found)
    if _cannot_be_judged(line, found, first, rules):
        return Verdict.UNKNOWN
    if line.outcome is Outcome.CANCELLED:
        return _left(line, found, first, rules)
    if rules.ttft_s is not None and first is None:
        return Verdict.UNKNOWN
    if rules.tpot_s is not None and found is None:
        return Verdict.UNKNOWN
    late = _above(first, rules.ttft_s) or _above(None if found is None else found.tpot_s, rules.tpot_s)
    return Verdict.MISSED if late else Verdict.MET


def _cannot_be_judged(
    line: RequestLine, found: Measured | None, first: float | None, rules: TierRules
) -> bool:
    """Whether a time that an objective asks for is negative or not finite."""
    engine = None if found is None else found.first_token_s
    times = (line.first_byte_s,) if line.stream else (line.waited_s, engine)
    early = rules.ttft_s is not None and (
        any(odd(one) for one in times) or (first is None and odd(line.e2e_s))
    )
    return early or (rules.tpot_s is not None and found is not None and odd(found.tpot_s))


def _left(line: RequestLine, found: Measured | None, first: float | None, rules: TierRules) -> Verdict | None:
    """The caller left: a miss only if an objective was missed by then."""
    if _above(first, rules.ttft_s) or _above(None if found is None else found.tpot_s, rules.tpot_s):
        return Verdict.MISSED
    if first is None and _above(line.e2e_s, rules.ttft_s):
        # Without a stream the first token may have been there, inside the engine, whose record never came.
        hidden = not line.stream and line.attempts > 0 and found is None
        return Verdict.UNKNOWN if hidden else Verdict.MISSED
    return None


def _above(value: float | None, objective: float | None) -> bool:
    return value is not None and objective is not None and value > objective
