"""The appendix: how it was measured, on what, the fitted costs, and every cell."""

from __future__ import annotations

from collections.abc import Iterable

from app.bench.report.synthetic import SYNTHETIC
from app.report.blocks import Block, Heading, Section, Table, Text
from app.report.words import UNKNOWN, count, ms, name, number, percent
from autoscaling.profiling.findings import Findings, Fit
from autoscaling.profiling.measured import CellRun, Fingerprint, Measurement

NAMES = frozenset({0, 1})


def appendix(findings: Findings) -> Section:
    """Section 9."""
    found = findings.measurement
    said = (
        "Both engines ran at the same time, each as the service would start it, and got the same prompts "
        "together; the one that was done first went on with the same load until the other was done too.",
        "Only steps count in which the whole batch decoded and nothing else ran, without the slowest and the "
        "fastest.",
        "Tokens per step come from whole answers, and times per token from what a caller would see.",
        "Full steps are the first ones of answers: where fewer tokens are drafted in them than in whole "
        "answers, speed-ups and costs count what the fitted cost adds for the others; the cells below are as "
        "measured.",
        "The same numbers are in measurement.json beside this report.",
    )
    facts = [
        ("measured at", name(found.made_at)),
        ("took", f"{number(found.took_s)} s"),
        ("kind", "quick" if found.quick else "full"),
        ("acceptance", "synthetic: prescribed, not the drafter's" if found.synthetic_acceptance else "real"),
        ("context of a sequence", f"{count(findings.context_tokens)} tokens"),
    ]
    blocks: list[Block] = [
        Text(said),
        Table("This measurement", ("what", "value"), tuple(facts), NAMES),
        Table("What it holds for", ("part", "value"), _fingerprint(found.fingerprint), NAMES),
    ]
    for caption, pairs in (("Machine", found.machine), ("Versions", found.versions)):
        if pairs:
            blocks.append(Table(caption, ("what", "value"), _pairs(pairs.items()), NAMES))
    if findings.fits:
        blocks += [
            Heading("Fitted costs"),
            Text(
                (
                    "A step takes the base, and so much for each token in it, each context token, each token "
                    "above the hinge, and for drafting.",
                )
            ),
            _costs(tuple(findings.fits.values())),
        ]
    if found.prefills:
        rows = tuple(
            (one.engine.value, str(one.round + 1), count(one.prompt_tokens), ms(one.step_s))
            for one in found.prefills
        )
        head = ("engine", "round", "prompt tokens", "ms")
        blocks.append(Table("Steps that took a whole prompt", head, rows, folded=True))
    blocks.append(_cells(found))
    return Section("appendix", "Appendix: how it was measured, and every cell", blocks, acceptance=False)


def _fingerprint(found: Fingerprint) -> tuple[tuple[str, str], ...]:
    return _pairs(
        (
            ("model (content hash)", found.model),
            ("engine", found.engine),
            ("engine version", found.engine_version),
            ("device", found.device),
            ("accelerators of a replica (tensor parallel)", _known(found.tensor_parallel)),
            ("longest context, tokens", _known(found.max_model_len)),
            ("draft method", found.method),
            ("draft model", found.draft),
            ("largest K", _known(found.draft_length_max)),
        )
    )


def _known(value: int | None) -> str | None:
    return None if value is None else str(value)


def _pairs(pairs: Iterable[tuple[str, str | None]]) -> tuple[tuple[str, str], ...]:
    return tuple((name(key), value or UNKNOWN) for key, value in pairs)


def _costs(fits: tuple[Fit, ...]) -> Table:
    lines = (
        ("base of a step, ms", [ms(fit.cost.base_s) for fit in fits]),
        ("each token in it, ms", [micro(fit.cost.per_token_s) for fit in fits]),
        ("each context token, ms", [micro(fit.cost.per_context_s) for fit in fits]),
        ("each prompt token, ms", [micro(fit.cost.per_prefill_s) for fit in fits]),
        ("tokens per step from which more cost more (hinge)", [_hinge(fit) for fit in fits]),
        ("each token above the hinge, more, ms", [micro(fit.cost.past_hinge_s) for fit in fits]),
        ("drafting, base, ms", [micro(fit.cost.draft_s) for fit in fits]),
        ("drafting, each of K in turn, ms", [micro(fit.cost.per_draft_s) for fit in fits]),
        ("drafting, each token in the step, ms", [micro(fit.cost.draft_per_token_s) for fit in fits]),
        ("drafting, each context token, ms", [micro(fit.cost.draft_per_context_s) for fit in fits]),
        ("draft tokens per sequence and step", [number(fit.cost.drafted) for fit in fits]),
    )
    rows = tuple((label, *values) for label, values in lines)
    return Table("Fitted costs by engine", ("cost", *(fit.role.value for fit in fits)), rows)


def micro(seconds: float | None) -> str:
    """Milliseconds of what is far below one: four digits; an exact zero is what the fit has found."""
    return UNKNOWN if seconds is None else "0" if seconds == 0 else f"{1000 * seconds:.4g}"


def _hinge(fit: Fit) -> str:
    return count(fit.cost.hinge_tokens) if fit.cost.past_hinge_s > 0 else UNKNOWN


def _cells(found: Measurement) -> Table:
    head = (
        "engine",
        "prompts",
        "K",
        "B",
        "round",
        "held out",
        "steps",
        "step, ms",
        "spread, ms",
        "tokens/s",
        "tokens per step",
        "acceptance",
        "ms per token",
        "ms to first text",
        "answers",
        "failed",
    )
    ordered = sorted(
        found.runs,
        key=lambda run: (
            run.cell.workload,
            run.cell.engine.value,
            run.cell.draft_length,
            run.cell.sequences,
            run.round,
        ),
    )
    caption = f"Every cell in every round ({len(ordered)})"
    caption += f" ({SYNTHETIC})" if found.synthetic_acceptance else ""
    return Table(caption, head, tuple(map(_cell, ordered)), NAMES, folded=True)


def _cell(run: CellRun) -> tuple[str, ...]:
    cell, steps, drafts = run.cell, run.steps, run.drafting
    return (
        cell.engine.value,
        name(cell.workload),
        str(cell.draft_length),
        str(cell.sequences),
        str(run.round + 1),
        "yes" if cell.hold_out else "no",
        UNKNOWN if steps is None else count(steps.count),
        UNKNOWN if steps is None else ms(steps.step_s),
        UNKNOWN if steps is None else ms(steps.spread_s),
        number(run.tokens_per_s),
        number(drafts.tokens / drafts.request_steps) if drafts.request_steps else UNKNOWN,
        percent(drafts.accepted / drafts.drafted) if drafts.drafted else UNKNOWN,
        ms(run.tpot_s),
        ms(run.ttft_s),
        count(run.answers),
        count(run.failed),
    )
