"""The draft length K of a running vLLM engine: read and changed inside EngineCore.

vLLM 0.32 looks K up by the number of running sequences in a list that it makes at start, when
`num_speculative_tokens_per_batch_size` is set.  Replacing the list's items changes K at the next step, in
mid-request too.  Only methods that honour K for drafting gain from it: n-gram, a draft model and EAGLE on
the V1 runner.  `register` is called in every process of an engine, by the plugin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

GET = "twinpool_draft_lengths"
SET = "twinpool_set_draft_lengths"


def register() -> None:
    """Give EngineCore the two methods; raises ImportError or AttributeError for another vLLM."""
    from vllm.v1.engine.core import EngineCore  # noqa: PLC0415  # in a child of a replica only

    setattr(EngineCore, GET, _get)
    setattr(EngineCore, SET, _set)


def _get(core: Any) -> list[int]:
    return list(getattr(core.scheduler, "dynamic_sd_lookup", None) or ())


def _set(core: Any, table: Sequence[int]) -> list[int]:
    """Replace the table and return the old one; refuses with ValueError what the scheduler could not take."""
    scheduler = core.scheduler
    current = getattr(scheduler, "dynamic_sd_lookup", None)
    if not current:
        raise ValueError("this engine was started without num_speculative_tokens_per_batch_size: K is fixed")
    if len(table) != len(current):
        raise ValueError(f"the table has {len(table)} entries, this engine's has {len(current)}")
    most = scheduler.num_spec_tokens
    wrong = [length for length in table if type(length) is not int or not 0 <= length <= most]
    if wrong:
        raise ValueError(f"a draft length is {wrong[0]!r}: whole numbers from 0 to {most} are possible")
    before = list(current)
    current[:] = table
    return before
