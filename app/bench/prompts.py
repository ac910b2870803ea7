"""The prompts of a measurement: built in, or the user's own."""

from __future__ import annotations

from app.bench.built_in import WORKLOADS, built_in, for_workloads
from app.bench.prompt import CONTEXTS, Context, Prompt, PromptsError, cells_of, context_of
from app.bench.prompt_choice import for_both
from app.bench.prompt_file import read_prompts

__all__ = [
    "CONTEXTS",
    "WORKLOADS",
    "Context",
    "Prompt",
    "PromptsError",
    "built_in",
    "cells_of",
    "context_of",
    "for_both",
    "for_workloads",
    "read_prompts",
]
