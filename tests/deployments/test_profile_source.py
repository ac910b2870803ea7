"""What is seen of a profile file, and what becomes of it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from autoscaling.profile import ProfileState
from autoscaling.profile_match import Served
from deployments.profile_source import ProfileSource
from tests.autoscaling.profiles import OF_F, WHOLE, profile, profile_text
from tests.deployments.kubelet import ConfigMapMount, config_map

__all__ = ["config_map"]

OTHER = profile_text(contextTokens=900)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "profile.json"
    path.write_text(profile_text(), encoding="utf-8")
    return path


@pytest.fixture
def source(file: Path) -> ProfileSource:
    found = ProfileSource(file)
    found.poll()
    return found


def context(source: ProfileSource, polls: int = 1) -> float | None:
    """The typical context of the profile that counts after so many polls; None without a profile."""
    for _ in range(polls):
        source.poll()
    return None if source.profile is None else source.profile.context_tokens


def test_without_a_path_there_is_none() -> None:
    """And nothing is wrong with that."""
    source = ProfileSource(None)
    source.poll()
    assert source.profile is None
    assert {
        "path": None,
        "state": "none",
        "made_at": None,
        "differences": None,
        "error": None,
        "two_pools": None,
    } == source.status(OF_F, 0.05)


def test_the_first_look_counts_at_once(source: ProfileSource, file: Path) -> None:
    """A start does not wait for a second one."""
    assert profile() == source.profile
    assert {
        "path": str(file),
        "state": "measured",
        "made_at": "2026-11-30T08:00:00Z",
        "differences": [],
        "error": None,
        "two_pools": None,
    } == source.status(OF_F, 0.05)


def test_before_the_first_look_nothing_is_known(file: Path) -> None:
    """A state that nobody knows is None."""
    assert (None, None) == (ProfileSource(file).state(OF_F), ProfileSource(file).profile)


def test_another_model_is_served(source: ProfileSource) -> None:
    """The profile is stale, and status says so with both fingerprints; it is unknown before any is served."""
    assert [ProfileState.STALE, None] == [source.state(Served(name)) for name in ("other", None)]
    found = source.status(Served("other"), 0.05)
    assert ["fingerprint was f, now it is other"] == found["differences"]
    assert str(found["error"]).endswith(
        "profile.json: measured for something else: fingerprint was f, now it is other: "
        "limits are unmeasured; run `twinpool bench` again"
    )


def test_a_profile_that_is_partly_doubted(file: Path) -> None:
    """It stays measured; the error says what is left out and what to do."""
    file.write_text(json.dumps(WHOLE), encoding="utf-8")
    source = ProfileSource(file)
    source.poll()
    found = source.status(OF_F, 0.02)
    assert ("measured", None) == (found["state"], found["two_pools"])
    assert found["error"] == (
        f"{file}: the fit of the plain pool is refused (error 40 %): its limit is unmeasured; "
        "run `twinpool bench` again"
    )


def test_the_answer_at_the_objective(file: Path) -> None:
    """Told of a fitted profile at an objective for which it has one."""
    fit = {"fit": {"points": 9, "error": 0.05, "accepted": True}}
    pools = {role: pool | fit for role, pool in WHOLE["pools"].items()}
    file.write_text(json.dumps(WHOLE | {"pools": pools}), encoding="utf-8")
    source = ProfileSource(file)
    source.poll()
    assert {"tpot_seconds": 0.02, "answer": "two_pools", "margin": 1.3} == source.status(OF_F, 0.02)[
        "two_pools"
    ]
    assert {"tpot_seconds": 0.1, "answer": "one_plain_pool", "margin": None} == source.status(OF_F, 0.1)[
        "two_pools"
    ]
    for served, tpot in ((OF_F, 0.05), (OF_F, None), (Served("other"), 0.02), (Served(), 0.02)):
        assert source.status(served, tpot)["two_pools"] is None


def test_an_edit_acts_when_two_looks_agree(source: ProfileSource, file: Path) -> None:
    """By content: a file that is touched is no edit, one that keeps its size and time is."""
    before = file.stat()
    os.utime(file, (1.0, 1.0))
    assert 500 == context(source, 2)
    file.write_text(profile_text(contextTokens=501), encoding="utf-8")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert 500 == context(source)
    assert 501 == context(source)


def test_a_file_that_is_being_written_is_waited_for(source: ProfileSource, file: Path) -> None:
    """None of its halves is an error."""
    with file.open("w", encoding="utf-8") as writing:
        for start in range(0, len(OTHER), 100):
            writing.write(OTHER[start : start + 100])
            writing.flush()
            assert 500 == context(source)
            assert ProfileState.MEASURED is source.state(OF_F)
    assert 900 == context(source, 2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        (profile_text(schemaVersion=2), "schemaVersion is 2, known here is 1"),
        (profile_text(contextTokens=-1), "contextTokens is the number -1"),
        ('{"schemaVersion": 1, "\udcff": 2}', "fingerprint is missing"),
    ],
)
def test_a_bad_edit_keeps_the_last_good_profile(
    source: ProfileSource, file: Path, text: str, words: str
) -> None:
    """Status is invalid with what is wrong; a good edit mends it."""
    file.write_bytes(text.encode(errors="surrogateescape"))
    assert 500 == context(source, 2)
    found = source.status(OF_F, None)
    assert ("invalid", "2026-11-30T08:00:00Z") == (found["state"], found["made_at"])
    assert f"{file}: {words}" in str(found["error"])
    file.write_text(OTHER, encoding="utf-8")
    assert 900 == context(source, 2)
    assert "measured" == source.status(OF_F, None)["state"]


def test_a_start_with_a_bad_file_has_no_profile(file: Path) -> None:
    """There is no last good one, and it is invalid all the same."""
    file.write_text("{", encoding="utf-8")
    source = ProfileSource(file)
    assert context(source) is None
    assert "invalid" == source.status(OF_F, None)["state"]


def test_a_file_that_is_gone_takes_the_profile_away(source: ProfileSource, file: Path) -> None:
    """At the second look, and until it is back."""
    file.unlink()
    assert [500, None] == [context(source), context(source)]
    assert {
        "path": str(file),
        "state": "none",
        "made_at": None,
        "differences": None,
        "error": f"{file}: there is no such file: limits are unmeasured until it is there",
        "two_pools": None,
    } == source.status(OF_F, 0.05)
    file.write_text(OTHER, encoding="utf-8")
    assert 900 == context(source, 2)


def test_a_file_that_is_replaced_is_never_missed(source: ProfileSource, file: Path) -> None:
    """One look that finds none, between two that do, changes nothing."""
    text = file.read_text(encoding="utf-8")
    file.unlink()
    assert 500 == context(source)
    file.write_text(text, encoding="utf-8")
    assert 500 == context(source, 2)


def test_what_is_no_file_is_invalid(tmp_path: Path) -> None:
    """A folder, a pipe (which is never waited for), and a file that is far too large."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_text(json.dumps("x" * (1 << 20)), encoding="utf-8")
    errors = []
    for name in (".", "pipe", "large"):
        source = ProfileSource(tmp_path / name)
        source.poll()
        errors.append(str(source.status(OF_F, None)["error"]).rpartition(f"{tmp_path}")[2])
    assert [
        ": cannot be read: Is a directory: the controller must be allowed to read it",
        "/pipe: not a regular file: name the profile file",
        "/large: larger than 1048576 bytes: this is no profile",
    ] == errors


def test_a_mounted_config_map_is_followed(config_map: ConfigMapMount) -> None:
    """The kubelet swaps a folder behind the file's name."""
    config_map.publish({"profile.json": profile_text()})
    source = ProfileSource(config_map.folder / "profile.json")
    assert 500 == context(source)
    config_map.publish({"profile.json": OTHER})
    assert 900 == context(source, 2)
