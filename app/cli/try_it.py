"""The calls that `serve` suggests: the same copying task on both pools, so that speculation shows."""

from __future__ import annotations

import json
import shutil
import sys

TEXT = (
    "The river runs past the old mill, where the miller counts the sacks of flour. "
    "Each sack is tied with a red string, and each string has three knots. "
    "When the wind turns, the wheel turns, and the stones begin to grind."
)
# Copying: an n-gram drafter finds each continuation in the prompt.
TASK = f"Text:\n{TEXT}\n\nThe same text, copied:\n{TEXT[:27]}"


def suggestions(url: str, model: str, command: str = ".venv/bin/twinpool") -> str:
    """Three commands to paste; `command` is how this program is called."""
    return f"""
serving on {url}

1. interactive: the speculative pool; see metrics.speculative_decoding at the end of the answer
{_curl(url, model, "priority")}

2. the same as batch: the plain pool; compare the seconds
{_curl(url, model, "flex")}

3. what the pools are doing
TWINPOOL_URL={url} {command} status

Ctrl-C drains and stops.
"""


def own_command() -> str:
    """How this program can be called again: its name, or its path where the name is not on PATH."""
    return "twinpool" if shutil.which("twinpool") else sys.argv[0]


def _curl(url: str, model: str, service_tier: str) -> str:
    body = {
        "model": model,
        "service_tier": service_tier,
        "max_tokens": 96,
        "temperature": 0,
        "ignore_eos": True,
        "prompt": TASK,
    }
    return (
        f"curl -s {url}/v1/completions -H 'content-type: application/json' \\\n"
        f"  -d '{json.dumps(body)}' -w '\\n%{{time_total}} s\\n'"
    )
