"""What the service itself wrote down about the requests of `benchmarks.mixed`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.demo.answers import Answer, in_time
from benchmarks.errors import BenchError
from benchmarks.mixed_plan import OBJECTIVES
from deployments.kept_files import StoreError, UnknownSchemaError
from deployments.record_reader import read


@dataclass(frozen=True, slots=True)
class Recorded:
    """The part of a request's record that is used; None is unknown."""

    workload: str
    pool: str | None
    reason: str | None  # route reason
    verdict: str | None  # met, missed, unknown; None: it does not count


def read_records(folder: Path) -> dict[str, Recorded]:
    """Records by the id that was sent; raises BenchError when there are none."""
    try:
        found = of_lines(read(folder, "requests"))
    except (StoreError, UnknownSchemaError) as error:
        raise BenchError(f"the records of the service cannot be read: {error}") from None
    if not found:
        raise BenchError(f"the service wrote no record of a request into {folder}")
    return found


def of_lines(lines: Iterable[Mapping[str, Any]]) -> dict[str, Recorded]:
    """Records by id; lines of other things are left out."""
    requests = [line["request"] for line in lines if line.get("kind") == "request"]
    return {
        one["id"]: Recorded(str(one.get("workload")), one.get("pool"), one.get("reason"), one.get("verdict"))
        for one in requests
        if one.get("id") is not None
    }


def reason_of(answer: Answer, records: Mapping[str, Recorded]) -> str | None:
    """Why the pool was taken: by the record, by the answer's head where there is none."""
    record = records.get(answer.id)
    return answer.reason if record is None or record.reason is None else record.reason


def agreement(answers: Iterable[Answer], records: Mapping[str, Recorded]) -> tuple[int, int]:
    """How often the service's verdict is the client's, of how many that both judge."""
    same = judged = 0
    for one in answers:
        objective, record = OBJECTIVES[one.tier], records.get(one.id)
        if not objective.promised or record is None or record.verdict not in ("met", "missed"):
            continue
        met = in_time(one, objective)
        if met is not None:
            judged += 1
            same += met is (record.verdict == "met")
    return same, judged
