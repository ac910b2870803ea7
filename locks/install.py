"""Make the virtual environment that `make` works in, from the lock files beside this script.

Standard library only: it runs on the user's own Python, before anything is installed.  The stamp that
says `prepared` is written last and in one step, so an interrupted run is simply continued by the next.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
LOCKS = {
    "base": ("build.txt", "base.txt"),
    "cpu": ("build.txt", "cpu.txt"),
    "dev": ("build.txt", "cpu.txt", "dev.txt"),
}
PROOF = {
    "base": ("ray", "ray.serve", "aiohttp", "msgspec", "typer"),
    "cpu": ("ray", "ray.serve", "torch", "transformers", "vllm"),
    "dev": ("ray", "ray.serve", "torch", "transformers", "vllm", "pytest", "mypy"),
}
HEARTBEAT_S = 15.0
LARGE_MB = 20.0  # downloads from this size on get a line of their own
HOME_FILE = ".twinpool-home"


class InstallError(Exception):
    """The environment could not be made; the message ends with the mend."""


@dataclass
class Progress:
    """Lines on stdout, each with the seconds since the start."""

    started: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        """Show one line."""
        sys.stdout.write(f"[{time.monotonic() - self.started:4.0f} s] {text}\n")
        sys.stdout.flush()


def output_of(process: subprocess.Popen[str]) -> Iterator[str | None]:
    """Yield the lines of a process, and None whenever it has been silent for a while."""
    lines: queue.Queue[str | None] = queue.Queue()
    ended = threading.Event()

    def read() -> None:
        with contextlib.suppress(ValueError):  # closed under us when the user interrupts
            for line in process.stdout or ():
                lines.put(line.rstrip())
        ended.set()
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=HEARTBEAT_S)
        except queue.Empty:
            yield None
            continue
        if line is None and ended.is_set():
            return
        yield line


@dataclass
class Environment:
    """One virtual environment and the log of what was done to it."""

    path: Path
    progress: Progress

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.path / "bin" / "python"

    @property
    def log(self) -> Path:
        """Everything that pip said."""
        return self.path / "install.log"

    def usable(self) -> bool:
        """Whether it runs, has pip, and still lies where it was made."""
        home = self.path / HOME_FILE
        if home.exists() and home.read_text(encoding="utf-8").strip() != str(self.path):
            return False  # its scripts name the old place
        try:
            done = subprocess.run(  # noqa: S603
                [str(self.python), "-m", "pip", "--version"], capture_output=True, check=False
            )
        except OSError:
            return False
        return done.returncode == 0

    def make(self) -> None:
        """Create it, or keep the one that is there."""
        if self.usable():
            return
        in_the_way = self.path.exists() and any(self.path.iterdir())
        if in_the_way and not (self.path / "pyvenv.cfg").exists():
            raise InstallError(f"{self.path} exists and is no virtual environment; give another: VENV=PATH")
        version = ".".join(str(part) for part in sys.version_info[:2])
        self.progress.say(f"making {self.path} with Python {version}")
        done = subprocess.run([sys.executable, "-m", "venv", "--clear", str(self.path)], check=False)  # noqa: S603
        if done.returncode != 0:
            raise InstallError("Python could not make a virtual environment; its message is above")
        (self.path / HOME_FILE).write_text(f"{self.path}\n", encoding="utf-8")

    def pip(self, arguments: Sequence[str], *, packages: int) -> bool:
        """Run pip, show how far it is; returns whether it succeeded."""
        command = [str(self.python), "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
        with (
            self.log.open("a", encoding="utf-8") as log,
            subprocess.Popen(  # noqa: S603
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=PROJECT
            ) as process,
        ):
            log.write(f"\n$ {' '.join(command)}\n")
            seen = 0
            current = "pip starts"
            for line in output_of(process):
                if line is None:
                    self.progress.say(f"  still busy: {current}")
                    continue
                log.write(f"{line}\n")
                if line.startswith(("Collecting", "Requirement already satisfied", "Processing")):
                    seen += 1
                    current = line.partition(" (from")[0]
                    if seen % 50 == 0:
                        self.progress.say(f"  {seen} of {packages} packages looked up")
                elif size := _download_size(line):
                    current = line.strip()
                    if size >= LARGE_MB:
                        self.progress.say(f"  {current}")
                elif line.startswith("Installing collected packages"):
                    current = "installing"
                    self.progress.say("  writing them to disk")
        return process.returncode == 0

    def last_words(self) -> str:
        """Return the end of pip's log, for a failure."""
        with contextlib.suppress(OSError):
            last_run = self.log.read_text(encoding="utf-8").rpartition("\n$ ")[2]
            return "\n".join(line[:300] for line in last_run.splitlines()[1:][-8:])
        return ""

    def prove(self, modules: Sequence[str]) -> None:
        """Import what serving needs; an environment that cannot is not called prepared."""
        names = ", ".join(modules)
        self.progress.say(f"proving that these import: {names}")
        done = subprocess.run(  # noqa: S603
            [str(self.python), "-c", f"import {names}"],
            capture_output=True,
            text=True,
            check=False,
            cwd=PROJECT,
            env={**os.environ, "VLLM_CONFIGURE_LOGGING": "0", "VLLM_NO_USAGE_STATS": "1"},
        )
        if done.returncode != 0:
            raise InstallError(
                f"the installed packages do not import:\n{done.stderr[-2000:]}\n"
                "mend: `make clean`, then again; `make serve ENGINE=simulated` needs neither torch nor vLLM"
            )


def _download_size(line: str) -> float:
    """Megabytes that a pip line says it downloads, else 0."""
    found = re.search(r"Downloading \S+ \(([0-9.]+) (MB|GB)\)", line)
    if not found:
        return 0.0
    return float(found[1]) * (1000.0 if found[2] == "GB" else 1.0)


def count(names: Sequence[str]) -> int:
    """How many packages some lock files list."""
    texts = [(HERE / name).read_text(encoding="utf-8") for name in names]
    return sum(1 for text in texts for line in text.splitlines() if line and not line.startswith("#"))


def install_packages(environment: Environment, flavour: str) -> None:
    """Install everything but torch: exact versions, wheels only."""
    names = LOCKS[flavour]
    packages = count(names)
    environment.progress.say(f"{packages} packages from {', '.join(f'locks/{name}' for name in names)}")
    files = [part for name in names for part in ("-r", str(HERE / name))]
    if not environment.pip(["install", "--no-deps", "--only-binary", ":all:", *files], packages=packages):
        raise InstallError(
            f"pip could not install them; the end of {environment.log}:\n{environment.last_words()}\n"
            "mend: check the network and run the same command again, it continues where it stopped"
        )


def install_torch(environment: Environment, index: str) -> None:
    """Install the CPU build of torch, from wherever pip finds it, else from PyTorch's own index."""
    lock = ["install", "--no-deps", "--only-binary", ":all:", "-r", str(HERE / "torch.txt")]
    environment.progress.say("torch, CPU build")
    if environment.pip(lock, packages=1):
        return
    environment.progress.say(f"  not among pip's configured sources; taking it from {index}")
    if not environment.pip([*lock, "--index-url", index], packages=1):
        raise InstallError(
            f"torch could not be installed; the end of {environment.log}:\n{environment.last_words()}\n"
            f"mend: check that {index} can be reached, or name a mirror of it: TORCH_INDEX=URL"
        )


def install_project(environment: Environment) -> None:
    """Install twinpool itself, so that the files of the checkout are what runs."""
    environment.progress.say("twinpool itself, editable")
    arguments = ["install", "--no-deps", "--no-build-isolation", "--editable", str(PROJECT)]
    if not environment.pip(arguments, packages=1):
        raise InstallError(f"twinpool could not be installed:\n{environment.last_words()}")


@contextlib.contextmanager
def alone(venv: Path, progress: Progress) -> Iterator[None]:
    """Hold the lock of this environment, so that two `make` runs do not write it at once."""
    venv.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(venv.parent, os.O_RDONLY)  # a folder can be locked too, and needs no file left behind
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            progress.say(f"another run is making {venv}; waiting for it")
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def write_stamp(stamp: Path) -> None:
    """Say that the environment is prepared, replacing what earlier locks said."""
    for old in stamp.parent.glob(".prepared-*"):
        if old.name.rpartition("-")[2] != stamp.name.rpartition("-")[2]:
            old.unlink(missing_ok=True)
    temporary = stamp.with_name(f"{stamp.name}.new")
    temporary.write_text("", encoding="utf-8")
    temporary.replace(stamp)


def prepare(flavour: str, venv: Path, stamp: Path, torch_index: str) -> None:
    """Bring the environment to `flavour` and prove it."""
    progress = Progress()
    with alone(venv, progress):
        environment = Environment(venv, progress)
        if stamp.exists() and environment.usable():
            return
        environment.make()
        install_packages(environment, flavour)
        if flavour != "base":
            install_torch(environment, torch_index)
        install_project(environment)
        environment.prove(PROOF[flavour])
        write_stamp(stamp)
        progress.say(f"prepared: {venv}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line of `make install`; returns 0, or 2 when the environment cannot be made."""
    parser = argparse.ArgumentParser(description="Make the virtual environment from the lock files.")
    parser.add_argument("--flavour", choices=sorted(LOCKS), required=True)
    parser.add_argument("--venv", type=Path, required=True)
    parser.add_argument("--stamp", type=Path, required=True)
    parser.add_argument("--torch-index", required=True)
    options = parser.parse_args(arguments)
    venv = Path(os.path.abspath(options.venv))  # noqa: PTH100 - resolve() would follow a link
    try:
        prepare(options.flavour, venv, venv / options.stamp.name, options.torch_index)
    except InstallError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted; the same command continues where it stopped\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
