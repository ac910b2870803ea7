"""Full steps as they are on average over whole answers.

A batch is full only until its first answer ends, and a text that repeats itself drafts less in an answer's
first tokens than later: full steps verify fewer tokens than the steps that tokens per step are counted over.
"""

from __future__ import annotations

from autoscaling.profiling.gains import Gain, cost_at
from autoscaling.profiling.measured import Cell, Steps
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import step_s


def whole_step_s(cell: Cell, steps: Steps, cost: StepCost | None, gain: Gain | None) -> float:
    """Seconds of a full step that verifies as many draft tokens as `gain` says.

    The fitted cost says by how much that is longer; without one, or without drafts, it is the measured step.
    """
    length, sequences = cell.draft_length, cell.sequences
    if cost is None or gain is None or length == 0:
        return steps.step_s
    context = steps.context_tokens / sequences
    early = Gain(1.0, max(0.0, steps.tokens / sequences - 1.0))
    of_whole = step_s(cost_at(cost, length, gain), sequences, context)
    of_early = step_s(cost_at(cost, length, early), sequences, context)
    return steps.step_s * of_whole / of_early
