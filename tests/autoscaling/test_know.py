"""Whether enough is known to decide."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoscaling.decisions import Hold, HoldBy, Memory, Mode, Observation, PoolObservation
from autoscaling.know import know
from tests.autoscaling.worlds import both, policy, pool, remembered, rules, seen

HELD = Hold(HoldBy.OPERATOR, "release 12", since=5.0, who="ana")
NOBODY = PoolObservation()


def test_everything_known_starts_from_the_last_targets() -> None:
    """A healthy fleet is no reason to hold, whatever Ray Serve's own targets are."""
    step, hold = know(seen(plain=pool(2)), policy(), remembered(5, 3))
    assert ("know", "steady", both(5, 3), None) == (step.name, step.reason, step.targets, hold)


@pytest.mark.parametrize(
    ("observation", "by", "reason"),
    [
        (
            seen(young=True),
            "controller_start",
            "the controller has just started and has not heard from every replica",
        ),
        (seen(plain=pool(running=None)), "serve_unknown", "Ray Serve's replica states of plain are unknown"),
        (seen(plain=pool(target=None)), "serve_unknown", "Ray Serve's replica states of plain are unknown"),
        (seen(plain=pool(reporting=1)), "metrics_loss", "1 of 4 running replicas of plain report"),
        (
            seen(speculative=pool(1, reporting=0)),
            "metrics_loss",
            "0 of 1 running replicas of speculative report",
        ),
    ],
)
def test_missing_knowledge_holds(observation: Observation, by: str, reason: str) -> None:
    """A young controller, unknown replica states and too few fresh reports hold the last targets."""
    step, hold = know(observation, policy(), remembered(5, 3))
    assert hold is not None
    assert (by, reason, 1_800_001_000.0, None) == (hold.by, hold.reason, hold.since, hold.expires)
    assert ("held", both(5, 3), reason) == (step.reason, step.targets, step.detail)


@pytest.mark.parametrize(
    "observed",
    [pool(reporting=2), pool(reporting=3), pool(running=0, starting=4, reporting=0, inflight=None)],
    ids=["half report", "one is silent", "all start"],
)
def test_a_silent_replica_does_not_block(observed: PoolObservation) -> None:
    """Case C1: with enough others reporting, or none running yet, there is nothing to hold for."""
    step, hold = know(seen(plain=observed), policy(), remembered())
    assert ("steady", None) == (step.reason, hold)


def test_the_share_of_fresh_reports_is_the_policys() -> None:
    """Three of four are too few for a policy that wants all."""
    _, hold = know(seen(plain=pool(reporting=3)), policy(min_fresh_share=1.0), remembered())
    assert hold is not None
    assert HoldBy.METRICS is hold.by


def test_a_hold_is_passed_on_as_it_is() -> None:
    """An operator's hold keeps its name, reason and expiry, and wins over every other cause."""
    step, hold = know(seen(young=True), policy(hold=HELD), remembered(5, 3))
    assert HELD == hold
    assert ("held", both(5, 3), "release 12") == (step.reason, step.targets, step.detail)


def test_the_policys_mode_holds() -> None:
    """`mode: hold` is the policy's hold."""
    _, hold = know(seen(), policy(mode=Mode.HOLD), remembered())
    assert hold is not None
    assert (HoldBy.POLICY, "the policy's mode is hold") == (hold.by, hold.reason)


def test_an_impossible_policy_holds() -> None:
    """Minimums above the budget change nothing, and the hold says which."""
    _, hold = know(seen(), policy(speculative=rules(5), plain=rules(4)), remembered())
    assert hold is not None
    assert HoldBy.POLICY is hold.by
    assert "the minimums need 9 accelerators and the budget is 8" in hold.reason


def test_a_hold_that_goes_on_keeps_its_beginning() -> None:
    """The same cause in the next tick is the same hold; another cause begins anew."""
    earlier = Hold(HoldBy.METRICS, "1 of 4", since=7.0)
    _, same = know(seen(plain=pool(reporting=0)), policy(), remembered(hold=earlier))
    _, other = know(seen(young=True), policy(), remembered(hold=earlier))
    assert (7.0, 1_800_001_000.0) == (same and same.since, other and other.since)


def test_a_new_application_gets_its_bootstrap() -> None:
    """Nothing else needs to be known, and a memory of an earlier life does not count."""
    observation = seen(speculative=NOBODY, plain=NOBODY, young=True, fresh=True)
    for memory in (Memory(), remembered(6, 2)):
        step, hold = know(observation, policy(bootstrap=both(5, 3)), memory)
        assert ("bootstrap", both(5, 3), None) == (step.reason, step.targets, hold)


def test_a_hold_keeps_targets_but_not_nothing() -> None:
    """Under a hold a new application still gets its bootstrap once, and keeps what was decided after."""
    step, hold = know(seen(fresh=True), policy(hold=HELD), Memory())
    assert ("bootstrap", HELD) == (step.reason, hold)
    step, hold = know(seen(fresh=True), policy(hold=HELD), remembered(6, 2))
    assert ("held", both(6, 2)) == (step.reason, step.targets)


def test_without_memory_serves_targets_are_taken_over() -> None:
    """Case C6: a controller that forgot everything asks for what runs already, also while it is young."""
    observation = seen(speculative=pool(6), plain=pool(2))
    step, hold = know(observation, policy(), Memory())
    assert ("steady", both(6, 2), None) == (step.reason, step.targets, hold)
    step, hold = know(replace(observation, young=True), policy(), Memory())
    assert ("held", both(6, 2)) == (step.reason, step.targets)


def test_nothing_known_at_all_is_no_target() -> None:
    """Without memory and without Ray Serve's targets there is nothing to ask for."""
    step, hold = know(seen(plain=NOBODY), policy(), Memory())
    assert hold is not None
    assert (None, HoldBy.SERVE) == (step.targets, hold.by)
