"""Recorded routes made again under two policies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.routing.ask import Ask
from app.routing.replay import replay
from app.simulation.log.difference import routed as words
from app.simulation.log.routes import how_many, records_of, routes_again
from app.simulation.log.under import measured_limits, under
from app.simulation.traces.errors import TraceError
from autoscaling.policy import CapacityPolicy
from autoscaling.types import Role, Tier
from tests.app.routing.worlds import MEASURED, PROFILED, plain, spec
from tests.app.simulation.log.written import WALL, request, routed, write
from tests.autoscaling.good_policy import policy
from tests.autoscaling.profiles import profile

# The objectives of the rules that the records were made with.
SAME = {
    "spec.objectives.interactive.ttftSeconds": 1.0,
    "spec.objectives.interactive.tpotSeconds": 0.05,
    "spec.objectives.standard.ttftSeconds": 5.0,
    "spec.objectives.standard.tpotSeconds": 0.1,
    "spec.objectives.batch.ttftSeconds": 60.0,
}


def changed(changes: dict[str, Any] | None = None) -> CapacityPolicy:
    return policy(SAME | (changes or {}))


def again(found: list[dict[str, Any]], new: CapacityPolicy, old: CapacityPolicy | None = None) -> Any:
    return routes_again([one["request"] for one in found], old or changed(), new)


def test_the_same_policy_changes_nothing() -> None:
    """And comes to what was recorded: pool and reason, a refusal too."""
    found = [
        routed(1, Ask(Tier.INTERACTIVE), [spec(), plain()]),
        routed(2, Ask(Tier.BATCH, max_tokens=100), [spec(5), plain(32)], MEASURED),
        routed(3, Ask(Tier.STANDARD), [spec(8), plain(32)], PROFILED),
    ]
    result = again(found, changed())

    assert (3, 3, 0, 0) == (result.remade, result.as_recorded, result.elsewhere, result.otherwise)
    assert ((), {}) == (result.changes, result.unknown)


def test_a_larger_reserve_keeps_a_guest_out() -> None:
    """Batch was backfilled beside a reserve of two; with four there is no room above it."""
    found = [routed(1, Ask(Tier.BATCH, max_tokens=100), [spec(5), plain(32)], MEASURED)]
    result = again(found, changed({"spec.backfill.reserve": 4}))

    (change,) = result.changes
    assert (1, 0) == (result.elsewhere, result.otherwise)
    assert (WALL + 1.0, "req-1", Tier.BATCH) == (change.wall, change.request, change.tier)
    assert "speculative (backfill)" == words(change.old)
    assert "no pool yet (speculative: reserve_kept, plain: full)" == words(change.new)


def test_a_route_to_the_other_pool_is_made_again_among_many_replicas() -> None:
    """Though the replicas that were compared are not those of the new pool."""
    spec_pool, plain_pool = [spec(0, "s1"), spec(1, "s2")], [plain(0, "p1"), plain(1, "p2")]
    ask = Ask(Tier.STANDARD, tokens_per_step=2.0, draftable=True)
    found = [routed(1, ask, [*spec_pool, *plain_pool], PROFILED)]
    result = again(found, changed({"spec.workload.classify": False}))

    (change,) = result.changes
    assert ("speculative (draftable)", "plain (tier_standard)") == (words(change.old), words(change.new))


def test_a_lower_soft_limit_counts_a_higher_one_does_not() -> None:
    """Records do not say what a replica would take by itself."""
    found = [routed(1, Ask(Tier.INTERACTIVE), [spec(5), plain()], MEASURED)]
    lower, higher = (
        again(found, changed({"spec.pools.speculative.limits.softInflight": limit})) for limit in (5, 100)
    )

    assert ["plain (spill)"] == [words(change.new) for change in lower.changes]
    assert () == higher.changes


def test_a_measured_limit_moves_with_its_objective() -> None:
    """Where the service had a profile, and only as far as nothing else bounds the replica."""
    measured = profile()
    strict = changed({"spec.objectives.interactive.tpotSeconds": 0.03})
    acting, own = measured_limits(changed(), measured), measured_limits(strict, measured)
    assert own[Role.SPECULATIVE] < acting[Role.SPECULATIVE]
    limit = acting[Role.SPECULATIVE]
    recorded = routed(1, Ask(Tier.INTERACTIVE), [spec(0, limit=limit), plain()], PROFILED)["request"][
        "decision"
    ]
    bounded = routed(1, Ask(Tier.INTERACTIVE), [spec(0, limit=1), plain()], PROFILED)["request"]["decision"]
    without = routed(1, Ask(Tier.INTERACTIVE), [spec(0, limit=limit), plain()])["request"]["decision"]

    def limits(record: dict[str, Any]) -> list[int]:
        found = under(record, strict, own, acting)["pools"]["speculative"]["candidates"]
        return [one["limit"] for one in found]

    assert [own[Role.SPECULATIVE]] == limits(recorded)
    assert [1] == limits(bounded)
    assert [limit] == limits(without)


def test_each_ingress_loses_its_share_of_a_lower_limit() -> None:
    """Of three sequences less, two ingresses lose two each: never more room than there is."""
    one = spec(0, limit=8)
    record = routed(1, Ask(Tier.INTERACTIVE), [one, plain()])["request"]["decision"]
    record["pools"]["speculative"]["candidates"][0] |= {"ingresses": 2, "own_free": 4}
    lowered = under(record, changed({"spec.pools.speculative.limits.softInflight": 5}))

    assert (5, 2) == tuple(
        lowered["pools"]["speculative"]["candidates"][0][key] for key in ("limit", "own_free")
    )


def test_the_record_itself_stays() -> None:
    """What is put into it goes into a copy."""
    record = routed(1, Ask(Tier.INTERACTIVE), [spec(), plain()])["request"]["decision"]
    before = replay(record)
    under(record, changed({"spec.pools.speculative.limits.softInflight": 1}))

    assert before == replay(record)


def test_what_holds_too_little_is_counted_by_its_reason() -> None:
    """An older version's record, and none at all, which nobody decided on."""
    old = routed(1, Ask(Tier.INTERACTIVE), [spec(), plain()])
    del old["request"]["decision"]["rules"]
    result = again([old, old, request(3)], changed())

    assert (0, {"the record has no 'rules'": 2}) == (result.remade, result.unknown)


def test_a_record_by_which_nothing_can_be_divided_is_counted() -> None:
    """No ingress at all shares the limit: a damaged number ends nothing."""
    broken = routed(1, Ask(Tier.INTERACTIVE), [spec(), plain()])
    for pool in broken["request"]["decision"]["pools"].values():
        for candidate in pool["candidates"] if "candidates" in pool else pool["able"]:
            candidate["ingresses"] = 0
    result = again([broken], changed(), changed({"spec.pools.speculative.limits.softInflight": 1}))

    assert (0, 1) == (result.remade, sum(result.unknown.values()))


def test_progress_is_told_with_every_record() -> None:
    """Also with those that cannot be made again."""
    told: list[int] = []
    routes_again([request(1)["request"], request(2)["request"]], changed(), changed(), None, told.append)

    assert [1, 2] == told


def test_records_are_read_from_the_folder(tmp_path: Path) -> None:
    """In their order; about how many is known without reading them."""
    write(tmp_path, [request(number) for number in range(3)])

    assert ["req-0", "req-1", "req-2"] == [one["id"] for one in records_of(tmp_path)]
    assert 3 == how_many(tmp_path)
    assert 0 == how_many(tmp_path / "nothing")


def test_records_of_another_version_are_refused(tmp_path: Path) -> None:
    """Never read as something that they are not."""
    (tmp_path / "requests.jsonl").write_text('{"schema": 99, "kind": "request", "seq": 1}\n')

    with pytest.raises(TraceError, match="schema 99"):
        list(records_of(tmp_path))
