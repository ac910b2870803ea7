"""One engine in a process of its own, on the simulated engine."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from app.bench.client import ask
from app.bench.engine_process import BenchEngineError, EngineProcess
from deployments.local_config import default_settings

BODY = {
    "model": "smollm2-135m",
    "messages": [{"role": "user", "content": "Tell me of the sea."}],
    "max_tokens": 12,
    "ignore_eos": True,
    "stream": True,
    "stream_options": {"include_usage": True},
}


def pool(role: str = "speculative", **engine):
    found = getattr(default_settings(engine="simulated"), role)
    return found.model_copy(update={"engine": found.engine.model_copy(update=engine)})


async def started(tmp_path: Path, **engine) -> EngineProcess:
    return await EngineProcess.start(pool(**engine), (), lambda _text: None, tmp_path / "engine.log")


async def test_an_engine_answers_and_tells_of_its_steps(tmp_path):
    """Twelve tokens with drafts of four: one step for the prompt, then steps of one sequence."""
    engine = await started(tmp_path)
    try:
        await engine.take()
        answer = await ask(engine, BODY)
        taken = await engine.take()
    finally:
        await engine.stop()
    assert (True, 12) == (answer.ok, answer.tokens)
    assert [1] == [step.started for step in taken.steps if step.started]
    assert 11 == sum(step.decode_tokens for step in taken.steps)
    assert {4} == {step.drafted for step in taken.steps if step.sequences}
    assert [12] == [one.generated_tokens for one in taken.finished]
    assert sum(answer.accepted_by_step) == sum(step.accepted for step in taken.steps)


async def test_what_was_taken_does_not_come_again(tmp_path):
    """Each step belongs to one cell."""
    engine = await started(tmp_path)
    try:
        await ask(engine, BODY)
        await engine.take()
        assert [] == (await engine.take()).steps
    finally:
        await engine.stop()


async def test_a_fixed_draft_length_is_refused_in_words(tmp_path):
    """The simulated engine has one for its whole life."""
    engine = await started(tmp_path)
    try:
        with pytest.raises(BenchEngineError, match="the draft length of this engine is fixed"):
            await engine.set_draft_length(2)
    finally:
        await engine.stop()


async def test_settings_that_cannot_work_are_named(tmp_path):
    """The last line says which setting, and what would do."""
    with pytest.raises(BenchEngineError, match=r"engine\.kv_cache_memory_bytes .* holds 1456 tokens"):
        await started(tmp_path, kv_cache_memory_bytes=32 << 20)


async def test_an_engine_that_dies_says_how(tmp_path):
    """A request then fails, and the next order has the signal and the log."""
    engine = await started(tmp_path)
    try:
        os.kill(engine._process.pid, signal.SIGKILL)
        await engine._process.wait()
        assert not (await ask(engine, BODY)).ok
        words = r"ended with signal 9; its last words, all are in .*engine\.log"
        with pytest.raises(BenchEngineError, match=words):
            await engine.take()
    finally:
        assert 1.0 > await engine.stop()


async def test_no_process_outlives_the_bench(tmp_path):
    """A bench that is killed takes its engines with it, for they lose their standard input."""
    script = (
        "import asyncio, os, sys\n"
        "from pathlib import Path\n"
        "from tests.app.bench.test_engine_process import started\n"
        "async def main():\n"
        f"    engine = await started(Path({str(tmp_path)!r}))\n"
        "    print(engine._process.pid, flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    bench = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script), stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[3]
    )
    assert bench.stdout is not None
    child = psutil.Process(int(await bench.stdout.readline()))
    below = [child, *child.children(recursive=True)]
    bench.kill()
    await bench.wait()
    gone, alive = await asyncio.to_thread(psutil.wait_procs, below, 10)
    assert [] == [one.pid for one in alive]
    assert {one.pid for one in below} == {one.pid for one in gone}
