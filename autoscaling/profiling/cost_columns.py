"""The columns of a cost fit: which prices of a step a measurement can tell apart, and their solution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from autoscaling.profiling.rows import PrefillRow, Row
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import prefill_s

Matrix = NDArray[np.float64]

PRICES = (
    "base_s",
    "per_token_s",
    "per_context_s",
    "draft_s",
    "per_draft_s",
    "draft_per_token_s",
    "past_hinge_s",
)
SEVERAL_LENGTHS = ("per_draft_s", "draft_per_token_s")  # need two K with drafts
# Share of a column, by the root of its squares, that those before it have to leave unexplained; with less,
# noise of a few per cent decides which of them gets the price.
TOLD_APART = 0.05
ALIKE = 0.01  # share within which the drafted tokens are those of a full draft
# Weight of the pull per row and price, in squared relative errors.  A prior moves a price that is well
# measured by less than it is off itself, by far; without one, the pull to zero only keeps a scale.
PULL_OF_PRIOR = 1e-3
PULL_WITHOUT = 1e-6


@dataclass(frozen=True, slots=True)
class Columns:
    """The prices that are fitted, chosen once for a measurement and all its resamples."""

    names: tuple[str, ...]
    scales: tuple[float, ...]  # of each column
    prior: Mapping[str, float]  # where the prices are pulled to
    pull: float
    hinge: float | None
    draft_length: int  # largest K
    drafted: float | None
    per_prefill_s: float | None  # when no prompt was measured

    def cost(self, rows: Sequence[Row], prompts: Sequence[PrefillRow]) -> StepCost:
        """The prices that come closest to the rows, by relative errors."""
        scales = np.array(self.scales)
        pull = (self.pull * len(rows)) ** 0.5
        # No price is more than the whole step, whatever other machine or model the prior is of.
        wanted = np.minimum(1.0, np.array([self.prior.get(name, 0.0) for name in self.names]) * scales)
        targets = pull * wanted
        system = np.vstack([_matrix(rows, self.names, self.hinge) / scales, pull * np.eye(len(scales))])
        solution, _ = nnls(system, np.concatenate([np.ones(len(rows)), targets]))
        prices = dict(zip(self.names, (float(price) for price in solution / scales), strict=True))
        cost = StepCost(
            base_s=prices.get("base_s", 0.0),
            per_token_s=prices.get("per_token_s", 0.0),
            per_context_s=prices.get("per_context_s", 0.0),
            draft_s=prices.get("draft_s", 0.0),
            draft_length=self.draft_length,
            per_draft_s=prices.get("per_draft_s", 0.0),
            draft_per_token_s=prices.get("draft_per_token_s", 0.0),
            drafted=self.drafted,
            hinge_tokens=self.hinge or 0.0,
            past_hinge_s=prices.get("past_hinge_s", 0.0),
        )
        return replace(cost, per_prefill_s=_per_prefill_s(cost, prompts) if prompts else self.per_prefill_s)


def columns_of(rows: Sequence[Row], prior: StepCost | None, hinge: float | None = None) -> Columns:
    """The prices that the rows can tell apart, and those that the prior knows."""
    lengths = {row.cell.draft_length for row in rows if row.cell.draft_length > 0}
    wanted = _prices_of(prior, lengths) if prior is not None else {}
    kept: list[str] = []
    for name in PRICES:
        if name in SEVERAL_LENGTHS and len(lengths) < 2:
            continue
        if name == "past_hinge_s" and hinge is None:
            continue
        matrix = _matrix(rows, (*kept, name), hinge)
        column = matrix[:, -1]
        size = float(np.linalg.norm(column))
        if size == 0.0:
            continue
        left = column - matrix[:, :-1] @ np.linalg.lstsq(matrix[:, :-1], column, rcond=None)[0]
        if wanted.get(name, 0.0) > 0 or float(np.linalg.norm(left)) > TOLD_APART * size:
            kept.append(name)
    matrix = _matrix(rows, kept, hinge)
    longest = max(lengths, default=0)
    return Columns(
        names=tuple(kept),
        scales=tuple(float(size) for size in np.sqrt(np.mean(matrix**2, axis=0))),
        prior=wanted,
        pull=PULL_WITHOUT if prior is None else PULL_OF_PRIOR,
        hinge=hinge,
        draft_length=longest,
        drafted=_drafted(rows, longest),
        per_prefill_s=None if prior is None else prior.per_prefill_s,
    )


def _matrix(rows: Sequence[Row], names: Sequence[str], hinge: float | None) -> Matrix:
    """What one second of each price adds to each step, as a share of what the step took."""
    tokens = np.array([row.tokens for row in rows])
    context = np.array([row.context_tokens for row in rows])
    length = np.array([float(row.cell.draft_length) for row in rows])
    drafts = np.where(length > 0, 1.0, 0.0)
    columns = {
        "base_s": np.ones(len(rows)),
        "per_token_s": tokens,
        "per_context_s": context,
        "draft_s": drafts,
        "per_draft_s": length,
        "draft_per_token_s": drafts * tokens,
        "past_hinge_s": np.maximum(0.0, tokens - (hinge or 0.0)),
    }
    seconds = np.array([row.seconds for row in rows])
    return np.column_stack([columns[name] / seconds for name in names])


def _prices_of(prior: StepCost, lengths: set[int]) -> dict[str, float]:
    """What the prior says of each price; with a single K all that drafting costs is one price."""
    found = {name: float(getattr(prior, name)) for name in PRICES if name != "past_hinge_s"}
    if len(lengths) == 1:
        found["draft_s"] += prior.per_draft_s * min(lengths)
    return found


def _drafted(rows: Sequence[Row], longest: int) -> float | None:
    """Mean draft tokens per sequence and step at the largest K; None when every step drafts fully."""
    if longest == 0:
        return None
    found = [row.tokens / row.cell.sequences - 1.0 for row in rows if row.cell.draft_length == longest]
    mean = max(0.0, sum(found) / len(found))
    return None if abs(mean - longest) <= ALIKE * longest else mean


def _per_prefill_s(cost: StepCost, prompts: Sequence[PrefillRow]) -> float:
    """The price of a prompt's token beside what the step costs without it; never negative."""
    free = replace(cost, per_prefill_s=0.0)
    tokens = np.array([row.prompt_tokens / row.seconds for row in prompts])
    rest = np.array([1.0 - prefill_s(free, row.prompt_tokens) / row.seconds for row in prompts])
    return max(0.0, float(tokens @ rest / (tokens @ tokens)))
