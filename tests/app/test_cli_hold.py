"""`twinpool hold`, `release` and `override`: what is asked of the service, and what the operator reads."""

from __future__ import annotations

import getpass
import json
from typing import Any

import pytest

from tests.app.canned import NOWHERE, refusal, run, serving

SINCE = "2026-03-01T10:00:00+00:00"
HOLD = {"by": "operator", "reason": "load test", "since": SINCE, "expires": None, "who": "ann"}
OVERRIDE = {
    "id": "o-3",
    "pool": "plain",
    "replicas": None,
    "min_replicas": 2,
    "max_replicas": 4,
    "since": SINCE,
    "until": "2026-03-01T12:00:00Z",
    "reason": "launch [red] day",
    "by": "ann",
}


def test_a_hold_without_an_end_says_so_loudly() -> None:
    """Reason and the operating system's user are sent; that nothing ends it is a warning."""
    with serving({("POST", "/admin/hold"): (200, {"hold": HOLD})}) as service:
        done = run("hold", "--reason", "load test", url=service.url)

    sent = {"reason": "load test", "for_s": None, "who": getpass.getuser()}
    assert [("POST", "/admin/hold", sent)] == service.asked
    assert 0 == done.exit_code
    assert "held by ann since 2026-03-01 10:00:00 UTC, until a release: load test\n" == done.stdout
    assert "NO END" in done.stderr
    assert "twinpool release" in done.stderr


def test_a_hold_with_an_end() -> None:
    """The duration travels as seconds, and the end is shown."""
    answer = {"hold": HOLD | {"expires": "2026-03-01T11:30:00Z"}}
    with serving({("POST", "/admin/hold"): (200, answer)}) as service:
        done = run("hold", "--reason", "r", "--for", "1h30m", "--who", "ann", url=service.url)

    assert [("POST", "/admin/hold", {"reason": "r", "for_s": 5400.0, "who": "ann"})] == service.asked
    assert "until 2026-03-01 11:30:00 UTC" in done.stdout
    assert "" == done.stderr


@pytest.mark.parametrize(
    ("released", "words"),
    [(True, "released: capacity may move again\n"), (False, "there was no operator's hold\n")],
)
def test_release(released: bool, words: str) -> None:
    """Nothing to release is said, and is no error."""
    with serving({("POST", "/admin/release"): (200, {"released": released})}) as service:
        done = run("release", "--who", "ann", url=service.url)

    assert [("POST", "/admin/release", {"who": "ann"})] == service.asked
    assert (0, words) == (done.exit_code, done.stdout)


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        (["--replicas", "0"], {"replicas": 0, "min_replicas": None, "max_replicas": None}),
        (["--min", "2"], {"replicas": None, "min_replicas": 2, "max_replicas": None}),
        (["--min", "2", "--max", "4"], {"replicas": None, "min_replicas": 2, "max_replicas": 4}),
    ],
)
def test_override_set(arguments: list[str], sent: dict[str, Any]) -> None:
    """A size or bounds, with an end and a reason; the id and how to end it are shown."""
    with serving({("POST", "/admin/overrides"): (200, {"override": OVERRIDE})}) as service:
        done = run(
            "override", "set", "plain", *arguments, "--for", "2h", "--reason", "launch", "--who", "ann",
            url=service.url,
        )  # fmt: skip

    body = {"pool": "plain", "for_s": 7200.0, "reason": "launch", "who": "ann"}
    assert [("POST", "/admin/overrides", body | sent)] == service.asked
    assert 0 == done.exit_code
    assert (
        "override o-3: plain at least 2, at most 4 replicas until 2026-03-01 12:00:00 UTC: launch [red] day\n"
        "to end it sooner: twinpool override clear o-3\n"
    ) == done.stdout


def test_override_list() -> None:
    """Every override is a row; what is not forced is a dash, and a reason is shown as it was written."""
    with serving({("GET", "/admin/overrides"): (200, {"overrides": [OVERRIDE]})}) as service:
        done = run("override", "list", url=service.url)

    assert 0 == done.exit_code
    assert [
        "o-3",
        "plain",
        "-",
        "2",
        "4",
        "2026-03-01",
        "12:00:00",
        "UTC",
        "ann",
        "launch",
        "[red]",
        "day",
    ] == (done.stdout.splitlines()[1].split())


def test_no_overrides() -> None:
    """An empty list is said in words."""
    with serving({("GET", "/admin/overrides"): (200, {"overrides": []})}) as service:
        assert "no overrides\n" == run("override", "list", url=service.url).stdout


@pytest.mark.parametrize(
    ("which", "path", "cleared", "words"),
    [
        ("o-3", "/admin/overrides/o-3?who=ann%20b", ["o-3"], "cleared o-3\n"),
        ("all", "/admin/overrides/all?who=ann%20b", ["o-3", "o-4"], "cleared o-3, o-4\n"),
        ("all", "/admin/overrides/all?who=ann%20b", [], "there was none to clear\n"),
        ("a/../b", "/admin/overrides/a%2F..%2Fb?who=ann%20b", ["a/../b"], "cleared a/../b\n"),
    ],
)
def test_override_clear(which: str, path: str, cleared: list[str], words: str) -> None:
    """By id or all; whatever is typed stays one part of the path."""
    with serving({("DELETE", path): (200, {"cleared": cleared})}) as service:
        done = run("override", "clear", which, "--who", "ann b", url=service.url)

    assert (0, words) == (done.exit_code, done.stdout)


@pytest.mark.parametrize("form", [["-o", "json"], ["--output", "json"], ["--json"]])
@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["hold", "--reason", "r"], {"hold": HOLD}),
        (["release"], {"released": True}),
        (
            ["override", "set", "plain", "--replicas", "1", "--for", "1h", "--reason", "r"],
            {"override": OVERRIDE},
        ),
        (["override", "list"], {"overrides": [OVERRIDE]}),
    ],
)
def test_json_is_the_services_own(form: list[str], arguments: list[str], answer: dict[str, Any]) -> None:
    """For programs the answer is passed on whole, and nothing else is on standard output."""
    paths = ("/admin/hold", "/admin/release", "/admin/overrides")
    answers = {(method, path): (200, answer) for method in ("GET", "POST") for path in paths}
    with serving(answers) as service:
        done = run(*arguments, *form, url=service.url)

    assert answer == json.loads(done.stdout)


# --- errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["hold"], "--reason"),
        (["hold", "--reason", " "], "--reason is empty"),
        (["hold", "--reason", "r", "--for", "90"], "--for '90' is no duration: the unit is missing"),
        (["hold", "--reason", "r", "--for", "400d"], "mend: give 366d at most, or edit the policy file"),
        (
            ["override", "set", "plain", "--replicas", "1", "--for", "40d", "--reason", "r"],
            "--for '40d' is longer than 30d: what should last longer belongs into the policy file\n"
            "mend: give 30d at most, or edit the policy file",
        ),
        (["hold", "--reason", "r", "-o", "yaml"], "-o is text or json, not yaml"),
        (
            ["override", "set", "plain", "--for", "1h", "--reason", "r"],
            "an override is either a size or bounds",
        ),
        (
            ["override", "set", "plain", "--replicas", "1", "--max", "2", "--for", "1h", "--reason", "r"],
            "an override is either a size or bounds",
        ),
        (
            ["override", "set", "plain", "--min", "5", "--max", "2", "--for", "1h", "--reason", "r"],
            "--min 5 is above --max 2",
        ),
        (["override", "set", "plain", "--replicas", "1", "--reason", "r"], "--for"),
        (["override", "set", "fast", "--replicas", "1", "--for", "1h", "--reason", "r"], "speculative"),
        (["release", "--url", "ftp://x"], "ftp://x is no address of a service"),
        (["release", "--url", "http://"], "is no address of a service"),
    ],
)
def test_wrong_usage(arguments: list[str], words: str) -> None:
    """Exit code 2 and one message that names the option, before anything is sent."""
    with serving({}) as service:
        done = run(*arguments, url=service.url)

    assert 2 == done.exit_code
    assert words in done.stderr
    assert "" == done.stdout
    assert [] == service.asked


COMMANDS = [
    ["hold", "--reason", "r"],
    ["release"],
    ["override", "set", "plain", "--replicas", "1", "--for", "1h", "--reason", "r"],
    ["override", "list"],
    ["override", "clear", "all"],
    ["status"],
    ["why"],
    ["policy", "history"],
    ["policy", "rollback", "1"],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_no_answer(arguments: list[str]) -> None:
    """Exit code 2, the address, and how to name another."""
    done = run(*arguments, url=NOWHERE)

    assert (2, "") == (done.exit_code, done.stdout)
    assert f"no answer from {NOWHERE}" in done.stderr
    assert "mend: start the service with `twinpool serve`, or name its address" in done.stderr


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("said", [b"not found", b'{"detail": "x"}', b"[]"])
def test_an_answer_that_is_not_ours(arguments: list[str], said: bytes) -> None:
    """Another server's error page is no answer of the service: exit code 2, and its status is named."""

    class Everywhere(dict[tuple[str, str], tuple[int, Any]]):
        def get(self, _key: tuple[str, str], _default: Any = None) -> Any:
            return 502, said

    with serving(Everywhere()) as service:
        done = run(*arguments, url=service.url)

    assert 2 == done.exit_code
    assert "HTTP status 502, and the answer is not twinpool's" in done.stderr


@pytest.mark.parametrize(
    ("status", "code", "mend"),
    [
        (503, "not_ready", "mend: look at `twinpool status`"),
        (404, "not_found", "mend: see what there is: `twinpool override list`"),
        (409, "conflict", "mend: look at `twinpool status` for what stands against it"),
        (403, "admin_not_allowed", "mend: do it where the service may be changed"),
        (400, "invalid_value", "mend: correct what the message names"),
    ],
)
def test_a_refusal_is_a_finding(status: int, code: str, mend: str) -> None:
    """Exit code 1, the service's own words, and what to do next."""
    with serving({("POST", "/admin/release"): (status, refusal(code, "words of the service"))}) as service:
        done = run("release", url=service.url)

    assert (1, "") == (done.exit_code, done.stdout)
    assert "error: words of the service\n" in done.stderr
    assert mend in done.stderr


def test_the_address_may_be_written_short() -> None:
    """Without a scheme it is HTTP; a slash at the end does not count; --url wins over TWINPOOL_URL."""
    with serving({("GET", "/admin/overrides"): (200, {"overrides": []})}) as service:
        short = service.url.removeprefix("http://")
        assert 0 == run("override", "list", url=f"{short}/").exit_code
        assert 0 == run("override", "list", "--url", short, url=NOWHERE).exit_code
