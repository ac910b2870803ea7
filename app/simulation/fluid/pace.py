"""How fast the engines of a pool go, each as the mean of them: seconds of a step, and until a first token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from app.simulation.acceptance import Acceptance
from app.simulation.engine_profile import EngineProfile
from app.simulation.fluid.crowd import PULL
from app.simulation.fluid.uneven import Uneven
from app.simulation.replica import Lies
from autoscaling.profile import MEAN
from autoscaling.step_cost import step_s

MOST_SHARE = 0.97  # of the time that prompts take at most, so that steps go on

# Both are named tuples, which are made in a third of a frozen dataclass's time: four of each in every tick.


class Busy(NamedTuple):
    """What a mean replica has to do in one tick; per replica, counts may be parts of one."""

    seconds: float
    running: float  # sequences in the engine, but those that wait there
    waiting: float
    context_tokens: float  # of a sequence
    drafting: float  # share of sequences that have a draft in a step
    entering_per_s: float  # sequences that begin to run
    prompt_tokens: float  # of one that does, mean
    prompt_square: float  # mean of the squares
    guests: float  # share of the squares that is of guests
    bunch: float  # guests that come together with one, that one included
    backlog: float  # prompts that were to be computed before
    first_s: float  # mean of the tick before, from there to a first token
    uneven: Uneven


class Pace(NamedTuple):
    """What follows from it.

    A sequence waits `queued_s` inside the engine for memory.  Then its first token takes `fixed_s`, the part
    of its own prompt and on average `chance_s`; from there on it takes part in every step.
    """

    steps_per_s: float  # at the pool's largest K, or as many as bring the same tokens
    step_s: float  # such a step
    prompt_share: float  # of it, for prompts of others
    lumps_per_s: float  # such prompts
    spread: float  # mean of the squares of their tokens over the square of the mean
    last_s: float  # of the step in which the own prompt ends, without that prompt
    chunk_s: float  # what prompts take of one step at most
    uneven: float  # standard deviation between replicas of a step's seconds without prompts, over their mean
    uneven_lumps: float  # of the prompts per second, likewise, where the load is above the mean
    # Of the variance of the prompts that come in a time, over that of such as come at random: what is missing
    # in a long time, for replicas are kept alike; and what more there is at any, for guests come in bunches.
    regular: float
    bunched: float
    leaving_per_s: float  # share of a replica's surplus that leaves
    # Likewise, and is evened out by others that come: whoever knows of one sends the next ones elsewhere.
    evening_per_s: float
    apart: float  # share of the prompts that come while the own one is computed, for some know of that
    blind: float  # share of the prompts that come while others hold all up, for nobody knows of those yet
    steady: float  # share by which departures rise with the load; less than 1, for steps grow with it
    queued_s: float
    fixed_s: float
    prompt_token_s: float
    chance_s: float
    first_s: float  # mean of what comes after the queue, the prompt included
    backlog: float  # prompts that are left


class Stepping:
    """Engines of one kind."""

    def __init__(self, profile: EngineProfile, lies: Lies) -> None:
        cost = profile.cost_of(lies.role)
        self.draft_lengths: Sequence[int] = lies.draft_lengths or (cost.draft_length,)
        self.context_tokens = profile.context_tokens
        self._every = cost.drafted is None
        # As in the event model, a step is priced by the tokens that are verified in it.
        self._cost = replace(cost, drafted=0.0, draft_length=max(1, cost.draft_length))
        self._verify_s = profile.verify_s
        self._tax = profile.k0_tax if cost.draft_length > 0 else 1.0
        longest = max(self.draft_lengths)
        gains = [profile.acceptance[MEAN].tokens_per_step(length) for length in range(longest + 1)]
        self._gains = [gain / gains[-1] for gain in gains]
        self._kv_tokens = profile.kv_tokens[lies.role]
        self._most = profile.max_num_seqs
        self._budget = profile.max_batched_tokens

    def drafting(self, acceptance: Acceptance) -> float:
        """The share of sequences with a draft in a step; drafts are drawn for the largest K, and cut."""
        return 1.0 if self._every else acceptance.drafting(max(self.draft_lengths))

    def fitting(self, context_tokens: float) -> float:
        """How many sequences run at once; the memory for one more is free in part."""
        return max(1.0, min(self._most, self._kv_tokens / max(1.0, context_tokens) - 0.5))

    def pace(self, busy: Busy) -> Pace:
        """The pace of one tick."""
        decoding = max(0.0, busy.running - busy.entering_per_s * busy.first_s)
        uneven = busy.uneven
        seen = max(1.0, decoding + uneven.crowding)  # more sequences are where there are more
        length = self.draft_lengths[min(int(busy.running + uneven.crowding), len(self.draft_lengths) - 1)]
        base = self._step_s(seen, busy, length)
        prompt = max(1.0, busy.prompt_tokens)
        one = self._step_s(seen, busy, length, prompt) - base
        room = max(1.0, self._budget - seen * (1 + length))
        full = self._step_s(seen, busy, length, room) - base
        fastest = room / prompt / (base + full)
        offered = busy.entering_per_s + busy.backlog / busy.seconds
        served = min(offered, fastest)
        backlog = (offered - served) * busy.seconds
        lumps = served * (1.0 + uneven.surplus)
        share = min(lumps * one, MOST_SHARE)
        slope = (base - self._step_s(0.0, busy, length)) / seen
        deviation = (uneven.crowding * max(0.0, busy.running)) ** 0.5
        seen_deviation = (uneven.seen * max(0.0, busy.running)) ** 0.5
        varied = slope * deviation / base
        # A sequence makes more steps while they are short: 1 over the mean of 1 over their seconds.
        step = base / (1.0 + varied**2) / (1.0 - share)
        spread = max(1.0, busy.prompt_square / prompt**2)
        # A prompt waits for the rest of a step, and then shares one with those that came in the first; the
        # longer a step the likelier it is to be met.
        met = step + lumps * one**2 * spread / (1.0 - share**2)
        chance = min(1.0, busy.running) * met * (0.5 + share)
        fixed = base + (backlog / served if served > 0 else 0.0)
        idle = base - slope * seen
        steady = (1.0 - min(served * one, MOST_SHARE)) * idle / (idle + slope * decoding)
        gain = self._gains[length]
        # The better of two is taken: half as much comes less for each standard deviation that is known.
        storm_s = one * spread / (1.0 - share)
        blind = max(0.0, 1.0 - uneven.own * lumps * storm_s / 2 / max(deviation, 1e-9))
        return Pace(
            steps_per_s=gain / step,
            step_s=step / gain,
            prompt_share=share,
            lumps_per_s=lumps,
            spread=spread,
            last_s=base + share * met,
            chunk_s=full,
            uneven=varied,
            uneven_lumps=uneven.surplus * busy.running / (1.0 + uneven.surplus) / max(deviation, 1e-9),
            regular=(1.0 - busy.guests) * max(0.0, 1.0 - uneven.unfilled * steady),
            bunched=busy.guests * (busy.bunch - 1.0),
            leaving_per_s=uneven.leaving_per_s,
            evening_per_s=uneven.leaving_per_s + uneven.own * busy.entering_per_s,
            apart=max(0.0, 1.0 - uneven.own * PULL / max(seen_deviation, 1e-9)),
            blind=blind,
            steady=steady,
            queued_s=busy.waiting / busy.entering_per_s if busy.entering_per_s > 0 else 0.0,
            fixed_s=fixed,
            prompt_token_s=one / prompt,
            chance_s=chance,
            first_s=fixed + one + chance,
            backlog=backlog,
        )

    def _step_s(self, sequences: float, busy: Busy, length: int, prompt_tokens: float = 0.0) -> float:
        tokens = sequences * (1.0 + length * busy.drafting)
        context = sequences * busy.context_tokens / tokens if tokens > 0 else 0.0
        seconds = step_s(self._cost, tokens, context, prompt_tokens, length)
        seconds += self._verify_s * (tokens - sequences) * busy.context_tokens
        return seconds * self._tax if length == 0 else seconds
