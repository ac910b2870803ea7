"""What is counted of requests since the controller began: by tier, outcome, route, verdict; it only grows."""

from __future__ import annotations

from itertools import product

from autoscaling.request_histogram import SECONDS, SECONDS_PER_TOKEN, Histogram
from autoscaling.request_line import Outcome
from autoscaling.request_record import RequestRecord, Verdict
from autoscaling.route_reasons import RouteReason
from autoscaling.types import Role, Tier

OTHER = "other"  # stands for a reason of another version
REASONS = (*(reason.value for reason in RouteReason), OTHER)
NOT_WAITED = (Outcome.CALLER, Outcome.SHED)  # answered before they could wait


class RequestCounts:
    """Every counter and histogram, each with all its labels from the start."""

    def __init__(self) -> None:
        self.requests = dict.fromkeys(product(Tier, Outcome), 0)
        self.routes = dict.fromkeys(product(Role, REASONS), 0)
        self.judged = dict.fromkeys(product(Tier, Verdict), 0)
        self.ttft = {key: Histogram(SECONDS) for key in product(Tier, Role)}
        self.tpot = {key: Histogram(SECONDS_PER_TOKEN) for key in product(Tier, Role)}
        self.duration = {tier: Histogram(SECONDS) for tier in Tier}
        self.waited = {tier: Histogram(SECONDS) for tier in Tier}
        self.wider_retries = 0
        self.lines_dropped = 0  # by ingresses that had no room for more
        self.unjoined = 0  # lines whose engine record did not come in time
        self.unwritten = 0  # lines that were finished and could not be kept as records

    def note(self, record: RequestRecord) -> None:
        """Count one request that ended."""
        line = record.line
        self.requests[line.tier, line.outcome] += 1
        if line.pool is not None:
            self.routes[line.pool, line.reason if line.reason in REASONS else OTHER] += 1
        if record.verdict is not None:
            self.judged[line.tier, record.verdict] += 1
        self.wider_retries += line.wider
        if line.outcome not in NOT_WAITED:
            self.waited[line.tier].observe(line.waited_s)
        if line.outcome is Outcome.OK:
            self._times(record)

    def _times(self, record: RequestRecord) -> None:
        line, first, each = record.line, record.ttft_s, record.tpot_s
        self.duration[line.tier].observe(line.e2e_s)
        if line.pool is None:
            return
        if first is not None:
            self.ttft[line.tier, line.pool].observe(first)
        if each is not None:
            self.tpot[line.tier, line.pool].observe(each)
