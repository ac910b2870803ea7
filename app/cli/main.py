"""The `twinpool` command: each subcommand in a module of its own."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from app.cli.serve import serve
from app.cli.status import status

OK, FINDING, USAGE = 0, 1, 2  # exit codes: fine; a finding or not ready; usage, or cannot tell

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


cli.command()(serve)
cli.command()(status)


def main() -> None:
    """Console entry point."""
    cli()


if __name__ == "__main__":
    main()
