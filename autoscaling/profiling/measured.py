"""What a measurement of both engines has found, before anything is fitted; read this first.

`app.bench` writes it to `measurement.json` and reads it back, so that a fit or a report can be made anew.
Seconds, tokens and sequences; `None` is unknown, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from autoscaling.types import Role

BUSY: Final = 0.1  # of the cores, by others: with one engine on each of two, a fifth of its time at worst
MEASUREMENT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a measurement holds for; another value of any part makes it a prior only."""

    model: str  # model_fingerprint of the replicas: weights, tokenizer, template, dtype, quantisation
    engine: str | None = None  # "vllm" | "simulated"
    engine_version: str | None = None
    device: str | None = None  # kind of accelerator or CPU
    tensor_parallel: int | None = None
    max_model_len: int | None = None
    method: str | None = None  # speculation method
    draft: str | None = None  # draft model, by content where it is a folder; None for a method without one
    draft_length_max: int | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of the grid: an engine at one batch, one draft length, one kind of prompts."""

    engine: Role
    draft_length: int  # K in force; 0 drafts nothing, also on the speculative engine
    sequences: int  # B, all open at once
    workload: str  # kind of prompts
    hold_out: bool = False  # kept out of the fit, to judge it


@dataclass(frozen=True, slots=True)
class Steps:
    """Decode steps of a full batch, without any prefill beside it."""

    count: int
    step_s: float  # mean over the steps, the slowest and fastest quarter left out
    spread_s: float  # standard deviation of the same
    tokens: float  # mean N: sequences and the draft tokens that were verified
    context_tokens: float  # mean over the steps of the context of all sequences together
    # Means over all decode steps of whole answers but disturbed ones, of the tokens that came out and of the
    # seconds: drafts are fewer in an answer's first steps, in which the batch is full.  Older ones lack both.
    decoded: float | None = None
    decoded_s: float | None = None


@dataclass(frozen=True, slots=True)
class Drafting:
    """How drafts fared over whole answers; counts, summed over requests."""

    request_steps: int  # decode steps of a request, with a draft or without
    tokens: int  # tokens that came out of them
    drafts: int  # request steps that carried a draft
    drafted: int  # draft tokens verified
    accepted: int  # draft tokens accepted
    # Position i (0 first): drafts that reached it with all before it accepted, and those accepted there too.
    at_risk: tuple[int, ...] = ()
    survived: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CellRun:
    """One cell in one round."""

    cell: Cell
    round: int
    steps: Steps | None  # None when no step had the full batch
    drafting: Drafting
    tokens_per_s: float | None  # of the full batch: what steps and drafting come to
    tpot_s: float | None  # mean over the answers, by usage, as a caller sees it
    ttft_s: float | None
    answers: int
    failed: int  # listed apart; in no average


@dataclass(frozen=True, slots=True)
class PrefillRun:
    """One step that took a whole prompt, alone in the engine."""

    engine: Role
    round: int
    prompt_tokens: int
    step_s: float


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What is known of one engine beside its steps."""

    role: Role
    max_num_seqs: int
    kv_cache_tokens: int | None  # tokens that fit at once
    start_s: float | None  # from the start of the process until it serves: the receiver's part of a move
    stop_s: float | None  # from the order to stop, idle, until its processes are gone
    adjustable: bool = False  # whether K changed without a restart


@dataclass(frozen=True, slots=True)
class Measurement:
    """Everything that one run has measured."""

    made_at: str  # RFC 3339
    took_s: float
    quick: bool
    synthetic_acceptance: bool  # acceptance was prescribed, not the drafter's
    fingerprint: Fingerprint
    engines: tuple[EngineFacts, ...]
    runs: tuple[CellRun, ...]
    prefills: tuple[PrefillRun, ...] = ()
    cut: tuple[str, ...] = ()  # what was left out and why, in words
    version: int = MEASUREMENT_VERSION
    versions: dict[str, str] = field(default_factory=dict)  # of packages
    machine: dict[str, str] = field(default_factory=dict)
    others_cores: tuple[float, ...] = ()  # CPU cores that other processes used, by round; empty: unknown

    @property
    def largest(self) -> int:
        """The largest batch that was measured; 1 where there was none."""
        return max((run.cell.sequences for run in self.runs), default=1)

    @property
    def workloads(self) -> tuple[str, ...]:
        """Kinds of prompts, in the order in which they were measured."""
        return tuple(dict.fromkeys(run.cell.workload for run in self.runs))
