"""How much one replica of a simulated pool serves, by its step cost; pure.

Mean lengths stand for all: a load is sized by it, and what comes of the load is simulated.
"""

from __future__ import annotations

from app.simulation.engine_profile import EngineProfile
from autoscaling.step_cost import churn_s, step_s
from autoscaling.types import Role


def in_time_per_s(
    engines: EngineProfile, workload: str, prompt: float, answer: float, tpot_s: float
) -> float:
    """Requests a second of a speculative replica with as many sequences as keep `tpot_s` on average.

    Raises ValueError when not even one sequence does.
    """
    role, sequences = Role.SPECULATIVE, 0
    for more in range(1, _most(engines, role, prompt, answer) + 1):
        if _tpot_s(engines, role, workload, more, prompt, answer) > tpot_s:
            break
        sequences = more
    if sequences == 0:
        raise ValueError(f"{engines.name}: no sequence keeps {tpot_s:g} s per token: give a longer objective")
    return sequences / (answer * _tpot_s(engines, role, workload, sequences, prompt, answer))


def full_per_s(engines: EngineProfile, workload: str, prompt: float, answer: float, limit: int) -> float:
    """Requests a second of a plain replica with as many sequences as it runs, at most `limit`."""
    sequences = min(limit, _most(engines, Role.PLAIN, prompt, answer))
    return sequences / (answer * _tpot_s(engines, Role.PLAIN, workload, sequences, prompt, answer))


def _tpot_s(
    engines: EngineProfile, role: Role, workload: str, sequences: int, prompt: float, answer: float
) -> float:
    """Seconds per token of each, the prompts of those who take turns beside it included."""
    cost = engines.cost_of(role)
    gain = engines.acceptance_of(workload).tokens_per_step(cost.draft_length)
    return step_s(cost, sequences, prompt + answer / 2) / gain + churn_s(cost, sequences - 1, prompt, answer)


def _most(engines: EngineProfile, role: Role, prompt: float, answer: float) -> int:
    return max(1, min(engines.max_num_seqs, int(engines.kv_tokens[role] // (prompt + answer))))
