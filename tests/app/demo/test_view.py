"""The running demo as text: what is open, what ended, and where the time goes."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console, RenderableType

from app.demo.answers import Phase
from app.demo.seen import MoveSeen, PoolSeen
from app.demo.view import TierNow, View, announcement, heading, picture, progress, tiers_now
from autoscaling.types import Tier
from tests.app.demo.made import answer, cut, failed, refused

VIEW = View(
    phase=Phase.BUSY,
    left_s=33.4,
    tiers=(
        TierNow(Tier.INTERACTIVE, in_flight=2, done=40, refused=0, failed=0, tokens_per_s=99.6),
        TierNow(Tier.BATCH, in_flight=48, done=0, refused=3, failed=1, tokens_per_s=0.0),
    ),
    pools=(PoolSeen("speculative", 1, 2), PoolSeen("plain", None, None)),
    moves=(MoveSeen("m4", "plain", "speculative", 1, "shortfall", "draining\x1b"),),
    looks=False,
    copied=4,
)


def lines(shown: RenderableType) -> list[str]:
    console = Console(width=100, no_color=True, color_system=None)
    with console.capture() as capture:
        console.print(shown)
    return [line.strip(" │╭╮╰╯─") for line in capture.get().splitlines()]


def test_the_picture_has_all_of_it() -> None:
    """The phase and its sentence, each tier, each pool, the moves, and that the status does not come."""
    assert [
        "3 of 4, busy, 33 s left",
        "a backlog of batch requests comes on top, to fill the plain pool.",
        "tier         in flight  done  refused  failed  tok/s",
        "interactive  2          40    0        0       100",
        "batch        48         0     3        1       0",
        "pool      speculative 1 of 2 replicas",
        "plain - of - replicas",
        r"moves     m4 draining\x1b: 1 replica from plain to speculative, shortfall",
        "the status does not come",
        "",
    ] == lines(picture(VIEW))


def test_progress_is_one_line() -> None:
    """Refused and failed ones are named where there are any."""
    assert (
        "  33 s left | interactive 2 open, 40 done, 100 tok/s; batch 48 open, 0 done, 3 refused, 1 failed, "
        "0 tok/s | speculative 1 of 2 replicas; plain - of - replicas | move "
        r"m4 draining\x1b: 1 replica from plain to speculative, shortfall"
    ) == progress(VIEW)


def test_the_copying_task_is_seen_while_it_runs() -> None:
    """In the quiet phase, when nothing else is open at first."""
    quiet = replace(VIEW, phase=Phase.QUIET)

    assert "copying   4 answers timed" in lines(picture(quiet))
    assert " | copying task: 4 answers timed | " in progress(quiet)


def test_a_phase_is_announced_with_its_sentence() -> None:
    """Its number, its name, the seconds left of all; the end has no number."""
    assert announcement(VIEW) == (
        "3 of 4, busy, 33 s left: a backlog of batch requests comes on top, to fill the plain pool."
    )
    assert "finishing, at most 30 s left" == heading(Phase.FINISHING, 30.0)


def test_what_a_tier_has_done_so_far() -> None:
    """Tokens per second are those of answers that ended in the last ten seconds."""
    answers = [
        answer(began_s=0.0, e2e_s=2.0, tokens=1000),
        answer(began_s=11.0, e2e_s=5.0, tokens=40),
        answer(began_s=12.0, e2e_s=7.0, tokens=None),
        failed(),
        refused(Tier.BATCH),
        cut(),
    ]

    assert (
        TierNow(Tier.INTERACTIVE, in_flight=2, done=3, refused=0, failed=1, tokens_per_s=4.0),
        TierNow(Tier.STANDARD, in_flight=0, done=0, refused=0, failed=0, tokens_per_s=0.0),
        TierNow(Tier.BATCH, in_flight=7, done=0, refused=1, failed=0, tokens_per_s=0.0),
    ) == tiers_now(answers, {Tier.INTERACTIVE: 2, Tier.STANDARD: 0, Tier.BATCH: 7}, 20.0)
