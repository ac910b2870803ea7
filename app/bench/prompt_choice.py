"""Which prompts both engines take: what only one of them answers cannot be compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from app.bench.prompt import Prompt, PromptsError
from app.peek import active_parameters, fields_of
from deployments.speculation_limits import NOT_UNDER_SPECULATION


def for_both(prompts: Sequence[Prompt], path: Path, say: Callable[[str], None]) -> tuple[Prompt, ...]:
    """Those that a speculative engine serves too; how many are left out, and for what, is told by `say`.

    Raises PromptsError when there is none.
    """
    refused: dict[str, int] = {}
    kept = []
    for prompt in prompts:
        fields = fields_of(b"application/json", json.dumps(prompt.body).encode())
        found = active_parameters(fields).intersection(NOT_UNDER_SPECULATION)
        for name in found:
            refused[name] = refused.get(name, 0) + 1
        if not found:
            kept.append(prompt)
    if not refused:
        return tuple(kept)
    names = ", ".join(f"{name} ({times})" for name, times in sorted(refused.items()))
    words = (
        f"{path}: no speculative engine serves what these ask for, the number of lines behind each: {names}"
    )
    if not kept:
        raise PromptsError(f"{words}: nothing is left to compare: give prompts without them")
    say(f"{words}; these lines are left out, and the router sends such requests to the plain pool")
    return tuple(kept)
