"""The bodies and chunks of the two endpoints, field by field as vLLM 0.32 writes them."""

from __future__ import annotations

from typing import Any, Protocol

from deployments.simulated.frames import Finished, Output

Json = dict[str, Any]


class Shape(Protocol):
    """How one endpoint words its answers; index counts the choices."""

    object: str  # of a body
    chunk_object: str
    absent: tuple[str, ...]  # fields of a body that this engine never fills

    def opening(self, index: int) -> Json | None:
        """Make the choice of the chunk before any text, where there is one."""

    def chunk(self, index: int, output: Output) -> Json:
        """Make the choice of a chunk with text, at the end with the finish reason."""

    def choice(self, index: int, text: str, last: Output) -> Json:
        """Make the choice of a whole body."""


class ChatShape:
    """/v1/chat/completions."""

    object = "chat.completion"
    chunk_object = "chat.completion.chunk"
    absent: tuple[str, ...] = (
        "prompt_logprobs",
        "prompt_token_ids",
        "prompt_text",
        "kv_transfer_params",
        "ec_transfer_params",
    )

    def opening(self, index: int) -> Json:
        """Make the choice that tells the role."""
        delta = {"role": "assistant", "content": ""}
        return {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}

    def chunk(self, index: int, output: Output) -> Json:
        """Make the choice of a chunk with text, at the end with the finish reason."""
        choice: Json = {"index": index, "delta": {"content": output.text}, "logprobs": None}
        choice["finish_reason"] = output.finish_reason
        if output.finish_reason is not None:
            choice["stop_reason"] = output.stop_reason
        choice["token_ids"] = None
        return choice

    def choice(self, index: int, text: str, last: Output) -> Json:
        """Make the choice with the whole message."""
        absent = dict.fromkeys(("refusal", "annotations", "audio", "function_call", "reasoning"))
        return {
            "index": index,
            "message": {"role": "assistant", "content": text, **absent},
            "logprobs": None,
            "finish_reason": last.finish_reason,
            "stop_reason": last.stop_reason,
            **dict.fromkeys(("token_ids", "routed_experts")),
        }


class CompletionShape:
    """/v1/completions."""

    object = "text_completion"
    chunk_object = "text_completion"
    absent: tuple[str, ...] = ("kv_transfer_params", "ec_transfer_params")

    def opening(self, index: int) -> None:  # noqa: ARG002
        """Nothing comes before the text."""
        return

    def chunk(self, index: int, output: Output) -> Json:
        """Make the choice of a chunk with text, at the end with the finish reason."""
        return {
            "index": index,
            "text": output.text,
            "logprobs": None,
            "finish_reason": output.finish_reason,
            "stop_reason": output.stop_reason,
            **dict.fromkeys(("prompt_token_ids", "token_ids")),
        }

    def choice(self, index: int, text: str, last: Output) -> Json:
        """Make the choice with the whole text."""
        absent = ("token_ids", "prompt_logprobs", "prompt_token_ids", "routed_experts")
        return {
            "index": index,
            "text": text,
            "logprobs": None,
            "finish_reason": last.finish_reason,
            "stop_reason": last.stop_reason,
            **dict.fromkeys(absent),
        }


def usage(prompt_tokens: int, completion_tokens: int) -> Json:
    """Make the usage object."""
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
    }


def whole_body(
    shape: Shape, head: Json, *, choices: list[Json], fingerprint: str, total: Json, speculative: Json | None
) -> Json:
    """Make a whole body, which names the absent fields too."""
    metrics = None
    if speculative is not None:
        timing = ("time_to_first_token_ms", "generation_time_ms", "queue_time_ms", "mean_itl_ms")
        steps = dict.fromkeys(("per_step_accepted", "per_step_drafted"))
        metrics = dict.fromkeys((*timing, "tokens_per_second")) | {
            "speculative_decoding": speculative | steps
        }
    return {
        **head,
        "choices": choices,
        "service_tier": None,
        "system_fingerprint": fingerprint,
        "usage": total | dict.fromkeys(("prompt_tokens_details", "completion_tokens_details")),
        **dict.fromkeys(shape.absent),
        "metrics": metrics,
    }


def speculation(record: Finished) -> Json:
    """Tell what speculation did for one sequence, from its histogram of accepted draft tokens."""
    length = len(record.histogram) - 1
    steps = sum(record.histogram)
    accepted = sum(number * times for number, times in enumerate(record.histogram))
    return {
        "mean_acceptance_length": 1.0 + accepted / steps if steps else 1.0,
        "draft_acceptance_rate": accepted / (steps * length) if steps else 0.0,
        "acceptance_histogram": list(record.histogram),
        "num_spec_steps": steps,
        "num_accepted_draft_tokens": accepted,
        "num_draft_tokens": steps * length,
        "num_spec_tokens": length,
    }


def model_list(names: tuple[str, ...], created: int, max_model_len: int) -> Json:
    """List the served names, the canonical one first."""
    return {"object": "list", "data": [_card(name, names[0], created, max_model_len) for name in names]}


def _card(name: str, root: str, created: int, max_model_len: int) -> Json:
    permission = {
        "id": f"modelperm-{name}",
        "object": "model_permission",
        "created": created,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
    return {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": "simulated",
        "root": root,
        "parent": None,
        "max_model_len": max_model_len,
        "permission": [permission],
    }
