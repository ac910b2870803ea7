"""The batch at which drafts stop to pay, and how sure that is."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import inf

import pytest

from autoscaling.goodput import Crossing, crossover
from autoscaling.profiling.cost_fit import fit
from autoscaling.profiling.crossings import _crossover, beside_measured, crossings, largest_asked
from autoscaling.profiling.findings import Crossover, Estimate, SpeedUp, Verdict
from autoscaling.profiling.gains import drafting_by_length, gains_of
from autoscaling.profiling.measured import Measurement
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role
from tests.autoscaling.profiling.measurements import Kind, Truth, measured

PLAIN = StepCost(base_s=0.020, per_token_s=0.001, per_context_s=1e-6, per_prefill_s=0.001)
DRAFTS = replace(PLAIN, base_s=0.021, draft_s=0.002, draft_length=4)
# 1.9 tokens of a step with four draft tokens: (21 + 2 + 5.2 B) / 1.9 = 20 + 1.2 B at 5.14 sequences.
CHAT = Kind((0.45, 0.25, 0.15, 0.05))
TRUTH = Truth(PLAIN, DRAFTS, {"chat": CHAT})


def found_in(made: Measurement) -> Crossover:
    """The crossover at the largest K."""
    fits = {role: fit(role, made, None) for role in Role}
    gains = {"chat": gains_of(drafting_by_length(made, "chat"))}
    return crossings(made, ["chat"], gains, fits, {"chat": CHAT.context})[-1]


def true_crossing(truth: Truth = TRUTH) -> float:
    """Where it truly is."""
    kind = truth.kinds["chat"]
    found = crossover(truth.speculative, truth.plain, kind.context, kind.gain(4).tokens, 4, 128)
    assert found.at is not None
    return found.at


def test_without_noise_the_crossover_is_the_true_one() -> None:
    """5.14 sequences, between two whole ones; every draw finds it."""
    found = found_in(measured(TRUTH))

    assert pytest.approx(5.14, abs=0.02) == true_crossing()
    assert ("chat", 4, Verdict.PAYS_BELOW) == (found.workload, found.draft_length, found.verdict)
    assert found.sequences is not None
    assert pytest.approx(5.14, abs=0.1) == found.sequences.value
    assert found.sequences.low is not None
    assert found.sequences.high is not None
    assert 5.0 <= found.sequences.low <= found.sequences.value <= found.sequences.high <= 5.3


def test_the_interval_holds_the_true_crossover() -> None:
    """Steps that are 5 % off: at least 18 of 20 measurements, and it is not just wide."""
    truth, held = true_crossing(), 0
    for seed in range(20):
        found = found_in(measured(TRUTH, noise=0.05, seed=seed, lengths=(0, 4))).sequences
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        held += found.holds(truth)
        assert found.high - found.low <= 6.0

    assert held >= 18


def test_two_measurements_agree() -> None:
    """Ten of the same engines, 5 % off: any two intervals overlap, and most hold each other's crossover.

    Not all: an interval is about the truth, and what a second measurement finds is off by itself.
    """
    found = [found_in(measured(TRUTH, noise=0.05, seed=at, lengths=(0, 4))).sequences for at in range(10)]
    pairs = [(one, other) for one, other in combinations(found, 2) if one is not None and other is not None]

    assert 45 == len(pairs)
    assert all(
        (one.low or 0) <= (other.high or 0) and (other.low or 0) <= (one.high or 0) for one, other in pairs
    )
    assert sum(one.holds(other.value) and other.holds(one.value) for one, other in pairs) >= 36


@pytest.mark.parametrize("seeds", [(1, 2), (3, 4), (5, 6)])
def test_measured_twice_each_interval_holds_the_crossover_of_the_other(seeds: tuple[int, int]) -> None:
    """The same engines with 2 % noise, drawn independently; each holds its own and the true one too."""
    one, other = (found_in(measured(TRUTH, noise=0.02, seed=seed)).sequences for seed in seeds)

    assert one is not None
    assert other is not None
    assert one.value != other.value
    for found in (one, other):
        assert found.holds(one.value)
        assert found.holds(other.value)
        assert found.holds(true_crossing())


@pytest.mark.parametrize(
    ("survival", "speculative", "verdict"),
    [
        ((0.99, 0.98, 0.97, 0.96), replace(DRAFTS, per_token_s=0.0002), Verdict.PAYS_ALWAYS),
        ((0.01, 0.0, 0.0, 0.0), DRAFTS, Verdict.NEVER_PAYS),
        # Drafting has a price of its own that only a large batch pays back.
        (
            (0.3, 0.1, 0.0, 0.0),
            replace(DRAFTS, draft_s=0.015, per_token_s=0.0001, per_context_s=0.0),
            Verdict.MIXED,
        ),
    ],
)
def test_without_a_single_crossover_the_verdict_says_so(
    survival: tuple[float, ...], speculative: StepCost, verdict: Verdict
) -> None:
    """Always, never, and at large batches alone; of the first two all draws say the same."""
    truth = Truth(PLAIN, speculative, {"chat": Kind(survival)})
    sure = None if verdict is Verdict.MIXED else True

    assert Crossover("chat", 4, verdict, None, sure, 16) == found_in(measured(truth, lengths=(0, 4)))


@pytest.mark.parametrize(
    ("verdict", "ends", "sure"),
    [
        (Verdict.PAYS_ALWAYS, [inf] * 190 + [17.0] * 10, True),  # up to 16, beyond which nobody measured
        (Verdict.PAYS_ALWAYS, [inf] * 190 + [15.0] * 10, False),
        (Verdict.NEVER_PAYS, [0.0] * 196 + [2.0] * 4, True),
        (Verdict.NEVER_PAYS, [0.0] * 190 + [2.0] * 10, False),
        (Verdict.MIXED, [inf] * 200, None),
        (Verdict.PAYS_ALWAYS, [], None),
    ],
)
def test_a_verdict_is_sure_when_the_draws_share_it(
    verdict: Verdict, ends: list[float], sure: bool | None
) -> None:
    """With 95 %, over the batches that were measured; without draws it is not known."""
    assert Crossover("chat", 4, verdict, None, sure, 16) == _crossover("chat", 4, Crossing(verdict), ends, 16)


def speed_up(sequences: int, low: float, high: float, length: int = 4, workload: str = "chat") -> SpeedUp:
    """One measured batch."""
    return SpeedUp(workload, sequences, length, Estimate((low + high) / 2, low, high), None)


@pytest.mark.parametrize(
    ("found", "against"),
    [
        (Crossover("chat", 4, Verdict.PAYS_ALWAYS, None, True), speed_up(8, 0.92, 0.98)),
        (Crossover("chat", 4, Verdict.NEVER_PAYS, None, True), speed_up(1, 1.01, 1.2)),
        (Crossover("chat", 4, Verdict.PAYS_BELOW, Estimate(8.0, 6.0, 12.0), True), speed_up(4, 0.9, 0.99)),
        (Crossover("chat", 4, Verdict.PAYS_BELOW, Estimate(8.0, 6.0, 12.0), True), speed_up(16, 1.01, 1.1)),
    ],
)
def test_a_measured_batch_that_says_otherwise_makes_it_doubtful(found: Crossover, against: SpeedUp) -> None:
    """With 95 %; of the same kind of prompts and K, and on the wrong side of the crossover."""
    others = [replace(against, workload="copy"), replace(against, draft_length=2)]
    wide = replace(against, measured=Estimate(1.0, 0.9, 1.1))

    assert beside_measured(found, [against]).sure is False
    assert found == beside_measured(found, [])
    assert found == beside_measured(found, others)
    assert replace(found, only=True) == beside_measured(found, [wide])


def test_batches_that_surely_gain_are_kept_beside_the_verdict() -> None:
    """With 95 %, of these prompts and K; and that no other batch was measured."""
    found = Crossover("chat", 4, Verdict.PAYS_ALWAYS, None, True, 16)
    two = [speed_up(1, 1.2, 1.4), speed_up(4, 0.9, 1.4), speed_up(2, 1.2, 1.4, workload="copy")]

    assert replace(found, gains=(1,)) == beside_measured(found, two)
    assert replace(found, gains=(1,), only=True) == beside_measured(found, two[:1])


@pytest.mark.parametrize(
    ("found", "value", "sure"),
    [
        (Crossover("chat", 4, Verdict.PAYS_ALWAYS, None, True, 16), 0.95, False),
        (Crossover("chat", 4, Verdict.PAYS_ALWAYS, None, True, 16), 1.05, True),
        (Crossover("chat", 4, Verdict.NEVER_PAYS, None, True, 16), 1.05, False),
        (Crossover("chat", 4, Verdict.NEVER_PAYS, None, True, 16), 0.95, True),
        (Crossover("chat", 4, Verdict.PAYS_BELOW, Estimate(26.9, 9.0), True, 16), 0.95, False),
        (Crossover("chat", 4, Verdict.PAYS_BELOW, Estimate(8.0, 6.0, 12.0), True, 16), 0.95, True),
    ],
)
def test_what_is_said_of_every_batch_is_contradicted_by_any(
    found: Crossover, value: float, sure: bool
) -> None:
    """`At every batch that was measured` is not said beside a batch that lost, however wide its interval."""
    measured_at_4 = SpeedUp("chat", 4, 4, Estimate(value, value - 0.3, value + 0.3), None)

    assert sure is beside_measured(found, [measured_at_4]).sure


def test_a_crossover_without_any_bound_is_not_sure() -> None:
    """Draws that lie below all batches and draws beyond them: nothing is known of where it is."""
    assert Crossover("chat", 4, Verdict.PAYS_BELOW, Estimate(5.0), sure=False, largest=16) == _crossover(
        "chat", 4, Crossing(Verdict.PAYS_BELOW, 5.0), [0.0] * 60 + [4.0] * 60 + [inf] * 60, 16
    )


def test_a_bound_beyond_what_was_measured_is_open() -> None:
    """It crosses at 29 of the 32 sequences that are asked about: some draws never cross."""
    far = Truth(PLAIN, replace(DRAFTS, per_token_s=0.00052), {"chat": CHAT})
    found = found_in(measured(far, noise=0.05, lengths=(0, 4))).sequences

    assert 25 < true_crossing(far) < 32
    assert found is not None
    assert found.low is not None
    assert found.high is None


def test_a_bound_below_one_sequence_is_open() -> None:
    """It crosses at 1.3 sequences: for some draws drafting never pays."""
    near = Truth(PLAIN, replace(DRAFTS, draft_s=0.0127), {"chat": CHAT})
    found = found_in(measured(near, noise=0.05, lengths=(0, 4))).sequences

    assert 1.0 < true_crossing(near) < 2.0
    assert found is not None
    assert found.low is None
    assert found.high is not None


def test_a_single_round_has_no_bounds() -> None:
    """The crossover is known, and how sure it is not."""
    found = found_in(measured(TRUTH, rounds=1))

    assert found.sequences == Estimate(pytest.approx(5.14, abs=0.1))  # type: ignore[arg-type]


def test_the_same_measurement_gives_the_same_interval() -> None:
    """The draws are those of a fixed seed."""
    made = measured(TRUTH, noise=0.05)

    assert found_in(made) == found_in(made)


def test_noise_widens_the_interval() -> None:
    """1 % and 8 % off."""
    fine, coarse = (found_in(measured(TRUTH, noise=noise)).sequences for noise in (0.01, 0.08))

    assert fine is not None
    assert coarse is not None
    assert None not in (fine.low, fine.high, coarse.low, coarse.high)
    assert (coarse.high or 0) - (coarse.low or 0) > 3 * ((fine.high or 0) - (fine.low or 0))


def test_the_draws_have_the_prior_of_the_fits() -> None:
    """One context was measured, and 2,000 are asked about: what they cost only the prior knows.

    38 + 5.7 B = 23 + 7 B at 11.5 sequences; draws without the prior would take context for nothing.
    """
    prior = {Role.PLAIN: PLAIN, Role.SPECULATIVE: DRAFTS}
    made = measured(TRUTH, noise=0.01)
    fits = {role: fit(role, made, prior[role]) for role in Role}
    gains = {"chat": gains_of(drafting_by_length(made, "chat"))}

    found = crossings(made, ["chat"], gains, fits, {"chat": 2000.0}, prior)[-1].sequences
    without = crossings(made, ["chat"], gains, fits, {"chat": 2000.0})[-1].sequences
    assert found is not None
    assert without is not None
    assert found.holds(15 / 1.3)
    assert found.value == without.value
    assert (found.low or 0) > 1.2 * (without.low or 0)


def test_every_kind_and_length_is_asked_for_and_both_engines_are_needed() -> None:
    """Two kinds of prompts at K = 2 and 4, and nothing with one cost model."""
    made = measured(replace(TRUTH, kinds={"chat": CHAT, "copy": Kind((0.9, 0.8, 0.7, 0.6))}))
    fits = {role: fit(role, made, None) for role in Role}
    names = ("chat", "copy", "mean")
    gains = {name: gains_of(drafting_by_length(made, name)) for name in names}
    contexts = dict.fromkeys(names, 200.0)

    found = crossings(made, names, gains, fits, contexts)
    assert [(name, length) for name in names for length in (2, 4)] == [
        (one.workload, one.draft_length) for one in found
    ]
    assert () == crossings(made, names, gains, {Role.PLAIN: fits[Role.PLAIN]}, contexts)


def test_the_models_are_asked_up_to_twice_what_was_measured() -> None:
    """16 sequences were measured, and beyond 32 the models say nothing."""
    assert 32 == largest_asked(measured(TRUTH))
