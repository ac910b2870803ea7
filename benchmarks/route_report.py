"""From what `benchmarks.route` measured to figures, verdicts and a page; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.quantiles import percentile
from benchmarks.results import Target, markdown_table, number
from benchmarks.route_fleet import LARGE, SETTINGS
from benchmarks.route_prompts import KINDS, PROMPT_BYTES

TARGETS: Mapping[str, Target] = {"decision_p50_us": ("<=", 200.0), "decision_p99_us": ("<=", 1000.0)}
HEAD = ("requests", "p50 us", "p99 us", "peek p50", "workload p50", "seat p50")


@dataclass(frozen=True, slots=True)
class Parts:
    """Nanoseconds of what a decision consists of, done again, and of the line that is written after it."""

    features_ns: int
    predict_ns: int  # class and predicted drafts
    route_ns: int  # one decision over the candidates
    line_ns: int


@dataclass(frozen=True, slots=True)
class Timed:
    """One request: nanoseconds of each step to its seat."""

    kind: str
    setting: str
    peek_ns: int  # body, fields, model, tier
    workload_ns: int  # features, class, predicted drafts
    seat_ns: int  # desk, route, count
    parts: Parts | None = None

    @property
    def decision_us(self) -> float:
        """What the caller waits for."""
        return (self.peek_ns + self.workload_ns + self.seat_ns) / 1000


def figures(timed: Sequence[Timed], apart: Sequence[Timed], large: Sequence[Timed]) -> dict[str, float]:
    """All figures in microseconds; `apart` are requests whose parts were timed, too."""
    found = _both("decision", timed)
    for kind in KINDS:
        found |= _both(f"decision_{kind}", [one for one in timed if one.kind == kind])
    for setting in SETTINGS:
        found |= _both(f"decision_{setting.name}", [one for one in timed if one.setting == setting.name])
    found["peek_p50_us"] = _us([one.peek_ns for one in timed])
    found["workload_p50_us"] = _us([one.workload_ns for one in timed])
    found["seat_p50_us"] = _us([one.seat_ns for one in timed])
    parts = [one.parts for one in apart if one.parts is not None]
    found["features_p50_us"] = _us([one.features_ns for one in parts])
    found["predict_p50_us"] = _us([one.predict_ns for one in parts])
    found["route_p50_us"] = _us([one.route_ns for one in parts])
    found["line_p50_us"] = _us([one.line_ns for one in parts])
    found |= _both(f"decision_{LARGE.name}", large)
    found["seat_1000_replicas_p50_us"] = _us([one.seat_ns for one in large])
    return {name: round(value, 1) for name, value in found.items()}


def rows(timed: Sequence[Timed]) -> list[list[str]]:
    """One row for every kind of prompt, one for every setting, one for all."""
    kinds = [(f"prompt: {kind}", [one for one in timed if one.kind == kind]) for kind in KINDS]
    settings = [
        (f"replicas: {setting.name}", [one for one in timed if one.setting == setting.name])
        for setting in SETTINGS
    ]
    return [_row(name, some) for name, some in [*kinds, *settings, ("all", list(timed))]]


def page(timed: Sequence[Timed], large: Sequence[Timed]) -> str:
    """The Markdown above the verdicts."""
    method = METHOD.format(count=len(timed), kb=PROMPT_BYTES >> 10, large=LARGE.replicas)
    table = [*rows(timed), _row(f"{LARGE.replicas} replicas", large)]
    return f"{method}\n\n{markdown_table(HEAD, table)}"


def _row(name: str, some: Sequence[Timed]) -> list[str]:
    decisions = [one.decision_us for one in some]
    spans = ([one.peek_ns for one in some], [one.workload_ns for one in some], [one.seat_ns for one in some])
    return [
        name,
        number(percentile(decisions, 50)),
        number(percentile(decisions, 99)),
        *(number(_us(span)) for span in spans),
    ]


def _both(name: str, some: Sequence[Timed]) -> dict[str, float]:
    decisions = [one.decision_us for one in some]
    return {f"{name}_p50_us": percentile(decisions, 50), f"{name}_p99_us": percentile(decisions, 99)}


def _us(spans: Sequence[int]) -> float:
    """The median of nanoseconds, in microseconds."""
    return percentile(spans, 50) / 1000


METHOD = """What the ingress's own code adds before a request leaves for its replica, without a network.

{count} requests with prompts of about {kb} KB (8k tokens), a quarter of them at each of four settings.
There are eight replicas in two pools, idle or with half of their places taken, with a profile's cost model
or without; tiers take turns, and a new snapshot comes every 50 requests.
*peek*: the body is checked and read, model and tier are chosen.
*workload*: features, class and predicted drafts.
*seat*: the desk, the route, and the count of the open request.
The collector of garbage is on, over all that an ingress has loaded; each decision is timed alone.
`features_p50_us` and `predict_p50_us` are the parts of *workload*, `route_p50_us` is one of *seat*, each
done once more; `line_p50_us` is the request's line, which is written after its end.
{large} replicas are for information."""
