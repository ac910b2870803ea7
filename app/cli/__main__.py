"""The `twinpool` command from its first moment to its last; `python -m app.cli` is the same."""

from __future__ import annotations

from app.cli import standard_output


def main() -> None:
    """Console entry point; raises SystemExit with the exit code of the command."""
    from app.cli.main import cli  # noqa: PLC0415  # takes most of a second

    with standard_output.checked():
        cli()


if __name__ == "__main__":
    main()
