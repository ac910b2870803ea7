"""Reports to a controller that is a plain function."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from autoscaling.types import FinishedRequest, ReplicaReport
from deployments.reporting import Reporter
from tests.autoscaling.reports import finished_request, report


def make(seq: int, finished: tuple[FinishedRequest, ...]) -> ReplicaReport:
    return report("a", seq, finished=finished)


class Controller:
    """Takes reports, or does what `answer` says."""

    def __init__(self) -> None:
        self.reports: list[dict[str, Any]] = []
        self.answer: str | Exception | None = "taken"  # None: never answers
        self.open = 0
        self.most_open = 0

    async def __call__(self, sent: dict[str, Any]) -> str:
        self.reports.append(sent)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            await asyncio.sleep(0)
            if self.answer is None:
                await asyncio.sleep(3600)
            if isinstance(self.answer, Exception):
                raise self.answer
            return str(self.answer)
        finally:
            self.open -= 1

    @property
    def finished(self) -> list[list[str]]:
        return [[record["request_id"] for record in sent["finished"]] for sent in self.reports]


async def test_each_report_has_the_next_number() -> None:
    """The sequence grows by one, also over a failure, and a report travels as plain values."""
    controller = Controller()
    reporter = Reporter(make, controller)
    assert await reporter.push()
    controller.answer = ConnectionError("away")
    assert not await reporter.push()
    controller.answer = "taken"
    assert await reporter.push()
    assert [sent["seq"] for sent in controller.reports] == [1, 2, 3]
    assert controller.reports[0]["state"] == "running"
    assert reporter.failures == 1


async def test_delivery_is_remembered() -> None:
    """Unknown until the controller took a report; a failure does not renew it."""
    controller = Controller()
    controller.answer = RuntimeError("away")
    reporter = Reporter(make, controller)
    await reporter.push()
    assert reporter.delivered_at is None
    controller.answer = "taken"
    before = time.monotonic()
    await reporter.push()
    assert reporter.delivered_at is not None
    assert before <= reporter.delivered_at <= time.monotonic()
    first = reporter.delivered_at
    controller.answer = RuntimeError("away")
    await reporter.push()
    assert reporter.delivered_at == first


async def test_a_controller_that_hangs_costs_a_second() -> None:
    """No report waits longer than a second, and the call is given up."""
    controller = Controller()
    controller.answer = None
    reporter = Reporter(make, controller)
    began = time.monotonic()
    assert not await reporter.push()
    assert 0.9 <= time.monotonic() - began < 1.9
    assert (controller.open, reporter.failures) == (0, 1)


async def test_one_in_flight() -> None:
    """Reports wait for each other; none overtakes another."""
    controller = Controller()
    reporter = Reporter(make, controller)
    await asyncio.gather(*(reporter.push() for _ in range(5)))
    assert controller.most_open == 1
    assert [sent["seq"] for sent in controller.reports] == [1, 2, 3, 4, 5]


async def test_finished_records_are_sent_until_taken() -> None:
    """A record goes along with each report until one was taken, and then never again."""
    controller = Controller()
    reporter = Reporter(make, controller)
    reporter.finished(finished_request("1"))
    controller.answer = ConnectionError("away")
    await reporter.push()
    reporter.finished(finished_request("2"))
    await reporter.push()
    controller.answer = "taken"
    await reporter.push()
    reporter.finished(finished_request("3"))
    await reporter.push()
    await reporter.push()
    assert controller.finished == [["1"], ["1", "2"], ["1", "2"], ["3"], []]


@pytest.mark.parametrize("answer", ["old", "gone", "schema", "None", ""])
async def test_only_taken_is_taken(answer: str) -> None:
    """A controller that answers anything else has not taken the records."""
    controller = Controller()
    reporter = Reporter(make, controller)
    reporter.finished(finished_request("1"))
    controller.answer = answer
    assert not await reporter.push()
    assert (reporter.delivered_at, reporter.failures) == (None, 1)
    controller.answer = "taken"
    assert await reporter.push()
    assert controller.finished == [["1"], ["1"]]


async def test_a_record_that_comes_during_a_report_goes_with_the_next() -> None:
    """What finished while a report was on its way is neither lost nor sent twice."""
    controller = Controller()
    reporter = Reporter(make, controller)
    reporter.finished(finished_request("1"))
    pushing = asyncio.create_task(reporter.push())
    await asyncio.sleep(0)
    reporter.finished(finished_request("2"))
    await pushing
    await reporter.push()
    await reporter.push()
    assert controller.finished == [["1"], ["2"], []]


async def test_equal_records_are_different_requests() -> None:
    """Two requests with the same id are two records."""
    controller = Controller()
    reporter = Reporter(make, controller)
    reporter.finished(finished_request("1"))
    reporter.finished(finished_request("1"))
    await reporter.push()
    await reporter.push()
    assert controller.finished == [["1", "1"], []]


async def test_records_are_bounded() -> None:
    """While the controller is away the newest 512 records are kept."""
    controller = Controller()
    reporter = Reporter(make, controller)
    for number in range(600):
        reporter.finished(finished_request(str(number)))
    await reporter.push()
    assert controller.finished == [[str(number) for number in range(88, 600)]]


async def test_records_that_overflow_during_a_report() -> None:
    """When the oldest fall out while they are on their way, the others are still sent exactly once."""
    controller = Controller()
    release = asyncio.Event()

    async def slow(sent: dict[str, Any]) -> str:
        await release.wait()
        return await controller(sent)

    reporter = Reporter(make, slow)
    for number in range(512):
        reporter.finished(finished_request(str(number)))
    pushing = asyncio.create_task(reporter.push())
    await asyncio.sleep(0)
    for number in range(512, 522):
        reporter.finished(finished_request(str(number)))
    release.set()
    await pushing
    await reporter.push()
    await reporter.push()
    first, second, third = controller.finished
    assert first == [str(number) for number in range(512)]
    assert second == [str(number) for number in range(512, 522)]
    assert third == []


async def test_a_report_that_cannot_be_made_does_not_end_reporting() -> None:
    """A fault in reading the engine's numbers is a failed report, and the next one is tried."""
    controller = Controller()
    faults = iter([True])

    def sometimes(seq: int, finished: tuple[FinishedRequest, ...]) -> ReplicaReport:
        if next(faults, False):
            raise RuntimeError("no numbers")
        return make(seq, finished)

    reporter = Reporter(sometimes, controller)
    assert not await reporter.push()
    assert await reporter.push()
    assert (reporter.failures, [sent["seq"] for sent in controller.reports]) == (1, [2])


async def test_it_reports_from_start_to_stop() -> None:
    """The first report leaves at once, and none after `stop`, which is allowed without `start`."""
    controller = Controller()
    reporter = Reporter(make, controller)
    await reporter.stop()
    reporter.start()
    async with asyncio.timeout(5):
        while not controller.reports:
            await asyncio.sleep(0)
    await reporter.stop()
    count = len(controller.reports)
    await asyncio.sleep(0.05)
    assert (len(controller.reports), controller.open) == (count, 0)


async def test_a_second_apart() -> None:
    """One report a second, not more."""
    controller = Controller()
    reporter = Reporter(make, controller)
    reporter.start()
    await asyncio.sleep(1.3)
    await reporter.stop()
    assert [sent["seq"] for sent in controller.reports] == [1, 2]


async def test_stop_does_not_wait_for_a_hung_controller() -> None:
    """A call on its way is given up."""
    controller = Controller()
    controller.answer = None
    reporter = Reporter(make, controller)
    reporter.start()
    async with asyncio.timeout(5):
        while not controller.reports:
            await asyncio.sleep(0)
    began = time.monotonic()
    await reporter.stop()
    assert time.monotonic() - began < 0.9
    assert controller.open == 0
