"""Mends of vLLM that keep one request from ending an engine for all; each with the release it was seen in."""

from __future__ import annotations

from typing import Any


def guard_top_k_under_speculation() -> None:
    """Let requests with `top_k` run beside drafts on the CPU; idempotent.

    vLLM 0.32 on the CPU spreads each request's `top_k` over its draft tokens by a kernel that leaves whole
    numbers as they lie in memory, and takes the largest of an empty list where no request has a draft.
    Either ends the engine: so did every speculative replica at the first sampled request with `top_k`.
    """
    import torch  # noqa: PLC0415  # where vLLM is installed
    from vllm.platforms import current_platform  # noqa: PLC0415
    from vllm.v1.sample import rejection_sampler  # noqa: PLC0415
    from vllm.v1.sample.ops import topk_topp_sampler  # noqa: PLC0415

    top_k_only = topk_topp_sampler.apply_top_k_only
    if not current_platform.is_cpu() or getattr(top_k_only, "guarded", False):
        return

    def expand_batch_to_tokens(
        x: Any, cu_num_tokens: Any, num_tokens: int, replace_from: int = 0, replace_to: int = 0
    ) -> Any:
        counts = torch.diff(cu_num_tokens, prepend=cu_num_tokens.new_zeros(1)).long()
        replaced = torch.where(x == replace_from, torch.full_like(x, replace_to), x)
        return replaced.repeat_interleave(counts, output_size=num_tokens)

    def apply_top_k_only(logits: Any, k: Any) -> Any:
        return logits if logits.shape[0] == 0 else top_k_only(logits, k)

    apply_top_k_only.guarded = True  # type: ignore[attr-defined]  # our own mark on our own function
    topk_topp_sampler.apply_top_k_only = apply_top_k_only
    rejection_sampler.expand_batch_to_tokens = expand_batch_to_tokens
