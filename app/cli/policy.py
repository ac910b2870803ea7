"""The `twinpool policy` group: each command in a module of its own."""

from __future__ import annotations

import typer

from app.cli.policy_apply import apply
from app.cli.policy_compare import diff
from app.cli.policy_live import history, rollback
from app.cli.policy_reference import explain, schema, starters
from app.cli.policy_validate import validate

policy = typer.Typer(
    help="Check, compare, apply, explain and roll back the policy file.", no_args_is_help=True
)

for command in (validate, schema, explain, starters, diff, apply, history, rollback):
    policy.command()(command)
