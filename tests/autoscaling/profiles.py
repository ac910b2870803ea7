"""A profile for tests, as a file and as what is read of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from autoscaling.profile import Profile, read_profile
from autoscaling.profile_match import Served
from autoscaling.types import Capabilities, Role
from tests.autoscaling.reports import report

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

OF_F = Served("f")  # the model of that file, and nothing is known of the replicas


def capabilities(role: Role = Role.PLAIN, **changes: Any) -> Capabilities:
    """Of one replica of model f."""
    return replace(report().capabilities, role=role, **changes)


# Every optional field of the file.
WHOLE: dict[str, Any] = TREE | {
    "measuredOn": {
        "engine": "vllm",
        "engineVersion": "0.11.0",
        "device": "cpu",
        "tensorParallel": 1,
        "maxModelLen": 2048,
        "method": "ngram",
        "draft": "d",
        "draftLengthMax": 4,
    },
    "pools": {
        "speculative": TREE["pools"]["speculative"]
        | {
            "perDraftSeconds": 0.0001,
            "draftPerTokenSeconds": 0.0002,
            "draftPerContextSeconds": 0.0000003,
            "draftedTokens": 2.5,
            "perPrefillSeconds": 0.0004,
            "hingeTokens": 64,
            "pastHingeSeconds": 0.00005,
            "kvCacheTokens": 9000,
            "fit": {"points": 12, "error": 0.05, "holdOutError": 0.1, "accepted": True},
        },
        "plain": TREE["pools"]["plain"]
        | {
            "kvCacheTokens": 10000,
            "fit": {"points": 8, "error": 0.4, "accepted": False, "refusedBecause": "error 40 %"},
        },
    },
    "tokensPerStepByLength": {"mean": {"2": 1.5, "4": 2.0}},
    "survival": {"mean": [0.6, 0.4, 0.4, 0.1]},
    "syntheticAcceptance": False,
    "draftTable": [[1, 4, 4], [5, 16, 0]],
    "k0Tax": [{"sequences": 1, "ratio": 1.1}, {"sequences": 16, "ratio": 1.05}],
    "moveSeconds": {"start": 20.5, "stop": 1.5},
    "twoPools": [
        {"tpotSeconds": 0.02, "answer": "two_pools", "margin": 1.3},
        {"tpotSeconds": 0.1, "answer": "one_plain_pool"},
    ],
}


def profile_text(**changes: Any) -> str:
    """The file with other values at its top level."""
    return json.dumps(TREE | changes)


def profile(**changes: Any) -> Profile:
    """The profile of that file."""
    return read_profile(profile_text(**changes), "profile.json")
