"""One run of `benchmarks.mixed` against a service that is up: calibration, then condition by condition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from autoscaling.profile import read_profile
from autoscaling.types import Tier
from benchmarks.mixed_calibrate import EXPECTED_ANSWER_S, Calibration, calibrate
from benchmarks.mixed_figures import Block
from benchmarks.mixed_fit import draft_length, profile_text
from benchmarks.mixed_load import Loops, run_condition
from benchmarks.mixed_plan import (
    LEVELS,
    MEASURED,
    SWITCHES,
    UNMEASURED_LIMIT,
    Condition,
    Plan,
    order,
    policy_text,
)
from benchmarks.mixed_requests import (
    BATCH_STREAMS,
    INTERACTIVE_STREAMS,
    Known,
    arrivals,
    editing,
    known_samples,
    looped,
    some_of_each,
    talking,
)
from benchmarks.mixed_service import Service

START_S, STOP_S, SWITCH_S, FINISH_S = 60.0, 12.0, 4.0, 6.0  # for the time shown
SEED: Final = "1"


@dataclass(frozen=True, slots=True)
class Asked:
    """The command line."""

    plan: Plan
    engine: str
    with_profile: bool
    results: Path
    save: Path | None  # where to keep every counted answer


class Bench:
    """One run against a service that is up."""

    def __init__(self, asked: Asked, service: Service, step: Callable[[str, float], None]) -> None:
        self._asked = asked
        self._service = service
        self._step = step
        self.blocks: list[Block] = []
        self.most_drafts = 0

    def run(self) -> Calibration:
        """Calibrate, then measure every condition of every round.  Raises BenchError."""
        service, plan = self._service, self._asked.plan
        fingerprint, self.most_drafts = service.model()
        known = known_samples()
        found = calibrate(service.url, known, plan, self._step)
        if self._asked.with_profile:
            self._step("the profile comes into force", SWITCH_S)
            service.use_profile(profile_of(found, fingerprint, self.most_drafts))
        known = known_samples(found.refused)
        for index in range(plan.rounds):
            for condition in order(plan.conditions, index):
                self._block(index, condition, known, found.rate_per_s)
        return found

    def _block(self, index: int, condition: Condition, known: Sequence[Known], rate_per_s: float) -> None:
        plan, service = self._asked.plan, self._service
        name = f"{condition.value.replace('_', '-')}-{index + 1}"
        self._step(f"round {index + 1} of {plan.rounds}: {condition}", _block_s(plan))
        service.wait_idle()
        limit = MEASURED if self._asked.with_profile else UNMEASURED_LIMIT
        service.switch(name, policy_text(name, SWITCHES[condition], limit))
        seed = f"{SEED}/{index}"
        loops: Loops = {
            Tier.INTERACTIVE: [
                looped(Tier.INTERACTIVE, editing(known), f"{seed}/{stream}", name)
                for stream in range(INTERACTIVE_STREAMS)
            ],
            Tier.BATCH: [
                looped(Tier.BATCH, talking(known), f"{seed}/{stream}", name)
                for stream in range(BATCH_STREAMS)
            ],
        }
        shots = arrivals(known, rate_per_s, plan.window.total_s, seed, name)
        answers = run_condition(service.url, name, loops, shots, plan.window)
        self.blocks.append(Block(index, condition, answers, plan.window))


def profile_of(found: Calibration, fingerprint: str, most_drafts: int) -> str:
    """The profile file; raises ProfileError when it would not be read, which is a fault of ours."""
    made_at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    length = draft_length(found.drafting, most_drafts)
    text = profile_text(fingerprint, made_at, found.context_tokens, found.costs, found.drafting, length)
    read_profile(text, "profile.json")
    return text


def expected_s(plan: Plan) -> float:
    """How long the whole run takes, about."""
    asked = len(some_of_each(known_samples(), plan.answers_per_class))
    calibration = len(LEVELS) * plan.level_s + EXPECTED_ANSWER_S * asked + SWITCH_S
    return START_S + calibration + plan.rounds * len(plan.conditions) * _block_s(plan) + STOP_S


def _block_s(plan: Plan) -> float:
    return plan.window.total_s + SWITCH_S + FINISH_S
