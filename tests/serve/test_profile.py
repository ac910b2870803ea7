"""A profile acts on a running service: its limit, its absence, and one of something else; no restart.

One replica per pool on the simulated engine, whose soft limit is 8 without a profile.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.service import Service

pytestmark = [pytest.mark.serve, pytest.mark.timeout(180)]

LIVE_S = 15.0  # two looks at the file that agree, a tick, a snapshot
# Per token 15 ms + 1 ms for each token of a step, of which 5 belong to each sequence: of the default
# objective of interactive, 150 ms at 2 tokens per step, a batch of (0.3 - 0.015) / 0.005 = 57 would keep it;
# the engine holds 16.
ROOMY = {"baseSeconds": 0.015, "perTokenSeconds": 0.001, "draftLength": 4}
# (0.3 - 0.015) / 0.1: two sequences, and not three.
TIGHT = ROOMY | {"perTokenSeconds": 0.02}


def profile(fingerprint: str, step: dict[str, Any], **changes: Any) -> str:
    fit = {"points": 24, "error": 0.03, "holdOutError": 0.05, "accepted": True}
    return json.dumps(
        {
            "schemaVersion": 1,
            "fingerprint": fingerprint,
            "madeAt": datetime.now(UTC).isoformat(),
            "contextTokens": 100,
            "pools": {
                "speculative": step | {"fit": fit},
                "plain": {"baseSeconds": 0.015, "perTokenSeconds": 0.001, "fit": fit},
            },
            "tokensPerStep": {"mean": 2.0},
        }
        | changes
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("profile") / "profile.json"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, file: Path) -> Iterator[Service]:
    settings = {"profile": str(file), "speculative": {"soft_limit": 8}}
    policy = (
        "apiVersion: twinpool.dev/v1alpha1\nkind: CapacityPolicy\nmetadata: {name: profiled}\n"
        "spec:\n  budget: {max: 2}\n  objectives:\n    interactive: {tpotSeconds: 0.15}\n"
        "    standard: {tpotSeconds: 0.4}\n"
        "  pools:\n    speculative: {minReplicas: 1, maxReplicas: 1}\n"
        "    plain: {minReplicas: 1, maxReplicas: 1}\n"
    )
    with Service(tmp_path_factory.mktemp("serve"), settings, policy=policy) as running:
        yield running


def limit(service: Service) -> int | None:
    """The soft limit of the speculative replica that routing and sizing obey."""
    return service.replicas("speculative")[0]["soft_limit"]


def condition(service: Service, kind: str) -> bool | None:
    return next(one["status"] for one in service.status()["conditions"] if one["type"] == kind)


def test_a_profile_changes_the_limit_and_its_absence_and_another_model_take_it_back(service, file):
    """Unmeasured, measured, tighter, deleted, of another model: each within seconds and without a restart."""
    before = [one["pid"] for pool in ("speculative", "plain") for one in service.replicas(pool)]
    model = service.replicas("speculative")[0]["model_fingerprint"]
    assert ("none", 8) == (service.status()["profile"]["state"], limit(service))
    assert "fallback" == service.status()["controller"]["model"]

    file.write_text(profile(model, TIGHT))
    service.wait(lambda: limit(service) == 2, LIVE_S, "the measured limit of 2")
    assert ("measured", "fitted") == (
        service.status()["profile"]["state"],
        service.status()["controller"]["model"],
    )
    assert {"speculative": "profile", "plain": "profile"} == service.status()["profile"]["limits"]

    file.write_text(profile(model, ROOMY))
    service.wait(lambda: limit(service) == 16, LIVE_S, "the measured limit of 16, all that the engine holds")

    file.unlink()
    service.wait(lambda: limit(service) == 8, LIVE_S, "the unmeasured limit")
    assert {"speculative": "unmeasured", "plain": "unmeasured"} == service.status()["profile"]["limits"]
    assert "none" == service.status()["profile"]["state"]

    file.write_text(profile("0" * 64, ROOMY))
    service.wait(lambda: condition(service, "ProfileStale") is True, LIVE_S, "ProfileStale")
    assert ("stale", 8, "fallback") == (
        service.status()["profile"]["state"],
        limit(service),
        service.status()["controller"]["model"],
    )
    assert before == [one["pid"] for pool in ("speculative", "plain") for one in service.replicas(pool)]


def test_a_profile_of_another_engine_is_a_prior_that_only_lowers(service, file):
    """The model is the served one, its engine's version is not: a limit of 2 counts, one of 16 does not."""
    model = service.replicas("speculative")[0]["model_fingerprint"]
    other = {"measuredOn": {"model": model, "engine": "simulated", "engineVersion": "0.0.1"}}
    file.write_text(profile(model, TIGHT, **other))
    service.wait(lambda: limit(service) == 2, LIVE_S, "the prior's lower limit")
    status = service.status()
    assert ("stale", "unmeasured") == (status["profile"]["state"], status["profile"]["limits"]["speculative"])
    assert any("engineVersion was 0.0.1" in words for words in status["profile"]["differences"])

    file.write_text(profile(model, ROOMY, **other))
    service.wait(lambda: limit(service) == 8, LIVE_S, "the unmeasured limit")
