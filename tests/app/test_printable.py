"""What others wrote cannot steer the operator's terminal: controls are shown, in every command's text."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from app.cli.output import printable, printable_values
from autoscaling.one_line import UNSEEN
from tests.app.canned import refusal, run, serving
from tests.app.test_cli_hold import HOLD, OVERRIDE
from tests.app.test_cli_policy import GOOD, state
from tests.app.test_cli_status import FULL
from tests.app.test_cli_why import DECISION, MOVE

# Clears the screen, rings, overwrites the line, starts an escape in one character, turns the direction.
EVIL = "\x1b[2J\x07\r\x9b\u202e\u2066x"
SHOWN = "\\x1b[2J\\x07\\x0d\\x9b\\u202e\\u2066x"


def hostile(found: Any) -> Any:
    """The same JSON value with every text made evil; times and what must be a number stay."""
    match found:
        case str():
            return found if re.match(r"\d{4}-", found) else found + EVIL
        case dict():
            return {key: hostile(value) for key, value in found.items()}
        case list():
            return [hostile(item) for item in found]
        case _:
            return found


def is_clean(text: str) -> bool:
    """Whether a terminal obeys nothing in it but line ends."""
    return re.search(f"[{UNSEEN}]", text.replace("\n", "")) is None


@pytest.mark.parametrize(
    ("text", "line", "lines"),
    [
        ("plain words, é 東", "plain words, é 東", "plain words, é 東"),
        (EVIL, SHOWN, SHOWN),
        ("a\n\tb", "a\\x0a\\x09b", "a\n\tb"),
        ("\x00\x7f\x85", "\\x00\\x7f\\x85", "\\x00\\x7f\\x85"),
        ("\u2028\u2029\u202a\u2069", "\\u2028\\u2029\\u202a\\u2069", "\\u2028\\u2029\\u202a\\u2069"),
        ("\udcff.yaml", "\\udcff.yaml", "\\udcff.yaml"),
        ("[red]", "[red]", "[red]"),
    ],
)
def test_what_is_printable(text: str, line: str, lines: str) -> None:
    """Controls are shown by their number; line ends and tabs stay only where a text has lines."""
    assert (line, lines) == (printable(text), printable(text, lines=True))


def test_every_control_is_shown() -> None:
    """Of all characters that Python counts as control, none is left; the text of several lines keeps two."""
    every = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0))))

    assert printable(every).isprintable()
    assert {"\n", "\t"} == {one for one in printable(every, lines=True) if not one.isprintable()}


def test_values_of_json() -> None:
    """Texts at every depth, names of fields too; numbers and unknown values stay."""
    found = {"a\x1b": [EVIL, 1, None, {"b": EVIL}], "c": True}

    assert {"a\\x1b": [SHOWN, 1, None, {"b": SHOWN}], "c": True} == printable_values(found)


@pytest.mark.parametrize(
    ("arguments", "method", "path", "answer"),
    [
        (["hold", "--reason", "r"], "POST", "/admin/hold", {"hold": HOLD, "warning": "w"}),
        (
            ["override", "set", "plain", "--replicas", "1", "--for", "1h", "--reason", "r"],
            "POST",
            "/admin/overrides",
            {"override": OVERRIDE},
        ),
        (["override", "list"], "GET", "/admin/overrides", {"overrides": [OVERRIDE]}),
        (
            ["override", "clear", "all", "--who", "a"],
            "DELETE",
            "/admin/overrides/all?who=a",
            {"cleared": ["o"]},
        ),
        (["why", "decision"], "GET", "/admin/why/decision", {"record": DECISION}),
        (["why", "move"], "GET", "/admin/why/move", {"record": MOVE}),
        (["status"], "GET", "/admin/status", FULL),
        (["policy", "history"], "GET", "/admin/policy", state("/p.yaml")),
    ],
)
def test_answers_of_the_service(arguments: list[str], method: str, path: str, answer: Any) -> None:
    """Reasons, names, ids and messages are shown with their controls as text; JSON passes them on whole."""
    evil = hostile(copy.deepcopy(answer))
    with serving({(method, path): (200, evil)}) as service:
        done = run(*arguments, url=service.url)
        passed_on = run(*arguments, "-o", "json", url=service.url)

    assert "\\x1b[2J" in done.stdout
    assert is_clean(done.stdout)
    assert is_clean(done.stderr)
    assert evil == json.loads(passed_on.stdout)
    assert is_clean(passed_on.stdout)


def test_a_refusal_of_the_service() -> None:
    """Its words go to standard error on one line each."""
    with serving(
        {("GET", "/admin/policy"): (404, refusal("not_found", f"{EVIL}\nmend: rm -r x"))}
    ) as service:
        done = run("policy", "history", url=service.url)

    assert f"error: {SHOWN}\\x0amend: rm -r x\n" in done.stderr
    assert is_clean(done.stderr)


def test_a_rollback_of_a_hostile_text(tmp_path: Path) -> None:
    """The diff keeps its lines and tabs, and what is in them is shown."""
    texts = {1: f"a:\t{EVIL}\n", 2: GOOD}
    answers: dict[tuple[str, str], tuple[int, Any]] = {
        ("GET", f"/admin/policy/{number}"): (
            200,
            {"revision": number, "sha": "s", "state": "s", "at": EVIL, "text": text},
        )
        for number, text in texts.items()
    }
    answers["GET", "/admin/policy"] = (200, state(f"/{EVIL}.yaml"))
    with serving(answers) as service:
        shown = run("policy", "rollback", "1", url=service.url)
        refused = run("policy", "rollback", "1", "--write", str(tmp_path / "p.yaml"), url=service.url)

    assert "+a:\t\\x1b[2J" in shown.stdout
    assert is_clean(shown.stdout.replace("\t", ""))
    assert (1, []) == (refused.exit_code, list(tmp_path.iterdir()))
    assert is_clean(refused.stderr)


@pytest.mark.parametrize("form", ["text", "github"])
@pytest.mark.parametrize("text", [GOOD, '"\\e[2J\\u202e": 1\n', "", GOOD.replace("8", '"\\e"')])
def test_hostile_files(tmp_path: Path, text: str, form: str) -> None:
    """Neither the name of a file nor what stands in it reaches the terminal raw."""
    file = tmp_path / f"{EVIL}.yaml"
    file.write_text(text, encoding="utf-8")

    done = run("policy", "validate", str(file), str(tmp_path / f"none{EVIL}"), "-o", form)

    assert 2 == done.exit_code
    assert "\\x1b[2J" in done.stdout
    assert is_clean(done.stdout)


def test_a_file_name_that_is_no_text(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are shown and do not end the command with an exception."""
    done = run("policy", "validate", str(tmp_path / "\udcff.yaml"))

    assert 2 == done.exit_code
    assert "\\udcff.yaml" in done.stdout


def test_a_diff_of_hostile_policies(tmp_path: Path) -> None:
    """Values that differ are shown, with the controls that they hold as text."""
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(GOOD, encoding="utf-8")
    name = "  name: interactive-first\n"
    assert name in GOOD
    new.write_text(GOOD.replace(name, name + '  annotations: {a: "\\e\\x9b\\u202e"}\n'), encoding="utf-8")

    done = run("policy", "diff", str(old), str(new))

    assert 1 == done.exit_code
    assert "\\x9b\\u202e" in done.stdout
    assert is_clean(done.stdout)


# --- what is refused before it is sent


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["hold", "--reason", "a\x1b[2J"], "--reason must be one line of plain text; it holds the control"),
        (["hold", "--reason", "a\nb"], "it holds a line break"),
        (["release", "--who", "\u202enna"], "--who must be one line of plain text"),
        (["release", "--who", " "], "--who is empty"),
        (["release", "--who", "x" * 101], "--who has 101 characters, more than 100"),
        (["hold", "--reason", "r", "--who", "policy"], "policy is no operator's name"),
        (["release", "--who", " policy "], "policy is no operator's name"),
        (["override", "clear", "all", "--who", "policy"], "policy is no operator's name"),
        (
            [
                "override",
                "set",
                "plain",
                "--replicas",
                "1",
                "--for",
                "1h",
                "--reason",
                "r",
                "--who",
                "policy",
            ],
            "policy is no operator's name: it stands for the policy file wherever a name is shown",
        ),
    ],
)
def test_words_that_cannot_be_shown(arguments: list[str], words: str) -> None:
    """Exit code 2 with the option and what to do; nothing is sent, and nothing raw is printed."""
    with serving({}) as service:
        done = run(*arguments, url=service.url)

    assert (2, []) == (done.exit_code, service.asked)
    assert words in done.stderr
    assert "mend: " in done.stderr
    assert is_clean(done.stderr)


def test_an_operating_system_user_called_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own name is refused too, and --who is the way out."""
    monkeypatch.setenv("LOGNAME", "policy")
    with serving({("POST", "/admin/release"): (200, {"released": True})}) as service:
        refused = run("release", url=service.url)
        done = run("release", "--who", "ann", url=service.url)

    assert (2, 0) == (refused.exit_code, done.exit_code)
    assert "mend: say who asks with --who NAME" in refused.stderr
