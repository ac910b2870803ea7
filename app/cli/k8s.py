"""The `twinpool k8s` group: manifests for Kubernetes, rendered and checked without a cluster."""

from __future__ import annotations

import typer

from app.cli.k8s_lint import lint
from app.cli.k8s_render import render

k8s = typer.Typer(
    help="Render and check the manifests for Kubernetes; no cluster is needed.", no_args_is_help=True
)

for command in (render, lint):
    k8s.command()(command)
