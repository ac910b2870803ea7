"""`twinpool policy ...`: files are judged with lines, compared in meaning, and rolled back safely."""

from __future__ import annotations

import difflib
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from app.cli import policy_text, problem_lines
from app.cli.checks import CannotServe, first_sizes
from autoscaling.policy_file import Problem
from deployments import starter_policies
from deployments.local_config import default_settings
from tests.app.canned import Canned, run, serving

GOOD = """\
apiVersion: twinpool.dev/v1alpha1
kind: CapacityPolicy
metadata:
  name: interactive-first
spec:
  budget: {max: 8}
  pools:
    speculative: {maxReplicas: 6}
    plain: {maxReplicas: 6}
"""
NEWER = GOOD.replace("budget: {max: 8}", "budget: {max: 6}")
BAD = GOOD.replace("plain: {maxReplicas: 6}", "plain: {minReplicas: 5, maxReplicas: 2}\n  surgeSlot: 1")


def write(folder: Path, text: str, name: str = "policy.yaml") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


# --- validate


def test_a_good_file_is_fine(tmp_path: Path) -> None:
    """Exit code 0, and the sha by which the service will show it."""
    file = write(tmp_path, GOOD)

    done = run("policy", "validate", str(file))

    assert 0 == done.exit_code
    assert done.stdout.endswith(f"{file}: ok, sha {_sha(GOOD)[:12]}\n")


def test_every_problem_has_its_line(tmp_path: Path) -> None:
    """Case C9: a minimum above the maximum and every other problem in one run, with line and field."""
    file = write(tmp_path, BAD)

    done = run("policy", "validate", str(file))

    lines = done.stdout.splitlines()
    assert 1 == done.exit_code
    assert [f"{file}:9:13: spec.pools.plain.minReplicas", f"{file}:10:3: spec.surgeSlot"] == [
        line.rpartition(": ")[0] for line in lines
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [("", 1), ("a: [1\n", 2), ("- 1\n", 1), (GOOD + "spec: {}\n", 10), (GOOD[:150], 8)],
)
def test_no_policy_at_all(tmp_path: Path, text: str, line: int) -> None:
    """Case C10: an empty, broken, half-written file, a list and a repeated key are findings with a line."""
    file = write(tmp_path, text)

    done = run("policy", "validate", str(file), "--json")

    found = json.loads(done.stdout)[0]
    assert 1 == done.exit_code
    assert False is found["valid"]
    assert line == found["problems"][0]["line"]


def test_several_files(tmp_path: Path) -> None:
    """All are judged; the worst decides the exit code: 2 when a file cannot be read."""
    good, bad = write(tmp_path, GOOD, "good.yaml"), write(tmp_path, BAD, "bad.yaml")

    assert 1 == run("policy", "validate", str(good), str(bad)).exit_code
    done = run("policy", "validate", str(tmp_path / "none.yaml"), str(good), "-o", "json")

    found = json.loads(done.stdout)
    assert 2 == done.exit_code
    assert [None, True] == [item["valid"] for item in found]
    assert "No such file" in found[0]["unreadable"]
    assert (_sha(GOOD), []) == (found[1]["sha"], found[1]["problems"])


def test_standard_input() -> None:
    """A dash reads what another program writes, such as a rendered ConfigMap."""
    assert 0 == run("policy", "validate", "-", stdin=GOOD).exit_code
    assert "<stdin>:9:" in run("policy", "validate", "-", stdin=BAD).stdout


def test_a_mounted_folder(tmp_path: Path) -> None:
    """A mounted ConfigMap is a folder: its one *.yaml is read, through its links."""
    data = tmp_path / "..2026_01_01"
    data.mkdir()
    write(data, GOOD)
    (tmp_path / "..data").symlink_to(data.name)
    (tmp_path / "policy.yaml").symlink_to("..data/policy.yaml")

    done = run("policy", "validate", str(tmp_path))

    assert 0 == done.exit_code
    assert f"{tmp_path}/policy.yaml: ok" in done.stdout


@pytest.mark.parametrize(
    ("names", "words"), [([], "found none"), (["a.yaml", "b.yaml"], "found a.yaml, b.yaml")]
)
def test_a_folder_with_not_one_policy(tmp_path: Path, names: list[str], words: str) -> None:
    """None and two are refused: which one the service takes would be a guess."""
    for name in names:
        write(tmp_path, GOOD, name)

    done = run("policy", "validate", str(tmp_path))

    assert 2 == done.exit_code
    assert words in done.stdout


def test_what_cannot_be_a_policy_is_not_read(tmp_path: Path) -> None:
    """Too large, not UTF-8, not a regular file: exit code 2, with the reason."""
    large, bytes_ = tmp_path / "large.yaml", tmp_path / "bytes.yaml"
    large.write_bytes(b"#" * ((1 << 20) + 1))
    bytes_.write_bytes(b"a: 1\nb: \xff\n")

    assert "larger than 1048576 bytes" in run("policy", "validate", str(large)).stdout
    assert (
        "line 2 is not UTF-8 (byte 0xff): save it as UTF-8" in run("policy", "validate", str(bytes_)).stdout
    )
    assert "not a regular file" in run("policy", "validate", "/dev/null").stdout


def test_annotations_of_a_review(tmp_path: Path) -> None:
    """One workflow command per problem, with file, line and column."""
    file = write(tmp_path, BAD)

    done = run("policy", "validate", str(file), "-o", "github")

    assert 1 == done.exit_code
    assert any(
        line.startswith(f"::error file={file},line=9,col=13::spec.pools.plain.minReplicas: ")
        for line in done.stdout.splitlines()
    )


def test_annotations_are_escaped() -> None:
    """What ends a value or a line in a workflow command cannot get into it from a file."""
    problem = Problem(3, 7, "spec.x", "50% of\r\n::error::evil")

    assert (
        "::warning file=a%3Ab%2Cc%25.yaml,line=3,col=7::spec.x: 50%25 of%0D%0A::error::evil"
        == problem_lines.annotation("a:b,c%.yaml", problem, "warning")
    )


def test_a_line_for_an_editor() -> None:
    """File, line, column, then whether it only is a warning, the field and the words."""
    assert "p.yaml:3:7: warning: spec.x: words" == problem_lines.line(
        "p.yaml", Problem(3, 7, "spec.x", "words"), "warning: "
    )
    assert "p.yaml:1:1: words" == problem_lines.line("p.yaml", Problem(1, 1, "", "words"))


def test_warnings_do_not_fail(tmp_path: Path) -> None:
    """Case C4: an eager policy is taken, with a warning that has its line."""
    eager = "  behavior: {cooldownSeconds: 0, scaleUp: {stabilizationWindowSeconds: 0}, "
    file = write(tmp_path, GOOD + eager + "scaleDown: {stabilizationWindowSeconds: 0}}\n")

    done = run("policy", "validate", str(file))

    assert 0 == done.exit_code
    assert any(line.startswith(f"{file}:10:") and ": warning: " in line for line in done.stdout.splitlines())


# --- schema, explain, starters


def test_the_schema() -> None:
    """JSON Schema of the file, by the names that the file uses."""
    done = run("policy", "schema")

    found = json.loads(done.stdout)
    assert 0 == done.exit_code
    assert "https://json-schema.org/draft/2020-12/schema" == found["$schema"]
    assert ["apiVersion", "kind", "metadata", "spec"] == sorted(found["properties"])


def test_explain_a_field() -> None:
    """By its whole path: what it does, unit, bounds, default and an example."""
    done = run("policy", "explain", "spec.behavior.cooldownSeconds")

    assert 0 == done.exit_code
    assert "spec.behavior.cooldownSeconds" == done.stdout.splitlines()[0]
    assert "  unit: s\n" in done.stdout
    assert "  default: 60" in done.stdout
    assert "  example: " in done.stdout


def test_explain_an_end_that_several_have() -> None:
    """The end of a path is enough; where several fields have it, all are explained."""
    done = run("policy", "explain", "drainTimeoutSeconds", "--json")

    assert ["spec.pools.speculative.drainTimeoutSeconds", "spec.pools.plain.drainTimeoutSeconds"] == [
        item["path"] for item in json.loads(done.stdout)
    ]


def test_explain_what_is_not_there() -> None:
    """Exit code 2, with the fields that may have been meant."""
    done = run("policy", "explain", "spec.behavior.cooldownSecond")

    assert (2, "") == (done.exit_code, done.stdout)
    assert "no field spec.behavior.cooldownSecond" in done.stderr
    assert "spec.behavior.cooldownSeconds" in done.stderr


def test_starters() -> None:
    """Listed with a line each; printed whole by name; another name is exit code 2."""
    names = list(starter_policies.names())
    listed = run("policy", "starters")
    printed = run("policy", "starters", names[0])
    wrong = run("policy", "starters", "nothing")

    assert names == [line.partition(": ")[0] for line in listed.stdout.splitlines()]
    assert all(line.partition(": ")[2] for line in listed.stdout.splitlines())
    assert starter_policies.text(names[0]) == printed.stdout
    assert 2 == wrong.exit_code
    assert names[0] in wrong.stderr
    assert names == [item["name"] for item in json.loads(run("policy", "starters", "--json").stdout)]


@pytest.mark.parametrize("name", starter_policies.names())
def test_every_starter_is_valid(name: str) -> None:
    """What is offered to begin with passes the check without a problem."""
    assert 0 == run("policy", "validate", "-", stdin=starter_policies.text(name)).exit_code


# --- diff


def test_diff_of_two_files(tmp_path: Path) -> None:
    """From the older to the newer, with what each change does; exit code 1 like diff's."""
    old, new = write(tmp_path, GOOD, "old.yaml"), write(tmp_path, NEWER, "new.yaml")

    done = run("policy", "diff", str(old), str(new))

    assert 1 == done.exit_code
    assert "spec.budget.max: 8 -> 6\n" in done.stdout
    found = json.loads(run("policy", "diff", str(new), str(old), "-o", "json").stdout)
    assert ("spec.budget.max", 6, 8) in [(item["field"], item["old"], item["new"]) for item in found]


def test_spelling_is_no_difference(tmp_path: Path) -> None:
    """Comments and written defaults mean the same: exit code 0."""
    old = write(tmp_path, GOOD, "old.yaml")
    new = write(tmp_path, "# words\n" + GOOD + "  mode: enforce\n", "new.yaml")

    done = run("policy", "diff", str(old), str(new))

    assert (0, "no difference\n") == (done.exit_code, done.stdout)


def test_diff_against_an_invalid_file(tmp_path: Path) -> None:
    """Exit code 2: what cannot be read cannot be compared; its problems are listed."""
    old, new = write(tmp_path, GOOD, "old.yaml"), write(tmp_path, BAD, "new.yaml")

    done = run("policy", "diff", str(old), str(new))

    assert (2, "") == (done.exit_code, done.stdout)
    assert f"{new}:9:" in done.stderr
    assert "is no valid policy" in done.stderr


# --- against a running service

AT = "2026-03-01T10:00:00Z"


def _sha(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()


def state(path: str | None, active: int | None = 2) -> dict[str, Any]:
    return {
        "name": "interactive-first",
        "path": path,
        "mode": "enforce",
        "seen_revision": 3,
        "active_revision": active,
        "sha": _sha(GOOD),
        "state": "active",
        "last_error": {"message": "m", "line": 9, "field": "spec.x"},
        "history": [
            {"revision": 1, "sha": _sha(NEWER), "state": "replaced", "at": AT, "message": ""},
            {"revision": 2, "sha": _sha(GOOD), "state": "active", "at": AT, "message": ""},
            {"revision": 3, "sha": _sha(BAD), "state": "refused", "at": AT, "message": "line 9: [x]"},
        ],
    }


def revision(number: int, text: str) -> tuple[int, dict[str, Any]]:
    return 200, {"revision": number, "sha": _sha(text), "state": "s", "at": AT, "text": text}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Canned]:
    """A service that reads `policy.yaml`; 2 is active, 1 was before, 3 was refused."""
    answers = {
        ("GET", "/admin/policy"): (200, state(str(tmp_path / "policy.yaml"))),
        ("GET", "/admin/policy/1"): revision(1, NEWER),
        ("GET", "/admin/policy/2"): revision(2, GOOD),
        ("GET", "/admin/policy/3"): revision(3, BAD),
    }
    with serving(answers) as found:
        yield found


def test_diff_against_the_service(tmp_path: Path, service: Canned) -> None:
    """One file is compared with the active revision: what its edit would change."""
    done = run("policy", "diff", str(write(tmp_path, NEWER)), url=service.url)

    assert 1 == done.exit_code
    assert "spec.budget.max: 8 -> 6\n" in done.stdout
    assert 0 == run("policy", "diff", str(write(tmp_path, GOOD)), url=service.url).exit_code


def test_history(service: Canned) -> None:
    """Each revision with its state and message, the active one marked, refused ones included."""
    done = run("policy", "history", url=service.url)

    rows = [line.split() for line in done.stdout.splitlines()[2:]]
    assert 0 == done.exit_code
    assert "active revision 2, mode enforce" in done.stdout.splitlines()[0]
    assert [["1", "2026-03-01"], ["2", "*"], ["3", "2026-03-01"]] == [row[:2] for row in rows]
    assert ["refused", _sha(BAD)[:12], "line", "9:", "[x]"] == rows[2][4:]
    assert (
        state("x")["history"]
        == json.loads(run("policy", "history", "--json", url=service.url).stdout)["history"]
    )


def test_rollback_shows_what_it_would_change(tmp_path: Path, service: Canned) -> None:
    """A diff from the active text, and the command that takes it; nothing is written."""
    file = write(tmp_path, GOOD)

    done = run("policy", "rollback", "1", "--url", service.url)

    assert 0 == done.exit_code
    assert "-  budget: {max: 8}\n+  budget: {max: 6}\n" in done.stdout
    assert done.stdout.splitlines()[-1].endswith(f"policy rollback 1 --write {file} --url {service.url}")
    assert GOOD == file.read_text(encoding="utf-8")


def test_the_diff_is_one_that_patch_takes(service: Canned) -> None:
    """It is a unified diff of the two texts."""
    found = json.loads(run("policy", "rollback", "1", "--json", url=service.url).stdout)

    expected = difflib.unified_diff(GOOD.splitlines(True), NEWER.splitlines(True))
    assert list(expected)[2:] == found["diff"].splitlines(True)[2:]
    assert (1, 2, NEWER, None) == (
        found["revision"],
        found["active_revision"],
        found["text"],
        found["written"],
    )


def test_rollback_writes_the_file(tmp_path: Path, service: Canned) -> None:
    """The file is replaced with its mode kept, and nothing else is left in the folder."""
    file = write(tmp_path, GOOD)
    file.chmod(0o640)

    done = run("policy", "rollback", "1", "--write", str(file), url=service.url)

    assert 0 == done.exit_code
    assert NEWER == file.read_text(encoding="utf-8")
    assert 0o640 == stat.S_IMODE(file.stat().st_mode)
    assert ["policy.yaml"] == [entry.name for entry in tmp_path.iterdir()]
    assert "the service takes it within seconds" in done.stdout
    assert "" == done.stderr


def test_rollback_through_a_link(tmp_path: Path, service: Canned) -> None:
    """A link stays a link, and the file behind it is replaced; another path than the service's is noted."""
    real = write(tmp_path, GOOD, "real.yaml")
    link = tmp_path / "link.yaml"
    link.symlink_to(real.name)

    done = run("policy", "rollback", "1", "--write", str(link), url=service.url)

    assert 0 == done.exit_code
    assert link.is_symlink()
    assert NEWER == real.read_text(encoding="utf-8")
    assert f"note: the service reads {tmp_path}/policy.yaml" in done.stderr


def test_rollback_never_writes_an_invalid_policy(tmp_path: Path, service: Canned) -> None:
    """Case C10: a refused revision is not written; its problems are listed, the file is unchanged."""
    file = write(tmp_path, GOOD)

    done = run("policy", "rollback", "3", "--write", str(file), url=service.url)

    assert (1, "") == (done.exit_code, done.stdout)
    assert "revision 3:9:13: spec.pools.plain.minReplicas: " in done.stderr
    assert f"revision 3 is no valid policy, {file} is unchanged" in done.stderr
    assert GOOD == file.read_text(encoding="utf-8")


def test_rollback_to_what_is_not_there(service: Canned) -> None:
    """An unknown revision is the service's refusal: exit code 1."""
    done = run("policy", "rollback", "99", url=service.url)

    assert 1 == done.exit_code
    assert "twinpool policy history" in done.stderr


def test_rollback_where_nothing_may_be_written(tmp_path: Path, service: Canned) -> None:
    """A file that cannot be replaced is exit code 2, with the way out."""
    done = run("policy", "rollback", "1", "--write", str(tmp_path / "none" / "p.yaml"), url=service.url)

    assert 2 == done.exit_code
    assert "cannot be replaced: No such file" in done.stderr
    assert "ConfigMap is changed with `twinpool policy apply`" in done.stderr


@pytest.mark.parametrize(
    ("path", "words"), [(None, "serve with --policy FILE"), ("/x y.yaml", "'/x y.yaml'")]
)
def test_the_command_to_take_it(path: str | None, words: str) -> None:
    """Quoted for the shell; without a policy file it is said how to have one."""
    answers = {
        ("GET", "/admin/policy"): (200, state(path)),
        ("GET", "/admin/policy/1"): revision(1, NEWER),
        ("GET", "/admin/policy/2"): revision(2, GOOD),
    }
    with serving(answers) as found:
        assert words in run("policy", "rollback", "1", url=found.url).stdout.splitlines()[-1]


def test_rollback_before_any_policy_was_active(tmp_path: Path) -> None:
    """The whole revision is new then; a diff against the service cannot be told."""
    answers = {
        ("GET", "/admin/policy"): (200, state("/p.yaml", active=None)),
        ("GET", "/admin/policy/1"): revision(1, NEWER),
    }
    with serving(answers) as found:
        assert "+kind: CapacityPolicy\n" in run("policy", "rollback", "1", url=found.url).stdout
        done = run("policy", "diff", str(write(tmp_path, GOOD)), url=found.url)

    assert 2 == done.exit_code
    assert "no active policy yet" in done.stderr


def test_a_write_that_fails_leaves_the_file(tmp_path: Path) -> None:
    """The old content stays, and no half-written file beside it."""
    file = write(tmp_path, GOOD)

    with pytest.raises(UnicodeEncodeError):
        policy_text.replace(file, "\ud800")

    assert GOOD == file.read_text(encoding="utf-8")
    assert ["policy.yaml"] == [entry.name for entry in tmp_path.iterdir()]


@pytest.mark.parametrize("name", ["nope.yaml", "link.yaml"])
def test_serve_names_a_policy_that_is_not_there(tmp_path: Path, name: str) -> None:
    """Before anything starts nothing was good yet, so no last good policy is spoken of."""
    (tmp_path / "link.yaml").symlink_to(tmp_path / "nowhere.yaml")
    file = tmp_path / name

    with pytest.raises(CannotServe) as raised:
        first_sizes(default_settings(policy=str(file)), Console())

    assert f"--policy {file}: no such file\nmend: name a policy file that is there" == str(raised.value)
