"""What the membership remembers of a look is what it would find by looking again."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from app.membership import Membership
from autoscaling.routing_rules import PoolSpeed, RoutingRules
from autoscaling.types import Role
from tests.app.views import snapshot, view

IDS = ("a", "b", "c")
# Where times meet: load expires after 3 s, a refusal after 0.2, an ejection after 1, 2, 4 s.
STEPS = (0.0, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 0.0625)


class MemoryMachine(RuleBasedStateMachine):
    """Two memberships hear the same; one of them forgets after every look what it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 8.0
        self.members, self.forgetful = Membership(lambda: self.now), Membership(lambda: self.now)
        self.seq = 0

    @property
    def both(self) -> tuple[Membership, Membership]:
        return self.members, self.forgetful

    @rule(
        ids=st.sets(st.sampled_from(IDS)),
        speaks=st.booleans(),
        accepting=st.booleans(),
        inflight=st.integers(0, 9),
        age_s=st.sampled_from(STEPS),
        on_its_way_s=st.sampled_from(STEPS),
        mean=st.none() | st.just(10.0),
        stays=st.booleans(),
        ingresses=st.integers(1, 3),
    )
    def arrive(
        self,
        ids: set[str],
        speaks: bool,
        accepting: bool,
        inflight: int,
        age_s: float,
        on_its_way_s: float,
        mean: float | None,
        stays: bool,
        ingresses: int,
    ) -> None:
        self.seq += 1
        report = self.seq if speaks else 0
        views = [
            view(i, seq=report, accepting=accepting, inflight=inflight, age_s=age_s) for i in sorted(ids)
        ]
        speed = PoolSpeed(ttft_p50_s=0.1, tpot_p50_s=0.05 if stays else None, answer_tokens=mean)
        rules = RoutingRules(speeds={Role.PLAIN: speed})
        found = replace(snapshot(*views, seq=self.seq), routing=rules, ingresses=ingresses)
        for members in self.both:
            members.accept(found, self.now, self.now - on_its_way_s)

    @rule(
        replica_id=st.sampled_from(IDS),
        what=st.sampled_from(["started", "advanced", "finished", "refused", "eject", "succeeded"]),
        sequences=st.integers(1, 3),
        tokens=st.integers(0, 50),
    )
    def happen(self, replica_id: str, what: str, sequences: int, tokens: int) -> None:
        for members in self.both:
            if what == "started":
                members.started(replica_id, sequences, tokens)
            elif what == "advanced":
                members.advanced(replica_id, tokens)
            elif what == "finished":
                members.finished(replica_id, sequences, tokens)
            elif what == "succeeded":
                members.succeeded(replica_id)
            elif what == "refused":
                members.refused(replica_id, self.now)
            else:
                members.eject(replica_id, self.now)

    @rule(seconds=st.sampled_from(STEPS))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def the_memory_is_right(self) -> None:
        self.forgetful._seen.clear()
        assert self.forgetful.candidates_view(self.now) == self.members.candidates_view(self.now)


TestMemoryMachine = MemoryMachine.TestCase
TestMemoryMachine.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)


def test_what_all_replicas_have_in_common() -> None:
    """Names, the widest context and the way to draft follow the replicas that are known."""
    members = Membership(lambda: 0.0)
    assert ((), None, None) == (members.served_names, members.max_model_len, members.method)
    members.accept(snapshot(view("a"), view("b", Role.SPECULATIVE, models=("m", "x"))), 0.0)
    assert ("m", "m:interactive", "m:batch", "x") == members.served_names
    assert (2048, "ngram") == (members.max_model_len, members.method)
    members.accept(snapshot(view("a"), seq=2), 1.0)
    assert (("m", "m:interactive", "m:batch"), None) == (members.served_names, members.method)
    members.accept(snapshot(seq=3), 2.0)
    assert ((), None, None) == (members.served_names, members.max_model_len, members.method)
