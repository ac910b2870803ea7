"""Request parameters that a speculative engine does not serve, by the release of vLLM that we pin."""

from __future__ import annotations

# vLLM answers these with 400 (vllm/sampling_params.py, 0.32).
REFUSED = ("logit_bias", "min_p")
# vLLM answers this with an internal error (0.32, "list index out of range").
BROKEN = ("logprob_token_ids",)
# Answers that are held to a grammar break off with an internal error when the batch has other requests
# too: 21 of 30 with n-gram drafts, none of 30 without ("grammar rejected tokens", vLLM 0.32).
HELD_TO_A_GRAMMAR = ("response_format", "structured_outputs", "tool_choice")

NOT_UNDER_SPECULATION = (*REFUSED, *BROKEN, *HELD_TO_A_GRAMMAR)
