"""Findings as a profile file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.profile import FitQuality, PoolsAt, Profile, ProfileError, read_profile
from autoscaling.profiling.findings import (
    Estimate,
    Findings,
    Fit,
    PoolAnswer,
    PoolPrediction,
    Survival,
    TableRow,
)
from autoscaling.profiling.measured import EngineFacts, Fingerprint, Measurement
from autoscaling.profiling.profile_text import profile_text
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role

SPEC, PLAIN = Role.SPECULATIVE, Role.PLAIN
MADE_AT = "2026-11-30T08:00:00Z"


def survival(name: str, shares: tuple[float, ...], gains: Mapping[int, float]) -> Survival:
    return Survival(
        workload=name,
        survival=tuple(Estimate(share, share, share) for share in shares),
        draft_rate=0.5,
        drafted=2.0,
        acceptance_rate=0.3,
        tokens_per_step={length: Estimate(gain) for length, gain in gains.items()},
    )


MEAN = survival("mean", (0.5, 0.25), {0: 1.0, 2: 1.4, 4: 1.5})
FITS = {
    SPEC: Fit(SPEC, StepCost(0.015, 0.0005, draft_s=0.001, draft_length=4), 12, 0.05, 0.1, 4, True),
    PLAIN: Fit(PLAIN, StepCost(0.015, 0.0005), 8, 0.4, None, 0, False, "error 40 %"),
}


def findings(**changes: Any) -> Findings:
    """Those of a small measurement; `synthetic`, `fingerprint` and `engines` are the measurement's."""
    engines = (
        EngineFacts(SPEC, 16, 9000, 21.0, None),
        EngineFacts(PLAIN, 32, None, 20.0, 1.5),
    )
    measurement = Measurement(
        made_at=MADE_AT,
        took_s=60.0,
        quick=True,
        synthetic_acceptance=changes.pop("synthetic", False),
        fingerprint=changes.pop("fingerprint", Fingerprint("f", engine="vllm", draft_length_max=4)),
        engines=changes.pop("engines", engines),
        runs=(),
    )
    found = Findings(
        measurement=measurement,
        fits=FITS,
        survivals={"mean": MEAN},
        speed_ups=(),
        crossovers=(),
        break_evens=(),
        capacities=(),
        frontier=(),
        k0_tax=((1, Estimate(1.1, 1.0, 1.2)),),
        draft_s=None,
        kv_loss=None,
        context_tokens=500.0,
        table=(TableRow(1, 4, 4), TableRow(5, 16, 0)),
        pools=(
            PoolPrediction(0.1, {}, PoolAnswer.ONE_PLAIN, float("inf")),
            PoolPrediction(0.02, {}, PoolAnswer.TWO_POOLS, 1.3),
        ),
    )
    return replace(found, **changes)


def written(found: Findings) -> Profile:
    return read_profile(profile_text(found), "profile.json")


def test_a_measurement_becomes_a_profile() -> None:
    """Every part of it; the longest start counts, and a ratio to nothing is unknown."""
    assert written(findings()) == Profile(
        measured_on=Fingerprint("f", engine="vllm", draft_length_max=4),
        made_at=1_796_025_600.0,
        context_tokens=500.0,
        costs={role: fit.cost for role, fit in FITS.items()},
        tokens_per_step={"mean": 1.5},
        tokens_by_length={"mean": {0: 1.0, 2: 1.4, 4: 1.5}},
        survival={"mean": (0.5, 0.25)},
        synthetic_acceptance=False,
        kv_cache_tokens={SPEC: 9000},
        fits={
            SPEC: FitQuality(12, 0.05, 0.1, True),
            PLAIN: FitQuality(8, 0.4, None, False, "error 40 %"),
        },
        draft_table=(TableRow(1, 4, 4), TableRow(5, 16, 0)),
        k0_tax=((1, 1.1),),
        start_s=21.0,
        stop_s=1.5,
        two_pools=(
            PoolsAt(0.02, PoolAnswer.TWO_POOLS, 1.3),
            PoolsAt(0.1, PoolAnswer.ONE_PLAIN, None),
        ),
    )


def test_what_is_unknown_is_not_written() -> None:
    """No null, which a reader could take for a value."""
    text = profile_text(findings(fingerprint=Fingerprint("f"), engines=(), context_tokens=0.0))
    assert "null" not in text
    tree = json.loads(text)
    assert ({}, {}) == (tree["measuredOn"], tree["moveSeconds"])


def test_each_kind_of_prompts_has_its_gains() -> None:
    """Under its own name; the tokens per step are those at the K of the cost, no longer K is written."""
    code = survival("code", (0.8,), {2: 2.0, 4: 2.6, 6: 3.0})
    found = written(findings(survivals={"mean": MEAN, "code": code}))
    assert {"mean": 1.5, "code": 2.6} == found.tokens_per_step
    assert {2: 2.0, 4: 2.6} == found.tokens_by_length["code"]


def test_estimates_are_brought_within_what_is_possible() -> None:
    """A share that lies above the one before it, and a gain beyond what a step can bring."""
    odd = survival("mean", (0.5, 0.6, 0.2), {1: 0.98, 4: 5.01})
    found = written(findings(survivals={"mean": odd}))
    assert (0.5, 0.5, 0.2) == found.survival["mean"]
    assert {1: 1.0, 4: 5.0} == found.tokens_by_length["mean"]


def test_prescribed_acceptance_is_written() -> None:
    """With its gains, so that whoever simulates may use them."""
    found = written(findings(synthetic=True))
    assert (True, {"mean": 1.5}) == (found.synthetic_acceptance, found.tokens_per_step)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"survivals": {}}, "no drafts were measured: let the speculative engine draft"),
        (
            {"fits": {PLAIN: replace(FITS[PLAIN], cost=StepCost(0.0, 0.0))}},
            "pools.plain: a step costs nothing at all",
        ),
        ({"context_tokens": float("nan")}, "Out of range float values are not JSON compliant"),
    ],
)
def test_what_is_no_profile_is_refused(changes: dict[str, Any], words: str) -> None:
    """Before anybody writes it."""
    with pytest.raises(ProfileError) as error:
        profile_text(findings(**changes))
    assert str(error.value).startswith(f"profile.json: {words}")


seconds = st.floats(0.0, 1.0)
names = st.text(min_size=1, max_size=20)


@st.composite
def costs(draw: st.DrawFn, most: int) -> StepCost:
    """Of an engine that drafts up to `most`."""
    return StepCost(
        base_s=draw(st.floats(0.001, 1.0)),
        per_token_s=draw(seconds),
        per_context_s=draw(seconds),
        draft_s=draw(seconds),
        draft_length=most,
        per_draft_s=draw(seconds),
        draft_per_token_s=draw(seconds),
        draft_per_context_s=draw(seconds),
        drafted=draw(st.none() | st.floats(0.0, most)),
        per_prefill_s=draw(st.none() | seconds),
        hinge_tokens=draw(st.floats(0.0, 1000.0)),
        past_hinge_s=draw(seconds),
    )


@st.composite
def fits(draw: st.DrawFn, role: Role, most: int) -> Fit:
    accepted = draw(st.booleans())
    return Fit(
        role=role,
        cost=draw(costs(most)),
        points=draw(st.integers(1, 1000)) if accepted else 0,
        error=draw(st.floats(0.0, 10.0)) if accepted else draw(st.none() | st.floats(0.0, 10.0)),
        hold_out_error=draw(st.none() | st.floats(0.0, 10.0)),
        hold_out_points=0,
        accepted=accepted,
        refused_because=None if accepted else draw(names),
    )


@st.composite
def survivals(draw: st.DrawFn, name: str, most: int) -> Survival:
    shares = sorted(draw(st.lists(st.floats(0.0, 1.0), max_size=most)), reverse=True)
    lengths = {most, *draw(st.sets(st.integers(0, most)))}
    return survival(name, tuple(shares), {length: draw(st.floats(1.0, 1.0 + length)) for length in lengths})


@st.composite
def measurements(draw: st.DrawFn) -> Findings:
    most = draw(st.integers(1, 8))
    kinds = {"mean", *draw(st.sets(names, max_size=3))}
    counts = st.none() | st.integers(1, 100_000)
    words = st.none() | names
    ends = sorted(draw(st.sets(st.integers(1, 200), max_size=4)))
    return findings(
        synthetic=draw(st.booleans()),
        fingerprint=Fingerprint(
            draw(names),
            *(draw(words) for _ in range(3)),
            *(draw(counts) for _ in range(2)),
            *(draw(words) for _ in range(2)),
            most,
        ),
        engines=tuple(EngineFacts(role, 16, draw(counts), None, draw(st.none() | seconds)) for role in Role),
        fits={SPEC: draw(fits(SPEC, most)), PLAIN: draw(fits(PLAIN, 0))},
        survivals={name: draw(survivals(name, most)) for name in kinds},
        k0_tax=tuple((batch, Estimate(draw(st.floats(0.5, 2.0)))) for batch in ends),
        context_tokens=draw(st.floats(0.0, 100_000.0)),
        table=tuple(
            TableRow(1 + before, last, draw(st.integers(0, most)))
            for before, last in zip([0, *ends], ends, strict=False)
        ),
        pools=tuple(
            PoolPrediction(tpot, {}, draw(st.sampled_from(PoolAnswer)), draw(st.floats(0.5, 3.0)))
            for tpot in draw(st.sets(st.floats(0.01, 1.0), max_size=4))
        ),
    )


@given(measurements())
def test_what_is_written_is_read_back(found: Findings) -> None:
    """Every number exactly, and nothing is lost."""
    profile, made = written(found), found.measurement
    assert made.fingerprint == profile.measured_on
    assert {role: fit.cost for role, fit in found.fits.items()} == profile.costs
    assert {
        role: FitQuality(fit.points, fit.error, fit.hold_out_error, fit.accepted, fit.refused_because)
        for role, fit in found.fits.items()
    } == profile.fits
    assert {
        facts.role: facts.kv_cache_tokens for facts in made.engines if facts.kv_cache_tokens is not None
    } == profile.kv_cache_tokens
    assert (found.context_tokens, made.synthetic_acceptance) == (
        profile.context_tokens,
        profile.synthetic_acceptance,
    )
    for name, one in found.survivals.items():
        gains = {length: gain.value for length, gain in one.tokens_per_step.items()}
        assert (gains, gains[max(gains)]) == (profile.tokens_by_length[name], profile.tokens_per_step[name])
        assert tuple(share.value for share in one.survival) == profile.survival[name]
    assert found.recommended_table == profile.draft_table
    assert tuple((batch, tax.value) for batch, tax in found.k0_tax) == profile.k0_tax
    predicted = sorted(found.pools, key=lambda one: one.tpot_s)
    assert tuple(PoolsAt(one.tpot_s, one.answer, one.margin) for one in predicted) == profile.two_pools
