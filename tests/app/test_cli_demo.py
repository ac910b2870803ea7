"""`twinpool demo` as it is run: what it refuses, what it measures, and what it prints where."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from typing import Any

import pytest
from aiohttp import web
from rich.console import Console

from app.cli.demo import explain, measured
from app.demo.answers import Objective
from app.demo.run import Ended
from app.demo.stops import Stops
from autoscaling.types import Tier
from tests.app.canned import NOWHERE, run
from tests.app.demo.fake import STATUS, Fake, serving_in_thread, whole

NOT_READY: dict[str, Any] = {
    "error": {
        "message": "The service is not ready",
        "type": "server_error",
        "param": None,
        "code": "not_ready",
    }
}


def measure(fake: Fake, seconds: float = 0.4) -> tuple[Any, str]:
    """A short run and its lines of progress."""
    console = Console(width=200, color_system=None, force_terminal=False)
    with serving_in_thread(fake), console.capture() as capture:
        found = measured(fake.url, seconds, 1, console, Stops())
    return found, capture.get()


def test_a_run_is_measured_from_the_first_look_to_the_verdicts() -> None:
    """The size by the service, the objectives by its policy, a verdict for each tier."""
    found, _ = measure(Fake())

    assert (Ended.COMPLETE, 0) == (found.ended, found.exit_code)
    assert {Tier.INTERACTIVE: 2, Tier.STANDARD: 4, Tier.BATCH: 3} == found.load.streams
    assert Objective(30.0, 30.0) == found.objectives[Tier.INTERACTIVE]
    assert Objective(None, None) == found.objectives[Tier.BATCH]
    assert ["standard", "batch"] == [one.tier.value for one in found.verdicts[1:]]
    assert found.shares_cores
    assert found.slowest is not None
    assert found.slowest.id.startswith("demo-1-")


def test_progress_says_size_and_phases() -> None:
    """One line of what is sent, and one for each phase that is seen, in order."""
    fake = Fake()
    _, lines = measure(fake)
    seen = re.findall(r"^(\d) of 4, ", lines, re.MULTILINE)

    assert lines.splitlines()[0] == (
        f"{fake.url}: 1 speculative, 1 plain; open at once: interactive 2, standard 4, batch 3"
    )
    assert "1 of 4, quiet, 0 s left: one copying task on each pool in turn" in lines
    assert seen == sorted(set(seen))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_prints_what_was_measured(number: signal.Signals) -> None:
    """The document alone on standard output, the progress on standard error, and exit code 130."""
    child: list[subprocess.Popen[str]] = []
    sent: list[signal.Signals] = []

    async def generate(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        answer = await whole(request, body)
        if request.path == "/v1/chat/completions" and not sent:
            sent.append(number)
            child[0].send_signal(number)
        return answer

    with serving_in_thread(Fake(generate)) as fake:
        command = [sys.executable, "-m", "app.cli.main", "demo", "--json", "--seconds", "20"]
        child.append(
            subprocess.Popen(
                [*command, "--url", fake.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        )
        out, err = child[0].communicate(timeout=60)

    found = json.loads(out)
    assert (130, 130, "interrupted") == (child[0].returncode, found["exit_code"], found["ended"])
    assert found["copying_task"]["answers"]["plain"] > 0
    assert "1 of 4, quiet, 20 s left" in err


def test_the_slowest_interactive_request_is_explained() -> None:
    """While the service is there: it may be the demo's own, and gone at the end."""
    console = Console(width=200, color_system=None, force_terminal=False)
    with serving_in_thread(Fake()) as fake, console.capture() as capture:
        report = measured(fake.url, 0.4, 1, console, Stops())
        explain(fake.url, report, console)
    words = capture.get().splitlines()
    at = words.index("the slowest interactive request, as `twinpool why` tells it:")
    assert report.slowest is not None
    assert words[at + 1].startswith(f"  request {report.slowest.id}")


def test_objectives_that_cannot_be_read_leave_no_verdict() -> None:
    """Unknown is not `none set`: it cannot be told whether a tier met its objective."""
    fake = Fake()
    fake.policy = None
    found, _ = measure(fake)

    assert dict.fromkeys(Tier) == found.objectives
    assert 2 == found.exit_code
    assert all("could not be read" in one.words for one in found.verdicts)


def test_nobody_answers() -> None:
    """Exit code 2, and how to start a service."""
    result = run("demo", url=NOWHERE)

    assert 2 == result.exit_code
    assert f"error: no answer from {NOWHERE}" in result.stderr
    assert "mend: start the service with `twinpool serve`" in result.stderr


def test_a_service_that_is_not_ready_is_not_measured() -> None:
    """Exit code 2, in the service's own words."""
    fake = Fake()
    fake.status, fake.ready = STATUS | {"ready": False}, (503, NOT_READY)
    with serving_in_thread(fake):
        result = run("demo", url=fake.url)

    assert 2 == result.exit_code
    assert f"error: the service at {fake.url} is not ready: The service is not ready" in result.stderr
    assert [] == fake.asked


def test_a_service_that_answers_is_used_also_with_serve() -> None:
    """No other one is started beside it."""
    fake = Fake()
    fake.ready = (503, NOT_READY)
    with serving_in_thread(fake):
        result = run("demo", "--serve", "--url", fake.url)

    assert 2 == result.exit_code
    assert "starting one for the demo" not in result.output


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("--engine is of the service that --serve starts", ["--engine", "vllm"]),
        ("--engine is vllm or simulated, not tpu", ["--serve", "--engine", "tpu"]),
        ("-o is text or json, not yaml", ["-o", "yaml"]),
        ("Invalid value for '--seconds'", ["--seconds", "19"]),
        ("Invalid value for '--seed'", ["--seed", "-1"]),
    ],
)
def test_wrong_usage_sends_nothing(words: str, arguments: list[str]) -> None:
    """Exit code 2, and what would be right."""
    result = run("demo", *arguments, url=NOWHERE)

    assert 2 == result.exit_code
    assert words in result.stderr


def test_help_says_the_exit_codes() -> None:
    """And every option."""
    result = run("demo", "--help")

    assert 0 == result.exit_code
    assert "Exit codes: 0 every tier met its objective" in result.output
    assert {"--seconds", "--seed", "--serve", "--engine", "--output", "--json", "--url"} <= set(
        re.findall(r"--[a-z]+", result.output)
    )
