"""Prescribed acceptance on the CPU, for measuring: vLLM 0.32 has it on GPUs alone.

Its greedy rejection kernel is replaced by C++ on the CPU, which refuses `rejection_sample_method: synthetic`
at the first draft and so ends the engine.  This is vLLM's own kernel in plain Python, for that method only;
everything else goes on to the C++.  Sampled requests are refused as before.
"""

from __future__ import annotations

from typing import Any, Final

KERNEL: Final = "vllm.v1.sample.rejection_sampler.rejection_greedy_sample_kernel"


def register() -> None:
    """Take the kernel's place on the CPU; idempotent.  Raises as `vllm_draft_length.register` does."""
    from vllm.platforms import current_platform  # noqa: PLC0415  # in a child of a replica only
    from vllm.triton_utils import dispatcher  # noqa: PLC0415

    if not current_platform.is_cpu():
        return
    from vllm.utils import cpu_triton_utils  # noqa: PLC0415

    standard = cpu_triton_utils._rejection_greedy_sample_kernel_impl
    if getattr(standard, "synthetic", False):
        return

    # The kernel's parameters, by name and in its order: vLLM looks at both.
    def rejection_greedy_sample_kernel(
        output_token_ids: Any,
        cu_num_draft_tokens: Any,
        draft_token_ids: Any,
        target_argmax: Any,
        bonus_token_ids: Any,
        is_greedy: Any,
        max_spec_len: int,
        uniform_probs: Any = None,
        synthetic_conditional_rates: Any = None,
        SYNTHETIC_MODE: bool = False,  # noqa: N803
    ) -> None:
        if SYNTHETIC_MODE:
            accept(
                output_token_ids,
                cu_num_draft_tokens.tolist(),
                draft_token_ids.tolist(),
                target_argmax.tolist(),
                bonus_token_ids.flatten().tolist(),
                None if is_greedy is None else is_greedy.tolist(),
                uniform_probs.tolist(),
                synthetic_conditional_rates.tolist(),
            )
        else:
            standard(
                output_token_ids,
                cu_num_draft_tokens,
                draft_token_ids,
                target_argmax,
                bonus_token_ids,
                is_greedy,
                max_spec_len,
            )

    rejection_greedy_sample_kernel.synthetic = True  # type: ignore[attr-defined]  # our own mark
    cpu_triton_utils._rejection_greedy_sample_kernel_impl = rejection_greedy_sample_kernel
    if KERNEL in dispatcher._registry:
        dispatcher.register_kernels({KERNEL: rejection_greedy_sample_kernel})


def accept(
    into: Any,
    ends: list[int],
    drafts: list[int],
    targets: list[int],
    bonus: list[int],
    greedy: list[bool] | None,
    uniform: list[float],
    rates: list[float],
) -> None:
    """Write each request's tokens into its row of `into`, [requests, drafts at most + 1].

    Position i (0 first) is accepted when its number in [0, 1) is below `rates[i]`, the rate given that all
    before it were; a rejected one becomes the target's token and ends the row, a whole row gains the bonus
    token.  `ends` are the ends of the requests' parts of `drafts`, `targets` and `uniform`.  A draft of -1 is
    padding and rejected; rows that are not greedy stay as they are.
    """
    first = 0
    for request, end in enumerate(ends):
        if greedy is None or greedy[request]:
            row = []
            for position, at in enumerate(range(first, end)):
                accepted = drafts[at] >= 0 and uniform[at] < rates[position]
                row.append(drafts[at] if accepted else targets[at])
                if not accepted:
                    break
            else:
                row.append(bonus[request])
            for position, token in enumerate(row):
                into[request, position] = token
        first = end
