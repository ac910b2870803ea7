"""`twinpool serve`: bring the service up on this machine, say what to try, drain on Ctrl-C."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer
from rich.console import Console

from app.cli.settings import SettingsError, load, parse_speculation
from app.cli.startup import StartFailed, follow_start
from app.cli.try_it import suggestions
from autoscaling.types import Role
from deployments.embedded_model import resolve_model
from deployments.local_cluster import begin_stop, drain_limit_s, local_cluster, redeploy, stopped
from deployments.local_config import ServiceSettings
from deployments.machine import gather
from deployments.model_fetch import ModelError
from deployments.preflight import Plan, check

console = Console(stderr=True, highlight=False, soft_wrap=True)

FINDING, USAGE = 1, 2


class CannotServe(Exception):  # noqa: N818
    """One message for the user; nothing is left running."""


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; loopback needs no keys.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8000,
    engine: Annotated[str, typer.Option(help="vllm, or simulated (no model, no torch).")] = "vllm",
    model: Annotated[str, typer.Option(help="embedded, a model folder, or a hub id.")] = "embedded",
    served_name: Annotated[str, typer.Option(help="Model name in the API.")] = "smollm2-135m",
    speculation: Annotated[
        str | None, typer.Option(help="vLLM's speculative_config as JSON; n-gram with K = 4 by default.")
    ] = None,
    speculative_replicas: Annotated[
        int | None, typer.Option(help="Replicas of the speculative pool.")
    ] = None,
    plain_replicas: Annotated[int | None, typer.Option(help="Replicas of the plain pool.")] = None,
    front: Annotated[str, typer.Option(help="proxy (Serve's own) or haproxy.")] = "proxy",
    settings: Annotated[Path | None, typer.Option(help="YAML file with every other setting.")] = None,
    insecure_no_auth: Annotated[
        bool, typer.Option("--insecure-no-auth", help="Listen beyond loopback without any key.")
    ] = False,
) -> None:
    """Serve both pools behind one OpenAI endpoint until Ctrl-C, then drain.

    Exit codes: 0 after a drain, 1 when the service could not start, 2 for wrong usage.
    """
    overrides: dict[str, Any] = {"host": host, "port": port, "front": front}
    for role, count in ((Role.SPECULATIVE, speculative_replicas), (Role.PLAIN, plain_replicas)):
        if count is not None:
            overrides[role.value] = {"replicas": count}

    def read() -> ServiceSettings:
        if engine not in ("vllm", "simulated"):
            raise SettingsError(f"--engine is vllm or simulated, not {engine}")
        defaults = {
            "engine": engine,
            "model": model,
            "served_name": served_name,
            "speculation": parse_speculation(speculation),
        }
        return load(settings, overrides, defaults)

    try:
        wanted = read()
        _refuse_open_door(wanted.host, insecure_no_auth)
    except SettingsError as error:
        console.print(f"[red]error:[/red] {error}")
        raise typer.Exit(USAGE) from error
    try:
        _check_machine(wanted)
        _prepare_model(wanted)
        _run(wanted, read)
    except (CannotServe, StartFailed) as error:
        console.print(f"[red]error:[/red] {error}")
        raise typer.Exit(FINDING) from error


def _refuse_open_door(host: str, insecure: bool) -> None:
    """A service without keys stays on loopback unless the user insists."""
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if loopback:
        return
    if not insecure:
        raise SettingsError(
            f"--host {host} is reachable by others and no API key is configured: "
            "listen on 127.0.0.1, or say --insecure-no-auth if everyone may use it"
        )
    console.print(f"[bold red]warning:[/bold red] anyone who can reach {host} may use this service")


def _check_machine(wanted: ServiceSettings) -> None:
    kinds = {wanted.pool(role).engine.kind for role in Role}
    flavour = "cpu" if "vllm" in kinds else "base"
    plan = Plan(
        flavour=flavour,
        have=flavour,
        engines=wanted.slots,
        kv_cache_bytes=max(wanted.pool(role).engine.kv_cache_memory_bytes for role in Role),
    )
    findings = check(gather(port=wanted.port, host=wanted.host), plan)
    for finding in findings:
        if finding.ok:
            for line in finding.lines():
                console.print(line)
    failed = [line for finding in findings if not finding.ok for line in finding.lines()]
    if failed:
        raise CannotServe("\n".join(failed).removeprefix("error: "))


def _prepare_model(wanted: ServiceSettings) -> None:
    """Fetch or find each model once, with progress, before any engine starts."""
    models = {wanted.pool(role).engine.model for role in Role if wanted.pool(role).engine.kind == "vllm"}
    drafts = {(wanted.speculative.engine.speculative_config or {}).get("model")} - {None}
    try:
        for name in sorted(models):
            resolve_model(name, console.print)
    except ModelError as error:
        raise CannotServe(str(error)) from error
    for draft in drafts:
        if str(draft).startswith(("/", ".", "~")) and not Path(str(draft)).expanduser().is_dir():
            raise CannotServe(
                f"speculative.engine.speculative_config: the draft model {draft} does not exist; "
                "mend `model` in --speculation or in the settings file"
            )


def _run(wanted: ServiceSettings, read: Callable[[], ServiceSettings]) -> None:
    url = f"http://{wanted.host}:{wanted.port}"
    console.print(f"starting Ray and {wanted.slots} replicas ({wanted.speculative.engine.kind} engine)")
    began = time.monotonic()
    with _listen() as signals:
        stop = signals.stop
        try:
            with local_cluster(wanted):
                if follow_start(wanted, url, console, stop):
                    console.print(f"[green]ready[/green] after {time.monotonic() - began:.0f} s")
                    print(suggestions(url, wanted.plain.engine.served_name), flush=True)
                    wanted = _until_stopped(wanted, read, signals)
                _drain(wanted, stop)
        finally:
            _end_children()
    console.print("stopped")


def _drain(wanted: ServiceSettings, stop: threading.Event) -> None:
    """Let open answers finish; a second Ctrl-C cuts them."""
    stop.clear()
    console.print("draining: open answers finish, new requests are refused; Ctrl-C again cuts them")
    limit_s = drain_limit_s(wanted)
    began = time.monotonic()
    begin_stop()
    shown = began
    while not stopped() and not stop.is_set() and time.monotonic() - began < limit_s:
        stop.wait(0.2)
        if time.monotonic() - shown > 5:
            shown = time.monotonic()
            console.print(f"  still draining, {shown - began:.0f} s of at most {limit_s:.0f}")


def _until_stopped(
    wanted: ServiceSettings, read: Callable[[], ServiceSettings], signals: Signals
) -> ServiceSettings:
    """Wait for the end; on SIGHUP deploy what the settings file says now, without losing a stream."""
    slots = wanted.slots
    while not signals.stop.wait(0.2):
        if not signals.reload.is_set():
            continue
        signals.reload.clear()
        try:
            wanted = _fixed(wanted, read(), slots)
        except SettingsError as error:
            console.print(f"[red]settings not taken, the old ones stay:[/red] {error}")
            continue
        redeploy(wanted)
        console.print("settings taken: what changed is being rolled out")
    return wanted


def _fixed(old: ServiceSettings, new: ServiceSettings, slots: int) -> ServiceSettings:
    """Refuse what cannot change in a running service."""
    for name in ("host", "port", "front"):
        if getattr(old, name) != getattr(new, name):
            raise SettingsError(f"{name} cannot change while serving: stop and start again")
    if new.slots > slots:
        raise SettingsError(
            f"{new.slots} replicas need as many engine slots, this cluster was started with {slots}: "
            "stop and start again"
        )
    return new


@dataclass(frozen=True, slots=True)
class Signals:
    """What the user has asked for by signal."""

    stop: threading.Event
    reload: threading.Event


@contextlib.contextmanager
def _listen() -> Iterator[Signals]:
    """SIGINT and SIGTERM stop, SIGHUP reloads; the third stop signal ends the process at once."""
    signals = Signals(threading.Event(), threading.Event())
    seen = 0

    def stop(_number: int, _frame: Any) -> None:
        nonlocal seen
        seen += 1
        if seen > 2:
            _end_children()
            os._exit(130)
        signals.stop.set()

    def reload(_number: int, _frame: Any) -> None:
        signals.reload.set()

    handlers = {signal.SIGINT: stop, signal.SIGTERM: stop, signal.SIGHUP: reload}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_children() -> None:
    """Nothing of ours may outlive us: what Ray's shutdown left is killed."""
    left = psutil.Process().children(recursive=True)
    _, alive = psutil.wait_procs(left, timeout=5)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    if alive:
        print(f"ended {len(alive)} processes that outlived the shutdown", file=sys.stderr)
