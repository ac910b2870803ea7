"""Write `docs/manifest-rules.md` from the rules of the lint: `python docs/generate_manifest_rules.py`.

`tests/app/k8s/test_rules_page.py` fails when the page and the rules differ.
"""

from __future__ import annotations

from pathlib import Path

from app.k8s.rules import RULES

PAGE = Path(__file__).parent / "manifest-rules.md"
HEAD = """\
# Rules for manifests

Written by `python docs/generate_manifest_rules.py`; the rules themselves are in [app/k8s](../app/k8s).
`twinpool k8s lint` holds every overlay of `k8s/overlays` to them, without a cluster.
[operations.md](operations.md#check-manifests) says how to run it.
A finding names the file and the field, and ends with the rule's id in brackets.
No rule can be switched off: what a rule refuses fails later, and mostly without a word.

| rule | wants | because |
|---|---|---|
"""


def page() -> str:
    """The whole page as Markdown."""
    return HEAD + "".join(f"| `{rule}` | {reason.wants} | {reason.why} |\n" for rule, reason in RULES.items())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
