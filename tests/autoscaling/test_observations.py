"""The newest report of each replica, and the snapshot made of them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from autoscaling.decisions import PoolRules
from autoscaling.observations import Observations
from autoscaling.routing_rules import RoutingRules, StepCost
from autoscaling.types import ReplicaReport, ReplicaState, Role, Snapshot
from tests.autoscaling.reports import report

EPOCH = 5


def listed(observations: Observations, now: float) -> list[str]:
    return [view.replica_id for view in observations.snapshot(now).replicas]


def test_an_empty_controller_lists_nothing() -> None:
    """Before the first report the snapshot is empty, and divided by one ingress."""
    snapshot = Observations(EPOCH, 0.0).snapshot(0.0)
    assert (snapshot.epoch, snapshot.seq, snapshot.partial) == (5, 1, True)
    assert (snapshot.ingresses, snapshot.replicas) == (1, ())


def test_a_report_becomes_a_view() -> None:
    """A view repeats the report, says how old it is, and divides the limits by the live ingresses."""
    observations = Observations(EPOCH, 0.0)
    sent = report("a", 4, role=Role.SPECULATIVE, soft_limit=8, hard_limit=64, inflight=6)
    assert observations.take(sent, 10.0) == "taken"
    (view,) = observations.snapshot(12.5).replicas
    assert (view.replica_id, view.boot_id, view.seq, view.pool, view.role) == (
        "a",
        "boot-1",
        4,
        "speculative",
        Role.SPECULATIVE,
    )
    assert (view.host, view.port, view.token, view.node_id) == ("10.0.0.1", 21000, "secret", "node")
    assert (view.accepting, view.age_s, view.inflight, view.running, view.waiting) == (True, 2.5, 6, 3, None)
    assert (view.soft_share, view.hard_share, view.soft_limit) == (8, 64, 8)
    assert view.capabilities == sent.capabilities


@pytest.mark.parametrize(("seq", "expected"), [(4, "old"), (5, "old"), (6, "taken"), (60, "taken")])
def test_only_a_newer_report_of_a_boot_is_taken(seq: int, expected: str) -> None:
    """Of one boot a report counts when its sequence is above the newest; a gap does not matter."""
    observations = Observations(EPOCH, 0.0)
    observations.take(report("a", 5), 0.0)
    assert expected == observations.take(report("a", seq), 1.0)
    (seen,) = observations.newest()
    assert (seen.report.seq, seen.at) == ((seq, 1.0) if expected == "taken" else (5, 0.0))


def test_a_new_boot_starts_its_own_sequence() -> None:
    """A replica that came up again under the same id is heard from its first report on."""
    observations = Observations(EPOCH, 0.0)
    observations.take(report("a", 500, boot_id="boot-1"), 0.0)
    assert observations.take(report("a", 1, boot_id="boot-2"), 1.0) == "taken"
    assert [seen.report.boot_id for seen in observations.newest()] == ["boot-2"]


@pytest.mark.parametrize("last", [ReplicaState.STOPPED, ReplicaState.FAILED])
def test_a_goodbye_removes_at_once_and_for_good(last: ReplicaState) -> None:
    """A stopped or failed replica leaves with that report; a late one of the same boot is `gone`."""
    observations = Observations(EPOCH, 0.0)
    observations.take(report("a", 1), 0.0)
    assert observations.take(report("a", 3, state=last), 1.0) == "taken"
    assert listed(observations, 1.0) == []
    assert observations.take(report("a", 2), 1.1) == "gone"
    assert observations.take(report("a", 4), 50.0) == "gone"
    assert listed(observations, 50.0) == []


def test_a_goodbye_of_a_stranger_is_remembered() -> None:
    """A controller that first hears a replica's goodbye does not take its late report for news."""
    observations = Observations(EPOCH, 0.0)
    assert observations.take(report("a", 9, state=ReplicaState.STOPPED), 0.0) == "taken"
    assert observations.take(report("a", 8), 0.5) == "gone"
    assert listed(observations, 0.5) == []


def test_a_former_boots_goodbye_leaves_its_successor() -> None:
    """The late goodbye of a former boot does not take out the one that runs now."""
    observations = Observations(EPOCH, 0.0)
    observations.take(report("a", 9, boot_id="boot-1"), 0.0)
    observations.take(report("a", 1, boot_id="boot-2"), 1.0)
    observations.take(report("a", 10, boot_id="boot-1", state=ReplicaState.STOPPED), 1.5)
    assert listed(observations, 1.5) == ["a"]
    assert [seen.report.boot_id for seen in observations.newest()] == ["boot-2"]


def test_a_draining_replica_is_listed_and_takes_no_work() -> None:
    """Draining is not gone: the view stays, with `accepting` off."""
    observations = Observations(EPOCH, 0.0)
    observations.take(report("a", 1, state=ReplicaState.DRAINING), 0.0)
    assert [view.accepting for view in observations.snapshot(0.0).replicas] == [False]


@pytest.mark.parametrize(("silent_s", "expected"), [(0.0, ["a"]), (10.0, ["a"]), (10.01, []), (1e6, [])])
def test_silence_ends_membership_after_10_s(silent_s: float, expected: list[str]) -> None:
    """A replica that is silent for more than ten seconds of the receiver's own clock leaves."""
    observations = Observations(EPOCH, 1000.0)
    observations.take(report("a", 1), 1000.0)
    assert expected == listed(observations, 1000.0 + silent_s)


def test_expire_names_the_silent() -> None:
    """`expire` tells which replicas it forgot; one that speaks again is back."""
    observations = Observations(EPOCH, 0.0)
    observations.take(report("b", 1), 0.0)
    observations.take(report("a", 1), 5.0)
    assert observations.expire(11.0) == ("b",)
    assert listed(observations, 11.0) == ["a"]
    assert observations.take(report("b", 2), 12.0) == "taken"
    assert listed(observations, 12.0) == ["a", "b"]


@pytest.mark.parametrize(("age_s", "expected"), [(0.0, True), (1.99, True), (2.0, False), (100.0, False)])
def test_partial_for_two_report_periods(age_s: float, expected: bool) -> None:
    """A controller younger than two report periods cannot know every replica, and says so."""
    assert expected == Observations(EPOCH, 50.0).snapshot(50.0 + age_s).partial


def test_every_snapshot_has_the_next_number() -> None:
    """The sequence grows by one per snapshot, whoever asks and whether or not anything changed."""
    observations = Observations(EPOCH, 0.0)
    assert [(s.epoch, s.seq) for s in (observations.snapshot(0.0) for _ in range(3))] == [
        (5, 1),
        (5, 2),
        (5, 3),
    ]


@pytest.mark.parametrize(
    ("ingresses", "soft", "hard"), [(1, 8, 64), (2, 4, 32), (3, 3, 22), (10, 1, 7), (100, 1, 1)]
)
def test_limits_are_divided_by_the_live_ingresses(ingresses: int, soft: int, hard: int) -> None:
    """Shares are rounded up: each ingress may start at least one; the soft limit itself is told undivided."""
    observations = Observations(EPOCH, 0.0)
    observations.take(report("a", 1, soft_limit=8, hard_limit=64), 0.0)
    for number in range(ingresses):
        observations.ingress(f"ingress-{number}", 0.0)
        observations.ingress(f"ingress-{number}", 0.1)
    snapshot = observations.snapshot(0.1)
    assert snapshot.ingresses == ingresses
    assert [(soft, hard, 8)] == [
        (view.soft_share, view.hard_share, view.soft_limit) for view in snapshot.replicas
    ]


@pytest.mark.parametrize(("now", "expected"), [(2.9, 2), (3.0, 1), (5.0, 1)])
def test_a_silent_ingress_has_no_share(now: float, expected: int) -> None:
    """An ingress that fetched nothing for three seconds counts no longer."""
    observations = Observations(EPOCH, 0.0)
    observations.ingress("silent", 0.0)
    observations.ingress("alive", 2.5)
    assert expected == observations.snapshot(now).ingresses


@pytest.mark.parametrize("schema", [0, 2])
def test_an_unknown_schema_is_refused(schema: int) -> None:
    """A report of a major version that we do not know changes nothing, and is no sign of life."""
    observations = Observations(EPOCH, 0.0)
    observations.take(report("a", 1), 0.0)
    assert observations.take(report("a", 2, schema=schema), 9.0) == "schema"
    assert listed(observations, 10.5) == []


def test_the_order_is_stable() -> None:
    """Replicas are listed by id, in whatever order they spoke."""
    observations = Observations(EPOCH, 0.0)
    for replica_id in ("c", "a", "b"):
        observations.take(report(replica_id), 0.0)
    assert listed(observations, 0.0) == ["a", "b", "c"]


def test_messages_survive_the_wire() -> None:
    """A report and a snapshot are the same after the plain values they travel as; news are ignored."""
    sent = report("a", 3)
    assert msgspec.convert(msgspec.to_builtins(sent) | {"news": 1}, ReplicaReport) == sent
    observations = Observations(EPOCH, 0.0)
    observations.take(sent, 0.0)
    snapshot = observations.snapshot(0.0)
    assert msgspec.convert(msgspec.to_builtins(snapshot) | {"news": 1}, Snapshot) == snapshot


def test_a_token_is_not_printed() -> None:
    """Neither a report nor a view shows the replica's token in a log line."""
    observations = Observations(EPOCH, 0.0)
    observations.take(report("a"), 0.0)
    assert "secret" not in f"{report('a')!r} {observations.snapshot(0.0)!r} {observations.newest()!r}"


class ObservationsMachine(RuleBasedStateMachine):
    """Reports in any order, late ones included, from replicas of several boots; time passes."""

    def __init__(self) -> None:
        super().__init__()
        self.observations = Observations(EPOCH, 0.0)
        self.now = 0.0
        self.heard: dict[tuple[str, str], float] = {}  # (replica, boot) -> newest report that was taken
        self.left: dict[tuple[str, str], float] = {}
        self.seq = 0

    @rule(
        replica_id=st.sampled_from("ab"),
        boot_id=st.sampled_from(("x", "y")),
        seq=st.integers(1, 9),
        state=st.sampled_from(ReplicaState),
        schema=st.sampled_from((1, 1, 1, 2)),
    )
    def arrive(self, replica_id: str, boot_id: str, seq: int, state: ReplicaState, schema: int) -> None:
        key = (replica_id, boot_id)
        sent = report(replica_id, seq, boot_id=f"{replica_id}-{boot_id}", state=state, schema=schema)
        taken = self.observations.take(sent, self.now)
        if schema != 1:
            assert taken == "schema"
        elif self.now - self.left.get(key, -1e9) < 60.0:
            assert taken == "gone"
        elif taken == "taken" and state in (ReplicaState.STOPPED, ReplicaState.FAILED):
            self.left[key] = self.now
        elif taken == "taken":
            self.heard[key] = self.now

    @rule(ingress=st.sampled_from("12"))
    def fetch(self, ingress: str) -> None:
        self.observations.ingress(ingress, self.now)

    @rule(seconds=st.floats(0.0, 12.0))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def nobody_listed_is_silent_or_gone(self) -> None:
        snapshot = self.observations.snapshot(self.now)
        self.seq += 1
        assert self.seq == snapshot.seq
        for view in snapshot.replicas:
            key = (view.replica_id, view.boot_id.removeprefix(f"{view.replica_id}-"))
            assert self.now - self.heard[key] <= 10.0
            assert view.age_s == self.now - self.heard[key]
            assert self.now - self.left.get(key, -1e9) >= 60.0
            assert 1 <= view.soft_share <= view.hard_share


TestObservationsMachine = ObservationsMachine.TestCase
TestObservationsMachine.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)


@given(st.lists(st.integers(1, 30), max_size=20))
def test_the_highest_sequence_wins_in_any_order(arrivals: list[int]) -> None:
    """However the reports of one boot arrive, the newest is the highest sequence seen."""
    observations = Observations(EPOCH, 0.0)
    for seq in arrivals:
        observations.take(report("a", seq), 0.0)
    expected = [max(arrivals)] if arrivals else []
    assert expected == [seen.report.seq for seen in observations.newest()]


def test_one_model_is_served_at_a_time() -> None:
    """Replicas of another model take no work until they are the majority; a tie keeps the present one."""
    seen = Observations(1, 0.0)

    def accepting() -> dict[str, bool]:
        return {view.replica_id: view.accepting for view in seen.snapshot(0.0).replicas}

    seen.take(report("a", fingerprint="old"), 0.0)
    seen.take(report("b", fingerprint="old"), 0.0)
    seen.take(report("c", fingerprint="new"), 0.0)
    assert {"a": True, "b": True, "c": False} == accepting()
    seen.take(report("a", 2, fingerprint="old", state=ReplicaState.DRAINING), 0.0)
    assert {"a": False, "b": True, "c": False} == accepting()
    seen.take(report("d", fingerprint="new"), 0.0)
    assert {"a": False, "b": False, "c": True, "d": True} == accepting()
    seen.take(report("d", 2, fingerprint="new", state=ReplicaState.STOPPED), 0.0)
    assert {"a": False, "b": False, "c": True} == accepting()


# --- epochs and the policy's limits ------------------------------------------------------------------


@pytest.mark.parametrize(("held", "epoch", "rises"), [(4, 5, False), (5, 6, True), (900, 901, True)])
def test_a_young_controller_rises_above_what_an_ingress_holds(held: int, epoch: int, rises: bool) -> None:
    """Else one whose clock was set back would be ignored for ever; the next snapshot has the number."""
    observations = Observations(EPOCH, 0.0)
    assert rises is observations.succeed(held, 30.0)
    assert (epoch, epoch) == (observations.epoch, observations.snapshot(30.0).epoch)


def test_an_old_controller_does_not_rise() -> None:
    """After 30 s a higher epoch is a successor's: two that outbid each other would never end."""
    observations = Observations(EPOCH, 0.0)
    assert observations.succeed(900, 30.01) is False
    assert 5 == observations.epoch


@pytest.mark.parametrize("claim", [2**52, 2**52 + 1, 2**53, 10**30])
def test_a_claim_beyond_every_clock_is_refused(claim: int) -> None:
    """No epoch is above it, so a forged one would end every controller for good."""
    observations = Observations(EPOCH, 0.0)
    assert observations.succeed(claim, 1.0) is False
    assert 5 == observations.epoch
    assert observations.succeed(2**52 - 1, 1.0) is True
    assert 2**52 == observations.epoch


def limited(soft: int | None, hard: int | None, *, ingresses: int = 1) -> tuple[int, int]:
    """Shares of a plain replica of 8 and 64 under the policy's limits."""
    observations = Observations(EPOCH, 0.0)
    observations.take(report("a", soft_limit=8, hard_limit=64), 0.0)
    for number in range(ingresses):
        observations.ingress(f"ingress-{number}", 0.0)
    rules = {Role.PLAIN: PoolRules(1, 3, soft_limit=soft, hard_limit=hard)}
    (view,) = observations.snapshot(0.0, rules).replicas
    return view.soft_share, view.hard_share


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [(None, None, (8, 64)), (4, 32, (4, 32)), (4, None, (4, 64)), (None, 4, (8, 4)), (100, 1000, (8, 64))],
)
def test_the_policy_lowers_a_limit_and_never_raises_it(
    soft: int | None, hard: int | None, expected: tuple[int, int]
) -> None:
    """The lower of the replica's own limit and the policy's counts."""
    assert expected == limited(soft, hard)


def test_a_lowered_limit_is_divided_too() -> None:
    """Among the live ingresses, rounded up."""
    assert (2, 11) == limited(4, 31, ingresses=3)


def test_limits_of_one_pool_leave_the_other() -> None:
    """Rules that name no pool of a replica change nothing for it."""
    observations = Observations(EPOCH, 0.0)
    observations.take(report("a", role=Role.SPECULATIVE), 0.0)
    (view,) = observations.snapshot(0.0, {Role.PLAIN: PoolRules(1, 3, soft_limit=1)}).replicas
    assert (8, 64) == (view.soft_share, view.hard_share)


@pytest.mark.parametrize(
    ("measured", "changes", "expected"),
    [
        (12, {}, (12, 64)),
        (3, {}, (3, 64)),
        (99, {}, (16, 64)),
        (12, {"soft_limit": 10}, (10, 64)),
        (12, {"hard_limit": 6}, (6, 6)),
    ],
)
def test_a_measured_limit_replaces_the_replicas_own(
    measured: int, changes: dict[str, int], expected: tuple[int, int]
) -> None:
    """Up or down from 8, inside the 16 sequences that the engine runs at once; hard limits stay."""
    observations = Observations(EPOCH, 0.0)
    observations.take(report("a", soft_limit=8, hard_limit=64), 0.0)
    rules = {Role.PLAIN: PoolRules(1, 3, measured_limit=measured, **changes)}
    (view,) = observations.snapshot(0.0, rules).replicas
    assert expected == (view.soft_share, view.hard_share)
    assert expected[0] == view.soft_limit


def test_a_snapshot_carries_the_rules_of_routing() -> None:
    """As given; None leaves the ingress its own defaults; both survive the wire."""
    observations = Observations(EPOCH, 0.0)
    rules = RoutingRules(reserve=3, costs={Role.PLAIN: StepCost(0.01, 0.001)})
    snapshot = observations.snapshot(0.0, None, None, rules)
    assert rules == snapshot.routing
    assert snapshot == msgspec.convert(msgspec.to_builtins(snapshot), Snapshot)
    assert observations.snapshot(0.0).routing is None


def test_a_snapshot_carries_the_policys_retry_after() -> None:
    """As given; None leaves the ingress its own value."""
    observations = Observations(EPOCH, 0.0)
    assert [None, 7] == [
        observations.snapshot(0.0).retry_after_s,
        observations.snapshot(0.0, None, 7).retry_after_s,
    ]


def test_a_stopping_service_says_so_in_every_snapshot() -> None:
    """Off until told."""
    observations = Observations(EPOCH, 0.0)
    assert observations.snapshot(0.0).stopping is False
    observations.stopping = True
    assert observations.snapshot(0.0).stopping is True
