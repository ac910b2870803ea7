"""A mounted ConfigMap as the kubelet writes it: a dated folder, `..data` swapped by rename, links on top.

Import the fixture `config_map`, or use `ConfigMapMount` itself.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


class ConfigMapMount:
    """One volume, a new one or one that is there.  Readers use `folder / NAME`, a link to `..data/NAME`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(exist_ok=True)

    def publish(self, files: dict[str, str]) -> None:
        """Swap in a new set of files, in the kubelet's order, and remove the former one."""
        data = self.folder / "..data"
        former = self.folder / data.readlink() if data.is_symlink() else None
        count = 1 if former is None else 1 + int(former.suffix.removeprefix("."))
        dated = self.folder / f"..2026_01_01_00_00_00.{count:09d}"
        dated.mkdir()
        for name, text in files.items():
            (dated / name).write_bytes(text.encode())
        fresh = self.folder / "..data_tmp"
        fresh.symlink_to(dated.name)
        fresh.replace(data)
        for name in files:
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(Path("..data") / name)
        for link in self.folder.iterdir():
            if not link.name.startswith("..") and link.name not in files:
                link.unlink()
        if former is not None:
            shutil.rmtree(former, ignore_errors=True)  # it may be lost

    def lose_data(self) -> None:
        """Leave the links with nothing behind them, as between two mounts."""
        data = self.folder / "..data"
        shutil.rmtree(self.folder / data.readlink())
        data.unlink()

    def lose_files(self) -> None:
        """Leave `..data` in its place with nothing behind it: a dangling link."""
        shutil.rmtree(self.folder / (self.folder / "..data").readlink())


@pytest.fixture
def config_map(tmp_path: Path) -> ConfigMapMount:
    """An empty volume below the test's folder."""
    return ConfigMapMount(tmp_path / "config-map")
