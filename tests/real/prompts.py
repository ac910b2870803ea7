"""Prompts whose best continuation is in the prompt: what n-gram speculation is for."""

from __future__ import annotations

import json

PARAGRAPH = (
    "The river runs past the old mill, where the miller's daughter counts the sacks of flour. "
    "Each sack is tied with a red string, and each string has three knots. "
    "When the wind turns, the wheel turns, and the stones begin to grind."
)
CODE = '''def wrap(text, width=70, indent=""):
    """Wrap a paragraph of text, returning a list of lines."""
    lines = []
    line = indent
    for word in text.split():
        if len(line) + len(word) + 1 > width:
            lines.append(line)
            line = indent
        line = line + " " + word if line.strip() else indent + word
    lines.append(line)
    return lines
'''
RECORDS = "\n".join(
    json.dumps({"id": number, "name": f"sensor-{number}", "unit": "celsius", "status": "ok"}) + ","
    for number in range(1, 9)
)

COPY_HEAVY = {
    "paragraph": f"Text:\n{PARAGRAPH}\n\nThe same text, copied:\n{PARAGRAPH[:30]}",
    "code": f"```python\n{CODE}```\n\nThe same code, copied without a change:\n```python\n{CODE[:40]}",
    "records": f"[\n{RECORDS}\n",
    "twice": f"{PARAGRAPH}\n\n{PARAGRAPH}\n\n",
}
