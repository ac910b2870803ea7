"""`twinpool replay`: recorded requests under a policy, beside what really happened."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autoscaling.types import Tier
from tests.app.canned import run
from tests.app.simulation.log.written import WALL, observation, request, write
from tests.autoscaling.profiles import profile_text
from tests.autoscaling.worlds import both, pool, seen
from tests.policies import policy


def policy_of(folder: Path, **spec: Any) -> Path:
    file = folder / "policy.yaml"
    file.write_text(policy(2, 2, **spec), encoding="utf-8")
    return file


def log_of(folder: Path, *, looks: int = 4) -> Path:
    """Twenty requests of ten seconds, one of which no engine ran; one replica drafts, three do not."""
    requests = [request(at, at / 2, tier=Tier.INTERACTIVE if at % 2 else Tier.BATCH) for at in range(19)]
    requests.append(request(19, 9.5, answer=None))
    looked = seen(1000.0, speculative=pool(1), plain=pool(3))
    return write(
        folder / "rec",
        requests,
        [observation(replace(looked, wall=WALL + 5.0 * at), both(1, 3)) for at in range(looks)],
    )


def test_reality_stands_beside_the_simulation(tmp_path: Path) -> None:
    """Both with their tiers and what they took; the simulation begins with the replicas that there were."""
    done = run(
        "replay", str(policy_of(tmp_path)), "--log", str(log_of(tmp_path)), "--profile", "cpu", "--json"
    )
    found = json.loads(done.stdout)
    simulated, recorded = found["policies"]["test"], found["policies"]["recorded"]

    assert done.exit_code in (0, 1), done.stderr
    assert (True, False) == (simulated["simulated"], recorded["simulated"])
    assert (9, 10) == (simulated["tiers"]["interactive"]["arrived"], simulated["tiers"]["batch"]["arrived"])
    assert 9 == recorded["tiers"]["interactive"]["answered"]
    hours = [one["acceleratorHours"] for one in (simulated, recorded)]
    assert [pytest.approx(4 * 10 / 3600)] * 2 == hours
    assert (
        "Of the recorded requests, 1 left out: ended as ok, and the engine's record never came."
        in found["notes"]
    )
    assert found["about"][0].startswith(f"trace records:{tmp_path / 'rec'}: 19 requests in 10s")
    assert "begins 2027-01-15T08:00:00Z" in found["about"]


def test_it_is_said_how_near_the_simulation_comes(tmp_path: Path) -> None:
    """Side by side; so few requests tell nothing, and that is said, as is another size and another speed."""
    arguments = ("replay", str(policy_of(tmp_path)), "--log", str(log_of(tmp_path)), "--profile", "h100-8b")
    done = run(*arguments)
    found = json.loads(run(*arguments, "--json").stdout)["match"]

    assert "cannot be told from this record" in done.stdout
    assert "The record has only 9 interactive, 1 standard and 10 batch requests" in done.stdout
    assert "The recorded engines took 62.5 ms per token" in done.stdout
    assert found["trusted"] is None
    assert ["interactive", "standard", "batch", "speculative pool", "plain pool"] == [
        one["of"] for one in found["sides"]
    ]


def test_another_size_than_the_recorded_one_is_remarked(tmp_path: Path) -> None:
    """Four replicas were recorded, and the policy has eight."""
    file = tmp_path / "policy.yaml"
    file.write_text(policy(4, 4), encoding="utf-8")
    done = run("replay", str(file), "--log", str(log_of(tmp_path)), "--profile", "cpu", "--json")

    assert (
        "The service had at most 4 replicas while it recorded, and the policy's budget holds 8: what differs "
        "from the record is that, too."
    ) in json.loads(done.stdout)["notes"]


def test_the_report_has_both(tmp_path: Path) -> None:
    """The pools of each over time, and all of it in the table."""
    out = tmp_path / "out"
    done = run(
        *("replay", str(policy_of(tmp_path)), "--log", str(log_of(tmp_path)), "--profile", "cpu"),
        *("--out", str(out)),
    )

    assert done.exit_code in (0, 1), done.stderr
    assert "recorded" in done.stdout
    assert "Demand and capacity: recorded" in (out / "report.html").read_text()


def test_the_simulation_begins_where_the_service_was(tmp_path: Path) -> None:
    """One replica that drafts and three plain ones, whatever the policy begins with."""
    out = tmp_path / "out"
    run(
        *("replay", str(policy_of(tmp_path)), "--log", str(log_of(tmp_path)), "--profile", "cpu"),
        *("--out", str(out)),
    )
    series = json.loads((out / "scores.json").read_text())["policies"]["test"]["series"]

    assert {"speculative": 1, "plain": 3} == series[0]["running"]


def test_without_observations_only_the_simulation_is_shown(tmp_path: Path) -> None:
    """And it is said why."""
    done = run(
        *("replay", str(policy_of(tmp_path)), "--log", str(log_of(tmp_path, looks=0)), "--profile", "cpu"),
        "--json",
    )
    found = json.loads(done.stdout)

    assert ["test"] == list(found["policies"])
    assert "The folder has no observations, so what really happened is not shown." in found["notes"]


def test_a_profile_beside_the_log_is_taken(tmp_path: Path) -> None:
    """Without it and --profile nobody knows how fast the engines are."""
    log = log_of(tmp_path)
    without = run("replay", str(policy_of(tmp_path)), "--log", str(log))
    (log / "profile.json").write_text(profile_text())
    done = run("replay", str(policy_of(tmp_path)), "--log", str(log), "--json")

    assert (2, True) == (without.exit_code, "error: --profile is missing" in without.stderr)
    assert done.exit_code in (0, 1), done.stderr
    assert any(
        part.startswith("engines ") and "measured" in part for part in json.loads(done.stdout)["about"]
    )


def test_a_log_is_named_and_is_there(tmp_path: Path) -> None:
    """Exit code 2, with what to name."""
    file = str(policy_of(tmp_path))
    unnamed = run("replay", file, "--profile", "cpu")
    absent = run("replay", file, "--profile", "cpu", "--log", str(tmp_path / "nothing"))

    assert (2, 2) == (unnamed.exit_code, absent.exit_code)
    assert "error: --log is missing" in unnamed.stderr
    assert f"error: --log: {tmp_path / 'nothing'}: is no folder" in absent.stderr
