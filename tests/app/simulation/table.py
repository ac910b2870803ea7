"""Best K and speed-up at a context of 512 tokens, computed from SpecDecode-Bench's and Vidur's data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.simulation.acceptance import Acceptance
from app.simulation.published_acceptance import ALPHA_4, EAGLE3, P10_CHAT

CONTEXT = 512
LONGEST = 7


@dataclass(frozen=True, slots=True)
class Row:
    """One line; `best` maps sequences to K and speed-up, `fixed` to the speed-up at K = 4."""

    profile: str
    workload: str
    acceptance: Acceptance
    best: Mapping[int, tuple[int, float]]
    fixed: Mapping[int, float]


def _row(profile: str, workload: str, acceptance: Acceptance, best: str, fixed: Mapping[int, float]) -> Row:
    cells = [cell.split() for cell in best.split(",")]
    batches = (1, 8, 32, 64, 128, 256)
    found = {batch: (int(cell[0]), float(cell[1])) for batch, cell in zip(batches, cells, strict=True)}
    return Row(profile, workload, acceptance, found, fixed)


CHAT = EAGLE3["chat"]
# Where the table says off, K = 1 is what it gives the speed-up of.
ROWS = (
    _row("h100-8b", "chat", CHAT, "3 1.72, 3 1.66, 2 1.54, 2 1.43, 2 1.32, 1 1.23", {256: 1.00}),
    _row("h100-8b", "alpha", ALPHA_4, "2 1.29, 2 1.26, 1 1.20, 1 1.16, 1 1.10, 1 1.04", {256: 0.69}),
    _row("a100-8b", "chat", CHAT, "3 1.80, 5 1.74, 3 1.64, 1 1.39, 1 1.20, 1 1.08", {128: 0.79, 256: 0.70}),
    _row("a100-8b", "p10", P10_CHAT, "3 1.51, 2 1.47, 1 1.40, 1 1.29, 1 1.11, 1 .99", {128: 0.65, 256: 0.57}),
    _row("h100-70b", "chat", CHAT, "3 1.83, 4 1.88, 3 1.83, 3 1.61, 1 1.36, 1 1.12", {128: 0.85, 256: 0.73}),
    _row("a100-70b", "chat", CHAT, "3 1.92, 4 1.93, 3 1.62, 1 1.32, 1 1.13, 1 .99", {128: 0.81, 256: 0.62}),
    _row(
        "a100-70b", "alpha", ALPHA_4, "2 1.40, 2 1.39, 1 1.31, 1 1.11, 1 .95, 1 .84", {128: 0.56, 256: 0.43}
    ),
)
