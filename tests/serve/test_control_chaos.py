"""The control processes killed, stopped and started anew, under load: what was decided holds and goes on.

Nothing may be lost, and a move that was on its way is completed once.  The data path has its own tests in
test_chaos.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from deployments.record_reader import Record, read
from tests.policies import policy
from tests.serve.load import Load
from tests.serve.lookout import Lookout
from tests.serve.movement import (
    MOVING,
    ROLES,
    Sizes,
    Status,
    bring,
    clear,
    ids,
    known,
    move_of,
    newest,
    order_size,
    settings,
    targets,
    wait_done,
)
from tests.service import Service

pytestmark = [pytest.mark.serve, pytest.mark.timeout(240)]

ROOT = Path(__file__).parents[2]
TITLES = {"ours": ("ray::", "twinpool:controller"), "serve": ("ray::ServeController",)}
STOPPED_S = 20.0  # longer than the 15 s for which a plan is taken for fresh


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    calm = policy(3, 1, name="calm", behavior={"cooldownSeconds": 2})
    with Service(tmp_path_factory.mktemp("control"), settings(), policy=calm) as service:
        service.wait(lambda: service.ready(3, 1), 30, "all four replicas")
        yield service


@pytest.fixture
def service(running: Service) -> Iterator[Service]:
    """Four replicas, idle, known to the controller; 3+1 or 1+3, so that no test has to bring them back."""
    running.wait(lambda: is_whole(running), 60, "four known replicas before the test")
    yield running
    running.wait(lambda: known(running) is not None, 60, "a controller after the test")
    clear(running)
    running.wait(lambda: is_whole(running), 60, "four known replicas after the test")
    running.wait(running.idle, 60, "every counter of open work at 0")


def is_whole(service: Service) -> bool:
    """Whether every target is reached, and every replica reports."""
    status = known(service)
    return (
        status is not None
        and all(len(ids(status, role)) == targets(status)[role] for role in ROLES)
        and service.ready(*(targets(status)[role] or 0 for role in ROLES))
    )


def other_way(status: Status) -> tuple[Sizes, Sizes]:
    """The targets of now, and those with two replicas moved: 3+1 and 1+3."""
    before = {role: status["pools"][role]["target"] for role in ROLES}
    after = {role: 4 - before[role] for role in ROLES}
    assert [1, 3] == sorted(before.values())
    return before, after


def kill(service: Service, *whose: str) -> None:
    """kill -9 of control processes, all in one moment."""
    victims = [process for one in whose for process in service.processes(*TITLES[one])]
    assert len(victims) == len(whose), [" ".join(process.cmdline()) for process in victims]
    for process in victims:
        process.kill()


def wait_alive(service: Service, epoch: int) -> Status:
    """The status of a controller of a later life, once it has decided something."""

    def later() -> bool:
        status = known(service)
        return status is not None and status["controller"]["epoch"] > epoch

    service.wait(later, 60, "a new controller")
    status = known(service)
    assert status is not None
    return status


def replicas(status: Status) -> dict[str, set[str]]:
    return {role: ids(status, role) for role in ROLES}


def pids(status: Status) -> dict[str, int]:
    """Every replica's process."""
    return {one["id"]: one["pid"] for role in ROLES for one in status["pools"][role]["replicas"]}


def audit(service: Service) -> list[Record]:
    """The whole audit; numbered from 1 without a gap and without a repeat."""
    lines = list(read(service.state_dir, "audit"))
    assert list(range(1, len(lines) + 1)) == [line["seq"] for line in lines]
    return lines


def begun_and_ended(lines: list[Record]) -> tuple[Counter[str], Counter[str]]:
    """How often the audit says of each move that it began, and that it ended."""
    decisions = [line["decision"] for line in lines if line["kind"] == "decision"]
    return (
        Counter(one["move"]["id"] for one in decisions if one["begun"]),
        Counter(one["ended"]["id"] for one in decisions if one["ended"] is not None),
    )


# --- services of their own ----------------------------------------------------------------------------


def watched_start(service: Service) -> list[dict[str, Any]]:
    """What Ray Serve called the application at each look during the start, to two seconds after it."""
    found: list[str] = []

    def addressed() -> bool:
        service.words()  # raises when the service has ended
        for process in service.processes("raylet", "--gcs-address="):
            try:
                found.extend(re.findall(r"--gcs-address=(\S+)", " ".join(process.cmdline())))
            except psutil.Error:
                continue
        return bool(found)

    service.wait(addressed, 60, "the raylet")
    # As the service itself: without the first Ray takes 127.0.0.1 for the machine's outward address.
    environment = os.environ | {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    environment.pop("RAY_ADDRESS", None)
    watch = subprocess.Popen(
        [sys.executable, "-m", "tests.serve.start_watch", found[0]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=ROOT,
    )
    try:
        said, errors = watch.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        watch.kill()
        watch.communicate()
        raise
    assert watch.returncode == 0, errors
    # Ray may print words of its own.
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


@pytest.mark.long
def test_a_new_cluster_is_called_running_at_its_bootstrap_sizes_only(tmp_path: Path) -> None:
    """Whenever Ray Serve says RUNNING, 3+1 replicas run, on a new state and on one that was left at 1+3."""
    first = policy(3, 1, name="calm")
    epochs = []
    for left_behind in (False, True):
        # The engines start slowly, for whoever watches to be there before them.
        service = Service(tmp_path, settings(start_s=4.0), policy=first)
        try:
            looks = watched_start(service)
            with service:
                status = service.status()
                assert {"speculative": 3, "plain": 1} == targets(status)
                epochs.append(status["controller"]["epoch"])
                if not left_behind:
                    bring(service, 1, 3)
        finally:
            service.stop()
        assert looks
        assert "RUNNING" != looks[0]["status"], "the watch came too late to see the beginning"
        called = [look["running"] for look in looks if look["status"] == "RUNNING"]
        assert len(called) > 1
        assert [{"speculative": 3, "plain": 1}] * len(called) == called
    assert epochs[0] < epochs[1]
    lines = audit(service)
    assert {"m1": 1} == begun_and_ended(lines)[0]
    assert {"m1": 1} == begun_and_ended(lines)[1]


@pytest.mark.long
def test_without_a_store_a_new_controller_takes_over_what_ray_serve_has(tmp_path: Path) -> None:
    """Case C6: with `state_dir: none` 1+3 stays 1+3 after a kill, though the policy begins with 3+1."""
    made = settings(state_dir="none")
    with Service(tmp_path, made, policy=policy(3, 1, name="calm")) as service:
        bring(service, 1, 3)
        service.wait(lambda: is_whole(service), 30, "four known replicas")
        before = service.status()
        sizes = {"speculative": 1, "plain": 3}
        lookout = Lookout(service, budget=4, least=sizes, by_serve=False, allowed=(sizes,))
        with Load(service, streams=2, seconds=(1, 3)) as load, lookout:
            kill(service, "ours")
            wait_alive(service, before["controller"]["epoch"])
            # Past the hold of a young controller: from then on it could move something.
            service.wait(
                lambda: (found := known(service)) is not None and found["hold"] is None, 20, "the first hold"
            )
            time.sleep(3)
        load.check(records=False)
        lookout.check()
        service.wait(lambda: is_whole(service), 30, "four known replicas")
        assert pids(before) == pids(service.status())
        assert [] == service.status()["moves"]
        assert not service.state_dir.exists()


# --- one service for the rest -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("whose", "state"),
    [
        pytest.param(("ours",), "draining", marks=pytest.mark.long),
        pytest.param(("ours",), "starting", marks=pytest.mark.long),
        pytest.param(("serve",), "draining", marks=pytest.mark.long),
        pytest.param(("ours", "serve"), "draining", marks=pytest.mark.long),
    ],
    ids=["ours_draining", "ours_starting", "serve_draining", "both_draining"],
)
def test_a_move_survives_the_death_of_its_control(
    service: Service, whose: tuple[str, ...], state: str
) -> None:
    """Case C6: kill -9 in mid-move: the move completes once, no stream is lost, no other replica goes."""
    before = service.status()
    sizes, after = other_way(before)
    number = newest(before) + 1
    lookout = Lookout(
        service,
        budget=4,
        least={role: min(sizes[role], after[role]) for role in ROLES},
        by_serve=False,
        allowed=(sizes, after),
    )
    with Load(service, streams=6, seconds=(4, 7)) as load, lookout:
        override = order_size(service, "speculative", after["speculative"])

        def at_state() -> bool:
            move = move_of(service, number)
            assert move is None or move["state"] in MOVING, f"too late for the kill: {move}"
            return move is not None and move["state"] == state

        service.wait(at_state, 30, f"the move to be {state}")
        lookout.allowed = (after,)  # from here on, whoever lives or dies
        kill(service, *whose)
        if "ours" in whose:
            wait_alive(service, before["controller"]["epoch"])
        move = wait_done(service, number)
        service.wait(lambda: service.ready(**after), 30, "the new sizes")
    # Killed with the move, the count of the engines' records begins anew.
    load.check(records="ours" not in whose)
    lookout.check()
    service.wait(lambda: is_whole(service), 30, "four known replicas")

    status = service.status()
    donor, receiver = sorted(ROLES, key=lambda role: after[role])
    assert (donor, receiver, 2) == (move["from"], move["to"], move["count"])
    assert after == targets(status)
    assert number == newest(status)
    assert replicas(before)[receiver] < replicas(status)[receiver]
    assert replicas(status)[donor] < replicas(before)[donor]
    stayed = replicas(before)[receiver] | replicas(status)[donor]
    assert {one: pids(before)[one] for one in stayed} == {one: pids(status)[one] for one in stayed}

    assert (status["controller"]["epoch"] > before["controller"]["epoch"]) == ("ours" in whose)
    assert status["controller"]["snapshot_age_seconds"] < 2
    assert before["policy"]["active_revision"] == status["policy"]["active_revision"]
    assert [override] == status["overrides"]

    begun, ended = begun_and_ended(audit(service))
    moves = {f"m{one}": 1 for one in range(1, number + 1)}
    assert (moves, moves) == (begun, ended)


def test_a_new_controller_knows_the_hold_and_the_refused_edit(service: Service) -> None:
    """Case C6: hold with its end, last good policy and the last refusal outlive the controller."""
    good = service.policy_file.read_text()
    before = service.status()
    sizes, _ = other_way(before)
    order = {"reason": "test", "who": "test", "for_s": 600.0}
    service.order("POST", "/admin/hold", order)
    service.policy_file.write_text(good + "surprise: 1\n")
    try:
        service.wait(
            lambda: (
                (found := service.status())["policy"]["last_error"] is not None
                and found["hold"] is not None
                and found["hold"]["by"] == "operator"
            ),
            15,
            "the hold and the refusal",
        )
        held = service.status()
        assert before["policy"]["active_revision"] == held["policy"]["active_revision"]
        assert before["policy"]["seen_revision"] + 1 == held["policy"]["seen_revision"]
        assert held["hold"]["expires"] is not None
        lookout = Lookout(service, budget=4, least=sizes, by_serve=False, allowed=(sizes,))
        with Load(service, streams=2, seconds=(1, 3)) as load, lookout:
            kill(service, "ours")
            wait_alive(service, before["controller"]["epoch"])
            # The file is read anew, and refused anew with the same line and field.
            service.wait(
                lambda: service.status()["policy"]["last_error"] == held["policy"]["last_error"],
                15,
                "the refusal",
            )
        load.check(records=False)
        lookout.check()
        status = service.status()
        assert held["hold"] == status["hold"]
        words = ("active_revision", "seen_revision", "sha", "state", "last_error")
        assert [held["policy"][word] for word in words] == [status["policy"][word] for word in words]
        audit(service)
    finally:
        service.wait(lambda: known(service) is not None, 60, "a controller")
        service.policy_file.write_text(good)
        service.order("POST", "/admin/release", {"who": "test"})
    service.wait(lambda: service.status()["policy"]["last_error"] is None, 15, "the good policy")
    service.wait(lambda: service.status()["hold"] is None, 15, "the end of the hold")


@pytest.mark.long
def test_targets_hold_while_the_controller_stands_still(service: Service) -> None:
    """With the controller stopped beyond the age of a fresh plan all goes on; continued, it moves again."""
    before = service.status()
    sizes, after = other_way(before)
    number = newest(before) + 1
    lookout = Lookout(service, budget=4, least=sizes, by_serve=False, allowed=(sizes,))
    with Load(service, streams=2, seconds=(1, 3)) as load:
        (controller,) = service.processes(*TITLES["ours"])
        with lookout:
            controller.send_signal(signal.SIGSTOP)
            try:
                time.sleep(STOPPED_S - 2)
                told = len(load.told)
                time.sleep(2)
            finally:
                controller.send_signal(signal.SIGCONT)
            service.wait(lambda: known(service) is not None, 40, "the controller")
        service.wait(lambda: is_whole(service), 30, "four known replicas")
        status = service.status()
        assert before["controller"]["epoch"] == status["controller"]["epoch"]
        assert pids(before) == pids(status)
        assert sizes == {role: status["pools"][role]["serve_target"] for role in ROLES}
        order_size(service, "speculative", after["speculative"])
        wait_done(service, number)
        service.wait(lambda: service.ready(**after), 30, "the new sizes")
    load.check()
    lookout.check()
    assert told < len(load.told)
    assert after == targets(service.status())
    begun, ended = begun_and_ended(audit(service))
    assert (1, 1) == (begun[f"m{number}"], ended[f"m{number}"])
