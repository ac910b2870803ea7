"""The profile that a prediction of `benchmarks.goodput` rests on: measured, fitted, concluded from."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, cast

from app.bench.engine_process import BenchEngineError, EngineProcess
from app.bench.found import Found
from app.bench.made import facts_of, fingerprint
from app.bench.measure import Measuring
from app.bench.plan import Plan
from autoscaling.profiling.analyse import analyse
from autoscaling.profiling.cost_fit import FitError
from autoscaling.profiling.load import Load, Mix
from autoscaling.profiling.measured import Measurement
from autoscaling.types import Role, Tier
from benchmarks.errors import BenchError
from benchmarks.goodput_engines import Engine, Say
from benchmarks.goodput_plan import (
    BATCH_STREAMS,
    BATCH_TOKENS,
    INTERACTIVE_TOKENS,
    RATE_PER_S,
    TTFT_S,
    WEIGHT,
    Method,
)
from benchmarks.goodput_profile import calibrated
from benchmarks.goodput_requests import BATCHES, CHATS, EDIT, prompt_tokens, prompts
from benchmarks.goodput_rules import Calibrated

# Short: 27 cells of three kinds of prompts, each twice, four minutes.
SEQUENCES: Final = (1, 4, 16)
ROUNDS: Final = 2
ATTEMPTS: Final = 3  # as often the rounds are measured, until the fits pass their gate


class _Quiet:
    """What a measurement says of each cell would drown the run's own lines."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def say(self, text: str) -> None:
        """What is measured is not told; `note` is."""

    def note(self, text: str) -> None:
        self._say(text)

    def done(self, expected_s: float) -> None:
        """The run counts calibration as one step."""

    def drop(self, expected_s: float) -> None:
        """The run counts calibration as one step."""


async def calibrate(method: Method, longest: int, speculative: Engine, plain: Engine, say: Say) -> Calibrated:
    """Measure both engines side by side and conclude from it; raises BenchError."""
    plan = plan_of(longest)
    engines = {
        Role.SPECULATIVE: cast(EngineProcess, speculative),
        Role.PLAIN: cast(EngineProcess, plain),
    }
    began = time.monotonic()
    try:
        one = Measuring(engines, prompts(), plan, _Quiet(say), greedy=method.synthetic)
        await one.warm_up()
        for _ in range(ATTEMPTS):
            await one.run(plan.lengths)
            made = measurement_of(method, plan, engines, one.found, time.monotonic() - began)
            findings = analyse(made, None, {}, load(), Mix(interactive=(EDIT, CHATS), batch=(BATCHES,)))
            poor = [fit for fit in findings.fits.values() if not fit.accepted]
            if not poor:
                return calibrated(findings, longest)
            for fit in poor:
                say(f"the fit of the {fit.role} engine is poor, more is measured: {fit.refused_because}")
    except (BenchEngineError, FitError) as error:
        raise BenchError(f"calibration of {method.in_words}: {error}") from error
    raise BenchError(
        f"calibration of {method.in_words}: no fit was good enough after {ATTEMPTS * ROUNDS} rounds: "
        "run it again with nothing else on the machine"
    )


def load() -> Load:
    """The load that the prediction is about: the one that will be measured."""
    return Load(
        interactive_per_s=RATE_PER_S,
        interactive_answer_tokens=INTERACTIVE_TOKENS,
        interactive_prompt_tokens=prompt_tokens(Tier.INTERACTIVE),
        batch_streams=BATCH_STREAMS,
        batch_answer_tokens=BATCH_TOKENS,
        batch_prompt_tokens=prompt_tokens(Tier.BATCH),
        interactive_weight=WEIGHT,
        ttft_s=TTFT_S,
    )


def plan_of(longest: int) -> Plan:
    """The short grid for engines that draft up to so many tokens: that, half of it, and none."""
    return Plan(
        batches=SEQUENCES,
        hold_out=(),
        lengths=tuple(sorted({0, (longest + 1) // 2, longest})),
        workloads=(EDIT, CHATS, BATCHES),
        rounds=ROUNDS,
        quick=True,
    )


def measurement_of(
    method: Method, plan: Plan, engines: Mapping[Role, EngineProcess], found: Found, took_s: float
) -> Measurement:
    """What was measured, as the analysis takes it."""
    known = {role: engine.capabilities for role, engine in engines.items()}
    return Measurement(
        made_at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        took_s=round(took_s, 1),
        quick=True,
        synthetic_acceptance=method.synthetic,
        fingerprint=fingerprint(known[Role.SPECULATIVE], plan.longest),
        engines=tuple(facts_of(role, one) for role, one in known.items()),
        runs=tuple(found.runs),
        prefills=tuple(found.prefills),
        cut=tuple(found.cut),
    )
