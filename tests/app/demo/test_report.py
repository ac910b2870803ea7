"""The end of a demo, as tables and as JSON: the same numbers, and nothing that was not measured."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from rich.console import Console

from app.demo.answers import Objective, Phase
from app.demo.document import document
from app.demo.plan import Load
from app.demo.report import Report, next_steps, render
from app.demo.run import Ended
from app.demo.seen import MoveSeen
from app.demo.summary import ByPhase, Copies, Row, Spread, Total
from app.demo.verdict import judge
from autoscaling.types import Role, Tier
from tests.app.demo.made import answer

OBJECTIVES: dict[Tier, Objective | None] = {
    Tier.INTERACTIVE: Objective(1.0, 0.05),
    Tier.STANDARD: Objective(ttft_s=5.0),
    Tier.BATCH: Objective(),
}
TOTALS = (
    Total(Tier.INTERACTIVE, 122, 121, 0, 0, 1, 0, met=119, missed=3, codes={"stream_interrupted": 1}),
    Total(Tier.STANDARD, 88, 88, 0, 0, 0, 0, met=80, missed=8, codes={}),
    Total(Tier.BATCH, 118, 96, 12, 12, 0, 10, met=0, missed=0, codes={"no_capacity": 12}),
)
FULL = Report(
    url="http://127.0.0.1:8000",
    seed=1,
    seconds=83.2,
    ended=Ended.COMPLETE,
    load=Load({Tier.INTERACTIVE: 2, Tier.STANDARD: 4, Tier.BATCH: 48}, plain_room=32),
    rows=(
        Row(
            Tier.INTERACTIVE,
            Role.SPECULATIVE,
            118,
            Spread(0.081, 0.214),
            Spread(0.0091, 0.0143),
            61.4,
            0.71,
            3.84,
            {"tier_interactive": 118},
        ),
        Row(
            Tier.INTERACTIVE,
            Role.PLAIN,
            3,
            Spread(0.3, None),
            Spread(0.031, None),
            8.0,
            None,
            None,
            {"spill": 2, "capability": 1},
        ),
        Row(
            Tier.STANDARD,
            Role.PLAIN,
            88,
            Spread(1.2, 6.1),
            Spread(0.04, 0.09),
            102.6,
            None,
            None,
            {"tier_standard": 88},
        ),
        Row(
            Tier.BATCH,
            Role.PLAIN,
            96,
            Spread(4.0, 9.5),
            Spread(0.09, 0.2),
            150.2,
            None,
            None,
            {"tier_batch": 96},
        ),
    ),
    totals=TOTALS,
    objectives=OBJECTIVES,
    phases=(
        ByPhase(Phase.QUIET, 22, Spread(0.07, 0.1), Spread(0.008, 0.009)),
        ByPhase(Phase.BUSY, 40, Spread(0.12, 0.3), Spread(0.011, 0.02)),
    ),
    copies=Copies({Role.SPECULATIVE: 3, Role.PLAIN: 3}, {Role.SPECULATIVE: 0.0081, Role.PLAIN: 0.0298}, 0.82),
    moves=(MoveSeen("m4", "plain", "speculative", 1, "shortfall", "done"),),
    verdicts=tuple(judge(total, OBJECTIVES[total.tier]) for total in TOTALS),
    slowest=answer(id="demo-1-77"),
    shares_cores=False,
    exit_code=1,
)


def lines(report: Report) -> list[str]:
    console = Console(width=100, no_color=True, color_system=None)
    with console.capture() as capture:
        console.print(render(report))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_the_report_as_text() -> None:
    """A row per tier and pool, every outcome apart, reasons, errors, moves, and a verdict per tier."""
    assert [
        "tier         pool         answers  TTFT p50  p95 s  TPOT p50  p95 ms",
        "interactive  speculative  118      0.08      0.21   9.1       14.3",
        "interactive  plain        3        0.30      -      31.0      -",
        "standard     plain        88       1.20      6.10   40.0      90.0",
        "batch        plain        96       4.00      9.50   90.0      200.0",
        "",
        "tier         pool         tok/s  acceptance  tok/draft  reasons",
        "interactive  speculative  61     0.71        3.84       tier_interactive 118",
        "interactive  plain        8      -           -          spill 2, capability 1",
        "standard     plain        103    -           -          tier_standard 88",
        "batch        plain        150    -           -          tier_batch 96",
        "",
        "tier         requests  answered  refused  again  failed  cut  in time",
        "interactive  122       121       0        0      1       0    97 %",
        "standard     88        88        0        0      0       0    90 %",
        "batch        118       96        12       12     0       10   -",
        "",
        "interactive  answers  TTFT p50  p95 s  TPOT p50  p95 ms",
        "quiet        22       0.07      0.10   8.0       9.0",
        "busy         40       0.12      0.30   11.0      20.0",
        "",
        "errors    interactive: stream_interrupted 1",
        "          batch: no_capacity 12",
        "moves     m4 done: 1 replica from plain to speculative, shortfall",
        "copying   the same copying task, one at a time: speculative 8.1 ms per token, plain 29.8 ms: with",
        "          drafts 3.7 times as fast (3 rounds, medians, 82 % of the drafts accepted)",
        "",
        "interactive: met, 119 of 122 (97 %) within TTFT 1 s and TPOT 50 ms; asked are 95 %; lost: 1 failed",
        "(stream_interrupted 1)",
        "standard: MISSED, 80 of 88 (90 %) within TTFT 5 s; asked are 95 %",
        "no objective set for batch: 96 answers, none lost",
        "objectives are set in the policy file, under spec.objectives: docs/policy.md",
    ] == lines(FULL)


def test_what_weakens_the_numbers_is_said() -> None:
    """A backlog that is too small, shared cores, an early end, and that nothing moved."""
    found = lines(
        replace(
            FULL,
            load=replace(FULL.load, plain_room=64),
            shares_cores=True,
            ended=Ended.SERVICE_LOST,
            moves=(),
        )
    )

    assert [
        "moves     none while it ran",
        "note      the batch backlog, 48 at once, did not fill the plain pool, which welcomes 64",
        "          replicas share CPU cores: the times mean little",
    ] == [line for line in found if line.startswith(("moves", "note", "          replicas"))]
    assert "ended     early, after 83 s: the service no longer answers" in found


def test_words_of_the_service_cannot_steer_the_terminal() -> None:
    """A reason or a code with control characters is shown with them written out."""
    row = replace(FULL.rows[0], reasons={"\x1b[2J": 1})
    odd = replace(FULL.totals[0], codes={"\x07": 1})

    found = lines(replace(FULL, rows=(row,), totals=(odd, *FULL.totals[1:])))

    assert r"interactive  speculative  61     0.71        3.84       \x1b[2J 1" in found
    assert r"errors    interactive: \x07 1" in found


@pytest.mark.parametrize("stopped", [False, True])
def test_the_next_steps_can_be_pasted(stopped: bool) -> None:
    """Against the service that was measured, or against a new one where it was the demo's own."""
    own = [
        "the demo's own service has stopped; for one that stays, in two terminals",
        "  twinpool serve",
        "  twinpool demo",
    ]
    running = [
        "go on with",
        "  TWINPOOL_URL=http://127.0.0.1:8000 twinpool why demo-1-77",
        "  TWINPOOL_URL=http://127.0.0.1:8000 twinpool status",
    ]

    assert (own if stopped else running) == next_steps(FULL, "twinpool", stopped=stopped)


def test_without_an_interactive_answer_there_is_nothing_to_explain() -> None:
    """Only the status is left to look at."""
    assert ["go on with", "  TWINPOOL_URL=http://127.0.0.1:8000 twinpool status"] == next_steps(
        replace(FULL, slowest=None), "twinpool", stopped=False
    )


def test_the_json_has_the_same_numbers() -> None:
    """Unknown is null; an objective that could not be read is null, one that is not set has null members."""
    found = document(replace(FULL, objectives=OBJECTIVES | {Tier.STANDARD: None}))

    assert found == json.loads(json.dumps(found, allow_nan=False))
    assert (1, "complete", 1, "demo-1-77", True) == tuple(
        found[key]
        for key in ("schema_version", "ended", "exit_code", "slowest_interactive", "fills_plain_pool")
    )
    assert {
        "answers": 3,
        "ttft_p50_seconds": 0.3,
        "ttft_p95_seconds": None,
        "tpot_p50_seconds": 0.031,
        "tpot_p95_seconds": None,
        "tokens_per_second": 8.0,
        "draft_acceptance_rate": None,
        "mean_acceptance_length": None,
        "reasons": {"spill": 2, "capability": 1},
    } == found["tiers"]["interactive"]["pools"]["plain"]
    assert None is found["tiers"]["standard"]["objective"]
    assert {"ttft_seconds": None, "tpot_seconds": None} == found["tiers"]["batch"]["objective"]
    assert (12, 12, 10, None, "no_objective") == tuple(
        found["tiers"]["batch"][key] for key in ("refused", "sent_again", "cut", "attainment", "verdict")
    )
    assert [
        {
            "id": "m4",
            "source": "plain",
            "receiver": "speculative",
            "count": 1,
            "reason": "shortfall",
            "state": "done",
        }
    ] == found["moves"]
    assert {"speculative": 0.0081, "plain": 0.0298} == found["copying_task"]["tpot_seconds"]
