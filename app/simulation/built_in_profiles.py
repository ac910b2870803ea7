"""Engine profiles that need no measurement: H100, A100, H200 with Llama-3.1-8B or -70B, and the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from app.simulation.built_in_costs import PAIRS, Pair
from app.simulation.engine_profile import EngineProfile
from app.simulation.published_acceptance import CPU_NGRAM, EAGLE3, NGRAM
from app.simulation.sheets import kv_tokens
from autoscaling.profile import MEAN
from autoscaling.profiling.prior import with_ngram
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role

NGRAM_LENGTH = 4  # as twinpool's own default
MAX_NUM_SEQS = 256  # vLLM's default on an A100, and the largest batch of the published tables
# vLLM 0.32, arg_utils: of an API server on an accelerator of 70 GiB or more, and on an A100 or a smaller one.
LARGE_STEP, SMALL_STEP = 8192, 2048
MAX_MODEL_LEN = 131_072  # config.json: max_position_embeddings
CONTEXT = 512.0  # that of the published tables
# vLLM's blog: a replica that starts anew loads, compiles and captures for 30 to 120 s, the larger model
# for longer; stopping an idle one is taken as 5 s.
START_S: Mapping[int, float] = {1: 60.0, 4: 120.0}  # by accelerators
STOP_S = 5.0
EAGLE_K0_TAX = 1.07  # vLLM issues 52258, 53420, 53670: 1.04 to 1.11, for an EAGLE head keeps in step


def _gpu(name: str, pair: Pair) -> EngineProfile:
    plain_kv = kv_tokens(pair.config, pair.accelerator, pair.tensor_parallel)
    drafting_kv = kv_tokens(pair.config, pair.accelerator, pair.tensor_parallel, draft_head=True)
    return EngineProfile(
        name=name,
        costs={Role.SPECULATIVE: pair.eagle3, Role.PLAIN: pair.plain},
        acceptance=EAGLE3,
        kv_tokens={Role.SPECULATIVE: drafting_kv, Role.PLAIN: plain_kv},
        max_num_seqs=MAX_NUM_SEQS,
        max_batched_tokens=SMALL_STEP if name.startswith("a100") else LARGE_STEP,
        max_model_len=MAX_MODEL_LEN,
        context_tokens=CONTEXT,
        start_s=START_S[pair.tensor_parallel],
        stop_s=STOP_S,
        k0_tax=EAGLE_K0_TAX,
        accelerators=pair.tensor_parallel,
        source=f"{pair.source}; memory: {pair.accelerator.source}; EAGLE-3 drafts",
    )


def _with_ngram(eagle: EngineProfile) -> EngineProfile:
    """The same engines with drafts looked up in the prompt: no memory taken, nothing lost at K = 0."""
    plain = eagle.costs[Role.PLAIN]
    drafting = replace(with_ngram(plain, NGRAM_LENGTH), drafted=NGRAM[MEAN].draft_rate * NGRAM_LENGTH)
    return replace(
        eagle,
        name=f"{eagle.name}-ngram",
        costs={Role.SPECULATIVE: drafting, Role.PLAIN: plain},
        acceptance=NGRAM,
        kv_tokens=dict.fromkeys(Role, eagle.kv_tokens[Role.PLAIN]),
        k0_tax=1.0,
        source=eagle.source.replace("EAGLE-3 drafts", "n-gram drafts"),
    )


# `twinpool bench --quick`, 2026-11-30: SmolLM2-135M in bfloat16 on vLLM 0.32, one
# core of an AMD EPYC for each engine, n-gram with K = 4; mean errors of 14 % and 12 %, both fits accepted.
_CPU = EngineProfile(
    name="cpu",
    costs={
        Role.SPECULATIVE: StepCost(
            base_s=33.4e-3,
            per_token_s=1.29e-3,
            per_context_s=5.2e-6,
            draft_length=4,
            draft_per_token_s=0.44e-3,
            drafted=1.64,
            per_prefill_s=1.48e-3,
        ),
        Role.PLAIN: StepCost(
            base_s=33.4e-3, per_token_s=1.41e-3, per_context_s=3.5e-6, per_prefill_s=1.49e-3
        ),
    },
    acceptance=CPU_NGRAM,
    kv_tokens=dict.fromkeys(Role, 11_648),
    max_num_seqs=16,
    max_batched_tokens=2048,
    max_model_len=2048,
    context_tokens=174.0,
    start_s=29.1,
    stop_s=2.8,
    k0_tax=1.02,  # mean of 1, 2, 4, 8 and 16 sequences, .98 to 1.05
    source="twinpool bench --quick, SmolLM2-135M, one core of an AMD EPYC per engine, vLLM 0.32, 2026-11-30; "
    "acceptance: benchmarks/results/workload.md",
)


def _all() -> dict[str, EngineProfile]:
    eagles = {name: _gpu(name, pair) for name, pair in PAIRS.items()}
    ngrams = {found.name: found for found in map(_with_ngram, eagles.values())}
    return {**eagles, **ngrams, _CPU.name: _CPU}


BUILT_IN: Mapping[str, EngineProfile] = MappingProxyType(_all())


def built_in(name: str) -> EngineProfile:
    """The built-in profile of a name such as `h100-8b`, `a100-70b-ngram` or `cpu`; ValueError without one."""
    if name not in BUILT_IN:
        raise ValueError(f"profile {name!r}: is not built in: give a file, or one of {', '.join(BUILT_IN)}")
    return BUILT_IN[name]
