"""What Linux tells under /proc and /sys: free memory, the processor's extensions, who listens.

Standard library only, and no syntax newer than Python 3.8: it runs before anything is installed.
Where there is no such file, the answer is that nothing is known.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def available_memory(root: Path = Path("/")) -> tuple[int | None, str]:
    """Free memory in bytes, and whether the machine or a container limits it."""
    free = _mem_available(root)
    limited = _cgroup_available(root)
    if limited is not None and (free is None or limited < free):
        return limited, "container"
    return free, "machine"


def _mem_available(root: Path) -> int | None:
    for line in _read(root / "proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _cgroup_available(root: Path) -> int | None:
    """Find the tightest limit less what is used, over this control group and all above it."""
    rooms = []
    for line in _read(root / "proc/self/cgroup").splitlines():
        parts = line.split(":", 2)
        if len(parts) != 3:
            continue
        if parts[1] == "":
            base, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in parts[1].split(","):
            base = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        group = base / parts[2].lstrip("/")
        for folder in [group, *group.parents]:
            rooms.append(_room(folder, *names))
            if folder == base:
                break
    known = [room for room in rooms if room is not None]
    return min(known) if known else None


def _room(folder: Path, limit_name: str, usage_name: str, reclaimable: str) -> int | None:
    limit = _read(folder / limit_name).strip()
    usage = _read(folder / usage_name).strip()
    # An absent limit is `max`, or a number above any memory in the older interface.
    if not limit.isdigit() or not usage.isdigit() or int(limit) >= 1 << 60:
        return None
    cached = 0
    for line in _read(folder / "memory.stat").splitlines():
        if line.startswith(reclaimable + " "):
            cached = int(line.split()[1])
    return max(0, int(limit) - int(usage) + cached)


def cpu_flags(root: Path = Path("/")) -> frozenset[str] | None:
    """Read the processor's instruction set extensions, where the kernel lists them."""
    for line in _read(root / "proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return None


def port_owner(number: int, root: Path = Path("/")) -> str:
    """`process 123 (name)` of the listener on a port, or nothing when /proc does not tell."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        for line in _read(root / "proc/net" / table).splitlines()[1:]:
            columns = line.split()
            # Column 1 is ADDRESS:PORT in hex, 3 is the state (0A listens), 9 the socket's inode.
            if len(columns) > 9 and columns[3] == "0A" and int(columns[1].rpartition(":")[2], 16) == number:
                inodes.add(f"socket:[{columns[9]}]")
    if not inodes:
        return ""
    for process in (root / "proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for descriptor in (process / "fd").iterdir():
                with contextlib.suppress(OSError):
                    if os.readlink(str(descriptor)) in inodes:  # noqa: PTH115 - Path has it from 3.9 on
                        name = _read(process / "comm").strip() or "unknown"
                        return f"process {process.name} ({name})"
    return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
