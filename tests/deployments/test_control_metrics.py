"""The controller's metrics: families, labels, what is there from the start, and what is unknown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from autoscaling.decisions import HoldBy, Reason
from deployments.control_metrics import exposition

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


POOL = ("target", "running", "starting", "draining", "demand", "capacity", "short_seconds")


def pools(speculative: tuple[Any, ...], plain: tuple[Any, ...]) -> dict[str, dict[str, Any]]:
    """Both pools of a status; the values in the order of POOL."""
    found = {"speculative": speculative, "plain": plain}
    return {role: dict(zip(POOL, values, strict=True)) for role, values in found.items()}


def status(**changes: Any) -> dict[str, Any]:
    """The status of a controller that knows nothing yet."""
    pool = dict.fromkeys(POOL)
    return {
        "policy": {
            "active_revision": None,
            "seen_revision": None,
            "shadow_revision": None,
            "last_error": None,
            "refused": 0,
        },
        "pools": {"speculative": dict(pool), "plain": dict(pool)},
        "budget": None,
        "hold": None,
        "last_decision": None,
        "last_tick": None,
        "moves": [],
        "moves_ended": {},
        "ticks": 0,
        "failed_ticks": 0,
        "store_problem": None,
        "dropped_reports": {},
    } | changes


def samples(found: dict[str, Any]) -> dict[str, float]:
    """Sample name with its labels to value."""
    families = text_string_to_metric_families(exposition(found, ()).decode())
    return {
        sample.name + "".join(f" {key}={value}" for key, value in sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def test_the_unknown_has_no_sample_and_counters_begin_at_0() -> None:
    """No gauge says 0 for what nobody knows; each counter has all its labels."""
    found = samples(status())
    assert not any(name.startswith(("twinpool_pool_", "twinpool_accelerators")) for name in found)
    assert not any(name.startswith("twinpool_policy_revision") for name in found)
    assert not any(name.startswith(("twinpool_decision_", "twinpool_move_")) for name in found)
    assert "twinpool_controller_last_tick_timestamp_seconds" not in found
    assert {
        "twinpool_policy_refused_total",
        "twinpool_moves_total outcome=done",
        "twinpool_moves_total outcome=timed_out",
        "twinpool_moves_total outcome=replaced",
        "twinpool_controller_ticks_total",
        "twinpool_controller_failed_ticks_total",
        "twinpool_reports_dropped_total reason=old",
        "twinpool_reports_dropped_total reason=gone",
        "twinpool_reports_dropped_total reason=schema",
    } == {name for name, value in found.items() if "_total" in name and value == 0}


def test_a_refused_edit_is_seen() -> None:
    """Case C10: the edit counts, and the newest content is marked as not in force."""
    policy = {
        "active_revision": 3,
        "seen_revision": 5,
        "shadow_revision": None,
        "last_error": {"message": "m", "line": 1, "field": None},
        "refused": 2,
    }
    found = samples(status(policy=policy))
    assert (0.0, 2.0, 3.0, 5.0) == (
        found["twinpool_policy_accepted"],
        found["twinpool_policy_refused_total"],
        found["twinpool_policy_revision kind=active"],
        found["twinpool_policy_revision kind=seen"],
    )
    assert 1.0 == samples(status())["twinpool_policy_accepted"]


def test_pools_budget_and_hold() -> None:
    """Targets, Ray Serve's counts, accelerators, and exactly one holder."""
    found = samples(
        status(
            pools=pools((3, 2, 1, 0, None, None, None), (1, 1, 0, 2, None, None, None)),
            budget={"accelerators": 4, "used": 6},
            hold={"by": "operator"},
            moves_ended={"done": 7},
        )
    )
    assert (3.0, 1.0, 2.0, 4.0, 6.0, 7.0) == (
        found["twinpool_pool_target_replicas pool=speculative"],
        found["twinpool_pool_replicas pool=speculative state=starting"],
        found["twinpool_pool_replicas pool=plain state=draining"],
        found["twinpool_accelerators kind=budget"],
        found["twinpool_accelerators kind=used"],
        found["twinpool_moves_total outcome=done"],
    )
    assert {by.value: float(by is HoldBy.OPERATOR) for by in HoldBy} == {
        by.value: found[f"twinpool_held by={by.value}"] for by in HoldBy
    }


@pytest.mark.parametrize(
    ("demand", "capacity", "short_s", "expected"),
    [
        (30.0, 8.0, 42.5, 42.5),
        (3.0, 8.0, None, 0.0),
        (0.0, None, None, 0.0),
        (3.0, None, None, None),
        (None, 8.0, None, None),
        (3.0, 0.0, 7.0, 7.0),
    ],
)
def test_how_long_a_pool_is_short(
    demand: float | None, capacity: float | None, short_s: float | None, expected: float | None
) -> None:
    """0 only when the pool is known not to be short; no sample while its demand or capacity is unknown."""
    unknown = (None,) * len(POOL)
    found = samples(status(pools=pools(unknown, (1, 1, 0, 0, demand, capacity, short_s))))
    assert (demand, capacity, expected) == (
        found.get("twinpool_pool_demand_sequences pool=plain"),
        found.get("twinpool_pool_capacity_sequences pool=plain"),
        found.get("twinpool_pool_short_seconds pool=plain"),
    )
    assert "twinpool_pool_short_seconds pool=speculative" not in found


def test_the_decision_the_move_and_the_tick() -> None:
    """Exactly one reason of all that there are, the age of the move in flight, and the time of the tick."""
    found = samples(
        status(
            last_decision={"reason": "no_donor"},
            moves=[{"age_seconds": 61.5}, {"age_seconds": None}],
            last_tick="2027-01-15T08:00:03Z",
        )
    )
    assert {reason.value: float(reason is Reason.NO_DONOR) for reason in Reason} == {
        reason.value: found[f"twinpool_decision_reason reason={reason.value}"] for reason in Reason
    }
    assert (61.5, 1_800_000_003.0) == (
        found["twinpool_move_age_seconds"],
        found["twinpool_controller_last_tick_timestamp_seconds"],
    )
    ended = samples(status(moves=[{"age_seconds": None}]))
    assert "twinpool_move_age_seconds" not in ended


def test_every_family_is_documented() -> None:
    """Each has a row in docs/metrics.md with its labels, and no row is of a family that is not there."""
    pool = (1, 1, 0, 0, 3.0, 8.0, None)
    policy = {
        "active_revision": 1,
        "seen_revision": 1,
        "shadow_revision": 1,
        "last_error": None,
        "refused": 0,
    }
    known = status(
        pools=pools(pool, pool),
        policy=policy,
        budget={"accelerators": 4, "used": 4},
        last_decision={"reason": "steady"},
        last_tick="2027-01-15T08:00:03Z",
        moves=[{"age_seconds": 3.5}],
    )
    documented = set(re.findall(r"^\| `([\w:]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    # The others are tests/deployments/test_request_metrics.py's.
    assert {name.split()[0] for name in samples(known)} == documented - families_of_requests()


def families_of_requests() -> set[str]:
    """The first cells of the table of requests."""
    requests = PAGE.read_text(encoding="utf-8").partition("\n## Requests\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `([\w:]+)` \|", requests, re.MULTILINE))
