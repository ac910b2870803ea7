"""What drafts have given each workload class of late, by the engines' own numbers; pure."""

from __future__ import annotations

from autoscaling.request_record import RequestRecord
from autoscaling.request_window import WindowSums
from autoscaling.types import Role

SPAN_S = 3600.0  # the traffic of a class changes over hours
# Steps that the mean of a class rests on at least: with fewer the spread between requests is larger than
# that between classes (two dozen answers of the embedded model).
FEWEST_STEPS = 600
KEPT_S = 1.0  # every ingress asks four times a second
MOST_CLASSES = 32  # a class is a word of the ingress


class Gains:
    """Requests in, tokens per step and class out; only those whose answer told how its drafts fared."""

    def __init__(self) -> None:
        self._sums: dict[str, WindowSums] = {}
        self._said: tuple[float, dict[str, float]] | None = None

    def take(self, record: RequestRecord, now: float) -> None:
        """Note a request that the speculative pool has answered with one sequence."""
        line, found, drafts = record.line, record.measured, record.line.acceptance
        if line.pool is not Role.SPECULATIVE or found is None or drafts is None or line.sequences != 1:
            return
        accepted = drafts.get("num_accepted_draft_tokens")
        if accepted is None or not 0 <= accepted < found.generated_tokens:
            return
        if line.workload not in self._sums and len(self._sums) >= MOST_CLASSES:
            return
        sums = self._sums.setdefault(line.workload, WindowSums(2, SPAN_S))
        # Every step gives one token of its own and those that were accepted.
        sums.add(now, found.generated_tokens, found.generated_tokens - int(accepted))

    def tokens_per_step(self, now: float) -> dict[str, float]:
        """By class, over the last hour; classes with too few steps are left out.  Up to a second old."""
        if self._said is not None and 0.0 <= now - self._said[0] < KEPT_S:
            return self._said[1]
        found = {}
        for workload, sums in self._sums.items():
            tokens, steps = sums.sums(now)
            if steps >= FEWEST_STEPS:
                found[workload] = round(tokens / steps, 3)
        self._said = (now, found)
        return found
