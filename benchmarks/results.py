"""What every benchmark leaves behind: `results/NAME.json`, a Markdown table, verdicts, an exit code."""

from __future__ import annotations

import json
import math
import operator
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import psutil

from deployments.device import cpu_model

RESULTS: Final = Path(__file__).parent / "results"
OPERATORS: Final = MappingProxyType(
    {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq}
)
PACKAGES: Final = ("twinpool", "ray", "uvicorn", "uvloop", "aiohttp", "starlette")

Target = tuple[str, float]


class Verdict(StrEnum):
    """What a figure says about its target."""

    HOLDS = "holds"
    MISSED = "missed"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Written:
    """Where the results lie, and what they say."""

    json: Path
    markdown: Path
    verdicts: dict[str, Verdict]

    @property
    def exit_code(self) -> int:
        """0 when all targets hold, 1 when one is missed, 2 when one could not be measured."""
        found = set(self.verdicts.values())
        if Verdict.MISSED in found:
            return 1
        return 2 if Verdict.NOT_MEASURED in found else 0


def write_results(
    name: str,
    figures: Mapping[str, float],
    targets: Mapping[str, Target],
    *,
    text: str = "",
    versions: Mapping[str, str] | None = None,
    folder: Path = RESULTS,
    command: str | None = None,
) -> Written:
    """Write NAME.json and NAME.md, `text` above the verdicts; a figure that is absent was not measured.

    `command` is the make target, `bench-NAME` without it.  Raises ValueError for a figure that is no finite
    number.
    """
    for figure, value in figures.items():
        if not math.isfinite(value):
            raise ValueError(f"figure {figure} of {name} is {value}")
    verdicts = judge(figures, targets)
    data = {
        "figures": dict(figures),
        "targets": {figure: list(target) for figure, target in targets.items()},
        "versions": package_versions() | dict(versions or {}),
        "machine": machine(),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    folder.mkdir(parents=True, exist_ok=True)
    written = Written(folder / f"{name}.json", folder / f"{name}.md", verdicts)
    _replace(written.json, json.dumps(data, indent=2) + "\n")
    _replace(written.markdown, _page(command or f"bench-{name}", figures, targets, verdicts, text, data))
    return written


def judge(figures: Mapping[str, float], targets: Mapping[str, Target]) -> dict[str, Verdict]:
    """Hold every target against its figure; raises KeyError for an unknown operator."""
    verdicts = {}
    for name, (sign, bound) in targets.items():
        compare = OPERATORS[sign]
        if name not in figures:
            verdicts[name] = Verdict.NOT_MEASURED
        else:
            verdicts[name] = Verdict.HOLDS if compare(figures[name], bound) else Verdict.MISSED
    return verdicts


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table: the first column to the left, the others to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float | None) -> str:
    """A figure as tables show it."""
    if value is None:
        return "-"
    size = abs(value)
    return f"{value:,.0f}" if size >= 1000 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def package_versions(names: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Versions of what took part, with Python's and this checkout's commit where there is one."""
    found = {"python": platform.python_version()}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    commit = _commit()
    return found | ({"commit": commit} if commit else {})


def machine() -> dict[str, Any]:
    """The machine in the words that make figures comparable; no host name."""
    affinity = getattr(os, "sched_getaffinity", None)
    return {
        "cpu": cpu_model(),
        "cores": len(affinity(0)) if affinity else os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def _page(
    command: str,
    figures: Mapping[str, float],
    targets: Mapping[str, Target],
    verdicts: Mapping[str, Verdict],
    text: str,
    data: Mapping[str, Any],
) -> str:
    rows = [
        [figure, number(figures.get(figure)), f"{sign} {number(bound)}", verdicts[figure].value]
        for figure, (sign, bound) in targets.items()
    ]
    made = ", ".join(f"{key} {value}" for key, value in data["versions"].items())
    where = data["machine"]
    foot = (
        f"{where['cpu']}, {where['cores']} cores, {where['memory_gib']} GiB, {where['system']}.\n"
        f"{made}.\nMeasured {data['at']}."
    )
    parts = [f"# Results of `make {command}`", text.strip()]
    if rows:
        parts += ["## Targets", markdown_table(("figure", "measured", "target", "verdict"), rows)]
    return "\n\n".join(part for part in [*parts, foot] if part) + "\n"


def _replace(path: Path, text: str) -> None:
    """Write in one step: a reader never sees half a file."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _commit() -> str | None:
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
