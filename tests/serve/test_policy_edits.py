"""Edits of the live policy file: good ones act within seconds, bad ones change nothing, no caller notices.

Two replicas per pool, room for a fifth, and short streams all the while.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from deployments.record_reader import Record, read
from tests.app.canned import run
from tests.app.in_cluster import Cluster
from tests.autoscaling.bad_policies import BAD_EDITS, BAD_FOR_WORLD, BadEdit
from tests.deployments.kubelet import ConfigMapMount
from tests.policies import policy
from tests.serve.load import Load
from tests.serve.lookout import Lookout
from tests.serve.movement import ROLES, bring, clear, edit, ids, newest, settings, targets, wait_done
from tests.service import Service, Stream, chat

pytestmark = [pytest.mark.serve, pytest.mark.timeout(240)]

LIVE_S = 5.0  # from the write of a good file until it acts
ONE_EACH = {"speculative": 1, "plain": 1}
TWO_EACH = {"speculative": 2, "plain": 2}
# Only what a policy says moves anything: demand never does.
STILL = {
    "behavior": {
        "cooldownSeconds": 2,
        "scaleUp": {"selectPolicy": "Disabled"},
        "scaleDown": {"selectPolicy": "Disabled"},
    }
}
# Each kind of mistake once; all of them, without a service, are in tests/deployments/test_policy_book.py.
LIVE_BAD = (
    "broken_yaml",
    "bad_indentation",
    "tab",
    "open_quote",
    "open_brace",
    "second_document",
    "anchor",
    "duplicate_key",
    "unknown_key",
    "typo_in_a_bound",
    "missing_maximum",
    "other_version",
    "text_for_a_number",
    "fraction_of_a_replica",
    "negative_minimum",
    "unknown_mode",
    "not_a_number",
    "infinity",
    "share_above_one",
    "ttft_in_milliseconds",
    "ttft_with_a_unit",
    "counter_sum",
    "window_in_milliseconds",
    "retry_after_zero",
    "minimum_above_maximum",
    "bootstrap_below_minimum",
    "minimums_above_budget",
    "minimums_above_budget_by_schedule",
    "unknown_zone",
    "unquoted_time",
    "override_without_end",
    "whole_file_empty",
    "a_list",
    "half_written",
    "half_written_inside_a_brace",
)
# This service has five accelerators and two replicas in each pool; the list was written for four, 1 and 3.
FOR_FIVE = {
    "surge_above_the_ceiling": ("surgeSlots: 1", "surgeSlots: 2"),
    "maximum_above_serves": ("maxReplicas: 5", "maxReplicas: 6"),
    "large_cut": ("maxCutShare: 0.5", "maxCutShare: 0.4"),
}


IMPATIENT = {"standard": {"deadlineSeconds": 0.5}}  # a request without room is answered soon


def text(speculative: int = 2, plain: int = 2, most: int = 4, **spec: Any) -> str:
    """A policy under which only its own bounds and budget move anything."""
    return policy(speculative, plain, most=most, **(STILL | spec))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("edits"), settings(slots=5), policy=text()) as service:
        service.wait(lambda: service.ready(2, 2), 30, "all four replicas")
        yield service


@pytest.fixture
def service(running: Service) -> Iterator[Service]:
    """2+2 replicas under the first policy, idle, without overrides."""
    edit(running, text())
    bring(running, 2, 2)
    yield running
    clear(running)
    running.wait(running.idle, 60, "every counter of open work at 0")


def light(service: Service) -> Load:
    """Short streams that no pool is named for."""
    return Load(service, {"plain": {}}, streams=2, seconds=(0.3, 1.0))


def watching(service: Service, *, budget: int = 4) -> Lookout:
    """Both pools have two replicas at every look, by the ingress's word and Ray Serve's."""
    return Lookout(service, budget=budget, least=TWO_EACH, allowed=(TWO_EACH,))


def all_ids(service: Service) -> dict[str, set[str]]:
    status = service.status()
    return {role: ids(status, role) for role in ROLES}


def policy_of(service: Service) -> dict[str, Any]:
    found: dict[str, Any] = service.status()["policy"]
    return found


def accepted(service: Service) -> bool | None:
    """The condition that says whether the newest file acts."""
    found: dict[str, bool | None] = {one["type"]: one["status"] for one in service.status()["conditions"]}
    return found["PolicyAccepted"]


def seen_after(service: Service, write: Callable[[], object]) -> dict[str, Any]:
    """Change the file, and the policy's status once the change was seen, good or not."""
    before = policy_of(service)["seen_revision"]
    write()
    service.wait(lambda: policy_of(service)["seen_revision"] > before, 10, "the change to be seen")
    return policy_of(service)


def wait_targets(service: Service, speculative: int, plain: int, limit_s: float = LIVE_S) -> float:
    wanted = {"speculative": speculative, "plain": plain}
    return service.wait(lambda: targets(service.status()) == wanted, limit_s, f"the targets {wanted}")


# --- good edits --------------------------------------------------------------------------------------


def test_a_good_edit_is_live_within_seconds(service: Service) -> None:
    """Bounds, limits and Retry-After of an edit act in at most 5 s, without a restart or a failed request."""
    before, replicas = policy_of(service), all_ids(service)
    limits = {"plain": {"maxReplicas": 2, "limits": {"softInflight": 1, "hardInflight": 1}}}
    lane = {"speculative": {"x-twinpool-pool": "speculative"}}
    with (
        Load(service, lane, streams=2, seconds=(0.3, 1.0)) as load,
        watching(service) as lookout,
    ):
        began = time.monotonic()
        service.policy_file.write_text(
            text(pools=limits, overload={"retryAfterSeconds": 7}, admission=IMPATIENT), encoding="utf-8"
        )
        service.wait(
            lambda: policy_of(service)["active_revision"] == before["seen_revision"] + 1, LIVE_S, "the edit"
        )
        service.wait(
            lambda: service.status()["pools"]["plain"]["clamped_by"] == "maxReplicas", LIVE_S, "the maximum"
        )
        took = time.monotonic() - began
        print(f"\na good edit was live after {took:.1f} s")
        assert took <= LIVE_S
        # Its limits act: with one request open at each plain replica there is no room for a third.
        long = chat("Tell a story", max_tokens=200, ignore_eos=True)
        pin = {"x-twinpool-pool": "plain"}
        streams = [Stream(service, long, pin) for _ in range(2)]
        for stream in streams:
            assert stream.began.wait(20)
        answers = []

        def is_full() -> bool:
            answers.append(service.post(chat("Hi", max_tokens=2), headers=pin))
            return answers[-1].status_code != 200

        service.wait(is_full, LIVE_S, "the limits to be the ingress's too")
        refused = answers[-1]
        assert (503, "no_capacity", "7") == (
            refused.status_code,
            refused.json()["error"]["code"],
            refused.headers["retry-after"],
        )
        for stream in streams:
            assert stream.join(60).complete, (stream.errors, stream.fault)
    load.check(records=False)
    lookout.check()
    assert replicas == all_ids(service)
    assert targets(service.status()) == TWO_EACH


@pytest.mark.long
def test_an_unrelated_edit_moves_nothing(service: Service) -> None:
    """Case C7: at four replicas another field changes: no dip, the same replicas, no move."""
    replicas, moves = all_ids(service), newest(service.status())
    with light(service) as load, watching(service) as lookout:
        edit(service, text(overload={"retryAfterSeconds": 9}))
        time.sleep(3.0)
    load.check()
    lookout.check()
    assert replicas == all_ids(service)
    assert moves == newest(service.status())


@pytest.mark.long
def test_a_raised_minimum_acts_at_once(service: Service) -> None:
    """Case C7: the other pool gives a replica; those that stay are the same ones, and streams finish."""
    before, moves = all_ids(service), newest(service.status())
    with light(service) as load:
        edit(service, text(3, 1, pools={"speculative": {"minReplicas": 3}}))
        wait_targets(service, 3, 1)
        move = wait_done(service, moves + 1)
        service.wait(lambda: service.ready(3, 1), 30, "3+1 replicas")
    load.check()
    after = all_ids(service)
    assert ("plain", "speculative", 1, "bounds") == (
        move["from"],
        move["to"],
        move["count"],
        move["reason"],
    )
    assert before["speculative"] < after["speculative"]
    assert after["plain"] < before["plain"]


@pytest.mark.long
def test_a_lowered_maximum_drains(service: Service) -> None:
    """Case C7: the replica that goes finishes its streams first; the other pool gets its place."""
    before, moves = all_ids(service), newest(service.status())
    body = chat("Tell a story", max_tokens=400, ignore_eos=True, stream_options={"include_usage": True})
    with light(service) as load:
        streams = [Stream(service, body, {"x-twinpool-pool": "speculative"}) for _ in range(6)]
        for stream in streams:
            assert stream.began.wait(20)
        assert before["speculative"] == {stream.headers["x-twinpool-replica"] for stream in streams}
        edit(service, text(1, 3, pools={"speculative": {"maxReplicas": 1}}))
        wait_targets(service, 1, 3)
        for stream in streams:
            assert stream.join(60).complete, (stream.errors, stream.fault)
            assert 400 == stream.tokens
        wait_done(service, moves + 1)
        service.wait(lambda: service.ready(1, 3), 30, "1+3 replicas")
    load.check(records=False)
    after = all_ids(service)
    assert after["speculative"] < before["speculative"]
    assert before["plain"] < after["plain"]


@pytest.mark.long
def test_the_budget_is_raised_and_lowered_live(service: Service) -> None:
    """Case C7: four to five replicas and back; whoever stays is not restarted."""
    before, moves = all_ids(service), newest(service.status())
    with light(service) as load, Lookout(service, budget=5, least=ONE_EACH) as lookout:
        edit(service, text(most=5))
        wait_done(service, moves + 1)
        service.wait(lambda: 5 == sum(map(len, all_ids(service).values())), 30, "a fifth replica")
        grown = all_ids(service)
        assert 5 == service.status()["budget"]["accelerators"]
        edit(service, text(most=4))
        wait_done(service, moves + 2)
        service.wait(lambda: 4 == service.status()["budget"]["used"], 30, "four replicas")
    load.check()
    lookout.check()
    shrunk = all_ids(service)
    for role in ROLES:
        assert before[role] <= grown[role]
        assert shrunk[role] <= grown[role]


@pytest.mark.long
def test_an_old_text_is_a_new_revision(service: Service) -> None:
    """A rollback: the text of a former revision, written back, acts under the next number."""
    first = policy_of(service)["active_revision"]
    edit(service, text(overload={"retryAfterSeconds": 11}))
    kept = service.get(f"/admin/policy/{first}").json()
    assert (first, "superseded", text()) == (kept["revision"], kept["state"], kept["text"])
    after = seen_after(service, lambda: service.policy_file.write_text(kept["text"]))
    assert (first + 2, first + 2, "active", kept["sha"]) == (
        after["active_revision"],
        after["seen_revision"],
        after["state"],
        after["sha"],
    )
    history = service.get("/admin/policy").json()["history"]
    assert [first + 2, first + 1, first] == [one["revision"] for one in history[:3]]


@pytest.mark.long
def test_a_shadow_is_recorded_and_does_not_act(service: Service) -> None:
    """What it would do is in the status and in the audit; the last enforced revision acts on."""
    active, replicas = policy_of(service)["active_revision"], all_ids(service)
    shade = text(3, 1, mode="shadow", pools={"speculative": {"minReplicas": 3}})
    with light(service) as load, watching(service) as lookout:
        found = seen_after(service, lambda: service.policy_file.write_text(shade))
        assert ("shadow", active, found["seen_revision"]) == (
            found["state"],
            found["active_revision"],
            found["shadow_revision"],
        )
        service.wait(lambda: service.status()["shadow_decision"] is not None, 5, "the shadow's decision")
        time.sleep(2.0)
        assert "bounds" == service.status()["shadow_decision"]["reason"]
    load.check()
    lookout.check()
    assert replicas == all_ids(service)
    lines = [
        line for line in audit(service, "shadow") if line["decision"]["revision"] == found["seen_revision"]
    ]
    assert {"speculative": 3, "plain": 1} == lines[0]["decision"]["targets"]
    after = seen_after(service, lambda: service.policy_file.write_text(text()))
    assert ("active", None) == (after["state"], after["shadow_revision"])


# --- bad edits ---------------------------------------------------------------------------------------


def audit(service: Service, kind: str) -> list[Record]:
    return [line for line in read(service.state_dir, "audit") if line["kind"] == kind]


def named(bad: list[BadEdit], names: tuple[str, ...]) -> list[BadEdit]:
    found = {one.name: one for one in bad}
    return [found[name] for name in names]


def refuse(service: Service, bad: BadEdit, active: int) -> int:
    """Write a bad text, have it seen and refused; returns its revision."""
    found = seen_after(service, lambda: service.policy_file.write_text(bad.text, encoding="utf-8"))
    assert ("refused", active) == (found["state"], found["active_revision"]), bad.name
    error = found["last_error"]
    assert {"message", "line", "field"} == set(error), bad.name
    assert error["message"], bad.name
    assert error["line"] >= 1, bad.name
    assert targets(service.status()) == TWO_EACH, bad.name
    revision: int = found["seen_revision"]
    return revision


def problems_of(service: Service, revision: int) -> list[dict[str, Any]]:
    """The problems of a refused revision, by the audit."""
    (line,) = (line for line in audit(service, "policy") if line["revision"]["revision"] == revision)
    assert "refused" == line["revision"]["state"]
    found: list[dict[str, Any]] = line["problems"]
    return found


def controller_log(service: Service) -> str:
    """What the controller has logged."""
    found = re.search(r"logs: (\S+)", service.words())
    assert found is not None
    logs = [path for path in Path(found[1]).rglob("*controller*") if path.is_file()]
    return "".join(path.read_text(errors="replace") for path in logs)


def test_bad_edits_change_nothing(service: Service) -> None:
    """Case C10, and C9 for minimum above maximum: each is seen and refused, and the last good one acts on."""
    refuse_all(service, named(BAD_EDITS, LIVE_BAD)[::4])


@pytest.mark.long
@pytest.mark.timeout(300)
def test_every_bad_edit_changes_nothing(service: Service) -> None:
    """Case C10: the same with the whole list, which is longer than 25."""
    edits = named(BAD_EDITS, LIVE_BAD)
    assert len(edits) >= 25
    refuse_all(service, edits)


def refuse_all(service: Service, edits: Sequence[BadEdit]) -> None:
    """Each of the edits is refused under load with its line and field, and a good one is taken after them."""
    before, replicas = policy_of(service), all_ids(service)
    with light(service) as load, watching(service) as lookout:
        began = time.monotonic()
        revisions = [refuse(service, bad, before["active_revision"]) for bad in edits]
        took = time.monotonic() - began
        assert accepted(service) is False
        good = text(overload={"retryAfterSeconds": 4})
        after = seen_after(service, lambda: service.policy_file.write_text(good))
    load.check()
    lookout.check()
    print(f"\n{len(edits)} bad edits were refused in {took:.0f} s")
    assert replicas == all_ids(service)
    assert ("active", revisions[-1] + 1, None) == (
        after["state"],
        after["active_revision"],
        after["last_error"],
    )
    assert accepted(service) is True
    assert len(edits) == after["refused"] - before["refused"]
    log = controller_log(service)
    for bad, revision in zip(edits, revisions, strict=True):
        found = [
            problem["message"]
            for problem in problems_of(service, revision)
            if (problem["line"], problem["field"]) == (bad.line, bad.field or None)
        ]
        assert any(bad.message_part in message for message in found), (bad.name, found)
        assert f"policy revision {revision} is refused: line " in log, bad.name


@pytest.mark.long
def test_what_this_service_cannot_obey_is_refused(service: Service) -> None:
    """Case C9: a running controller refuses what is beyond its ceiling, its floors, or too large a cut."""
    before, replicas = policy_of(service), all_ids(service)
    with light(service) as load, watching(service) as lookout:
        for bad in BAD_FOR_WORLD:
            old, new = FOR_FIVE.get(bad.name, ("", ""))
            own = BadEdit(bad.name, bad.text.replace(old, new) if old else bad.text, bad.line, bad.field, "")
            revision = refuse(service, own, before["active_revision"])
            places = [(one["line"], one["field"]) for one in problems_of(service, revision)]
            assert (bad.line, bad.field) in places, (bad.name, places)
    load.check()
    lookout.check()
    assert replicas == all_ids(service)


@pytest.mark.long
def test_half_a_file_is_refused_and_then_completed(service: Service) -> None:
    """Case C10: an editor that stops in the middle changes nothing; the rest of the file makes it good."""
    active = policy_of(service)["active_revision"]
    whole = text(overload={"retryAfterSeconds": 13})
    middle = whole.index("pools:")
    with light(service) as load, watching(service) as lookout:
        found = seen_after(service, lambda: service.policy_file.write_text(whole[:middle]))
        assert ("refused", active) == (found["state"], found["active_revision"])

        def complete() -> None:
            with service.policy_file.open("a") as file:
                file.write(whole[middle:])

        found = seen_after(service, complete)
        assert ("active", found["seen_revision"], None) == (
            found["state"],
            found["active_revision"],
            found["last_error"],
        )
    load.check()
    lookout.check()


@pytest.mark.long
def test_a_deleted_file_keeps_the_last_good_policy(service: Service) -> None:
    """Case C10: the condition says so; the file's return ends it."""
    active, replicas = policy_of(service)["active_revision"], all_ids(service)
    with light(service) as load, watching(service) as lookout:
        found = seen_after(service, service.policy_file.unlink)
        assert (active, "refused") == (found["active_revision"], found["state"])
        assert "the file is gone" in found["last_error"]["message"]
        assert accepted(service) is False
        edit(service, text())
        assert accepted(service) is True
    load.check()
    lookout.check()
    assert replicas == all_ids(service)


@pytest.mark.long
def test_a_mounted_config_map(tmp_path: Path) -> None:
    """Case C10: good and bad files swapped in as the kubelet does it, and a mount that loses its data."""
    mount = ConfigMapMount(tmp_path / "config-map")
    mount.publish({"policy.yaml": text(1, 1, most=2)})
    folder = tmp_path / "service"
    folder.mkdir()
    with Service(folder, settings(slots=2) | {"policy": str(mount.folder)}) as service:
        service.wait(lambda: service.ready(1, 1), 30, "both replicas")
        replicas = all_ids(service)
        assert (1, str(mount.folder)) == (policy_of(service)["active_revision"], policy_of(service)["path"])
        lookout = Lookout(service, budget=2, least={"speculative": 1, "plain": 1})
        with light(service) as load, lookout:
            good = text(1, 1, most=2, overload={"retryAfterSeconds": 3})
            began = time.monotonic()
            found = seen_after(service, lambda: mount.publish({"policy.yaml": good}))
            assert time.monotonic() - began <= LIVE_S
            assert (2, "active") == (found["active_revision"], found["state"])
            found = seen_after(service, lambda: mount.publish({"policy.yaml": good[:60]}))
            assert (2, "refused") == (found["active_revision"], found["state"])
            found = seen_after(service, lambda: mount.publish({"policy.yaml": text(1, 1, most=2)}))
            assert (4, "active") == (found["active_revision"], found["state"])
            found = seen_after(service, mount.lose_data)
            assert (4, "refused") == (found["active_revision"], found["state"])
            assert accepted(service) is False
            found = seen_after(service, lambda: mount.publish({"policy.yaml": good}))
            assert (6, "active") == (found["active_revision"], found["state"])
        load.check()
        lookout.check()
        assert replicas == all_ids(service)


@pytest.mark.long
def test_applied_through_kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case C10: `twinpool policy apply` brings a good file to a service, and tells a refusal."""
    cluster = Cluster(tmp_path / "cluster")
    cluster.install(text(1, 1, most=2))
    monkeypatch.setenv("PATH", cluster.path)
    folder = tmp_path / "service"
    folder.mkdir()
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(text(1, 1, most=2, overload={"retryAfterSeconds": 3}), encoding="utf-8")
    bad.write_text(text(1, 1, most=9), encoding="utf-8")
    with Service(folder, settings(slots=2) | {"policy": str(cluster.mount)}) as service:
        service.wait(lambda: service.ready(1, 1), 30, "both replicas")
        replicas = all_ids(service)
        lookout = Lookout(service, budget=2, least=ONE_EACH)
        with light(service) as load, lookout:
            done = run("policy", "apply", str(good), "--yes", "--timeout", "30s", url=service.url)
            assert (0, "revision 2 is active") == (done.exit_code, done.stdout.splitlines()[-1]), done.output
            done = run("policy", "apply", str(bad), "--yes", "--timeout", "30s", url=service.url)
            assert 1 == done.exit_code
            assert "spec.budget.max: is 9, but this service has 2 accelerators" in done.stderr
        load.check()
        lookout.check()
        assert (2, "refused") == (policy_of(service)["active_revision"], policy_of(service)["state"])
        assert replicas == all_ids(service)
