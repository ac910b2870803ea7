"""What a simulated engine is like: its costs, its acceptance, its memory, its moves; made from a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from scipy.optimize import isotonic_regression

from app.simulation.acceptance import Acceptance
from autoscaling.goodput import effective_alpha, tokens_per_step
from autoscaling.profile import MEAN, Profile
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role

# Standard deviation between requests of tokens per step, EAGLE-3 with Llama-3.1-8B (SpecDecode-Bench;
# grounded is its summarisation).  Other classes are taken for chat.
SPREAD: Mapping[str, float] = {"chat": 0.50, "code": 0.61, "grounded": 0.32}


@dataclass(frozen=True, slots=True)
class EngineProfile:
    """The engines of both pools; a pool without a cost cannot be simulated.

    `acceptance` has the classes of work that are known, and `MEAN` for all others.
    """

    name: str
    costs: Mapping[Role, StepCost]
    acceptance: Mapping[str, Acceptance]
    kv_tokens: Mapping[Role, int]  # tokens of context that an engine holds at once
    max_num_seqs: int  # sequences in a step
    max_batched_tokens: int  # of a step, decoded and prompt together
    max_model_len: int  # tokens of prompt and answer together
    context_tokens: float  # of a sequence, typical for the service
    start_s: float  # until a started engine serves
    stop_s: float  # of an idle engine
    k0_tax: float = 1.0  # plain tokens per second over those of a speculative engine that drafts nothing
    verify_s: float = 0.0  # of a step for each draft token and each context token before it
    accelerators: int = 1  # that one engine takes
    source: str = ""

    @property
    def longest(self) -> int:
        """Tokens of prompt and answer together that a service with these engines takes.

        An engine whose memory holds less than one request of `max_model_len` and its drafts does not start,
        so both pools are given what either of them holds.
        """
        held = [
            kv - self.costs[role].draft_length for role, kv in self.kv_tokens.items() if role in self.costs
        ]
        return min(self.max_model_len, *held)

    def acceptance_of(self, workload: str) -> Acceptance:
        """That of a class of work, or of the mean where it is not known."""
        return self.acceptance.get(workload, self.acceptance[MEAN])

    def cost_of(self, role: Role) -> StepCost:
        """The cost of a pool's engines; ValueError, which names the pools there are, without one."""
        if role not in self.costs:
            known = ", ".join(self.costs)
            raise ValueError(
                f"profile {self.name}: no {role} engine was measured, only {known}: measure both"
            )
        return self.costs[role]


@dataclass(frozen=True, slots=True)
class Engines:
    """What a `profile.json` does not say of the engines that were measured."""

    max_num_seqs: int = 16  # as the settings have it
    max_batched_tokens: int = 2048
    max_model_len: int = 2048  # where the profile does not say
    kv_tokens: int = 11_648  # where the profile does not say
    start_s: float = 30.0  # likewise
    stop_s: float = 3.0  # likewise
    spread: Mapping[str, float] = field(default_factory=lambda: SPREAD)
    verify_s: float = 0.0  # see `app.simulation.verify_price`


def from_profile(profile: Profile, name: str, engines: Engines | None = None) -> EngineProfile:
    """The engines of a measured profile.

    Acceptance gives the measured tokens per step of each class at every K that was measured.  At another K
    drafts get as far as survival says, or where that was not measured, one acceptance at every position; as
    many tokens are new text, which no draft is found for, at every K.  What a speculative engine loses at
    K = 0 is in its own cost, which was fitted to such steps too, so that the tax of the file is not added.
    """
    given = engines or Engines()
    cost = profile.costs.get(Role.SPECULATIVE)
    length = 0 if cost is None else cost.draft_length
    measured_on = profile.measured_on
    return EngineProfile(
        name=name,
        costs=dict(profile.costs),
        acceptance={
            kind: _acceptance(profile, kind, gain, length, given.spread.get(kind, SPREAD["chat"]))
            for kind, gain in profile.tokens_per_step.items()
        },
        kv_tokens={role: profile.kv_cache_tokens.get(role, given.kv_tokens) for role in profile.costs},
        max_num_seqs=given.max_num_seqs,
        max_batched_tokens=given.max_batched_tokens,
        max_model_len=measured_on.max_model_len or given.max_model_len,
        context_tokens=profile.context_tokens,
        start_s=given.start_s if profile.start_s is None else profile.start_s,
        stop_s=given.stop_s if profile.stop_s is None else profile.stop_s,
        verify_s=given.verify_s,
        accelerators=measured_on.tensor_parallel or 1,
        source=f"measured: {name}",
    )


def _acceptance(profile: Profile, kind: str, gain: float, length: int, spread: float) -> Acceptance:
    source = "measured"
    if length == 0 or gain <= 1.0:
        return Acceptance((), draft_rate=0.0, source=source)
    measured = {at: tokens for at, tokens in profile.tokens_by_length.get(kind, {}).items() if at > 0}
    longest = max(measured, default=length)
    measured[longest] = gain
    accepted = _accepted(profile.survival.get(kind, ()), gain, longest)
    draft_rate = min(1.0, (gain - 1.0) / accepted[-1])
    undrafted = (1.0 - draft_rate) / gain
    gains = _gains(measured, [(1.0 + some) / (1.0 + undrafted * some) for some in accepted])
    # Survival depends on the K in force: as in `by_length` this one gives the right mean at each K.
    shares = isotonic_regression([after - before for before, after in pairwise(gains)], increasing=False).x
    draft_rate = min(1.0, max(draft_rate, float(shares[0])))  # a token more takes a draft
    survival = tuple(min(1.0, max(0.0, float(share)) / draft_rate) for share in shares)
    return Acceptance(survival, draft_rate, spread, source=source, undrafted=undrafted)


def _accepted(survival: Sequence[float], gain: float, longest: int) -> list[float]:
    """Tokens that a draft cut at K = 0, 1, ... has accepted; by one acceptance where survival is too low."""
    if tokens_per_step(survival, longest) < gain:
        alpha = effective_alpha(gain, longest)
        survival = tuple(alpha**position for position in range(1, longest + 1))
    return [tokens_per_step(survival, length) - 1.0 for length in range(longest + 1)]


def _gains(measured: Mapping[int, float], modelled: Sequence[float]) -> list[float]:
    """Tokens per step at K = 0, 1, ...: the measured ones, and between them what is modelled, as far off."""
    ratios = {0: 1.0} | {length: tokens / modelled[length] for length, tokens in sorted(measured.items())}
    off = np.interp(range(len(modelled)), list(ratios), list(ratios.values()))
    return [tokens * float(ratio) for tokens, ratio in zip(modelled, off, strict=True)]
