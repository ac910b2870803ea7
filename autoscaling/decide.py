"""One control tick: what is known, what the policy demands, what the pools want, what may begin now.

    follow     how far is the move that is on its way?                  moves.py
    know       is enough known, and from which targets do we start?     know.py
    watch      since when is each pool short or spare?                  stabilize.py
    bounds     floors, ceilings and budget, at once                     bounds.py
    signals    demand against capacity, per pool                        signals.py
    want       who gets a replica, and from where                       allocate.py
    stabilize  windows, cool-down, limits on change                     stabilize.py, limits.py
    stage      shrink first, then grow into what is free                stage.py
    record     the decision, and the memory of the next tick            record.py

`follow` and `watch` keep the memory.  Each of the others but `record` returns targets and a reason; a
decision is the list of them.  Pure: the same arguments give the same answer, and a second call with the
same observation changes nothing.
"""

from __future__ import annotations

from autoscaling import moves
from autoscaling.allocate import want
from autoscaling.bounds import bounds
from autoscaling.decisions import Decision, Memory, Observation, PolicyInForce, Reason, Sizes, Step
from autoscaling.know import know
from autoscaling.record import record
from autoscaling.signals import Signals, numbers, read
from autoscaling.stabilize import stabilize, watch
from autoscaling.stage import keep, stage


def decide(seen: Observation, policy: PolicyInForce, memory: Memory) -> tuple[Decision, Memory]:
    """What to do now, and what the next tick must remember."""
    memory, ended = moves.follow(memory, seen, policy)
    known, hold = know(seen, policy, memory)
    start = known.targets
    signals = {} if start is None else read(seen, policy, start)
    memory = watch(memory, signals, policy, seen.now)
    if start is None or known.reason is Reason.BOOTSTRAP:
        rules: list[Step] = []
        staged = keep(known, memory)
    else:
        # A hold keeps the targets; a move that has begun still ends, or its accelerators would lie idle.
        rules = [] if hold is not None else _rules(start, signals, seen, policy, memory)
        staged = stage(rules[-1] if rules else known, memory.plan or start, seen, policy)
    return record(
        [known, *rules, staged],
        known=known,
        chosen=rules[-1] if rules else known,
        staged=staged,
        hold=hold,
        signals=signals,
        ended=ended,
        seen=seen,
        policy=policy,
        memory=memory,
    )


def _rules(
    start: Sizes, signals: Signals, seen: Observation, policy: PolicyInForce, memory: Memory
) -> list[Step]:
    """The steps from the targets as they are to those that follow; the last one's targets count."""
    bounded = bounds(start, signals, policy)
    if bounded.reason is not Reason.STEADY:
        return [bounded]
    wanted = want(start, signals, seen, policy)
    return [
        bounded,
        numbers(start, signals, policy),
        wanted,
        stabilize(wanted, start, seen, policy, memory),
    ]
