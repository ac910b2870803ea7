"""Mends of vLLM that keep one request from ending an engine for all; each with the release it was seen in."""

from __future__ import annotations

from typing import Any


def guard_top_k_without_drafts() -> None:
    """Let `top_k` pass a step in which no request has a draft; idempotent.

    vLLM 0.32 on the CPU takes the largest k of an empty list there, and the engine dies: so did every
    speculative replica at the first sampled request with `top_k` whose text gave no n-gram.
    """
    from vllm.v1.sample.ops import topk_topp_sampler  # noqa: PLC0415  # where vLLM is installed

    original = topk_topp_sampler.apply_top_k_only
    if getattr(original, "guarded", False):
        return

    def apply_top_k_only(logits: Any, k: Any) -> Any:
        return logits if logits.shape[0] == 0 else original(logits, k)

    apply_top_k_only.guarded = True  # type: ignore[attr-defined]  # our own mark on our own function
    topk_topp_sampler.apply_top_k_only = apply_top_k_only
