"""What an engine runs on, in words that are the same on every machine of its kind."""

from __future__ import annotations

import platform
from pathlib import Path


def cpu_device(cores: int) -> str:
    """The kind of CPU and how many of its cores an engine has; 0 are all of them."""
    share = "all cores" if cores == 0 else "1 core" if cores == 1 else f"{cores} cores"
    return f"{cpu_model()}, {share}"


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The CPU's own name for itself; that of its architecture where it tells none."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
