"""What was simulated, as one HTML page, as Markdown, and as plot files."""

from __future__ import annotations

from app.cli.output import printable
from app.report import render
from app.simulation.report.answer import answer
from app.simulation.report.plots import plot_names, plots, title_of
from app.simulation.report.rows import TOKENS_WORDS
from app.simulation.report.sections import cost, matching, model, moves, over_time, pools, side_by_side
from app.simulation.report.subject import Subject

WORDS = (
    ("tier", "what a caller is promised: interactive, standard or batch."),
    ("objective", "a time that a tier is promised, for 95 of 100 of its requests."),
    ("in time", "answered whole, and inside every objective of the tier; unknown for a tier without any."),
    (
        "late, refused, broken off",
        "answered whole but not in time; not taken for want of room; not answered whole.",
    ),
    ("p95", "the 95th percentile: 95 of 100 requests had this value or a smaller one."),
    ("TTFT, TPOT", "time to the first token, waiting included; time per output token after the first."),
    ("requests/s", "requests that arrive in a second of the trace."),
    ("tokens/s", f"{TOKENS_WORDS}."),
    ("replica", "one engine, with the accelerators that it takes."),
    ("starting, draining", "not serving yet; taking nothing more, and ending what is open."),
    ("pool", "replicas of one kind: speculative ones draft tokens ahead, plain ones do not."),
    ("sequence", "one answer that is being written or waited for."),
    ("demand", "sequences that are open for callers who prefer the pool, waiting ones included."),
    ("capacity", "sequences that the running replicas of the pool serve inside their limits."),
    ("move", "a replica that leaves one pool for the other, or for the free budget."),
    ("undone", "moves that take back the one before them."),
    ("free budget", "accelerators that the policy may use and that no replica takes."),
    ("accelerator-hours", "of every replica that ran, started or drained; switching: the last two."),
    ("ingress", "where requests arrive, wait and are sent to a replica."),
    ("event model, fluid model", "every request and engine step is followed, or shares of them."),
    ("seed", "a number from which all chance is drawn: the same one gives the same result."),
)


def html(subject: Subject) -> str:
    """A page that needs nothing else: no script, no font, no picture from elsewhere."""
    return render.html(_page(subject), plots(subject))


def markdown(subject: Subject, plots: str | None = None) -> str:
    """The same in Markdown, one sentence per line.

    `plots` is the folder in which the files of `svg_files` lie; None leaves the plots out.
    """
    files = frozenset(f"{key}.svg" for key in plot_names(subject))
    return render.markdown(_page(subject), lambda key: title_of(subject, key), plots, files)


def svg_files(subject: Subject) -> dict[str, str]:
    """File name -> SVG text of every plot that could be drawn."""
    header = '<?xml version="1.0" encoding="utf-8"?>\n'
    return {f"{key}.svg": f"{header}{text}\n" for key, text in plots(subject).items()}


def _page(subject: Subject) -> render.Page:
    return render.Page(
        title=subject.title,
        subject=[printable(part) for part in subject.about],
        sections=(
            answer(subject),
            side_by_side(subject),
            *(() if subject.match is None else (matching(subject.match),)),
            pools(subject),
            over_time(subject),
            moves(subject),
            cost(subject),
            model(subject),
        ),
        words=WORDS,
    )
