"""Whether a controller went on from what its predecessor left; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autoscaling.types import Role

Line = Mapping[str, Any]
Status = Mapping[str, Any]


def restored(
    before: Status, earlier: Sequence[Line], after: Status, later: Sequence[Line]
) -> dict[str, float]:
    """1 for each of targets, policy and audit that was restored, else 0.

    `before` and `after` are statuses around one edit of the policy; `earlier` and `later` the audit's lines
    before the death, and since.
    """
    (*_, start) = [line for line in later if line.get("kind") == "start"] or [{}]
    targets = {role.value: before["pools"][role.value]["target"] for role in Role}
    revision = before["policy"]["active_revision"]
    numbers = [line["seq"] for line in (*earlier, *later)]
    return {
        "targets_restored": float(start.get("controller", {}).get("restored_targets") == targets),
        # One edit was made meanwhile: the count of revisions has gone on, and did not begin anew.
        "policy_restored": float(after["policy"]["active_revision"] == revision + 1),
        "audit_restored": float(
            bool(earlier)
            and bool(start)
            and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
            and start["epoch"] > earlier[-1]["epoch"]
        ),
    }
