"""Write the JSON Schema of the policy file from its models: `python docs/generate_policy.py`.

Editors check a policy against it while it is written.  `tests/autoscaling/test_starters.py` fails when
the schema and the models differ.
"""

from __future__ import annotations

import json
from pathlib import Path

from autoscaling.policy import json_schema

SCHEMA = Path(__file__).parent / "capacity-policy.v1alpha1.schema.json"


def schema_text() -> str:
    """The schema as it is committed."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the schema."""
    SCHEMA.write_text(schema_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
