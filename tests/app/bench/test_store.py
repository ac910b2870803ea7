"""A measurement as a file, and a former profile as a prior."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from app.bench.alone import this_folder
from app.bench.store import (
    HELD,
    StoreError,
    new_folder,
    prepare_folder,
    read_measurement,
    read_prior,
    write_measurement,
    write_plots,
    write_text,
)
from autoscaling.profiling.profile_text import profile_text
from autoscaling.types import Role
from tests.app.bench.findings_sample import measurement, sample


def test_a_measurement_comes_back_as_it_was(tmp_path: Path) -> None:
    """Every cell, every price of a prompt, what was cut, and what it was made with; by file or folder."""
    written = replace(measurement(), cut=("no time",), versions={"vllm": "1"}, machine={"cores": "2"})
    path = write_measurement(tmp_path, written)

    assert tmp_path / "measurement.json" == path
    assert written == read_measurement(path)
    assert written == read_measurement(tmp_path)


def test_no_half_file_is_left(tmp_path: Path) -> None:
    """The text replaces the former one in one step."""
    for text in ("one", "two"):
        write_text(tmp_path / "profile.json", text)

    assert ["profile.json"] == [path.name for path in tmp_path.iterdir()]
    assert "two" == (tmp_path / "profile.json").read_text()


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """With what to do."""
    with pytest.raises(StoreError, match=r"gone/profile\.json: cannot be written: .* name another folder"):
        write_text(tmp_path / "gone" / "profile.json", "x")


def test_the_folder_is_made_and_nothing_else(tmp_path: Path) -> None:
    """Those above it too."""
    prepare_folder(tmp_path / "a" / "b", ("report.html",))

    assert [] == list((tmp_path / "a" / "b").iterdir())


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """Below a file there is none."""
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be written: Not a directory: name another with --out"):
        prepare_folder(tmp_path / "file" / "out")


def test_a_measurement_is_never_replaced(tmp_path: Path) -> None:
    """A folder that holds one is refused, or passed over for the next free one; reports may go there."""
    base = tmp_path / "bench"
    assert base == new_folder(base)
    for name in ("bench", "bench-2"):
        (tmp_path / name).mkdir()
        write_measurement(tmp_path / name, measurement())

    assert tmp_path / "bench-3" == new_folder(base)
    with pytest.raises(
        StoreError, match="bench: holds a measurement already: name another folder with --out"
    ):
        prepare_folder(base, spared=HELD)
    prepare_folder(base)


@pytest.mark.parametrize("name", ["report.md", "plots"])
def test_what_could_not_be_written_at_the_end_is_told_at_the_beginning(name: str, tmp_path: Path) -> None:
    """A folder where a file goes, and a file where the folder of plots goes; both stay."""
    (tmp_path / "report.md").mkdir() if name == "report.md" else (tmp_path / "plots").touch()
    with pytest.raises(StoreError, match=rf"{name}.*: name another with --out"):
        prepare_folder(tmp_path, ("report.html", "report.md"))

    assert [name] == [path.name for path in tmp_path.iterdir()]


def test_plots_of_a_former_run_are_not_left_behind(tmp_path: Path) -> None:
    """Those that are not drawn any more go; what is not ours stays."""
    ours = re.compile(r"plot-\d\.svg")
    write_plots(tmp_path, {"plot-0.svg": "old", "plot-1.svg": "old"}, ours)
    (tmp_path / "plots" / "mine.svg").touch()
    write_plots(tmp_path, {"plot-0.svg": "new"}, ours)

    assert {"plot-0.svg", "mine.svg"} == {path.name for path in (tmp_path / "plots").iterdir()}
    assert "new" == (tmp_path / "plots" / "plot-0.svg").read_text()


def test_a_measurement_that_broke_off_early_is_told_as_one(tmp_path: Path) -> None:
    """There are logs of engines, and no measurement: nothing can be concluded from it."""
    (tmp_path / "engine-plain.log").touch()
    words = (
        r"measurement\.json: not there: the measurement broke off before its second round was over: measure"
    )
    with pytest.raises(StoreError, match=words):
        read_measurement(tmp_path)


def test_a_measurement_that_goes_on_is_told_as_one(tmp_path: Path) -> None:
    """It has nothing yet to conclude from."""
    (tmp_path / "engine-plain.log").touch()
    words = "it is written after the second round of the measurement that goes on"
    with this_folder(tmp_path, measures=True), pytest.raises(StoreError, match=words):
        read_measurement(tmp_path)


def test_what_others_used_is_unknown_in_an_older_file(tmp_path: Path) -> None:
    """The version is the same; what is there comes back."""
    path = write_measurement(tmp_path, replace(measurement(), others_cores=(0.25, 1.5)))
    assert (0.25, 1.5) == read_measurement(path).others_cores

    older = json.loads(path.read_text())
    del older["others_cores"]
    path.write_text(json.dumps(older))
    assert () == read_measurement(path).others_cores


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("runs", 0, "tpot_s"), "x", r"Expected `float \| null`, got `str` - at `\$\.runs\[0\]\.tpot_s`"),
        (("runs", 3, "tpot_s"), -0.5, r"Expected at least 0, got -0\.5 - at `\$\.runs\[3\]\.tpot_s`"),
        (("prefills", 1, "prompt_tokens"), -7, r"at least 0, got -7 - at `\$\.prefills\[1\]\.prompt_tokens`"),
        (("runs", 0, "cell", "sequences"), 0, r"at least 1, got 0 - at `\$\.runs\[0\]\.cell\.sequences`"),
        (("runs", 2, "failed"), None, r"Object missing required field `failed` - at `\$\.runs\[2\]`"),
    ],
)
def test_a_measurement_that_was_edited_by_hand(
    place: tuple[str | int, ...], value: object, words: str, tmp_path: Path
) -> None:
    """A wrong type, a number that cannot be measured and a missing field are told with their place."""
    path = write_measurement(tmp_path, measurement())
    edited = json.loads(path.read_text())
    *inner, last = place
    part = edited
    for name in inner:
        part = part[name]
    if value is None:
        del part[last]
    else:
        part[last] = value
    path.write_text(json.dumps(edited))

    with pytest.raises(
        StoreError, match=rf"measurement\.json: no measurement: .*{words}: name a measurement"
    ):
        read_measurement(tmp_path)


@pytest.mark.parametrize(
    ("words", "data"),
    [
        ("no measurement: .*: name a measurement.json", b"\xff\xfe"),
        ("no measurement: Object missing required field `version`", b"{}"),
        ("no measurement: Object missing required field `made_at`", b'{"version": 1}'),
        ("version 2, known here is 1: measure again, or update twinpool", b'{"version": 2, "new": 1}'),
    ],
)
def test_what_is_no_measurement_of_this_version(words: str, data: bytes, tmp_path: Path) -> None:
    """The version is looked at before the fields."""
    (tmp_path / "measurement.json").write_bytes(data)
    with pytest.raises(StoreError, match=words):
        read_measurement(tmp_path)


def test_a_prior_is_the_costs_of_a_profile(tmp_path: Path) -> None:
    """Of both engines."""
    path = tmp_path / "profile.json"
    path.write_text(profile_text(sample()))

    found = read_prior(path)
    assert {Role.SPECULATIVE, Role.PLAIN} == set(found)
    assert pytest.approx(sample().fits[Role.PLAIN].cost.base_s) == found[Role.PLAIN].base_s


@pytest.mark.parametrize("data", [b"{", b"\xff\xfe", b'{"schemaVersion": 1}'])
def test_a_prior_that_is_no_profile(data: bytes, tmp_path: Path) -> None:
    """The file is named, and that it can be left out."""
    path = tmp_path / "profile.json"
    path.write_bytes(data)
    with pytest.raises(StoreError, match=r"--prior .*profile\.json: .*leave --prior out"):
        read_prior(path)
