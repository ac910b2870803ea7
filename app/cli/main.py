"""The `twinpool` command: each subcommand in a module of its own."""

from __future__ import annotations

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
cli.command()(serve)
cli.command()(status)


def main() -> None:
    """Console entry point."""
    cli()


if __name__ == "__main__":
    main()
