"""The controller deployment without Ray: what it takes from replicas and ingresses of another version."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from autoscaling.request_line import Outcome, RequestLine
from autoscaling.routing_rules import RoutingRules
from autoscaling.types import IngressLoad, Role, Snapshot, Tier
from deployments import serve_internals
from deployments.config import ControllerSettings
from deployments.controller import Controller
from deployments.record_reader import read
from deployments.state_store import DirectoryStore
from tests.autoscaling.reports import finished_request, report
from tests.autoscaling.request_lines import line
from tests.autoscaling.request_lines import load as request_load
from tests.autoscaling.request_lines import record as request_record
from tests.deployments.control_world import controller_settings
from tests.policies import policy


class Living(Controller):
    """Ended by the test: Serve awaits `__del__`, Python does not."""

    def __del__(self) -> None:  # type: ignore[override]
        """Nothing."""


@asynccontextmanager
async def living(settings: ControllerSettings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Controller]:
    """One whose Ray Serve knows no application."""
    ((key, value),) = settings.to_env().items()
    monkeypatch.setenv(key, value)
    monkeypatch.setattr(serve_internals, "details", dict)
    found = Living.__new__(Living)
    await Controller.__init__(found)
    yield found
    await Controller.__del__(found)


@pytest.fixture
async def controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Controller]:
    """One with a state and nothing else."""
    async with living(controller_settings(tmp_path / "state"), monkeypatch) as found:
        yield found


def sent(replica_id: str = "a", seq: int = 1, **fields: Any) -> dict[str, Any]:
    """A report as it travels."""
    found: dict[str, Any] = msgspec.to_builtins(report(replica_id, seq)) | fields
    return found


def load(**fields: Any) -> dict[str, Any]:
    """An ingress's word as it travels."""
    found: dict[str, Any] = msgspec.to_builtins(IngressLoad({Role.PLAIN: 3}, {Role.PLAIN: 0})) | fields
    return found


async def test_unknown_fields_are_ignored(controller: Controller) -> None:
    """A report, a load and a snapshot of a newer version of the same schema are understood."""
    assert "taken" == await controller.report(sent(news={"deep": [1]}))
    found = await controller.snapshot("ingress", load(news=1))
    snapshot = msgspec.convert(found | {"news": 1}, Snapshot)
    assert ["a"] == [view.replica_id for view in snapshot.replicas]
    assert {} == (await controller.status())["dropped_reports"]


@pytest.mark.parametrize(
    "message",
    [
        sent(schema=2),
        {"schema": 2, "who": "a"},  # of a shape that nobody knows
        {"replica_id": "a"},
        sent(schema=None),
    ],
)
async def test_an_unknown_schema_is_dropped_and_counted(
    controller: Controller, message: dict[str, Any]
) -> None:
    """Whatever it looks like; what was known before stays."""
    assert "taken" == await controller.report(sent())
    assert ["schema", "schema"] == [await controller.report(message) for _ in range(2)]
    found = await controller.status()
    assert {"schema": 2} == found["dropped_reports"]
    assert ["a"] == [replica["id"] for replica in found["pools"]["plain"]["replicas"]]


async def test_a_load_of_an_unknown_schema_says_nothing(controller: Controller) -> None:
    """The ingress still gets its snapshot, and demand stays unknown."""
    for message in (load(schema=2), {"schema": 2}, None):
        found = await controller.snapshot("ingress", message)
        assert 1 == found["ingresses"]
    assert controller._loop.demand.wanted(Role.PLAIN, 0.0) is None


async def test_old_and_late_reports_are_counted(controller: Controller) -> None:
    """Each by what became of it."""
    assert ["taken", "old", "old"] == [await controller.report(sent(seq=seq)) for seq in (5, 5, 4)]
    assert ["taken", "gone"] == [
        await controller.report(sent(seq=seq, state=state)) for seq, state in ((6, "stopped"), (7, "running"))
    ]
    assert {"old": 2, "gone": 1} == (await controller.status())["dropped_reports"]


async def test_finished_requests_count_once(controller: Controller) -> None:
    """A record that is reported again is the same request."""
    records = [msgspec.to_builtins(finished_request(name)) for name in ("r1", "r2")]
    await controller.report(sent(seq=1, finished=records[:1]))
    await controller.report(sent(seq=2, finished=records))
    assert {"requests": 2, "prompt_tokens": 10, "generated_tokens": 14} == (await controller.status())[
        "finished"
    ]


async def test_an_ingress_of_a_higher_epoch_is_overtaken(controller: Controller) -> None:
    """A controller whose clock was set back rises above what an ingress holds."""
    first = (await controller.snapshot("ingress", load()))["epoch"]
    assert first == (await controller.snapshot("ingress", load(epoch=first)))["epoch"]
    assert first + 8 == (await controller.snapshot("ingress", load(epoch=first + 7)))["epoch"]


async def test_before_serve_is_seen(controller: Controller) -> None:
    """No plan, nobody is admitted, and what is unknown is None; orders are taken."""
    assert {} == await controller.record_autoscaling_stats()
    assert await controller.admit() is False
    found = await controller.status()
    assert (None, None) == (found["pools"]["plain"]["target"], found["pools"]["plain"]["running"])
    assert found["last_decision"] is None
    assert 200 == (await controller.command("hold", {"reason": "launch", "who": "ann"}))["status"]
    assert 404 == (await controller.command("freeze", {}))["status"]


async def test_a_snapshot_carries_the_policys_rules(controller: Controller) -> None:
    """Also before Serve was seen: those of the policy, with what the engines measured of late."""
    await controller.report(sent(finished=[msgspec.to_builtins(finished_request(str(n))) for n in range(20)]))
    routing = msgspec.convert(await controller.snapshot("ingress"), Snapshot).routing
    assert routing is not None
    standard = replace(RoutingRules().tiers[Tier.STANDARD], ttft_s=15, tpot_s=0.4)
    assert (standard, "unmeasured") == (routing.tiers[Tier.STANDARD], routing.limits_from)
    assert (7.0, None) == (
        routing.speeds[Role.PLAIN].answer_tokens,
        routing.speeds[Role.SPECULATIVE].ttft_p50_s,
    )


async def test_a_stopping_service_says_so(controller: Controller) -> None:
    """In every snapshot from then on."""
    await controller.stop_taking()
    assert (await controller.snapshot("ingress"))["stopping"] is True


async def test_open_requests(controller: Controller) -> None:
    """Summed over the newest reports."""
    await controller.report(sent("a", inflight=3))
    await controller.report(sent("b", inflight=4))
    assert 7 == await controller.open_requests()


async def test_a_controller_that_was_succeeded_is_not_healthy(controller: Controller, tmp_path: Path) -> None:
    """It decides nothing more: Serve has to replace it; before that it is healthy."""
    await controller.check_health()
    DirectoryStore(tmp_path / "state").open()
    await controller.command("hold", {"reason": "launch", "who": "ann"})
    with pytest.raises(RuntimeError, match=r"to be replaced: .* belongs to the controller of epoch"):
        await controller.check_health()


async def test_a_load_beyond_every_number_is_bounded(controller: Controller) -> None:
    """The snapshot is answered, and demand is a number that a float can hold."""
    await controller.snapshot("ingress", load(wanted={"plain": 10**400, "speculative": -3}))
    now = time.monotonic()
    demand = controller._loop.demand
    assert (2**53, 0) == (demand.wanted(Role.PLAIN, now), demand.wanted(Role.SPECULATIVE, now))


# --- requests


async def ended(controller: Controller, *lines: RequestLine, **more: Any) -> dict[str, Any]:
    """Poll as an ingress that reports these lines."""
    found = msgspec.to_builtins(request_load(*lines, **more))
    return await controller.snapshot("ingress", found)


async def test_a_request_is_joined_and_judged(controller: Controller) -> None:
    """Line by a poll, tokens by a report, both repeated; then `why`, status and metrics have it, once."""
    records = [msgspec.to_builtins(request_record(1))]
    for seq in (1, 2):
        await controller.report(sent(seq=seq, finished=records, inflight=4))
        await ended(controller, line(1), waiting={Tier.BATCH: 3})
    found = (await controller.command("why", {"kind": "request", "id": "req-1"}))["body"]["record"]
    assert ("req-1-abc", 9, 0.5, 0.0625) == (
        found["engine_id"],
        found["generated_tokens"],
        found["ttft_s"],
        found["tpot_s"],
    )
    tiers = (await controller.status())["tiers"]
    nothing = dict.fromkeys(("attainment", "ttft_p95_seconds", "tpot_p95_seconds"))
    assert {
        "interactive": nothing | {"queued": 0},
        "standard": nothing | {"attainment": 1.0, "queued": 0},
        "batch": nothing | {"queued": 3},
    } == tiers
    metrics = (await controller.metrics()).splitlines()
    for expected in (
        'twinpool_requests_total{outcome="ok",tier="standard"} 1.0',
        'twinpool_routes_total{pool="plain",reason="tier_standard"} 1.0',
        'twinpool_inflight_sequences{pool="plain"} 4.0',
        'twinpool_waiting_sequences{tier="batch"} 3.0',
    ):
        assert expected in metrics


async def test_objectives_are_the_policys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request is judged by its tier's objectives of the policy in force."""
    text = policy(2, 2, objectives={"standard": {"ttftSeconds": 0.4}})
    (tmp_path / "policy.yaml").write_text(text, encoding="utf-8")
    settings = controller_settings(tmp_path / "state", policy=str(tmp_path / "policy.yaml"))
    async with living(settings, monkeypatch) as controller:
        seen = controller._loop._ports.poll()
        assert seen is not None
        await controller._loop._judge(seen, time.time())
        await ended(controller, line(1, outcome=Outcome.CANCELLED, attempts=0, pool=None))
        found = (await controller.command("why", {"kind": "request", "id": "req-1"}))["body"]["record"]
        assert ({"ttft_s": 0.4, "tpot_s": None}, "missed") == (found["objective"], found["verdict"])
        assert 0.0 == (await controller.status())["tiers"]["standard"]["attainment"]


async def test_a_line_of_another_version_costs_no_snapshot(controller: Controller) -> None:
    """It is counted as lost; those beside it are taken, whatever they have more."""
    message: dict[str, Any] = msgspec.to_builtins(
        request_load(line(1, outcome=Outcome.SHED), line(2, outcome=Outcome.SHED))
    )
    message["lines"][0]["outcome"] = "evaporated"
    message["lines"][1]["news"] = 1
    assert 1 == (await controller.snapshot("ingress", message))["ingresses"]
    metrics = await controller.metrics()
    assert 'twinpool_requests_total{outcome="shed",tier="standard"} 1.0' in metrics
    assert "twinpool_request_lines_dropped_total 1.0" in metrics


async def test_a_load_of_another_version_costs_no_snapshot(controller: Controller) -> None:
    """Unknown tiers and roles and null counters are left out; what is understood of the rest counts."""
    message: dict[str, Any] = msgspec.to_builtins(request_load(waiting={Tier.BATCH: 3})) | {
        "wanted": {"plain": 2, "prefill": 7},
        "refused": None,
        "lines_dropped": None,
    }
    message["waiting"]["background"] = 1
    assert 1 == (await controller.snapshot("ingress", message))["ingresses"]
    assert 'twinpool_waiting_sequences{tier="batch"} 3.0' in await controller.metrics()
    assert 2 == controller._loop.demand.wanted(Role.PLAIN, time.monotonic())


async def test_requests_are_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line once, when the controller ends at the latest, also one that waits for its record."""
    settings = controller_settings(tmp_path / "state", record_dir=str(tmp_path / "records"))
    async with living(settings, monkeypatch) as controller:
        for _ in range(2):
            await ended(controller, line(1, outcome=Outcome.SHED), line(2, outcome=Outcome.SHED), line(3))
    written = list(read(tmp_path / "records", "requests"))
    assert [("request", "req-1"), ("request", "req-2"), ("request", "req-3")] == [
        (one["kind"], one["request"]["id"]) for one in written
    ]
    assert ("shed", "standard", None) == tuple(
        written[0]["request"][name] for name in ("outcome", "tier", "generated_tokens")
    )


async def test_a_disk_without_room_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that cannot be written are gone, and nothing else stops; the state is not affected."""
    (tmp_path / "records").write_text("a file where the folder should be", encoding="utf-8")
    settings = controller_settings(tmp_path / "state", record_dir=str(tmp_path / "records"))
    async with living(settings, monkeypatch) as controller:
        await ended(controller, line(1, outcome=Outcome.SHED))
        await controller._ledger.keep()
        assert "twinpool_request_records_lost_total 1.0" in await controller.metrics()
        await ended(controller, line(2, outcome=Outcome.SHED))
        assert "twinpool_request_records_lost_total 1.0" in await controller.metrics()
