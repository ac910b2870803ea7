"""Sums over the engines of the fleet."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from autoscaling.request_fleet import Fleet
from autoscaling.types import EngineTotals, ReplicaReport, Role
from tests.autoscaling.reports import report


def said(boot_id: str, role: Role = Role.SPECULATIVE, **totals: int) -> ReplicaReport:
    """A report of one boot with these totals."""
    return replace(report(boot_id=boot_id, role=role), totals=EngineTotals(**totals))


def test_what_was_before_this_controller_is_not_counted() -> None:
    """Case F2: a new controller counts nothing twice, and each step of an engine once."""
    fleet = Fleet()
    fleet.take(said("b1", drafts=100, drafted=400, accepted=300), 0.0)
    assert (0, 0, 0) == (fleet.drafts, fleet.drafted, fleet.accepted)
    for _ in range(2):
        fleet.take(said("b1", drafts=110, drafted=440, accepted=320), 1.0)
    assert (10, 40, 20) == (fleet.drafts, fleet.drafted, fleet.accepted)


def test_a_replica_that_leaves_takes_nothing_away() -> None:
    """Case F6: its successor begins at 0 under a boot of its own, and the sums go on."""
    fleet = Fleet()
    for drafted in (0, 40):
        fleet.take(said("b1", drafted=drafted), 0.0)
    for drafted in (0, 3):
        fleet.take(said("b2", drafted=drafted), 1.0)
    fleet.take(said("b1", drafted=41), 2.0)
    assert 44 == fleet.drafted


def test_tokens_are_of_the_pool_that_made_them() -> None:
    """Prompt and answer, by the engines' own counts."""
    fleet = Fleet()
    for count in (0, 7):
        fleet.take(said("s", finished_prompt_tokens=count, finished_generated_tokens=2 * count), 0.0)
        fleet.take(said("p", Role.PLAIN, finished_prompt_tokens=count), 0.0)
    assert {Role.SPECULATIVE: 7, Role.PLAIN: 7} == fleet.prompt_tokens
    assert {Role.SPECULATIVE: 14, Role.PLAIN: 0} == fleet.generated_tokens


def test_acceptance_is_of_the_last_minute() -> None:
    """None before anything was drafted and a minute after the last draft."""
    fleet = Fleet()
    fleet.take(said("b"), 0.0)
    assert fleet.acceptance(0.0) is None
    fleet.take(said("b", drafted=40, accepted=30), 1.0)
    assert 0.75 == fleet.acceptance(1.0)
    fleet.take(said("b", drafted=80, accepted=40), 58.0)
    assert 0.5 == fleet.acceptance(58.0)
    assert 0.25 == fleet.acceptance(60.0)
    assert fleet.acceptance(120.0) is None


TOTALS = st.builds(
    said,
    st.sampled_from(["b1", "b2", "b3"]),
    st.sampled_from(Role),
    drafts=st.integers(0, 100),
    drafted=st.integers(0, 100),
    accepted=st.integers(0, 100),
    finished_prompt_tokens=st.integers(0, 100),
    finished_generated_tokens=st.integers(0, 100),
)


@given(st.lists(TOTALS, max_size=30))
def test_sums_never_go_down(reports: list[ReplicaReport]) -> None:
    """Case F6: whatever replicas report, in whatever order, totals that fell included."""
    fleet, before = Fleet(), [0] * 7
    for one in reports:
        fleet.take(one, 0.0)
        found = [
            fleet.drafts,
            fleet.drafted,
            fleet.accepted,
            *fleet.prompt_tokens.values(),
            *fleet.generated_tokens.values(),
        ]
        assert all(new >= old for new, old in zip(found, before, strict=True))
        before = found
