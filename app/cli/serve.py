"""`twinpool serve`: bring the service up on this machine, say what to try, drain on Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from app.cli.checks import CannotServe, check_machine, first_sizes, prepare_models
from app.cli.draining import drain
from app.cli.engine_options import EngineOption, ModelOption, SpeculationOption
from app.cli.ray_watch import RayGone
from app.cli.running import until_stopped
from app.cli.settings import Options, SettingsError, load
from app.cli.signals import adopt_orphans, end_children, listening, reap_adopted
from app.cli.startup import StartFailed, follow_start
from app.cli.try_it import own_command, suggestions
from autoscaling.decisions import Sizes
from deployments import local_cluster
from deployments.local_config import ServiceSettings
from deployments.ports import is_loopback

FINDING, USAGE = 1, 2

# No markup: a path or an error may hold square brackets.
console = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)


def serve(
    host: Annotated[
        str | None,
        typer.Option(
            help="Address to listen on; beyond loopback see --insecure-no-auth. (default: 127.0.0.1)"
        ),
    ] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on. (default: 8000)")] = None,
    engine: EngineOption = None,
    model: ModelOption = None,
    served_name: Annotated[
        str | None, typer.Option(help="Model name in the API. (default: smollm2-135m)")
    ] = None,
    speculation: SpeculationOption = None,
    speculative_replicas: Annotated[
        int | None, typer.Option(help="Replicas of the speculative pool. (default: 1)")
    ] = None,
    plain_replicas: Annotated[
        int | None, typer.Option(help="Replicas of the plain pool. (default: 1)")
    ] = None,
    front: Annotated[
        str | None, typer.Option(help="proxy (Serve's own) or haproxy. (default: proxy)")
    ] = None,
    settings: Annotated[
        Path | None,
        typer.Option(help="YAML file with every setting; SIGUSR1 makes a running service reread it."),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(help="Policy file: how capacity moves between the pools; taken anew when it changes."),
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(help="Profile file, as `twinpool bench` writes it; taken anew when it changes."),
    ] = None,
    slots: Annotated[
        int | None,
        typer.Option(
            help="Engine slots for both pools, the most any policy may use. (default: the replicas)"
        ),
    ] = None,
    state_dir: Annotated[
        str | None,
        typer.Option(help="Folder of the controller's state, or none. (default: one of the user's per port)"),
    ] = None,
    record: Annotated[
        Path | None, typer.Option(help="Folder for records of observations, decisions and requests.")
    ] = None,
    insecure_no_auth: Annotated[
        bool, typer.Option("--insecure-no-auth", help="Listen beyond loopback without any key.")
    ] = False,
) -> None:
    """Serve both pools behind one OpenAI endpoint until Ctrl-C, then drain.

    What is given here wins over the settings file.
    Exit codes: 0 after a drain, 1 when the service could not start, 2 for wrong usage.
    """
    options = Options(
        host,
        port,
        front,
        engine,
        model,
        served_name,
        speculation,
        speculative_replicas,
        plain_replicas,
        settings,
        policy,
        slots,
        state_dir,
        record,
        profile,
    )
    try:
        wanted = load(options)
        wanted = wanted.model_copy(update={"slots": wanted.ceiling})
        _refuse_open_door(wanted.host, insecure_no_auth)
    except SettingsError as error:
        console.print(f"error: {error}", style="red")
        raise typer.Exit(USAGE) from error
    try:
        sizes = first_sizes(wanted, console)
        check_machine(wanted, console)
        prepare_models(wanted, console)
        _run(wanted, sizes, lambda: load(options))
    except (CannotServe, StartFailed) as error:
        console.print(f"error: {error}", style="red")
        raise typer.Exit(FINDING) from error


def _refuse_open_door(host: str, insecure: bool) -> None:
    """A service without keys stays on loopback unless the user insists."""
    if is_loopback(host):
        return
    if not insecure:
        raise SettingsError(
            f"--host {host} is reachable by others and no API key is configured: "
            "listen on 127.0.0.1, or say --insecure-no-auth if everyone may use it"
        )
    console.print(f"warning: anyone who can reach {host} may use this service", style="bold red")


def _run(wanted: ServiceSettings, sizes: Sizes, read: Callable[[], ServiceSettings]) -> None:
    url = f"http://{wanted.host}:{wanted.port}"
    replicas = sum(sizes.values())
    console.print(f"starting Ray and {replicas} replicas ({wanted.speculative.engine.kind} engine)")
    began = time.monotonic()
    adopt_orphans()
    with listening() as signals:
        try:
            with local_cluster.local_cluster(wanted), _ending_with_ray():
                reap_adopted()
                signals.install()  # again: ray.init has put its own handler for SIGTERM
                console.print(f"logs: {local_cluster.log_folder()}")
                if follow_start(wanted, sizes, url, console, signals.stop):
                    seconds = time.monotonic() - began
                    console.print(f"ready after {seconds:.0f} s, pid {os.getpid()}", style="green")
                    print(suggestions(url, wanted.plain.engine.served_name, own_command()), flush=True)
                    wanted = until_stopped(wanted, read, signals, console)
                    drain(wanted, signals, console)
                else:
                    console.print("start cancelled, stopping")
        finally:
            end_children()
            local_cluster.remove_traces(wanted)
    console.print("stopped")


@contextlib.contextmanager
def _ending_with_ray() -> Iterator[None]:
    """End at once when Ray is gone: whatever would ask it to stop could wait for it for ever."""
    try:
        yield
    except RayGone as error:
        console.print(f"error: {error}", style="red")
        end_children(grace_s=0.0)
        os._exit(FINDING)
