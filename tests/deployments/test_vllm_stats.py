"""vLLM's per-step statistics in an EngineRecorder.

Importing `deployments.vllm_stats` imports vLLM, so that all of this is a contract test.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from autoscaling.types import EngineTotals, FinishedRequest
from deployments.engine import EngineRecorder

pytestmark = pytest.mark.contract


@pytest.fixture(scope="module")
def stats() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLLM_CONFIGURE_LOGGING", "0")
        patch.setenv("VLLM_NO_USAGE_STATS", "1")
        pytest.importorskip("vllm")
        from deployments import vllm_stats  # takes seconds
    return vllm_stats


def scheduler(running: int = 0, waiting: int = 0, usage: float = 0.0, **more: Any) -> Any:
    return SimpleNamespace(num_running_reqs=running, num_waiting_reqs=waiting, kv_cache_usage=usage, **more)


def iteration(
    latencies: tuple[float, ...] = (), first: tuple[float, ...] = (), generated: int = 0, **more: Any
) -> Any:
    fields = {"num_preempted_reqs": 0, "num_prompt_tokens": 0, "finished_requests": []} | more
    return SimpleNamespace(
        inter_token_latencies_iter=list(latencies),
        time_to_first_tokens_iter=list(first),
        num_generation_tokens=generated,
        **fields,
    )


def drafts(
    number: int, drafted: int, accepted: int, per_position: list[int], drafted_there: list[int]
) -> Any:
    return SimpleNamespace(
        num_drafts=number,
        num_draft_tokens=drafted,
        num_accepted_tokens=accepted,
        num_accepted_tokens_per_pos=per_position,
        num_draft_tokens_per_pos=drafted_there,
    )


def finished(request_id: str | None, prompt: int, generated: int) -> Any:
    return SimpleNamespace(
        request_id=request_id,
        num_prompt_tokens=prompt,
        num_generation_tokens=generated,
        finish_reason="stop",
        queued_time=0.1,
        prefill_time=0.2,
        decode_time=0.3,
        e2e_latency=0.6,
        num_preemptions=1,
    )


def test_gauges_are_the_newest(stats: Any) -> None:
    """What the scheduler said last, skipped requests among the waiting ones; unknown before that."""
    recorder = EngineRecorder()
    assert (recorder.gauges.running, recorder.gauges.kv_cache_usage, recorder.gauges.last_step_at) == (
        None,
        None,
        None,
    )
    stats.take(recorder, scheduler(3, 2, 0.25, num_skipped_waiting_reqs=4), None, 10.0)
    assert (recorder.gauges.running, recorder.gauges.waiting, recorder.gauges.kv_cache_usage) == (3, 6, 0.25)
    stats.take(recorder, scheduler(1, 0, 0.0), None, 11.0)
    assert (recorder.gauges.running, recorder.gauges.waiting, recorder.gauges.last_step_at) == (1, 0, 11.0)
    stats.take(recorder, None, iteration(), 12.0)
    assert (recorder.gauges.running, recorder.gauges.last_step_at) == (1, 12.0)


def test_tokens_and_steps_add_up(stats: Any) -> None:
    """Prefill, decode and request-steps; the first token of an answer comes from its prefill."""
    recorder = EngineRecorder()
    stats.take(recorder, None, iteration(first=(0.5,), generated=1, num_prompt_tokens=20), 1.0)
    stats.take(
        recorder,
        None,
        iteration((0.02, 0.05), first=(0.5,), generated=6, num_prompt_tokens=7, num_preempted_reqs=2),
        2.0,
    )
    stats.take(recorder, None, None, 3.0)
    assert recorder.totals == EngineTotals(
        steps=3,
        preemptions=2,
        prefill_tokens=27,
        decode_tokens=5,
        request_steps=2,
        longest_step_s=0.05,
    )


def test_drafts_add_up(stats: Any) -> None:
    """Drafts, drafted and accepted, and both per position; a shorter list is padded."""
    recorder = EngineRecorder()
    stats.take(
        recorder, scheduler(spec_decoding_stats=drafts(2, 8, 5, [2, 2, 1, 0], [2, 2, 2, 2])), None, 1.0
    )
    stats.take(recorder, scheduler(spec_decoding_stats=None), None, 2.0)
    stats.take(recorder, scheduler(spec_decoding_stats=drafts(1, 2, 1, [1, 0], [1, 1])), None, 3.0)
    totals = recorder.totals
    assert (totals.drafts, totals.drafted, totals.accepted) == (3, 10, 6)
    assert (totals.accepted_per_position, totals.drafted_per_position) == ((3, 2, 1, 0), (3, 3, 2, 2))


def test_finished_requests_are_recorded(stats: Any) -> None:
    """Each is counted and handed on, once, in order; a request without an id is one, too."""
    recorder = EngineRecorder()
    records: list[FinishedRequest] = []
    recorder.on_finished = records.append
    stats.take(recorder, None, iteration(finished_requests=[finished("a", 5, 7), finished(None, 1, 2)]), 1.0)
    totals = recorder.totals
    assert (totals.finished, totals.finished_prompt_tokens, totals.finished_generated_tokens) == (2, 6, 9)
    assert records == [
        FinishedRequest("a", 5, 7, "stop", 0.1, 0.2, 0.3, 0.6, 1),
        FinishedRequest("", 1, 2, "stop", 0.1, 0.2, 0.3, 0.6, 1),
    ]


def test_nothing_escapes_the_recorder(stats: Any) -> None:
    """An exception would reach vLLM's output handler and fail every request: it is counted instead."""
    recorder = EngineRecorder()
    logger = stats.stat_logger_factory(recorder)(None, 0)
    logger.record(SimpleNamespace(), None)
    logger.record(None, SimpleNamespace())
    logger.record("no", "statistics", mm_cache_stats=None, engine_idx=3)

    def fails(_record: FinishedRequest) -> None:
        raise RuntimeError("full")

    recorder.on_finished = fails
    logger.record(scheduler(1), iteration(finished_requests=[finished("a", 1, 1)]))
    assert recorder.errors == 4
    logger.record(scheduler(2), iteration())
    logger.log_engine_initialized()
    assert (recorder.errors, recorder.gauges.running, recorder.totals.finished) == (4, 2, 1)


def test_with_vllms_own_classes(stats: Any) -> None:
    """The fields that are read exist in this vLLM and mean what we take them for."""
    from vllm.v1.engine import FinishReason
    from vllm.v1.metrics.stats import FinishedRequestStats, IterationStats, SchedulerStats
    from vllm.v1.spec_decode.metrics import SpecDecodingStats

    drafted = SpecDecodingStats.new(4)
    drafted.observe_draft(num_draft_tokens=4, num_accepted_tokens=3)
    drafted.observe_draft(num_draft_tokens=2, num_accepted_tokens=0)
    step = IterationStats()
    step.num_generation_tokens = 6
    step.prompt_token_stats.total = 11
    step.num_preempted_reqs = 1
    step.time_to_first_tokens_iter = [0.4]
    step.inter_token_latencies_iter = [0.03, 0.04]
    step.finished_requests = [
        FinishedRequestStats(
            finish_reason=FinishReason.LENGTH,
            request_id="a",
            e2e_latency=1.5,
            num_prompt_tokens=11,
            num_generation_tokens=6,
            num_preemptions=1,
            queued_time=0.1,
            prefill_time=0.2,
            decode_time=1.2,
        )
    ]
    recorder = EngineRecorder()
    records: list[FinishedRequest] = []
    recorder.on_finished = records.append
    stats.stat_logger_factory(recorder)(None, 0).record(
        SchedulerStats(
            num_running_reqs=2,
            num_waiting_reqs=3,
            num_skipped_waiting_reqs=1,
            kv_cache_usage=0.5,
            spec_decoding_stats=drafted,
        ),
        step,
        mm_cache_stats=None,
        engine_idx=0,
    )
    assert recorder.errors == 0
    assert (recorder.gauges.running, recorder.gauges.waiting, recorder.gauges.kv_cache_usage) == (2, 4, 0.5)
    assert recorder.totals == EngineTotals(
        steps=1,
        preemptions=1,
        drafts=2,
        drafted=6,
        accepted=3,
        accepted_per_position=(1, 1, 1, 0),
        drafted_per_position=(2, 2, 1, 1),
        prefill_tokens=11,
        decode_tokens=5,
        request_steps=2,
        finished=1,
        finished_prompt_tokens=11,
        finished_generated_tokens=6,
        longest_step_s=0.04,
    )
    assert records == [FinishedRequest("a", 11, 6, "length", 0.1, 0.2, 1.2, 1.5, 1)]


def test_a_step_without_drafts_in_vllms_own_classes(stats: Any) -> None:
    """A plain engine reports no drafts, and an idle step counts as a step."""
    from vllm.v1.metrics.stats import IterationStats, SchedulerStats

    recorder = EngineRecorder()
    logger = stats.stat_logger_factory(recorder)(None, 0)
    logger.record(SchedulerStats(), IterationStats())
    logger.record(None, None)
    assert (recorder.errors, recorder.totals) == (0, EngineTotals(steps=2))


def test_it_is_a_stat_logger(stats: Any) -> None:
    """vLLM accepts the class where it takes its own loggers."""
    from vllm.v1.metrics.loggers import StatLoggerBase

    assert issubclass(stats.stat_logger_factory(EngineRecorder()), StatLoggerBase)
