"""Built-in requests, labelled by workload, for the demo and for benchmarks without data of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

LABELS: Final = ("id", "class")  # all other members of a line are the body


@dataclass(frozen=True, slots=True)
class Sample:
    """One request and what it was written as."""

    id: str
    workload: str  # one of the words that docs/concepts/workloads.md maps to classes
    body: Mapping[str, Any]  # of /v1/chat/completions, without `model`


def samples() -> tuple[Sample, ...]:
    """All of them, in the order of the file: those of one kind stand together."""
    text = resources.files(__name__).joinpath("prompts.jsonl").read_text(encoding="utf-8")
    return tuple(_sample(json.loads(line)) for line in text.split("\n") if line)


def _sample(line: dict[str, Any]) -> Sample:
    body = {name: value for name, value in line.items() if name not in LABELS}
    return Sample(id=line["id"], workload=line["class"], body=body)
