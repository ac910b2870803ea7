"""What `serve` makes sure of before anything starts: the machine, the models."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console

from autoscaling.decisions import Sizes
from autoscaling.policy_file import read_policy
from autoscaling.policy_in_force import in_force
from autoscaling.policy_world import check_against
from autoscaling.types import Role
from deployments.default_policy import default_policy_text, world
from deployments.embedded_model import resolve_model
from deployments.local_config import ServiceSettings
from deployments.machine import gather
from deployments.model_fetch import ModelError
from deployments.policy_source import PolicySource
from deployments.preflight import Plan, check


class CannotServe(Exception):  # noqa: N818  # an outcome for the user, not a fault
    """One message; nothing has been started."""


def first_sizes(wanted: ServiceSettings, console: Console) -> Sizes:
    """Replicas per pool that the policy begins with, overrides of a former life aside.

    Raises CannotServe with each problem of the file.
    """
    controller = wanted.controller()
    where = wanted.policy or "the default policy"
    if wanted.policy is None:
        text = default_policy_text(controller)
    else:
        if not Path(wanted.policy).exists():
            raise CannotServe(
                f"--policy {wanted.policy}: no such file\nmend: name a policy file that is there"
            )
        seen = PolicySource(Path(wanted.policy)).poll()
        if seen is None or seen.text is None:
            raise CannotServe(f"--policy {seen.problem if seen else 'nothing was found'}")
        text = seen.text
    wall = time.time()
    found = read_policy(text, wall)
    for warning in () if wanted.policy is None else found.warnings:
        console.print(f"warning: {where}: {warning}", style="yellow")
    problems = list(map(str, found.problems))
    if found.policy is not None:
        problems += [str(item) for item in check_against(found, world(controller))]
    if found.policy is None or problems:
        lines = "\n".join(f"  {line}" for line in problems)
        raise CannotServe(
            f"{where} cannot be used:\n{lines}\nmend: correct the file; `twinpool policy validate`"
        )
    return in_force(found.policy, 0, found.sha, overrides=(), hold=None, wall=wall).bootstrap


def check_machine(wanted: ServiceSettings, console: Console) -> None:
    """Memory, disk, processor and port; raises CannotServe with each finding and its mend."""
    pools = [wanted.pool(role) for role in Role]
    flavour = "cpu" if any(pool.engine.kind == "vllm" for pool in pools) else "base"
    plan = Plan(
        flavour=flavour,
        have=flavour,
        engines=wanted.ceiling,
        kv_cache_bytes=max(pool.engine.kv_cache_memory_bytes for pool in pools),
    )
    findings = check(gather(port=wanted.port, host=wanted.host), plan)
    for finding in findings:
        if finding.ok:
            for line in finding.lines():
                console.print(line)
    failed = [line for finding in findings if not finding.ok for line in finding.lines()]
    if failed:
        raise CannotServe("\n".join(failed).removeprefix("error: "))


def prepare_models(wanted: ServiceSettings, console: Console) -> None:
    """Fetch or find each model once, with progress, before any engine asks for it; raises CannotServe."""
    pools = [wanted.pool(role) for role in Role]
    try:
        for name in sorted({pool.engine.model for pool in pools if pool.engine.kind == "vllm"}):
            resolve_model(name, console.print)
    except ModelError as error:
        raise CannotServe(str(error)) from error
    draft = str((wanted.speculative.engine.speculative_config or {}).get("model", ""))
    if draft.startswith(("/", ".", "~")) and not Path(draft).expanduser().is_dir():
        raise CannotServe(
            f"speculative.engine.speculative_config: the draft model {draft} does not exist\n"
            "mend: correct `model` in --speculation or in the settings file"
        )
