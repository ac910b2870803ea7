"""The pages on moving capacity say what the code does: the worked move, reasons, holds, audit, status."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from app.conditions import conditions
from app.membership import Membership
from app.status import service_status
from autoscaling.decide import decide
from autoscaling.decisions import (
    Decision,
    HoldBy,
    Memory,
    MoveState,
    Observation,
    PolicyInForce,
    PoolObservation,
    Reason,
)
from autoscaling.policy_file import read_policy
from autoscaling.policy_in_force import in_force
from autoscaling.types import Role
from autoscaling.why import explain_decision

ROOT = Path(__file__).parents[1]
CONTROL = (ROOT / "docs" / "concepts" / "control.md").read_text(encoding="utf-8")
OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
TEN = datetime.fromisoformat("2027-03-01T10:00:00Z").timestamp()
POLICY = """
apiVersion: twinpool.dev/v1alpha1
kind: CapacityPolicy
metadata: {name: worked}
spec:
  budget: {max: 4}
  pools:
    speculative: {minReplicas: 1, maxReplicas: 3}
    plain: {minReplicas: 1, maxReplicas: 3}
"""
DRAIN_S = START_S = 39.5  # Ray Serve obeys a tick later


def first_cells(page: str) -> set[str]:
    """The words in code marks of the first cell of each table row."""
    found: set[str] = set()
    for line in page.splitlines():
        if line.startswith("| `"):
            found.update(re.findall(r"`([^`]+)`", line.split(" | ")[0]))
    return found


def policy() -> PolicyInForce:
    found = read_policy(POLICY)
    assert found.policy is not None, found.problems
    return in_force(found.policy, 7, found.sha, overrides=(), hold=None, wall=TEN)


def pool(
    target: int, running: int, starting: int, draining: int, wanted: int, soft_limit: int
) -> PoolObservation:
    return PoolObservation(
        target, running, starting, draining, running, wanted, wanted, refused=0, soft_limit=soft_limit
    )


@pytest.fixture(scope="module")
def told() -> dict[str, Decision]:
    """Decisions of the worked move by the clock, at each half second from 09:59:59 to 10:03:00."""
    memory = Memory(
        targets={Role.SPECULATIVE: 1, Role.PLAIN: 3},
        plan={Role.SPECULATIVE: 1, Role.PLAIN: 3},
        spare_since={Role.PLAIN: -1200.0},
        moves=2,
        decisions=4124,
    )
    found: dict[str, Decision] = {}
    drains_at = starts_at = None
    for tick in range(-2, 361):
        now = tick / 2
        plan = memory.plan
        assert plan is not None
        if plan[Role.PLAIN] == 2 and drains_at is None:
            drains_at = now
        if plan[Role.SPECULATIVE] == 2 and starts_at is None:
            starts_at = now
        drains = drains_at is not None and now - drains_at < DRAIN_S
        up = starts_at is not None and now - starts_at >= START_S
        seen = Observation(
            now,
            TEN + now,
            {
                Role.SPECULATIVE: pool(
                    plan[Role.SPECULATIVE],
                    2 if up else 1,
                    int(starts_at is not None and not up),
                    0,
                    14 if now >= 0 else 3,
                    8,
                ),
                Role.PLAIN: pool(plan[Role.PLAIN], plan[Role.PLAIN], 0, int(drains), 6, 32),
            },
        )
        decision, memory = decide(seen, policy(), memory)
        found.setdefault(f"{datetime.fromtimestamp(TEN + now, UTC):%M:%S}", decision)
    return found


def test_the_worked_move_goes_as_told(told: dict[str, Decision]) -> None:
    """Each row of the table with a reason has that reason at its time."""
    rows = re.findall(r"^\| (?:09|10):(\d\d:\d\d) \|.*?\| `(\w+)`", CONTROL, re.MULTILINE)
    expected = [
        ("59:59", "steady"),
        ("00:00", "waiting_for_window"),
        ("00:30", "shortfall"),
        ("02:50", "shortfall"),
    ]

    assert expected == rows
    assert expected == [(clock, told[clock].reason.value) for clock, _ in expected]


def test_the_worked_move_ends_as_told(told: dict[str, Decision]) -> None:
    """Published in two parts, then done, the cool-down, and the next move."""
    plans = {clock: (told[clock].plan or {}).get(Role.SPECULATIVE) for clock in ("00:30", "01:09", "01:10")}
    ended = {clock: decision.ended for clock, decision in told.items() if decision.ended is not None}
    begun = [clock for clock, decision in told.items() if decision.begun]

    assert {"00:30": 1, "01:09": 1, "01:10": 2} == plans
    assert [("01:50", "m3", MoveState.DONE)] == [(c, m.id, m.state) for c, m in ended.items() if m]
    assert Reason.IN_FLIGHT == told["01:00"].reason
    assert Reason.COOLDOWN == told["01:50"].reason
    assert ["00:30", "02:50"] == begun


def test_the_explained_decision_is_what_why_prints(told: dict[str, Decision]) -> None:
    """The block of the page, word by word."""
    (block,) = re.findall(r"```text\n(decision 4187 .*?)```", CONTROL, re.DOTALL)

    assert block == explain_decision(msgspec.to_builtins(told["00:30"]))


def test_every_reason_is_explained() -> None:
    """Each is on the page."""
    assert set() == {reason.value for reason in Reason if f"`{reason.value}`" not in CONTROL}


def test_every_holder_and_state_has_a_row() -> None:
    """In the tables of holds and of moves."""
    assert {*HoldBy, *MoveState} <= first_cells(CONTROL)


def test_every_kind_of_audit_line_has_a_row() -> None:
    """As the controller writes them, and no other."""
    kept = {
        kind
        for module in (ROOT / "deployments").glob("*.py")
        for kind in re.findall(r"\bkeep\(\s*\"(\w+)\"", module.read_text(encoding="utf-8"))
    }
    table = OPERATIONS.partition("| `kind` | written when |")[2].partition("\n\n")[0]

    assert kept == first_cells(table)


def test_every_status_field_has_a_row() -> None:
    """Of the whole object, and each condition by its type."""
    status = service_status(None, Membership(lambda: 0.0), "http://127.0.0.1:8000", reachable=False, now=0.0)
    types = {item["type"] for item in conditions({}, (), stopping=False, reachable=False)}
    table = API.partition("## Status")[2]

    assert set() == {name for name in {*status, *types} if f"`{name}`" not in table}
