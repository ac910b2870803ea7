"""The `twinpool` command: each subcommand in a module of its own."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from app.cli.__main__ import main
from app.cli.bench import bench
from app.cli.demo import demo
from app.cli.hold import hold, release
from app.cli.k8s import k8s
from app.cli.output import OK
from app.cli.override import override
from app.cli.policy import policy
from app.cli.replay import replay
from app.cli.serve import serve
from app.cli.simulate import simulate
from app.cli.status import status
from app.cli.why import why

cli = typer.Typer(
    name="twinpool",
    help="One OpenAI endpoint over a speculative and a plain pool of vLLM replicas.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"twinpool {version('twinpool')}")
        raise typer.Exit(OK)


@cli.callback()
def options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Serve one model from a speculative and a plain pool of vLLM replicas."""


for command in (serve, demo, bench, simulate, replay, status, why, hold, release):
    cli.command()(command)
cli.add_typer(override, name="override")
cli.add_typer(policy, name="policy")
cli.add_typer(k8s, name="k8s")


if __name__ == "__main__":
    main()
