"""Options that say which engines are meant, alike for every command that starts some."""

from __future__ import annotations

from typing import Annotated, get_args

import typer

from deployments.config import EngineSettings

EngineOption = Annotated[
    str | None, typer.Option("--engine", help="vllm, or simulated (no model, no torch). (default: vllm)")
]
ModelOption = Annotated[
    str | None, typer.Option("--model", help="embedded, a model folder, or a hub id. (default: embedded)")
]
SpeculationOption = Annotated[
    str | None,
    typer.Option("--speculation", help="vLLM's speculative_config as JSON. (default: n-gram, K = 4)"),
]


def known_engines() -> tuple[str, ...]:
    """What `--engine` may be."""
    return get_args(EngineSettings.model_fields["kind"].annotation)
