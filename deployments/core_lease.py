"""A replica's lease on CPU cores: one file lock per core, freed by the kernel at death.

Locks come in layers.  Layer 0 of a core is its exclusive use; a replica that finds no free
layer 0 takes a higher layer and is `oversubscribed`, which is allowed, shown, and spoils figures.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass

from deployments.node_dir import node_dir

MAX_LAYERS = 64  # more replicas than this per core is a mistake, not a plan


class NoCoreError(Exception):
    """Every layer of every core is taken."""


@dataclass(frozen=True, slots=True)
class CoreLease:
    """Cores held until `release` or the end of the process."""

    cores: tuple[int, ...]
    oversubscribed: bool
    descriptors: tuple[int, ...]

    def release(self) -> None:
        """Free the cores."""
        for descriptor in self.descriptors:
            os.close(descriptor)


def lease_cores(count: int, available: frozenset[int] | None = None) -> CoreLease:
    """Lease `count` cores (0 leases none), exclusive ones first.

    `available` defaults to the cores this process may run on.  Raises NoCoreError, or
    ValueError when the machine has fewer cores than asked for.
    """
    if count == 0:
        return CoreLease((), oversubscribed=False, descriptors=())
    cores = sorted(os.sched_getaffinity(0) if available is None else available)
    if count > len(cores):
        raise ValueError(f"cores_per_replica is {count}, this machine offers {len(cores)}: lower it")
    held: list[tuple[int, int]] = []
    worst = 0
    for layer in range(MAX_LAYERS):
        for core in cores:
            if len(held) == count:
                break
            if any(core == taken for taken, _ in held):
                continue
            descriptor = _try_lock(core, layer)
            if descriptor is not None:
                held.append((core, descriptor))
                worst = max(worst, layer)
        if len(held) == count:
            break
    if len(held) < count:
        for _, descriptor in held:
            os.close(descriptor)
        raise NoCoreError(f"{MAX_LAYERS} replicas already share each core of {cores}")
    held.sort()
    return CoreLease(tuple(core for core, _ in held), worst > 0, tuple(descriptor for _, descriptor in held))


def _try_lock(core: int, layer: int) -> int | None:
    path = node_dir("cores") / f"{core}.{layer}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
