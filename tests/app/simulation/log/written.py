"""Record folders as a service writes them, for the tests of what reads them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from app.candidates import Candidate
from app.routing.ask import Ask
from app.routing.route import record as decision_record
from autoscaling.decisions import Decision, Observation, Sizes
from autoscaling.request_record import RequestRecord, Verdict, as_fields, measured
from autoscaling.routing_rules import RoutingRules
from deployments.records import Records
from tests.app.routing.worlds import UNMEASURED, decided
from tests.autoscaling.request_lines import WALL, line, record
from tests.autoscaling.worlds import both

EPOCH = 7


def request(
    seq: int,
    after_s: float = 0.0,
    *,
    answer: int | None = 9,
    verdict: Verdict | None = Verdict.MET,
    decode_s: float = 0.5,
    **changes: Any,
) -> dict[str, Any]:
    """A request of 5 prompt tokens that came so long after `WALL`; without `answer` no engine ran it."""
    engines = None
    if answer is not None:
        engines = measured([record(seq, generated_tokens=answer, decode_s=decode_s)])
    found = RequestRecord(
        line=line(seq, wall=WALL + after_s, **changes), ingress="i", measured=engines, verdict=verdict
    )
    return {"request": msgspec.to_builtins(as_fields(found))}


def routed(
    seq: int, ask: Ask, candidates: Iterable[Candidate], rules: RoutingRules = UNMEASURED, **changes: Any
) -> dict[str, Any]:
    """A request with the decision about it."""
    decision = decision_record(decided(ask, candidates, rules))
    return request(seq, float(seq), tier=ask.tier, decision=decision, **changes)


def observation(seen: Observation, targets: Sizes | None = None) -> dict[str, Any]:
    """What was seen, and the targets of that moment."""
    return msgspec.to_builtins(
        {"observation": seen, "targets": targets or both(4, 4), "revision": 1}, str_keys=True
    )


def write(
    folder: Path,
    requests: Iterable[dict[str, Any]] = (),
    observations: Iterable[dict[str, Any]] = (),
    decisions: Iterable[Decision] = (),
) -> Path:
    """The folder, with the files that have a line."""
    for name, kind, many in (
        ("requests", "request", requests),
        ("observations", "observation", observations),
        ("decisions", "decision", ({"decision": msgspec.to_builtins(one)} for one in decisions)),
    ):
        records = Records(folder, name, epoch=EPOCH, clock=lambda: WALL)
        for fields in many:
            records.write(kind, fields)
        records.close()
    return folder
