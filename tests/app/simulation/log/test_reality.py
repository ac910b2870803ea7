"""A log read whole, and what it says really happened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.simulation.log.read import Log, read_log
from app.simulation.log.reality import what_happened
from app.simulation.scores import PoolScore
from app.simulation.traces.errors import TraceError
from autoscaling.decide import decide
from autoscaling.decisions import Memory, MoveState, Reason
from autoscaling.policy import TierObjective
from autoscaling.request_line import Outcome
from autoscaling.request_record import Verdict
from autoscaling.types import Role, Tier
from deployments import control_memory
from tests.app.simulation.log.written import EPOCH, WALL, observation, request, write
from tests.autoscaling.worlds import EAGER, both, policy, pool, seen

PROMISED = {Tier.STANDARD: TierObjective(ttftSeconds=1.0, tpotSeconds=0.1)}
BASE = 1000.0  # the controller's clock when the first request came


def look(after_s: float, speculative: int = 4, plain: int = 4, **changes: object) -> dict[str, object]:
    """An observation so long after the first request."""
    found = seen(
        BASE + after_s,
        speculative=pool(speculative, wanted=3, refused=1),
        plain=pool(plain, wanted=None, inflight=2),
    )
    return observation(replace(found, wall=WALL + after_s, **changes), both(speculative, plain))


def log_of(folder: Path, *, seconds: int = 30) -> Log:
    """Two requests, and a look every 5 s."""
    requests = [request(1, 0.0, tier=Tier.INTERACTIVE), request(2, 12.0, tier=Tier.BATCH, verdict=None)]
    return read_log(write(folder, requests, [look(float(at)) for at in range(0, seconds, 5)]))


def test_the_files_are_those_that_the_controller_writes() -> None:
    """One name on both sides."""
    from app.simulation.log import read

    assert (control_memory.OBSERVATIONS, control_memory.DECISIONS) == (read.OBSERVATIONS, read.DECISIONS)


def test_a_log_has_requests_observations_and_decisions(tmp_path: Path) -> None:
    """Each by its time; the trace begins with the first request."""
    decision, _ = decide(seen(), policy(), Memory())
    log = read_log(write(tmp_path, [request(1, 3.0), request(2, 1.0)], [look(5.0), look(0.0)], [decision]))

    assert WALL + 1.0 == log.began
    assert [0.0, 2.0] == [one.at_s for one in log.requests.arrivals]
    assert [0.0, 5.0] == [one.observation.wall - WALL for one in log.seen]
    assert {EPOCH} == {one.epoch for one in log.seen}
    assert (decision,) == log.decisions
    assert () == log.notes


def test_targets_at_the_first_request_are_those_of_the_last_look_before(tmp_path: Path) -> None:
    """Without a look before it, those of the first one after."""
    looks = [look(-5.0, 3, 5), look(1.0, 6, 2)]
    before = read_log(write(tmp_path / "a", [request(1)], looks))
    after = read_log(write(tmp_path / "b", [request(1)], looks[1:]))
    nothing = read_log(write(tmp_path / "c", [request(1)]))

    assert both(3, 5) == before.first_targets()
    assert both(6, 2) == after.first_targets()
    assert nothing.first_targets() is None


def test_an_observation_without_a_pool_is_not_understood(tmp_path: Path) -> None:
    """It is counted, and nothing is decided or shown by it."""
    whole = look(0.0)
    part = look(5.0)
    del part["observation"]["pools"]["plain"]  # type: ignore[attr-defined]
    log = read_log(write(tmp_path, [request(1)], [whole, part]))

    assert 1 == len(log.seen)
    assert "1 observations are not understood" in log.notes[0]


def test_what_is_not_understood_is_counted(tmp_path: Path) -> None:
    """A reason of a later version, and an observation without pools."""
    decision, _ = decide(seen(), policy(), Memory())
    write(tmp_path, [request(1)], [{"observation": {"now": 1.0}}, look(0.0)], [decision])
    text = (tmp_path / "decisions.jsonl").read_text().replace('"reason":"steady"', '"reason":"later"')
    (tmp_path / "decisions.jsonl").write_text(text)
    log = read_log(tmp_path)

    assert (1, 0) == (len(log.seen), len(log.decisions))
    assert (
        "1 observations are not understood; read them with the version that wrote them",
        "1 decisions are not understood; read them with the version that wrote them",
    ) == log.notes


@pytest.mark.parametrize("name", ["nothing", "file"])
def test_a_folder_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    """With what to name instead."""
    (tmp_path / "file").touch()

    with pytest.raises(TraceError, match="is no folder: name the one of twinpool serve --record DIR"):
        read_log(tmp_path / name)


def test_requests_are_scored_by_the_objectives_that_are_asked_about(tmp_path: Path) -> None:
    """Met, missed, refused, broken off; a caller's own doing and the unknown count nowhere.

    A verdict by the objectives of its time says nothing of an answer.
    """
    requests = [
        request(1, 0.0, verdict=Verdict.MISSED),
        request(2, 1.0, first_byte_s=1.5),
        request(3, 2.0, verdict=Verdict.MISSED, outcome=Outcome.NO_CAPACITY, answer=None),
        request(4, 3.0, verdict=Verdict.MISSED, outcome=Outcome.FAILED),
        request(5, 4.0, verdict=None, outcome=Outcome.CALLER, answer=None),
        request(6, 5.0, verdict=None, outcome=Outcome.CANCELLED),
        request(7, 6.0, first_byte_s=None),
        request(8, 7.0, verdict=Verdict.MISSED, outcome=Outcome.CANCELLED),
    ]
    found = what_happened(read_log(write(tmp_path, requests, [look(0.0)])), 10.0, 1, PROMISED)

    assert found is not None
    score = found.tiers[Tier.STANDARD]
    assert (5, 1, 2, 1, 1) == (score.arrived, score.in_time, score.late, score.refused, score.failed)
    assert 18 == score.tokens  # of the two whole answers
    assert (1.0, 0.0625) == (score.ttft_p50_s, score.tpot_p95_s)
    assert {Tier.STANDARD} == set(found.tiers)


def test_accelerator_hours_are_those_of_the_looks(tmp_path: Path) -> None:
    """Eight replicas of two accelerators for 30 s, and nothing where nobody looked."""
    found = what_happened(log_of(tmp_path / "a"), 30.0, 2, PROMISED)
    blind = what_happened(log_of(tmp_path / "b", seconds=5), 30.0, 2, PROMISED)

    assert found is not None
    assert blind is not None
    assert pytest.approx(8 * 2 * 30 / 3600) == found.accelerator_hours
    assert pytest.approx(8 * 2 * 15 / 3600) == blind.accelerator_hours
    assert 0.0 == found.switching_hours


def test_replicas_that_start_or_drain_are_switching(tmp_path: Path) -> None:
    """One of each, for the ten seconds of the trace."""
    moving = seen(BASE, speculative=pool(3, starting=1), plain=pool(4, draining=1))
    looks = [observation(replace(moving, wall=WALL + at)) for at in (0.0, 5.0)]
    found = what_happened(read_log(write(tmp_path, [request(1)], looks)), 10.0, 1, PROMISED)

    assert found is not None
    assert pytest.approx(2 * 10 / 3600) == found.switching_hours
    assert pytest.approx(9 * 10 / 3600) == found.accelerator_hours


def test_the_pools_over_time_are_the_newest_look(tmp_path: Path) -> None:
    """Demand with refusals, in flight where that is unknown; capacity by the limit of the decision."""
    found = what_happened(log_of(tmp_path), 30.0, 1, PROMISED)

    assert found is not None
    assert [0.0, 10.0, 20.0] == [one.at_s for one in found.series]
    assert {Role.SPECULATIVE: 4, Role.PLAIN: 2} == found.series[0].demand
    assert {Role.SPECULATIVE: 32.0, Role.PLAIN: 32.0} == found.series[0].capacity
    assert [1.0, None, None] == [one.attainment[Tier.INTERACTIVE] for one in found.series]
    assert [None, 1.0, None] == [one.attainment[Tier.BATCH] for one in found.series]


def test_a_limit_that_a_decision_knows_counts(tmp_path: Path) -> None:
    """A profile or the policy may have moved it."""
    looked = replace(seen(BASE), wall=WALL - 1.0)
    rules = policy(plain=replace(policy().pools[Role.PLAIN], soft_limit=4))
    decision, _ = decide(looked, rules, Memory(targets=both(4, 4)))
    log = read_log(write(tmp_path, [request(1)], [look(0.0)], [decision]))
    found = what_happened(log, 10.0, 1, PROMISED)

    assert found is not None
    assert {Role.SPECULATIVE: 32.0, Role.PLAIN: 16.0} == found.series[0].capacity


def test_a_move_is_told_once_as_its_newest_decision_has_it(tmp_path: Path) -> None:
    """Begun, then done; when it began, and how long it took."""
    short = seen(BASE, speculative=pool(4, wanted=40), plain=pool(4, wanted=0))
    begun, memory = decide(replace(short, wall=WALL + 2.0), policy(**EAGER), Memory(targets=both(4, 4)))
    there = seen(BASE + 60.0, speculative=pool(5, wanted=30), plain=pool(3, wanted=0))
    ended, _ = decide(replace(there, wall=WALL + 62.0), policy(**EAGER), memory)
    assert begun.begun
    assert ended.ended is not None
    log = read_log(write(tmp_path, [request(1)], [look(0.0)], [begun, ended]))
    found = what_happened(log, 100.0, 1, PROMISED)

    assert found is not None
    move = found.moves[0]
    assert 2.0 == move.at_s
    assert (Role.PLAIN, Role.SPECULATIVE, 1) == (move.source, move.receiver, move.count)
    assert (Reason.SHORTFALL, MoveState.DONE, 60.0) == (move.reason, move.state, move.took_s)


def test_without_observations_nothing_is_said_to_have_happened(tmp_path: Path) -> None:
    """Accelerator-hours of nobody looked at would be a guess."""
    assert what_happened(read_log(write(tmp_path, [request(1)])), 10.0, 1, PROMISED) is None


def test_pools_have_what_they_did(tmp_path: Path) -> None:
    """Judged are requests of tiers with an objective; an answer after the trace's end brings no tokens."""
    requests = [
        request(1, 0.0),
        request(2, 1.0, first_byte_s=1.5),
        request(3, 2.0, tier=Tier.BATCH, pool=Role.SPECULATIVE),
        request(4, 3.0, e2e_s=1000.0),
    ]
    found = what_happened(read_log(write(tmp_path, requests, [look(0.0)])), 10.0, 1, PROMISED)

    assert found is not None
    assert PoolScore(3, 2, 18) == found.pools[Role.PLAIN]
    assert PoolScore(0, 0, 9) == found.pools[Role.SPECULATIVE]
    assert 18 == found.tiers[Tier.STANDARD].tokens


@pytest.mark.parametrize("replicas", [-1, 10_001, 1e300])
def test_targets_that_cannot_be_are_a_damaged_record(tmp_path: Path, replicas: float) -> None:
    """They are counted and left out: a simulation would begin with them."""
    damaged = look(0.0)
    damaged["targets"] = {"speculative": replicas, "plain": 4}
    log = read_log(write(tmp_path, [request(1)], [damaged, look(5.0)]))

    assert both(4, 4) == log.first_targets()
    assert 1 == len(log.seen)
    assert ("1 observations are damaged and left out: they have negative or impossible numbers",) == log.notes


@pytest.mark.parametrize(
    ("field", "value"), [("running", -3), ("draining", 20_000), ("inflight", -1), ("tpot_p95_s", -0.5)]
)
def test_counts_that_cannot_be_are_a_damaged_record_too(tmp_path: Path, field: str, value: float) -> None:
    """Of replicas, of sequences, and times."""
    damaged = look(0.0)
    damaged["observation"]["pools"]["plain"][field] = value  # type: ignore[index]
    log = read_log(write(tmp_path, [request(1)], [damaged, look(5.0)]))

    assert 1 == len(log.seen)
    assert "1 observations are damaged" in log.notes[0]


def test_a_decision_about_fewer_than_no_replicas_is_damaged(tmp_path: Path) -> None:
    """It would be a move in the report."""
    decision, _ = decide(seen(), policy(), Memory())
    bad = replace(decision, targets={Role.SPECULATIVE: -8, Role.PLAIN: 4})
    log = read_log(write(tmp_path, [request(1)], [], [bad, decision]))

    assert (decision,) == log.decisions
    assert ("1 decisions are damaged and left out: they have negative or impossible numbers",) == log.notes


def test_replicas_that_served_the_first_request_are_not_shown_as_starting(tmp_path: Path) -> None:
    """The last look before it saw them start; the first one of the interval saw them run."""
    early = look(-4.0)
    early["observation"]["pools"]["plain"] |= {"running": 0, "starting": 4}  # type: ignore[index]
    log = read_log(write(tmp_path, [request(1), request(2, 35.0)], [early, look(1.0), look(6.0)]))
    found = what_happened(log, 40.0, 1, PROMISED)

    assert found is not None
    assert [(4, 0)] * 4 == [(one.running[Role.PLAIN], one.starting[Role.PLAIN]) for one in found.series]
