"""Who is there, how busy, and what we have open."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app.membership import Candidate, Membership
from autoscaling.routing_rules import PoolSpeed, RoutingRules
from autoscaling.types import Role
from tests.app.views import snapshot, view

IDS = ("a", "b", "c")
SHORT = PoolSpeed(ttft_p50_s=0.5, tpot_p50_s=0.01, answer_tokens=50.0)  # a request stays for a second


class Clock:
    """Tells `now` until it is set anew."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def present(members: Membership, now: float) -> list[str]:
    return [candidate.replica.replica_id for candidate in members.candidates_view(now)]


def only(members: Membership, now: float) -> Candidate:
    (candidate,) = members.candidates_view(now)
    return candidate


def test_before_the_first_snapshot() -> None:
    """Nothing is known: no candidates, no epoch, no age, no names."""
    members = Membership(Clock())
    assert members.candidates_view(0.0) == ()
    assert (members.epoch, members.partial, members.age_s(5.0)) == (None, False, None)
    assert (members.total_inflight, members.served_names) == (0, ())


def test_a_snapshot_is_taken_in() -> None:
    """Epoch, age, names and replicas come from the newest snapshot."""
    members = Membership(Clock())
    assert members.accept(snapshot(view("a"), view("b", Role.SPECULATIVE), epoch=3, partial=True), 10.0)
    assert present(members, 10.0) == ["a", "b"]
    assert (members.epoch, members.partial, members.age_s(12.5)) == (3, True, 2.5)
    assert members.served_names == ("m", "m:interactive", "m:batch")


@pytest.mark.parametrize(
    ("epoch", "seq", "taken"),
    [(2, 5, False), (2, 4, False), (1, 9, False), (2, 6, True), (3, 1, True)],
)
def test_older_snapshots_are_ignored(epoch: int, seq: int, taken: bool) -> None:
    """Only a higher (epoch, seq) replaces what is known; the same one again changes nothing, age included."""
    members = Membership(Clock())
    members.accept(snapshot(view("a"), epoch=2, seq=5), 0.0)
    assert taken is members.accept(snapshot(view("b"), epoch=epoch, seq=seq), 1.0)
    assert present(members, 1.0) == (["b"] if taken else ["a"])
    assert members.age_s(1.0) == (0.0 if taken else 1.0)


def test_unknown_schema_is_refused() -> None:
    """A snapshot of a schema that we do not know is not acted on."""
    members = Membership(Clock())
    assert not members.accept(replace(snapshot(view("a")), schema=2), 0.0)
    assert members.epoch is None


def test_partial_snapshots_add_and_do_not_remove() -> None:
    """A young controller's snapshot may add and update; only a complete one removes."""
    members = Membership(Clock())
    members.accept(snapshot(view("a"), view("b"), epoch=1), 0.0)
    members.accept(snapshot(view("b", accepting=False), view("c"), epoch=2, partial=True), 1.0)
    assert present(members, 1.0) == ["a", "b", "c"]
    assert [c.replica.accepting for c in members.candidates_view(1.0)] == [True, False, True]
    members.accept(snapshot(view("c"), epoch=2, seq=2), 2.0)
    assert present(members, 2.0) == ["c"]


def test_membership_does_not_expire() -> None:
    """Without a controller the known replicas stay, for ever."""
    members = Membership(Clock())
    members.accept(snapshot(view("a")), 0.0)
    assert present(members, 1e6) == ["a"]


@pytest.mark.parametrize(
    ("now", "ingresses", "expected"),
    [(100.0, 3, 7), (102.4, 3, 7), (102.6, 3, 6), (102.6, 1, 2)],
)
def test_load_numbers_expire_after_3_s(now: float, ingresses: int, expected: int) -> None:
    """Others' requests count until the report is 3 s old, by its age in the snapshot and our clock since.

    Then they are unknown, and not none: each other ingress is taken to have there what we have.
    """
    clock = Clock(99.0)
    members = Membership(clock)
    members.started("a")
    members.accept(replace(snapshot(view("a", inflight=6, age_s=0.5)), ingresses=ingresses), 100.0)
    clock.now = 100.0
    members.started("a")
    assert expected == members.load("a", now)


def test_own_requests_are_not_counted_twice() -> None:
    """Of the reported number, what was ours at that time is taken off and what is ours now is added."""
    clock = Clock()
    members = Membership(clock)
    for _ in range(4):
        members.started("a")
    members.accept(snapshot(view("a", inflight=10)), 0.0)
    for _ in range(3):
        members.finished("a")
    assert members.load("a", 0.0) == 7
    members.accept(snapshot(view("a", seq=2, inflight=0), seq=2), 1.0)
    assert members.load("a", 1.0) == 1


def test_what_ended_after_a_report_is_not_taken_for_others() -> None:
    """Three of ours were all that a report of 0.3 s ago counted: since they ended nobody is there."""
    clock = Clock(10.0)
    members = Membership(clock)
    members.started("a", 3)
    clock.now = 10.4
    members.finished("a", 3)
    members.accept(snapshot(view("a", inflight=3, age_s=0.3)), 10.5)
    assert members.load("a", 10.5) == 0


def test_what_began_after_a_report_hides_no_others() -> None:
    """A report of 0.3 s ago counted two of others: two of ours that began since come on top."""
    clock = Clock(10.4)
    members = Membership(clock)
    members.started("a", 2)
    members.accept(snapshot(view("a", inflight=2, age_s=0.3)), 10.5)
    assert members.load("a", 10.5) == 4


@pytest.mark.parametrize(
    ("asked_at", "load", "load_later"),
    [(None, 5, 5), (10.5, 3, 3), (8.0, 5, 0)],
    ids=["now", "half a second ago", "3 s ago"],
)
def test_a_snapshot_is_as_old_as_it_may_be(asked_at: float | None, load: int, load_later: int) -> None:
    """Its ages count from when it was asked for, both for what was ours and for the 3 s of load numbers."""
    clock = Clock(10.0)
    members = Membership(clock)
    members.started("a", 2)
    clock.now = 11.0
    members.finished("a", 2)
    members.accept(snapshot(view("a", inflight=5)), 11.0, asked_at)
    assert (load, load_later) == (members.load("a", 11.0), members.load("a", 11.1))


def test_the_same_report_twice_keeps_its_first_reading() -> None:
    """A report seen again is no younger, and is not compared with what has become of our requests since."""
    clock = Clock()
    members = Membership(clock)
    for _ in range(5):
        members.started("a")
    members.accept(snapshot(view("a", inflight=5)), 0.0)
    clock.now = 0.5
    for _ in range(5):
        members.finished("a")
    members.accept(snapshot(view("a", inflight=5), seq=2), 1.0)
    assert members.load("a", 1.0) == 0


@pytest.mark.parametrize(
    ("speed", "age_s", "loads", "work"),
    [
        (SHORT, 0.0, [0, 8], [0.0, 400.0]),
        (SHORT, 1.0, [3, 5], [126.42411176571153, 273.5758882342885]),
        (replace(SHORT, tpot_p50_s=None), 1.0, [0, 8], [0.0, 400.0]),
        (replace(SHORT, ttft_p50_s=None), 1.0, [0, 8], [0.0, 400.0]),
        (replace(SHORT, answer_tokens=None), 1.0, [0, 8], [0.0, 2048.0]),
    ],
    ids=["fresh", "as old as requests get", "no time per token", "no time to first", "no length"],
)
def test_old_counts_of_others_tend_to_the_mean_of_their_pool(
    speed: PoolSpeed, age_s: float, loads: list[int], work: list[float]
) -> None:
    """When requests stay for a second, 1/e of the difference is left after one; unknown stays count whole."""
    members = Membership(Clock())
    views = [view("a", age_s=age_s), view("b", inflight=8, age_s=age_s)]
    stranger = view("c", Role.SPECULATIVE, inflight=90, age_s=age_s)
    draining = view("d", inflight=90, age_s=age_s, accepting=False)
    routing = RoutingRules(speeds={Role.PLAIN: speed})
    members.accept(replace(snapshot(*views, stranger, draining), routing=routing), 50.0)
    found = members.candidates_view(50.0)
    assert [*loads, 90, 90] == [one.load for one in found]
    assert work == pytest.approx([one.work for one in found[:2]])


def test_a_report_seen_again_tends_further_to_the_mean() -> None:
    """The same count is worth less with each snapshot that brings nothing newer."""
    members = Membership(Clock())
    routing = RoutingRules(speeds={Role.PLAIN: SHORT})
    found = []
    for seq in (1, 2, 3):
        views = [view("a", age_s=seq - 1.0), view("b", inflight=80, age_s=seq - 1.0)]
        members.accept(replace(snapshot(*views, seq=seq), routing=routing), 50.0 + seq)
        found.append([members.load("a", 50.0 + seq), members.load("b", 50.0 + seq)])
    assert found == [[0, 80], [25, 55], [35, 45]]


def test_load_of_a_stranger() -> None:
    """A replica that is not known has the load that we have open there."""
    members = Membership(Clock())
    members.started("x")
    assert (members.load("x", 0.0), members.load("y", 0.0)) == (1, 0)


def test_counts_outlive_the_replica() -> None:
    """What is open on a replica that left is remembered until it ends, and then forgotten."""
    members = Membership(Clock())
    members.accept(snapshot(view("a")), 0.0)
    members.started("a")
    members.started("a")
    members.accept(snapshot(seq=2), 1.0)
    assert (present(members, 1.0), members.total_inflight) == ([], 2)
    members.finished("a")
    members.finished("a")
    assert (members.inflight("a"), members.total_inflight) == (0, 0)


def test_counts_are_never_negative() -> None:
    """A finish too many is not owed to the next request."""
    members = Membership(Clock())
    members.finished("a")
    members.started("a")
    assert members.inflight("a") == 1


@pytest.mark.parametrize(
    ("own", "others", "ingresses", "soft", "hard"),
    [
        (0, 0, 1, True, True),
        (3, 0, 1, True, True),
        (4, 0, 1, False, True),
        (7, 0, 1, False, True),
        (8, 0, 1, False, False),
        (0, 4, 1, False, True),
        (0, 99, 1, False, True),
        (3, 4, 2, True, True),
        (3, 5, 2, False, True),
        (4, 0, 2, False, True),
    ],
)
def test_room(own: int, others: int, ingresses: int, soft: bool, hard: bool) -> None:
    """Welcome inside our share and everyone's soft limit; taken inside our share of the hard limit."""
    members = Membership(Clock())
    members.accept(snapshot(view("a", inflight=others), ingresses=ingresses), 0.0)
    for _ in range(own):
        members.started("a")
    found = only(members, 0.0)
    assert (own + others, soft, hard) == (found.load, found.free > 0, found.hard_room)


@pytest.mark.parametrize(
    ("soft_limit", "share", "ingresses", "expected"),
    [(8, 1, 16, 8), (4, 2, 3, 4), (8, 8, 1, 8), (None, 2, 3, 6)],
)
def test_the_soft_limit_is_not_the_sum_of_the_shares(
    soft_limit: int | None, share: int, ingresses: int, expected: int
) -> None:
    """Shares are rounded up, so their sum may be more; without the limit (older controller) it must do."""
    members = Membership(Clock())
    members.accept(snapshot(view("a", soft_share=share, soft_limit=soft_limit), ingresses=ingresses), 0.0)
    found = only(members, 0.0)
    assert (expected, share) == (found.limit, found.own_free)


def test_a_replica_that_takes_no_work_has_no_room() -> None:
    """A draining replica is known, and has room for nothing."""
    members = Membership(Clock())
    members.accept(snapshot(view("a", accepting=False)), 0.0)
    found = only(members, 0.0)
    assert (found.free > 0, found.hard_room) == (False, False)


def test_a_refusal_is_a_short_skip() -> None:
    """After a refusal there is no room for 0.2 s."""
    members = Membership(Clock())
    members.accept(snapshot(view("a")), 0.0)
    members.refused("a", 10.0)
    members.refused("stranger", 10.0)
    assert [only(members, now).hard_room for now in (10.0, 10.1, 10.2)] == [False, False, True]


def test_an_ejected_replica_needs_a_newer_report_and_its_backoff() -> None:
    """Out until it has spoken again and 1 s has passed; either alone is not enough."""
    members = Membership(Clock())
    members.accept(snapshot(view("a", seq=5), seq=1), 0.0)
    members.eject("a", 0.0)
    assert present(members, 9.0) == []
    members.accept(snapshot(view("a", seq=5), seq=2), 9.0)
    assert present(members, 9.0) == []
    members.accept(snapshot(view("a", seq=6), seq=3), 10.0)
    assert present(members, 10.0) == ["a"]


def test_backoff_holds_against_an_early_report() -> None:
    """A report that arrives at once does not end the back-off; a new boot counts as a newer report."""
    members = Membership(Clock())
    members.accept(snapshot(view("a", seq=5), seq=1), 0.0)
    members.eject("a", 0.0)
    members.accept(snapshot(view("a", boot_id="boot-2", seq=1), seq=2), 0.1)
    assert present(members, 0.9) == []
    assert present(members, 1.0) == ["a"]


def test_backoff_doubles_to_30_s_and_success_resets_it() -> None:
    """Ejections in a row wait 1, 2, 4, 8, 16, 30, 30 s; after a success 1 s again."""
    members = Membership(Clock())
    members.accept(snapshot(view("a", seq=0), seq=0), 0.0)
    now, waits = 0.0, []
    for turn in range(1, 9):
        if turn == 8:
            members.succeeded("a")
        members.eject("a", now)
        members.accept(snapshot(view("a", seq=turn), seq=turn), now)
        wait = next(w for w in (1.0, 2.0, 4.0, 8.0, 16.0, 30.0) if present(members, now + w))
        assert present(members, now + wait - 0.01) == []
        waits.append(wait)
        now += wait
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 1.0]


def test_failures_while_out_count_once() -> None:
    """Many requests that fail together lengthen the back-off once."""
    members = Membership(Clock())
    members.accept(snapshot(view("a", seq=1), seq=1), 0.0)
    for _ in range(20):
        members.eject("a", 0.0)
    members.accept(snapshot(view("a", seq=2), seq=2), 0.5)
    assert present(members, 1.0) == ["a"]


def test_a_replica_that_left_is_forgotten() -> None:
    """One that comes back under the same id has no past; ejecting a stranger does nothing."""
    members = Membership(Clock())
    members.accept(snapshot(view("a"), seq=1), 0.0)
    members.eject("a", 0.0)
    members.accept(snapshot(seq=2), 0.1)
    members.eject("a", 0.2)
    members.accept(snapshot(view("a"), seq=3), 0.3)
    assert present(members, 0.3) == ["a"]


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 5), st.sampled_from(IDS)), max_size=12))
def test_the_newest_snapshot_wins_in_any_order(arrivals: list[tuple[int, int, str]]) -> None:
    """However complete snapshots arrive, the view is that of the first arrival of the highest number."""
    members = Membership(Clock())
    newest: tuple[int, int] = (0, 0)
    expected: list[str] = []
    for epoch, seq, replica_id in arrivals:
        members.accept(snapshot(view(replica_id), epoch=epoch, seq=seq), 0.0)
        if (epoch, seq) > newest:
            newest, expected = (epoch, seq), [replica_id]
    assert expected == present(members, 0.0)


class MembershipMachine(RuleBasedStateMachine):
    """Any order of snapshots, requests, failures and refusals."""

    def __init__(self) -> None:
        super().__init__()
        self.members = Membership(lambda: self.now)
        self.open: list[str] = []
        self.now = 0.0
        self.seq = 0

    @rule(
        ids=st.sets(st.sampled_from(IDS)),
        partial=st.booleans(),
        inflight=st.integers(0, 20),
        stale=st.booleans(),
    )
    def arrive(self, ids: set[str], partial: bool, inflight: int, stale: bool) -> None:
        before = {c.replica.replica_id for c in self.members.candidates_view(self.now)}
        if not stale:
            self.seq += 1
        views = [view(i, seq=self.seq, inflight=inflight) for i in sorted(ids)]
        taken = self.members.accept(snapshot(*views, seq=self.seq, partial=partial), self.now)
        after = {c.replica.replica_id for c in self.members.candidates_view(self.now)}
        if not taken:
            assert before == after
        elif partial:
            assert before <= after
        else:
            assert after <= ids

    @rule(replica_id=st.sampled_from(IDS))
    def start(self, replica_id: str) -> None:
        self.members.started(replica_id)
        self.open.append(replica_id)

    @precondition(lambda self: self.open)
    @rule()
    def finish(self) -> None:
        self.members.finished(self.open.pop())

    @rule(replica_id=st.sampled_from(IDS))
    def fail(self, replica_id: str) -> None:
        self.members.eject(replica_id, self.now)
        assert replica_id not in present(self.members, self.now)

    @rule(replica_id=st.sampled_from(IDS))
    def refuse(self, replica_id: str) -> None:
        self.members.refused(replica_id, self.now)

    @rule(replica_id=st.sampled_from(IDS))
    def succeed(self, replica_id: str) -> None:
        self.members.succeeded(replica_id)

    @rule(seconds=st.floats(0.0, 40.0))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def counts_are_exact(self) -> None:
        assert self.members.total_inflight == len(self.open)
        for replica_id in IDS:
            assert self.members.inflight(replica_id) == self.open.count(replica_id)
            assert self.members.load(replica_id, self.now) >= self.open.count(replica_id)

    @invariant()
    def soft_room_is_inside_hard_room(self) -> None:
        for candidate in self.members.candidates_view(self.now):
            assert candidate.hard_room or candidate.free == 0


TestMembershipMachine = MembershipMachine.TestCase
TestMembershipMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
