"""What one ingress counts for Ray's own metrics endpoint; the fleet's view is the controller's.

Counters and gauges only: Ray adds the replica to every series, which would multiply a histogram.
"""

from __future__ import annotations

from collections.abc import Callable

from ray.serve.metrics import Counter, Gauge

from autoscaling.request_line import RequestLine
from autoscaling.types import Tier


class IngressMetrics:
    """Made once per ingress, inside its replica.

    Ray's counters cannot be set to 0: a series appears with its first request.  The fleet's are complete.
    """

    def __init__(self) -> None:
        self._requests = Counter(
            "twinpool_ingress_requests", "Requests that ended at this ingress.", ("tier", "outcome")
        )
        self._waiting = Gauge("twinpool_ingress_waiting_sequences", "Sequences in its queues.", ("tier",))
        self._inflight = Gauge("twinpool_ingress_inflight_sequences", "Sequences open at replicas.")

    def ended(self, line: RequestLine) -> None:
        """Count a request that ended."""
        self._requests.inc(1, {"tier": line.tier.value, "outcome": line.outcome.value})

    def look(self, waiting: Callable[[Tier], int], inflight: int) -> None:
        """Set the gauges."""
        for tier in Tier:
            self._waiting.set(waiting(tier), {"tier": tier.value})
        self._inflight.set(inflight)
