"""`twinpool policy diff OLD NEW --log DIR`: recorded decisions that would have come out otherwise."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from typer.testing import Result

from app.cli.policy_compare_log import Named, names_of
from app.routing.ask import Ask
from autoscaling.policy import CapacityPolicy
from autoscaling.types import Tier
from tests.app.canned import run
from tests.app.routing.worlds import MEASURED, plain, spec
from tests.app.simulation.log.written import WALL, observation, request, routed, write
from tests.autoscaling.worlds import pool, seen
from tests.policies import policy

OBJECTIVES: dict[str, Any] = {
    "interactive": {"ttftSeconds": 1.0, "tpotSeconds": 0.05},
    "standard": {"ttftSeconds": 5.0, "tpotSeconds": 0.1},
    "batch": {"ttftSeconds": 60.0},
}


def file_of(folder: Path, name: str, window_s: int = 30, **changes: Any) -> Path:
    file = folder / f"{name}.yaml"
    behavior = {
        "scaleUp": {"stabilizationWindowSeconds": window_s},
        "scaleDown": {"stabilizationWindowSeconds": 0},
    }
    file.write_text(policy(4, 4, objectives=OBJECTIVES, behavior=behavior, **changes), encoding="utf-8")
    return file


def log_of(folder: Path) -> Path:
    """A batch request that was backfilled, one that spilled, and a pool that is short for 25 s."""
    short = seen(1000.0, speculative=pool(4, wanted=40), plain=pool(4, wanted=0))
    looks = [replace(short, now=1000.0 + at, wall=WALL + at) for at in (0.0, 5.0, 10.0, 15.0, 20.0, 25.0)]
    return write(
        folder / "rec",
        [
            routed(1, Ask(Tier.BATCH, max_tokens=100), [spec(5), plain(32)], MEASURED),
            routed(2, Ask(Tier.INTERACTIVE), [spec(8), plain()], MEASURED),
        ],
        [observation(look) for look in looks],
    )


def diff(old: Path, new: Path, *more: str) -> Result:
    return run("policy", "diff", str(old), str(new), *more)


def test_decisions_that_differ_are_shown(tmp_path: Path) -> None:
    """Below the edit's words: when, what both decide and why, for capacity and for routes."""
    old, new = file_of(tmp_path, "old"), file_of(tmp_path, "new", 10, backfill={"reserve": 4})
    done = diff(old, new, "--log", str(log_of(tmp_path)))
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]

    assert 1 == done.exit_code, done.stderr
    assert "spec.backfill.reserve: 2 -> 4" in lines
    assert any(line.startswith("1 of 6 observations give other targets") for line in lines)
    capacity = next(
        line for line in lines if line.startswith("2027-01-15T08:00:10Z once speculative 4, plain 4")
    )
    assert "(waiting_for_window: " in capacity
    assert any(
        line.startswith("1 of 2 routes go to another pool, 0 only for another reason; in 2 the old")
        for line in lines
    )
    assert (
        "2027-01-15T08:00:01Z req-1 batch speculative (backfill) no pool yet (speculative: reserve_kept, "
        "plain: full)" in lines
    )
    assert f"the old policy is test ({old}), the new one test ({new}):" in lines
    assert f"requests tier test ({old}) test ({new})" in lines
    assert "1 batch speculative (backfill) no pool yet (speculative: reserve_kept, plain: full)" in lines
    assert "nothing was simulated: --profile would say how fast the engines are" in lines


def test_with_engines_both_are_simulated(tmp_path: Path) -> None:
    """The recorded requests under the old and the new policy, from the replicas that there were."""
    old, new = file_of(tmp_path, "old"), file_of(tmp_path, "new", 10)
    done = diff(old, new, "--log", str(log_of(tmp_path)), "--profile", "cpu", "-o", "json")
    found = json.loads(done.stdout)

    names = [f"test ({old})", f"test ({new})"]
    assert names == [found["log"]["old"], found["log"]["new"]] == list(found["log"]["simulation"]["policies"])
    assert ["spec.behavior.scaleUp.stabilizationWindowSeconds"] == [
        one["field"] for one in found["differences"]
    ]
    assert 1 == found["log"]["capacity"]["otherTargets"]
    assert {"speculative": 5, "plain": 3} == found["log"]["capacity"]["changes"][0]["new"]["targets"]
    assert (2, 2, 0) == tuple(found["log"]["routes"][key] for key in ("remade", "asRecorded", "otherPool"))


def test_routes_that_go_the_same_other_way_are_counted(tmp_path: Path) -> None:
    """The most frequent way first, one example of each; the rest only as a number."""
    old, new = file_of(tmp_path, "old"), file_of(tmp_path, "new", backfill={"reserve": 4})
    batch = [routed(at, Ask(Tier.BATCH, max_tokens=100), [spec(5), plain(32)], MEASURED) for at in range(30)]
    standard = [
        routed(30, Ask(Tier.STANDARD, tokens_per_step=2.0, draftable=True), [spec(5), plain(32)], MEASURED)
    ]
    log = write(tmp_path / "rec", [*standard, *batch])
    done = diff(old, new, "--log", str(log))
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    found = json.loads(diff(old, new, "--log", str(log), "--json").stdout)["log"]["routes"]

    assert [30] == [one["requests"] for one in found["kinds"] if one["tier"] == "batch"]
    assert found["otherPool"] + found["otherReasonOnly"] == sum(one["requests"] for one in found["kinds"])
    assert [one["requests"] for one in found["kinds"]] == sorted(
        (one["requests"] for one in found["kinds"]), reverse=True
    )
    counts = lines.index(f"requests tier test ({old}) test ({new})")
    assert lines[counts + 1].startswith("30 batch speculative (backfill) no pool yet")
    examples = lines.index("one example of each:")
    assert 1 == sum(line.endswith(lines[counts + 1].removeprefix("30 ")) for line in lines[examples:])
    left = found["otherPool"] + found["otherReasonOnly"] - len(found["kinds"])
    assert f"and {left} more; -o json has them" in lines


def test_each_policy_is_judged_by_what_it_promises(tmp_path: Path) -> None:
    """Objectives, and which policy keeps them, stand above the table; without one nothing is in time."""
    hard = OBJECTIVES | {"interactive": {"tpotSeconds": 0.000001}, "batch": {}}
    old, new = file_of(tmp_path, "old"), tmp_path / "new.yaml"
    new.write_text(policy(4, 4, objectives=hard).replace("name: test", "name: hard"), encoding="utf-8")
    done = diff(old, new, "--log", str(log_of(tmp_path)), "--profile", "cpu")
    found = json.loads(diff(old, new, "--log", str(log_of(tmp_path)), "--profile", "cpu", "--json").stdout)
    policies = found["log"]["simulation"]["policies"]
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]

    assert "interactive, by test: first token within 1.00 s, 50.0 ms per token, for 95.0 %" in lines
    assert "batch, by hard: nothing" in lines
    assert any(line.startswith("test keeps every objective of this trace: ") for line in lines)
    assert any(
        line.startswith("hard misses an objective on this trace: 0.0 % of interactive") for line in lines
    )
    assert "tokens/s: answer tokens per second of the trace, of the answers that ended in it" in lines
    assert ([], ["interactive"]) == (policies["test"]["missed"], policies["hard"]["missed"])
    assert {"ttftSeconds": None, "tpotSeconds": 0.000001} == policies["hard"]["objectives"]["interactive"]
    assert (1.0, None) == tuple(policies[name]["tiers"]["batch"]["attainment"] for name in ("test", "hard"))
    assert any(line.startswith("batch no objective") for line in lines)


def test_policies_are_told_apart() -> None:
    """By their names, else by their files, else as the old and the new one."""
    one, other = (CapacityPolicy.model_validate(yaml.safe_load(policy(2, 2))) for _ in range(2))
    renamed = other.model_copy(update={"metadata": other.metadata.model_copy(update={"name": "edited"})})

    assert ("test", "edited") == names_of(Named("a.yaml", one), Named("a.yaml", renamed))
    assert ("test (a.yaml)", "test (b.yaml)") == names_of(Named("a.yaml", one), Named("b.yaml", other))
    assert ("test (old)", "test (new)") == names_of(Named("a.yaml", one), Named("a.yaml", other))


def test_a_log_of_years_is_refused_with_the_next_step(tmp_path: Path) -> None:
    """A wrong clock gave one request a date in another year: nothing is simulated, and no traceback."""
    old, new = file_of(tmp_path, "old"), file_of(tmp_path, "new", 10)
    log = write(tmp_path / "rec", [request(1), request(2, 400 * 86_400.0)])
    done = diff(old, new, "--log", str(log), "--profile", "cpu")

    assert 2 == done.exit_code
    assert (
        "error: this cannot be simulated, and --profile asks for it: the trace lasts 400 days" in done.stderr
    )
    assert "mend: correct the time of its last request" in done.stderr


def test_an_edit_that_changes_no_decision_is_still_a_difference(tmp_path: Path) -> None:
    """It is said that no decision differs; the same file twice is none at all."""
    old, new = file_of(tmp_path, "old"), file_of(tmp_path, "new", overload={"retryAfterSeconds": 9})
    log = log_of(tmp_path)
    edited, same = diff(old, new, "--log", str(log)), diff(old, old, "--log", str(log))

    assert (1, 0) == (edited.exit_code, same.exit_code)
    assert "0 of 6 observations give other targets, 0 only another reason" in edited.stdout
    assert "0 of 2 routes go to another pool" in edited.stdout
    assert same.stdout.startswith("no difference\n")


def test_without_a_log_nothing_changes(tmp_path: Path) -> None:
    """The same words and the same JSON as ever."""
    old, new = file_of(tmp_path, "old"), file_of(tmp_path, "new", 10)
    done = diff(old, new, "--json")

    assert ["spec.behavior.scaleUp.stabilizationWindowSeconds"] == [
        one["field"] for one in json.loads(done.stdout)
    ]


def test_engines_are_of_a_log(tmp_path: Path) -> None:
    """Without one there is nothing to simulate."""
    old = file_of(tmp_path, "old")
    done = diff(old, old, "--profile", "cpu")

    assert 2 == done.exit_code
    assert "error: --profile is of the simulation of a log" in done.stderr


def test_a_log_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """With the folder and what to name."""
    old = file_of(tmp_path, "old")
    done = diff(old, old, "--log", str(tmp_path / "nothing"))

    assert 2 == done.exit_code
    assert "nothing: is no folder" in done.stderr
