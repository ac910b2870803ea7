"""vLLM's per-step statistics, written into an EngineRecorder."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from vllm.v1.metrics.loggers import StatLoggerBase

from autoscaling.types import EngineTotals, FinishedRequest
from deployments.engine import EngineRecorder, StepRecord

SAME_MOMENT_S = 1e-6


def stat_logger_factory(recorder: EngineRecorder) -> Callable[..., StatLoggerBase]:
    """A factory for AsyncLLM's `stat_loggers` that writes into `recorder`."""

    class Recorder(StatLoggerBase):  # type: ignore[misc]  # vLLM's base is untyped here
        def __init__(self, vllm_config: Any, engine_index: int = 0) -> None:
            pass

        def record(
            self,
            scheduler_stats: Any,
            iteration_stats: Any,
            mm_cache_stats: Any = None,  # noqa: ARG002
            engine_idx: int = 0,  # noqa: ARG002
        ) -> None:
            # An exception here would reach vLLM's output handler and fail every open request.
            try:
                take(recorder, scheduler_stats, iteration_stats, time.monotonic())
            except Exception:
                recorder.errors += 1

        def log_engine_initialized(self) -> None:
            pass

    return Recorder


def take(recorder: EngineRecorder, scheduler_stats: Any, iteration_stats: Any, now: float) -> None:
    """Fold one engine step into the recorder; reads fields that vLLM calls unstable by default value."""
    gauges = recorder.gauges
    if scheduler_stats is not None:
        gauges.running = scheduler_stats.num_running_reqs
        gauges.waiting = scheduler_stats.num_waiting_reqs + getattr(
            scheduler_stats, "num_skipped_waiting_reqs", 0
        )
        gauges.kv_cache_usage = scheduler_stats.kv_cache_usage
        totals = _with_drafts(recorder.totals, getattr(scheduler_stats, "spec_decoding_stats", None))
    else:
        totals = recorder.totals
    step_s = 0.0
    if iteration_stats is not None:
        latencies = iteration_stats.inter_token_latencies_iter
        first = len(iteration_stats.time_to_first_tokens_iter)
        step_s = max(latencies, default=0.0)
        prompt = getattr(iteration_stats, "num_prompt_tokens", 0)
        totals = replace(
            totals,
            preemptions=totals.preemptions + iteration_stats.num_preempted_reqs,
            prefill_tokens=totals.prefill_tokens + prompt,
            decode_tokens=totals.decode_tokens + max(0, iteration_stats.num_generation_tokens - first),
            request_steps=totals.request_steps + len(latencies),
        )
    recorder.totals = replace(
        totals, steps=totals.steps + 1, longest_step_s=max(totals.longest_step_s, step_s)
    )
    gauges.last_step_at = now
    if recorder.on_step is not None and iteration_stats is not None:
        recorder.on_step(_step(scheduler_stats, iteration_stats, now))
    for finished in getattr(iteration_stats, "finished_requests", ()):
        _finish(recorder, finished)


def _step(scheduler_stats: Any, iteration_stats: Any, now: float) -> StepRecord:
    latencies = iteration_stats.inter_token_latencies_iter
    first = len(iteration_stats.time_to_first_tokens_iter)
    drafts = getattr(scheduler_stats, "spec_decoding_stats", None)
    # The engine's own clock: one step has given all its sequences their tokens at the same moment.
    together = bool(latencies) and max(latencies) - min(latencies) < SAME_MOMENT_S
    return StepRecord(
        at=now,
        step_s=max(latencies) if together else None,
        sequences=len(latencies),
        started=first,
        prompt_tokens=iteration_stats.prompt_token_stats.computed,
        decode_tokens=max(0, iteration_stats.num_generation_tokens - first),
        drafts=getattr(drafts, "num_drafts", 0),
        drafted=getattr(drafts, "num_draft_tokens", 0),
        accepted=getattr(drafts, "num_accepted_tokens", 0),
    )


def _with_drafts(totals: EngineTotals, drafts: Any) -> EngineTotals:
    if drafts is None:
        return totals
    return replace(
        totals,
        drafts=totals.drafts + drafts.num_drafts,
        drafted=totals.drafted + drafts.num_draft_tokens,
        accepted=totals.accepted + drafts.num_accepted_tokens,
        accepted_per_position=_add(totals.accepted_per_position, drafts.num_accepted_tokens_per_pos),
        drafted_per_position=_add(
            totals.drafted_per_position, getattr(drafts, "num_draft_tokens_per_pos", ())
        ),
    )


def _add(left: tuple[int, ...], right: Any) -> tuple[int, ...]:
    values = list(right)
    width = max(len(left), len(values))
    padded = [*left, *([0] * (width - len(left)))]
    return tuple(value + (values[i] if i < len(values) else 0) for i, value in enumerate(padded))


def _finish(recorder: EngineRecorder, stats: Any) -> None:
    record = FinishedRequest(
        request_id=str(stats.request_id or ""),
        prompt_tokens=int(stats.num_prompt_tokens),
        generated_tokens=int(stats.num_generation_tokens),
        finish_reason=str(stats.finish_reason),
        queued_s=float(stats.queued_time),
        prefill_s=float(stats.prefill_time),
        decode_s=float(stats.decode_time),
        e2e_s=float(stats.e2e_latency),
        preemptions=int(getattr(stats, "num_preemptions", 0)),
    )
    totals = recorder.totals
    recorder.totals = replace(
        totals,
        finished=totals.finished + 1,
        finished_prompt_tokens=totals.finished_prompt_tokens + record.prompt_tokens,
        finished_generated_tokens=totals.finished_generated_tokens + record.generated_tokens,
    )
    recorder.on_finished(record)
