"""The prompts to measure: Spec-Bench and HumanEval from a folder, or the built-in samples."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app.samples import samples
from benchmarks.errors import BenchError

SPEC_BENCH: Final = "spec_bench_question.jsonl"
HUMAN_EVAL: Final = "HumanEval.jsonl.gz"
BESIDE: Final = Path(__file__).parents[2] / "shared" / "data"  # next to the checkout
ANSWER_TOKENS: Final = 96


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request to ask: where it is from, and the chat body without `model`."""

    id: str
    category: str  # the data set's word for it
    body: Mapping[str, Any]


def find(folder: Path | None) -> tuple[str, tuple[Prompt, ...]]:
    """The prompts, after the words that say which; raises BenchError for a named folder without them."""
    if folder is not None or all((BESIDE / name).is_file() for name in (SPEC_BENCH, HUMAN_EVAL)):
        return "Spec-Bench and HumanEval", tuple(_of_folder(folder or BESIDE))
    built_in = tuple(Prompt(one.id, one.workload, one.body) for one in samples() if "tools" not in one.body)
    return "the built-in samples without tools", built_in


def _of_folder(folder: Path) -> Iterator[Prompt]:
    try:
        for line in (folder / SPEC_BENCH).read_text(encoding="utf-8").split("\n"):
            if line:
                row = json.loads(line)
                yield Prompt(f"sb{row['question_id']}", row["category"], _body(row["turns"][0]))
        with gzip.open(folder / HUMAN_EVAL, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                text = f"Complete this Python function.\n\n```python\n{row['prompt']}```"
                yield Prompt(row["task_id"], "humaneval", _body(text))
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise BenchError(
            f"{folder} has no readable {SPEC_BENCH} and {HUMAN_EVAL} ({error}): name a folder that has them, "
            "or leave --data away"
        ) from None


def _body(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "max_tokens": ANSWER_TOKENS, "temperature": 0}
