"""Whether a rollout is done or has failed, by Serve's word."""

from __future__ import annotations

from collections.abc import Mapping

from app.cli.startup import FAILED, StartFailed, last_line, refuse_failed
from deployments.local_cluster import Application

UNDER_WAY, DONE = "DEPLOYING", "RUNNING"


def said(found: Application | None) -> dict[str, str]:
    """What Serve says of each deployment, to know later which words are older than a rollout."""
    return {} if found is None else {name: one.message for name, one in found.deployments.items()}


def is_over(found: Application | None, words: Mapping[str, str]) -> bool:
    """Whether the rollout is complete; `words` were said before it.  Raises StartFailed when it cannot be.

    A deployment that is HEALTHY, or has failed, may be so in its former version: Serve comes to it a while
    after it has taken the config.
    """
    if found is None:
        return False
    for name, one in found.deployments.items():
        if found.status != UNDER_WAY or one.message != words.get(name):
            refuse_failed(name, one)
    if found.status == FAILED:
        raise StartFailed(last_line(found.message))
    return found.status == DONE
