"""A profile for tests, as a file and as what is read of it."""

from __future__ import annotations

import json
from typing import Any

from autoscaling.profile import Profile, read_profile

TREE: dict[str, Any] = {
    "schemaVersion": 1,
    "fingerprint": "f",
    "madeAt": "2026-11-30T08:00:00Z",
    "contextTokens": 500,
    "pools": {
        "speculative": {
            "baseSeconds": 0.015,
            "perTokenSeconds": 0.0005,
            "perContextSeconds": 0.000001,
            "draftSeconds": 0.001,
            "draftLength": 4,
        },
        "plain": {"baseSeconds": 0.015, "perTokenSeconds": 0.0005},
    },
    "tokensPerStep": {"mean": 2.0, "code": 3.0},
}


def profile_text(**changes: Any) -> str:
    """The file with other values at its top level."""
    return json.dumps(TREE | changes)


def profile(**changes: Any) -> Profile:
    """The profile of that file."""
    return read_profile(profile_text(**changes), "profile.json")
