"""What is said wherever the acceptance of drafts was prescribed and not measured."""

from __future__ import annotations

from typing import Final

SYNTHETIC: Final = "synthetic acceptance"
SYNTHETIC_WORDS: Final = (
    "How many draft tokens are accepted was prescribed to the engine and is not the drafter's.",
    "Costs are real; every gain below is what a drafter as good as that would bring.",
)
