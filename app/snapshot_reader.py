"""Reads what the controller publishes; what is left out of it is logged, once for each cause."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from autoscaling.left_out import Told
from autoscaling.mixed_versions import UnreadableError, read_snapshot
from autoscaling.types import Snapshot

logger = logging.getLogger("ray.serve")


class SnapshotReader:
    """One ingress's."""

    def __init__(self) -> None:
        self._told = Told()

    def read(self, found: Mapping[str, Any]) -> Snapshot:
        """What can be used of a snapshot; raises UnreadableError when nothing can."""
        try:
            read = read_snapshot(found)
        except UnreadableError as error:
            for words in self._told.fresh([str(error)]):
                logger.warning(f"{words}: the last snapshot stays in force")
            raise
        for problem in self._told.fresh(read.problems):
            logger.warning(f"the controller's snapshot is of another version: {problem}")
        return read.snapshot
