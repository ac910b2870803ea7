"""How engines are set up for a measurement, and what is left when one does not start."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import psutil
import pytest
from rich.console import Console

from app.bench.asked import Asked, left_out
from app.bench.engine_process import BenchEngineError, EngineProcess
from app.bench.engine_settings import cores, for_bench, synthetic_acceptance
from app.bench.made import UNFINISHED, fingerprint
from app.bench.plan import QUICK, Plan
from app.bench.progress import Showing
from app.bench.prompts import for_workloads
from app.bench.run import _share, measured
from autoscaling.profiling.measured import Fingerprint, Measurement
from autoscaling.types import Capabilities, Role
from deployments.local_config import default_settings

TINY = Plan(batches=(1,), hold_out=(), lengths=(0, 2, 4), workloads=("chat",), rounds=1, prefill_tokens=())
LARGE = replace(QUICK, batches=(1, 32), hold_out=(48,))


def pool(role="speculative", kind="vllm", **engine):
    found = getattr(default_settings(engine=kind), role)
    return found.model_copy(update={"engine": found.engine.model_copy(update=engine)})


def silent() -> Showing:
    return Showing(Console(quiet=True))


def simulated(folder, **plan) -> Asked:
    """Both engines simulated, with a start for each K."""
    return Asked(
        pool(kind="simulated"),
        pool("plain", "simulated"),
        replace(TINY, **plan),
        for_workloads(("chat",)),
        folder,
        live=False,
    )


def test_the_engine_has_room_for_the_largest_batch():
    """Held out or not; a larger limit of the user's stays."""
    assert 48 == for_bench(pool(), LARGE, 4, live=False).engine.max_num_seqs
    assert 99 == for_bench(pool(max_num_seqs=99), LARGE, 4, live=False).engine.max_num_seqs


def test_a_live_engine_gets_a_table_with_the_largest_k():
    """Which makes K adjustable; the user's own table does not take part."""
    own = {
        "method": "ngram",
        "num_speculative_tokens": 4,
        "num_speculative_tokens_per_batch_size": [[1, 2, 4]],
    }
    live = for_bench(pool(speculative_config=own), LARGE, 4, live=True).engine.speculative_config
    fixed = for_bench(pool(speculative_config=own), LARGE, 2, live=False).engine.speculative_config

    assert {**own, "num_speculative_tokens_per_batch_size": [[1, 48, 4]]} == live
    assert {"method": "ngram", "num_speculative_tokens": 2} == fixed


def test_prescribed_acceptance_is_cut_to_k():
    """One rate for each position."""
    own = {
        "method": "ngram",
        "num_speculative_tokens": 4,
        "rejection_sample_method": "synthetic",
        "synthetic_acceptance_rates": [0.8, 0.6, 0.4, 0.2],
    }
    found = for_bench(pool(speculative_config=own), LARGE, 2, live=False)

    assert [0.8, 0.6] == found.engine.speculative_config["synthetic_acceptance_rates"]
    assert synthetic_acceptance(found)
    assert not synthetic_acceptance(pool())


def test_a_plain_engine_drafts_nothing():
    """Whatever K is."""
    found = for_bench(pool("plain"), LARGE, 4, live=True).engine

    assert found.speculative_config is None
    assert found.extra_args == pool("plain").engine.extra_args


def test_only_vllm_is_asked_for_the_drafts_of_each_request():
    """The simulated engine tells them anyway."""
    flags = ("--per-request-spec-decode-metrics", "detailed")

    assert flags == for_bench(pool(), LARGE, 4, live=False).engine.extra_args[-2:]
    assert () == for_bench(pool(kind="simulated"), LARGE, 4, live=False).engine.extra_args


def test_engines_get_cores_of_their_own(monkeypatch):
    """As replicas do: the second engine begins where the first one ends; none where none are leased."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {2, 3, 6, 7})
    two = pool().model_copy(update={"cores_per_replica": 2})
    none = pool().model_copy(update={"cores_per_replica": 0})

    assert [(2, 3), (6, 7)] == [cores(two, place) for place in (0, 1)]
    assert () == cores(none, 0)


def test_a_fingerprint_is_of_the_speculative_engine():
    """With the largest K that was measured, not the one that it could have."""
    engine = Capabilities(
        role=Role.SPECULATIVE,
        engine="vllm",
        engine_version="0.20.0",
        method="ngram",
        runner="v1",
        draft_length_max=8,
        draft_length_adjustable=True,
        max_model_len=2048,
        max_num_seqs=16,
        refuses=(),
        per_request_metrics=True,
        models=("m",),
        fingerprint="ab",
        device="cpu",
        tensor_parallel=1,
    )

    assert Fingerprint("ab", "vllm", "0.20.0", "cpu", 1, 2048, "ngram", None, 4) == fingerprint(engine, 4)


async def test_one_engine_that_does_not_start_takes_the_other_with_it(tmp_path):
    """The error is that of the engine, and no process is left."""
    broken = pool("plain", "simulated", kv_cache_memory_bytes=32 << 20)
    asked = Asked(pool(kind="simulated"), broken, TINY, for_workloads(("chat",)), tmp_path, live=False)

    with pytest.raises(BenchEngineError, match=r"engine\.kv_cache_memory_bytes"):
        await measured(asked, silent())
    assert [] == psutil.Process().children(recursive=True)


async def test_a_signal_while_one_engine_still_starts_ends_the_other(tmp_path, monkeypatch):
    """It serves already, and nobody has it yet."""
    serves, start = asyncio.Event(), EngineProcess.start

    async def only_one(given, *others):
        if given.role is Role.PLAIN:
            await asyncio.Event().wait()
        engine = await start(given, *others)
        serves.set()
        return engine

    monkeypatch.setattr(EngineProcess, "start", only_one)
    measuring = asyncio.create_task(measured(simulated(tmp_path), silent()))
    await serves.wait()
    assert psutil.Process().children(recursive=True)
    measuring.cancel()
    with pytest.raises(asyncio.CancelledError):
        await measuring

    assert [] == psutil.Process().children(recursive=True)


@pytest.mark.long
async def test_each_k_has_an_engine_of_its_own_where_it_is_fixed(tmp_path):
    """K = 0 then is left out and told; the facts are those of both engines, with a start and a stop each."""
    asked = simulated(tmp_path, answer_tokens=8)
    found = await measured(asked, silent())

    assert {(Role.SPECULATIVE, 2), (Role.SPECULATIVE, 4), (Role.PLAIN, 0)} == {
        (run.cell.engine, run.cell.draft_length) for run in found.runs
    }
    assert {(2, 0)} == {(run.answers, run.failed) for run in found.runs}
    assert (
        "K = 0 on the speculative engine: only an engine that changes K while it runs can have it",
    ) == found.cut
    assert {*Role} == {one.role for one in found.engines}
    assert all(one.start_s is not None and one.stop_s is not None for one in found.engines)
    assert 4 == found.fingerprint.draft_length_max
    assert 1 == len(found.others_cores)
    assert not found.synthetic_acceptance
    assert [] == psutil.Process().children(recursive=True)


@pytest.mark.long
async def test_the_time_is_shared_by_the_starts(tmp_path):
    """Two K, each with an engine of its own: the rounds of both together keep to the time."""
    asked = simulated(tmp_path, answer_tokens=8, rounds=4, budget_s=0.001)
    halves = [_share(asked).budget_s, _share(replace(asked, live=True)).budget_s]
    found = await measured(asked, silent())

    assert [0.0005, 0.001] == halves
    assert "2 of 4 rounds: no time was left" in found.cut
    assert 1 == found.cut.count("2 of 4 rounds: no time was left")


async def test_whole_rounds_are_kept_in_case_an_engine_dies(tmp_path):
    """From the second round of each start on, as a measurement that says that it is not whole."""
    kept: list[Measurement] = []
    asked = simulated(tmp_path, answer_tokens=8, rounds=3)
    whole = await measured(asked, silent(), kept.append)

    assert [4, 6, 10, 12] == [len(one.runs) for one in kept]
    assert [2, 2, 4, 4, 4] == [one.fingerprint.draft_length_max for one in (*kept, whole)]
    assert all(UNFINISHED in one.cut for one in kept)
    assert UNFINISHED not in whole.cut
    assert all({*Role} == {facts.role for facts in one.engines} for one in kept)


async def test_k_cannot_change_in_an_engine_that_has_one_for_life(tmp_path):
    """Every K would be measured as the largest: it ends before any round, and no process is left."""
    asked = replace(simulated(tmp_path), live=True)
    words = r"cannot change K while it runs, so every K would be measured as 4: measure with --no-live-k"
    with pytest.raises(BenchEngineError, match=words):
        await measured(asked, silent())

    assert [] == psutil.Process().children(recursive=True)


@pytest.mark.long
async def test_an_engine_that_is_not_back_after_a_move_costs_only_the_moves_time(tmp_path, monkeypatch):
    """All rounds are done by then: how long a start takes is unknown, and told."""
    started = []
    start = EngineProcess.start

    async def third_time_never(*given):
        started.append(given)
        if len(started) > 3:
            raise BenchEngineError("it did not come")
        return await start(*given)

    monkeypatch.setattr(EngineProcess, "start", third_time_never)
    asked = simulated(tmp_path, answer_tokens=8)
    found = await measured(asked, silent())

    assert 4 == len(found.runs)
    assert "how long an engine takes to start alone: it did not come" in found.cut
    assert None is next(one.start_s for one in found.engines if one.role is Role.PLAIN)
    assert [] == psutil.Process().children(recursive=True)


def test_what_will_be_missed_is_told(tmp_path):
    """K above those that are measured, kinds of prompts, and batches above what the engines are set to."""
    asked = Asked(
        pool(max_num_seqs=16),
        pool("plain", max_num_seqs=64),
        replace(LARGE, lengths=(0, 2), workloads=("chat",), long_context=None),
        for_workloads(("chat", "copy", "code")),
        tmp_path,
        live=True,
    )

    assert (
        "K = 4, which the engine is set to: to a service with it this profile is stale",
        "prompts of other kinds: code, copy",
        "conclusions on more than 16 sequences of the speculative engine: its max_num_seqs is 16",
    ) == left_out(asked)
