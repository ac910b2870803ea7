"""Published acceptance of drafts by class of work: EAGLE-3 and n-gram, and what was measured on the CPU.

Tokens per step at K = 1, 2, 3, 4, 5, 6, 7 are pooled sums of Llama-3.1-8B-Instruct on an H100, greedy, from
SpecDecode-Bench (arXiv 2601.11580).  K = 6 is not in them: it lies
where the last two positions have one conditional acceptance.  Conditionals rise with position there: .59 .58
.63 .68 .72 .75 for chat with K = 7 in force, whose first position is lower than with K = 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from app.simulation.acceptance import Acceptance, by_length
from autoscaling.profile import MEAN

_BENCH = "SpecDecode-Bench, Llama-3.1-8B, H100"
_SPREADS = "spread between requests from the same data"

# The tenth of chat requests that fares worst: p10 of requests at each K, from the same data.
P10_CHAT = by_length(
    (1.526, 1.752, 1.886, 1.955, 1.976, 1.988, 1.995), source=f"{_BENCH}: p10 of requests, EAGLE-3"
)
# A draft of which each token is accepted with 0.4, given those before it.
ALPHA_4 = Acceptance(tuple(0.4**position for position in range(1, 8)), source="alpha = 0.4 at every position")

_CHAT = by_length(
    (1.660, 2.037, 2.252, 2.388, 2.476, 2.537, 2.579), spread=0.50, source=f"{_BENCH}; {_SPREADS}"
)
# Requests to edit code.
_CODE = by_length(
    (1.679, 2.091, 2.343, 2.509, 2.619, 2.697, 2.753), spread=0.61, source=f"{_BENCH}; {_SPREADS}"
)
# Summaries.
_GROUNDED = by_length(
    (1.673, 2.081, 2.325, 2.478, 2.573, 2.641, 2.689), spread=0.32, source=f"{_BENCH}; {_SPREADS}"
)
# (p90 - p10) / 2.563 of requests at K = 5, from the same data.
_MATH = by_length(
    (1.693, 2.124, 2.379, 2.545, 2.651, 2.713, 2.750), spread=0.29, source=f"{_BENCH}; p10 and p90 there"
)
EAGLE3: Mapping[str, Acceptance] = MappingProxyType(
    {"chat": _CHAT, "code": _CODE, "grounded": _GROUNDED, "math": _MATH, MEAN: _CHAT}
)

# The share of steps with a draft is not in the data.  That of chat is what makes the best speed-up at 256
# sequences 1.13, as computed from the same data; for code 1.40 gives .48, but one token more in .509 of
# the steps needs .51 at least.  Grounded and math are taken for chat.  Spreads are (p90 - p10)
# over 2.563, with five draft tokens.
_NGRAM_CHAT = by_length((1.236, 1.339, 1.395, 1.428, 1.451, 1.467, 1.479), 0.29, 0.26, _BENCH)
_NGRAM_CODE = by_length((1.509, 1.823, 2.028, 2.188, 2.289, 2.375, 2.447), 0.51, 0.78, _BENCH)
_NGRAM_GROUNDED = by_length((1.205, 1.289, 1.333, 1.360, 1.377, 1.389, 1.397), 0.29, 0.20, _BENCH)
_NGRAM_MATH = by_length((1.109, 1.147, 1.164, 1.172, 1.177, 1.180, 1.182), 0.29, 0.09, _BENCH)
NGRAM: Mapping[str, Acceptance] = MappingProxyType(
    {
        "chat": _NGRAM_CHAT,
        "code": _NGRAM_CODE,
        "grounded": _NGRAM_GROUNDED,
        "math": _NGRAM_MATH,
        MEAN: _NGRAM_CHAT,
    }
)

# benchmarks/results/workload.md: SmolLM2-135M on this CPU, n-gram with K = 4, tokens per step of all answers
# of a class, spread (p90 - p10) / 2.563.  The mean, and how acceptance falls with position, are those of
# `twinpool bench --quick` on the same machine (2026-11-30): 73, 59, 54 and 50 % of drafts survive.
_CPU_SURVIVAL = (0.727, 0.587, 0.538, 0.501)
_CPU_GAINS = {
    "structured": (2.114, 1.34),
    "code": (1.561, 0.81),
    "translate": (1.989, 0.75),
    "grounded": (1.674, 0.55),
    "math": (1.420, 0.17),
    "chat": (1.214, 0.19),
    MEAN: (1.518, 0.50),
}
CPU_NGRAM: Mapping[str, Acceptance] = MappingProxyType(
    {
        kind: Acceptance(
            _CPU_SURVIVAL, (gain - 1.0) / sum(_CPU_SURVIVAL), spread, source="benchmarks/results/workload.md"
        )
        for kind, (gain, spread) in _CPU_GAINS.items()
    }
)
