"""Measure both engines side by side: every cell on both at the same time, with the same prompts.

While one engine is done sooner, it goes on with the same load until the other is done too, so that both are
measured as they will be loaded.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from app.bench.batches import Batches
from app.bench.duration import prefills_s, round_s
from app.bench.engine_process import EngineProcess
from app.bench.fitting_prompts import fitting, too_long
from app.bench.found import Found
from app.bench.others import Clock, clock, is_busy, our_cores, used
from app.bench.plan import ALWAYS_ROUNDS, LONG_BATCH, SINGLE_ANSWERS, Pair, Plan, expected_s, pairs
from app.bench.prefills import Prefills
from app.bench.progress import Progress
from app.bench.prompts import Prompt, cells_of
from app.bench.room import Room
from app.bench.steps import drafting, full_steps, mean, together
from autoscaling.profiling.measured import Cell, CellRun, Steps
from autoscaling.types import Role

FAILED_S: Final = 1.0  # before a batch that failed altogether is sent again: the other engine is timed
SETTLE_S: Final = 0.1  # after an abort, until nothing of it is left in the engine


class Measuring:
    """Both engines, and what they are asked."""

    def __init__(
        self,
        engines: Mapping[Role, EngineProcess],
        prompts: Sequence[Prompt],
        plan: Plan,
        progress: Progress,
        *,
        greedy: bool = False,  # whatever the prompts ask for
        told_busy: bool = False,  # whether it has been told already that others use the cores
        documents: int = 0,  # that an engine which still runs has read for an earlier measurement
    ) -> None:
        self.found = Found()
        self._engines = engines
        self._prompts = prompts
        self._plan = plan
        self._progress = progress
        self._model = engines[Role.PLAIN].capabilities.models[0]
        self._batches = Batches(self._model, plan.answer_tokens, self.found.errors, greedy=greedy)
        self._prefills = Prefills(engines, self._batches, plan.prefill_tokens, documents)
        self._room = Room(engines, plan)
        self._told_busy = told_busy

    async def warm_up(self) -> None:
        """Send every workload once: what is compiled, loaded or cached at first use is not measured.

        Prompts that do not fit are left out before; raises PromptsError when none of a workload is left.
        """
        await self._leave_out_long()
        for workload in self._plan.all_workloads:
            chosen = cells_of(self._prompts, workload, min(LONG_BATCH, self._room.most), 0)
            for answers in await asyncio.gather(
                *(self._batches.send(one, chosen) for one in self._engines.values())
            ):
                self._room.learn(workload, answers)

    async def _leave_out_long(self) -> None:
        plan, most = self._plan, min(one.capabilities.max_model_len for one in self._engines.values())
        kept = await fitting(
            self._engines[Role.PLAIN], self._prompts, plan.all_workloads, most, plan.answer_tokens
        )
        if words := too_long(self._prompts, kept, most):
            self._cut(words)
        self._prompts = kept

    async def run(self, lengths: Sequence[int], kept: Callable[[], object] | None = None) -> None:
        """Measure all rounds with the draft lengths that the speculative engine can have now.

        `kept` is called after the second round and after each that follows: from two on ranges can be given.
        """
        began, expected = time.monotonic(), 0.0
        for round_ in range(self._plan.rounds):
            todo = list(pairs(self._plan, round_, lengths))
            budget, took = self._plan.budget_s, time.monotonic() - began
            next_s = round_s(self._plan, round_, lengths)
            # What the former rounds took corrects what this one is expected to take.
            if budget is not None and round_ >= ALWAYS_ROUNDS and took + next_s * took / expected > budget:
                self._cut(f"{self._plan.rounds - round_} of {self._plan.rounds} rounds: no time was left")
                for left in range(round_, self._plan.rounds):
                    self._progress.drop(round_s(self._plan, left, lengths))
                return
            expected += next_s
            before = clock()
            for pair in todo:
                if self._fits(pair):
                    self._progress.say(_words(pair, round_, self._plan.rounds))
                    await self.pair(pair, round_)
                    self._progress.done(expected_s(pair, self._plan))
                else:
                    self._progress.drop(expected_s(pair, self._plan))
            self._progress.say(f"round {round_ + 1} of {self._plan.rounds}: what prompts cost")
            self.found.prefills += await self._prefills.measure(self._prompts, round_)
            self._progress.done(prefills_s(self._plan))
            self._note_others(before, round_)
            last = round_ + 1 == self._plan.rounds
            if not last and (words := self._room.saturate(self.found.runs, round_ + 2)):
                self._cut(words)
            if kept is not None and round_ + 1 >= ALWAYS_ROUNDS:
                kept()

    async def pair(self, pair: Pair, round_: int, table: Sequence[int] | None = None) -> None:
        """Measure both engines at one cell; a table of draft lengths stands in for the pair's own."""
        speculative = self._engines[Role.SPECULATIVE]
        if table is not None:
            await speculative.set_draft_lengths(table)
        elif speculative.capabilities.draft_length_adjustable:
            await speculative.set_draft_length(pair.draft_length)
        times = SINGLE_ANSWERS if pair.sequences == 1 else 1
        chosen = cells_of(self._prompts, pair.workload, pair.sequences * times, round_ * pair.sequences)
        batches = [chosen[at : at + pair.sequences] for at in range(0, len(chosen), pair.sequences)]
        cells = {
            Role.SPECULATIVE: Cell(
                Role.SPECULATIVE, pair.draft_length, pair.sequences, pair.workload, pair.hold_out
            ),
            Role.PLAIN: Cell(Role.PLAIN, 0, pair.sequences, pair.workload, pair.hold_out),
        }
        running = {
            role: asyncio.create_task(self._cell(engine, cells[role], batches, round_))
            for role, engine in self._engines.items()
        }
        try:
            await asyncio.wait(running.values(), return_when=asyncio.FIRST_COMPLETED)
            going_on = [
                asyncio.create_task(self._go_on(self._engines[role], batches[-1]))
                for role, task in running.items()
                if task.done()
            ]
            try:
                self.found.runs += await asyncio.gather(*running.values())
            finally:
                await _cancel(going_on)
        finally:
            await _cancel(list(running.values()))
        await asyncio.sleep(SETTLE_S)

    async def _cell(
        self, engine: EngineProcess, cell: Cell, batches: Sequence[Sequence[Prompt]], round_: int
    ) -> CellRun:
        await engine.take()
        records, answers, steps = [], [], []
        for batch in batches:
            found = await self._batches.send(engine, batch)
            taken = (await engine.take()).steps
            prompt_tokens = sum(answer.prompt_tokens or 0 for answer in found)
            if (part := full_steps(taken, cell.sequences, prompt_tokens)) is not None:
                steps.append(part)
            records += taken
            answers += found
        self._room.learn(cell.workload, answers)
        good = [answer for answer in answers if answer.ok]
        drafts = drafting(records, good)
        full = together(steps)
        return CellRun(
            cell=cell,
            round=round_,
            steps=full,
            drafting=drafts,
            tokens_per_s=_rate(cell.sequences, full, drafts.tokens, drafts.request_steps),
            tpot_s=mean([answer.tpot_s for answer in good]),
            ttft_s=mean([answer.ttft_s for answer in good]),
            answers=len(good),
            failed=len(answers) - len(good),
        )

    async def _go_on(self, engine: EngineProcess, batch: Sequence[Prompt]) -> None:
        while True:
            answers = await self._batches.send(engine, batch)
            if not any(answer.ok for answer in answers):
                await asyncio.sleep(FAILED_S)

    def _fits(self, pair: Pair) -> bool:
        """Whether both engines can hold such a batch, and it still shows something."""
        if pair.sequences > self._room.most:
            return False
        words = self._room.too_large(pair)
        if words is not None:
            self._cut(words)
        return words is None

    def _note_others(self, before: Clock | None, round_: int) -> None:
        """What other processes used in a round; told once, when it was much."""
        after = clock()
        if before is None or after is None:
            self.found.others_known = False
            return
        use = used(before, after)
        self.found.others.append(use)
        if is_busy(use.cores) and not self._told_busy:
            self._told_busy = True
            self._progress.note(
                f"note: in round {round_ + 1} other processes used {use.cores:.1f} of {len(our_cores())} CPU "
                "cores: a result beside them will not be relied upon"
            )

    def _cut(self, words: str) -> None:
        if words not in self.found.cut:
            self.found.cut.append(words)
            self._progress.note(f"left out: {words}")


def _rate(sequences: int, steps: Steps | None, tokens: int, request_steps: int) -> float | None:
    if steps is None or not request_steps:
        return None
    return sequences * tokens / request_steps / steps.step_s


def _words(pair: Pair, round_: int, rounds: int) -> str:
    held = ", hold-out" if pair.hold_out else ""
    return (
        f"round {round_ + 1} of {rounds}: {pair.sequences} x {pair.workload}, K = {pair.draft_length}{held}"
    )


async def _cancel(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.gather(*tasks, return_exceptions=True)
