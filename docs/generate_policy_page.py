"""Write the field tables of `docs/policy.md` from the policy's models: `python docs/generate_policy_page.py`.

Only the part between the two marks is written; the words around it are kept.
`tests/test_policy_docs.py` fails when the page and the models differ.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autoscaling.policy_fields import FieldDoc, fields

PAGE = Path(__file__).parent / "policy.md"
BEGIN = "<!-- fields: written by docs/generate_policy_page.py -->"
END = "<!-- end of fields -->"

# A table for each part, by the beginning of its fields' paths; the longest beginning wins.
TITLES: Mapping[str, str] = {
    "": "Document",
    "spec.budget": "Budget",
    "spec.bootstrap": "Bootstrap",
    "spec.objectives": "Objectives",
    "spec.pools": "Pools",
    "spec.workload": "Workload",
    "spec.backfill": "Backfill",
    "spec.admission": "Admission",
    "spec.behavior": "Behaviour",
    "spec.schedules": "Schedules",
    "spec.overrides": "Overrides",
    "spec.onMetricsLoss": "Lost reports",
    "spec.guardrails": "Guardrails",
    "spec.overload": "Overload",
}
HEAD = "| field | type | unit | default | bounds | meaning | example |\n|---|---|---|---|---|---|---|"


def tables() -> str:
    """All tables as Markdown."""
    parts: dict[str, list[str]] = {start: [] for start in TITLES}
    for field in fields():
        start = max((start for start in TITLES if field.path.startswith(start)), key=len)
        parts[start].append(_row(field))
    return "\n\n".join(f"### {TITLES[start]}\n\n{HEAD}\n" + "\n".join(rows) for start, rows in parts.items())


def _row(field: FieldDoc) -> str:
    default = "required" if field.required else _value(field.default)
    cells = (
        f"`{field.path}`",
        field.type,
        field.unit or "-",
        default,
        field.bounds or "-",
        field.effect,
        _value(field.example),
    )
    return f"| {' | '.join(cells)} |"


def _value(value: Any) -> str:
    """As flow YAML, which a JSON value is."""
    return "-" if value is None else f"`{json.dumps(value, ensure_ascii=False)}`"


def page(old: str) -> str:
    """The page with its tables written anew."""
    before, _, rest = old.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
