"""From the analysis of `benchmarks.workload` to figures, tables and a page; pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence

from app.workload.acceptance import DRAFTABLE, draftable
from app.workload.classify import WorkloadClass
from benchmarks.quantiles import percentile
from benchmarks.results import Target, markdown_table, number
from benchmarks.workload_analysis import (
    PREDICT,
    Answered,
    Predictor,
    by_class,
    crossed,
    held_out,
    moved,
    pooled,
    ranking_auc,
    sent_auc,
    without,
)

TARGETS: Mapping[str, Target] = {"acceptance_auc": (">=", 0.7), "acceptance_auc_heldout": (">=", 0.7)}
CLASS_HEAD = (
    "class",
    "answers",
    "all together",
    "mean",
    "p10",
    "p50",
    "p90",
    f"share >= {DRAFTABLE}",
    "predicted",
)
PREDICTOR_HEAD = ("what predicts", "sent against rest", "held out", "ranking", "held out", "sent")
WITHOUT_HEAD = ("class taken away", "sent against rest", "ranking", "sent elsewhere")
TITLES: Mapping[Predictor, str] = {
    Predictor.TIER: "the tier alone",
    Predictor.FEATURES: "features alone",
    Predictor.CLASS: "the class alone",
    Predictor.PRIOR: "class and features, nothing measured",
    Predictor.ALL: "class and features, classes measured",
}


def figures(answers: Sequence[Answered]) -> dict[str, float]:
    """All figures; what cannot be told from these answers is absent."""
    full = crossed(answers, PREDICT[Predictor.ALL])
    late = held_out(answers, PREDICT[Predictor.ALL])
    found: dict[str, float | None] = {
        "acceptance_auc": sent_auc(full),
        "acceptance_auc_heldout": sent_auc(late),
        "ranking_auc": ranking_auc(full),
        "ranking_auc_heldout": ranking_auc(late),
    }
    for who in Predictor:
        if who is not Predictor.ALL:
            scored = crossed(answers, PREDICT[who])
            found[f"acceptance_auc_{who}"] = 0.5 if who is Predictor.TIER else sent_auc(scored)
            found[f"ranking_auc_{who}"] = ranking_auc(scored)
    sent = [one.measured for one in full if draftable(one.predicted)]
    rest = [one.measured for one in full if not draftable(one.predicted)]
    found["answers"] = float(len(answers))
    found["sent_share"] = len(sent) / len(full) if full else None
    found["tokens_per_step_sent"] = statistics.harmonic_mean(sent) if sent else None
    found["tokens_per_step_rest"] = statistics.harmonic_mean(rest) if rest else None
    found |= {f"tokens_per_step_{kind}": pooled(group) for kind, group in by_class(answers).items()}
    return {name: round(value, 3) for name, value in found.items() if value is not None}


def confusion(answers: Sequence[Answered]) -> tuple[list[str], list[list[str]]]:
    """Head and rows: the data's categories by our classes, in numbers of answers."""
    kinds = list(by_class(answers))
    counts: dict[str, Counter[WorkloadClass]] = {}
    for one in answers:
        counts.setdefault(one.category, Counter())[one.workload.kind] += 1
    rows = [
        [category, *(str(seen[kind]) if seen[kind] else "" for kind in kinds)]
        for category, seen in sorted(counts.items())
    ]
    return ["category", *kinds], rows


def class_rows(answers: Sequence[Answered]) -> list[list[str]]:
    """One row per class that occurs: tokens per step."""
    predict = PREDICT[Predictor.PRIOR]
    rows = []
    for kind, group in by_class(answers).items():
        seen = [one.measured for one in group]
        predicted = statistics.mean(predict(one, {}) or 1.0 for one in group)
        values = [
            pooled(group),
            statistics.mean(seen),
            *(percentile(seen, q) for q in (10, 50, 90)),
            sum(value >= DRAFTABLE for value in seen) / len(seen),
            predicted,
        ]
        rows.append([kind.value, str(len(group)), *map(number, values)])
    return rows


def predictor_rows(answers: Sequence[Answered]) -> list[list[str]]:
    """One row per predictor: how well it tells what drafts pay for."""
    rows = []
    for who in Predictor:
        full, late = crossed(answers, PREDICT[who]), held_out(answers, PREDICT[who])
        sent = sum(draftable(one.predicted) for one in full) / max(1, len(full))
        values = (sent_auc(full), sent_auc(late), ranking_auc(full), ranking_auc(late), sent)
        rows.append([TITLES[who], *map(number, values)])
    return rows


def without_rows(answers: Sequence[Answered]) -> list[list[str]]:
    """One row per class: what is left when its requests are chat."""
    predict = PREDICT[Predictor.ALL]
    rows = []
    for kind in (None, *by_class(answers)):
        if kind is not WorkloadClass.CHAT:
            fewer = answers if kind is None else without(answers, kind)
            scored = crossed(fewer, predict)
            name = "none" if kind is None else kind.value
            changed = str(moved(answers, fewer, predict))
            rows.append([name, number(sent_auc(scored)), number(ranking_auc(scored)), changed])
    return rows


def page(source: str, answers: Sequence[Answered]) -> str:
    """The Markdown above the verdicts."""
    head, rows = confusion(answers)
    return "\n\n".join(
        (
            METHOD.format(answers=len(answers), source=source),
            "## Categories of the data, and our classes",
            markdown_table(head, rows),
            "## Tokens per step",
            markdown_table(CLASS_HEAD, class_rows(answers)),
            "## What tells where drafts pay",
            markdown_table(PREDICTOR_HEAD, predictor_rows(answers)),
            "## What each class adds",
            markdown_table(WITHOUT_HEAD, without_rows(answers)),
        )
    )


METHOD = f"""Which requests n-gram drafts help, and whether that can be told before they run.

{{answers}} answers of a speculative pool to {{source}}.
*tokens per step* is an answer's tokens by the engine's steps for it, those without a draft included.
*sent* is what is predicted to have {DRAFTABLE} or more.
*sent against rest* is the chance that an answer of what is sent has more tokens per step than another.
*ranking* is the chance that an answer with {DRAFTABLE} or more was predicted higher than one with less.
Means of classes come from the other half of the prompts.
*held out* is the half that no number was chosen on.
*predicted* is the prior's mean, without any measurement.
Where a class is taken away, its requests count as chat."""
