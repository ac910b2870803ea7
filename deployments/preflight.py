"""Can this machine install and serve twinpool?  Says so before anything is downloaded.

Standard library only, and no syntax newer than Python 3.8: `make` runs it on the user's own Python, and
`twinpool serve` imports it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from deployments.machine import Facts, gather
from deployments.preflight_checks import (
    check_cpu_flags,
    check_cpus,
    check_disk,
    check_glibc,
    check_libnuma,
    check_memory,
    check_port,
    check_python,
    check_shm,
    check_system,
    check_venv_module,
    check_writable,
)
from deployments.preflight_plan import FETCH, FLAVOURS, MODEL, Finding, Plan, covers, gb, gib

__all__ = ["FETCH", "Finding", "Plan", "check", "describe_fetch", "main"]


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
            f"about {cost.download_mb} MB to download, {gb(cost.disk_mb * 1_000_000)} on disk, "
            f"about {cost.minutes} min on a fast network"
        )
    if model:
        lines.append(
            f"to fetch: the embedded model into {facts.cache.path}: "
            f"about {MODEL.download_mb} MB to download, {gb(MODEL.disk_mb * 1_000_000)} on disk "
            f"while it is converted, about {MODEL.minutes} min"
        )
    if plan.serves:
        lines.append(f"while serving: about {gib(plan.memory_bytes)} of memory")
    return lines


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
