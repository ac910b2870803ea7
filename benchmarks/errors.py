"""Why a benchmark gives no verdict."""

from __future__ import annotations


class BenchError(Exception):
    """The run is void; the message ends with the mend where there is one."""


class UnfitError(BenchError):
    """This machine cannot be measured now; nothing has been started."""
