"""Which batches both engines have room for, and which still show something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.bench.answer import Answer
from app.bench.engine_process import EngineProcess
from app.bench.plan import Pair, Plan
from app.bench.saturation import saturated_at
from autoscaling.profiling.measured import CellRun
from autoscaling.types import Role


class Room:
    """Learns from the answers how long prompts are, and from the rounds where no engine gains any more."""

    def __init__(self, engines: Mapping[Role, EngineProcess], plan: Plan) -> None:
        self.most = max(plan.batches + plan.hold_out)  # the largest batch that is measured
        self._engines = engines
        self._answer_tokens = plan.answer_tokens
        self._prompt_tokens: dict[str, int] = {}  # the longest that was seen, by workload

    def learn(self, workload: str, answers: Sequence[Answer]) -> None:
        """Note how long the prompts were."""
        longest = max((answer.prompt_tokens or 0 for answer in answers), default=0)
        self._prompt_tokens[workload] = max(longest, self._prompt_tokens.get(workload, 0))

    def too_large(self, pair: Pair) -> str | None:
        """Why an engine cannot hold such a batch, in words; None when both can."""
        need = pair.sequences * (self._prompt_tokens.get(pair.workload, 0) + self._answer_tokens)
        for role, engine in self._engines.items():
            holds = engine.capabilities.kv_cache_tokens
            if holds is not None and need > holds:
                return (
                    f"{pair.workload} at {pair.sequences} sequences: needs {need} tokens of KV cache, "
                    f"the {role} engine has {holds}"
                )
        return None

    def saturate(self, runs: Sequence[CellRun], next_round: int) -> str | None:
        """Go no further than the batch from which no engine gains any more; says what is left out by that.

        `next_round` counts from 1.
        """
        larger = saturated_at(runs)
        if larger is None or larger >= self.most:
            return None
        self.most = larger
        if any(run.cell.sequences > larger for run in runs):
            return f"more than {larger} sequences from round {next_round} on: no engine gains there"
        return None
