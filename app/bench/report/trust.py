"""How far a measurement can be trusted: rounds, failures, errors of the cost model, what was left out."""

from __future__ import annotations

from app.report.blocks import Block, Caution, Heading, Points, Section, Table, Text
from app.report.words import percent
from autoscaling.profiling.findings import Findings

TITLE = "Can this be trusted?"


def trust(findings: Findings) -> Section:
    """Whether the measurement can be trusted."""
    found = findings.measurement
    rounds = len({run.round for run in found.runs})
    failed, answers = sum(run.failed for run in found.runs), sum(run.answers for run in found.runs)
    if not rounds:
        return Section("trust", TITLE, [Caution(("Nothing was measured.",))], acceptance=False)
    said = [
        f"Both engines answered the same prompts at the same time, in {rounds} "
        f"{'round' if rounds == 1 else 'rounds'} of all cells, each in another order.",
        f"{answers:,} answers came whole; "
        + (f"{failed:,} failed and are in no average." if failed else "none failed."),
        "Ranges in brackets are 95 % intervals: of times from what differs between the rounds, of tokens per "
        "step from what differs between the cells, of acceptance from the number of drafts.",
        "The cost model of an engine is fitted to some batches and judged on them and on others that it has "
        "not seen: it is refused where it is off by more than 15 % on average on either.",
    ]
    if found.quick:
        said.append("This was a quick measurement: few batches and two kinds of prompts.")
    rows = tuple(
        (
            fit.role.value,
            f"{fit.points}",
            percent(fit.error),
            percent(fit.hold_out_error),
            f"{fit.hold_out_points}",
            "good enough" if fit.accepted else f"refused: {fit.refused_because or 'no reason given'}",
        )
        for fit in findings.fits.values()
    )
    head = ("engine", "cells fitted", "mean error", "mean error unseen", "cells unseen", "verdict")
    blocks: list[Block] = [Text(tuple(said))]
    if rows:
        blocks.append(Table("How well the cost model predicts a step", head, rows, frozenset({0, 5})))
    else:
        blocks.append(Caution(("No cost model could be fitted.",)))
    if found.cut:
        blocks += [Heading("What was left out"), Points(tuple((words,) for words in found.cut))]
    else:
        blocks.append(Text(("Nothing was left out.",)))
    if findings.notes:
        blocks += [Heading("To note"), Points(tuple((words,) for words in findings.notes))]
    return Section("trust", TITLE, blocks, acceptance=False)
