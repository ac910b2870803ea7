"""What `policy rollback --write` may replace, and what it leaves alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from app.cli.policy_text import UnreplaceableError, replace

OLD, NEW = "old\n", "new\n"


def mounted(folder: Path) -> Path:
    """A policy as the kubelet mounts a ConfigMap."""
    data = folder / "..2026_01_01"
    data.mkdir()
    (data / "policy.yaml").write_text(OLD, encoding="utf-8")
    (folder / "..data").symlink_to(data.name)
    file = folder / "policy.yaml"
    file.symlink_to("..data/policy.yaml")
    return file


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_new_file_is_written(tmp_path: Path) -> None:
    """What is not there yet stands in nobody's way."""
    replace(tmp_path / "policy.yaml", NEW)

    assert NEW == (tmp_path / "policy.yaml").read_text(encoding="utf-8")


def test_a_file_behind_links_is_replaced(tmp_path: Path) -> None:
    """Every link on the way stays a link."""
    real, middle, link = tmp_path / "real.yaml", tmp_path / "middle", tmp_path / "link"
    real.write_text(OLD, encoding="utf-8")
    middle.symlink_to(real.name)
    link.symlink_to(middle.name)

    replace(link, NEW)

    assert NEW == real.read_text(encoding="utf-8")
    assert (True, True, False) == (link.is_symlink(), middle.is_symlink(), real.is_symlink())


@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_stays_a_pipe(tmp_path: Path, linked: bool) -> None:
    """What is no regular file is neither replaced nor waited for, also behind a link."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe.name)

    with pytest.raises(UnreplaceableError, match="pipe is not a regular file"):
        replace(link if linked else pipe, NEW)

    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert ["link", "pipe"] == names(tmp_path)


def test_a_folder_stays_a_folder(tmp_path: Path) -> None:
    """The message says that it is one."""
    folder = tmp_path / "policies"
    folder.mkdir()

    with pytest.raises(UnreplaceableError, match="policies is a folder"):
        replace(folder, NEW)

    assert ["policies"] == names(tmp_path)
    assert [] == names(folder)


def test_links_in_a_circle(tmp_path: Path) -> None:
    """There is no file behind them; that is said, and they stay."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.symlink_to(other.name)
    other.symlink_to(one.name)

    with pytest.raises(UnreplaceableError, match="a link in a circle"):
        replace(one, NEW)

    assert ["one", "other"] == names(tmp_path)


@pytest.mark.parametrize(
    "name", ["policy.yaml", "new.yaml", "..data/policy.yaml", "..2026_01_01/policy.yaml"]
)
def test_a_mounted_config_map_is_left_alone(tmp_path: Path, name: str) -> None:
    """The kubelet exchanges all of it: what is written there is lost, so the ConfigMap is to be edited."""
    file = mounted(tmp_path)

    with pytest.raises(UnreplaceableError, match="belongs to a mounted ConfigMap") as raised:
        replace(tmp_path / name, NEW)

    assert "twinpool policy apply" in raised.value.mend
    assert OLD == file.read_text(encoding="utf-8")
    assert ["..2026_01_01", "..data", "policy.yaml"] == names(tmp_path)


def test_a_link_into_a_mounted_config_map(tmp_path: Path) -> None:
    """From outside it is the same file."""
    inside, link = tmp_path / "mounted", tmp_path / "link.yaml"
    inside.mkdir()
    link.symlink_to(mounted(inside))

    with pytest.raises(UnreplaceableError, match="belongs to a mounted ConfigMap"):
        replace(link, NEW)

    assert OLD == link.read_text(encoding="utf-8")
