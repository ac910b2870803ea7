"""The newest report of each replica, aged by one clock, and the snapshot made of them.

Pure: `now` is an argument.  A replica that is silent leaves after `EXPIRE_S`; until then its load
is what it last said, with its age beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import ceil

from autoscaling.decisions import PoolRules
from autoscaling.routing_rules import RoutingRules
from autoscaling.soft_limit import soft_limit
from autoscaling.types import SCHEMA, Capabilities, ReplicaReport, ReplicaState, ReplicaView, Role, Snapshot

EXPIRE_S = 10.0  # ten missed reports
REPORT_PERIOD_S = 1.0
PARTIAL_FOR_S = 2 * REPORT_PERIOD_S  # a younger controller cannot know every replica yet
INGRESS_SILENT_S = 3.0  # an ingress that fetched nothing for so long has no share of the limits
SUCCEED_WITHIN_S = 30.0  # a controller's life in which it may rise above an epoch that an ingress holds
LARGEST_EPOCH = 2**52  # milliseconds since 1970 for 140 000 years; exact in every float that carries it
GONE_KEPT_S = 60.0  # a stopped replica's late reports are recognised for so long


class Taken(StrEnum):
    """What became of a report; also the word on a counter."""

    TAKEN = "taken"
    OLD = "old"  # a newer one of this boot was seen
    GONE = "gone"  # of a boot that has said goodbye
    SCHEMA = "schema"  # of a major version we do not know


@dataclass(frozen=True, slots=True)
class Seen:
    """A report and when it came, by the receiver's monotonic clock."""

    report: ReplicaReport
    at: float


def batch_limit(report: ReplicaReport) -> int:
    """Sequences that a replica takes and its engine runs at once; more would wait inside the engine."""
    return min(report.hard_limit, report.capabilities.max_num_seqs)


class Observations:
    """Reports in, snapshots out."""

    def __init__(self, epoch: int, now: float) -> None:
        self._epoch = epoch
        self._born = now
        self._seq = 0
        self._seen: dict[str, Seen] = {}
        self._gone: dict[str, float] = {}  # boot_id -> when it left
        self._ingresses: dict[str, float] = {}
        self._fingerprint: str | None = None
        self.stopping = False

    def take(self, report: ReplicaReport, now: float) -> Taken:
        """Keep a report if it is the newest of its replica."""
        if report.schema != SCHEMA:
            return Taken.SCHEMA
        if report.boot_id in self._gone:
            return Taken.GONE
        known = self._seen.get(report.replica_id)
        if known is not None and known.report.boot_id == report.boot_id and report.seq <= known.report.seq:
            return Taken.OLD
        if report.state in (ReplicaState.STOPPED, ReplicaState.FAILED):
            # The goodbye of a former boot says nothing about its successor.
            if known is not None and known.report.boot_id == report.boot_id:
                del self._seen[report.replica_id]
            self._gone[report.boot_id] = now
        else:
            self._seen[report.replica_id] = Seen(report, now)
        return Taken.TAKEN

    def ingress(self, ingress_id: str, now: float) -> None:
        """Note that an ingress is alive; limits are divided by the live ones."""
        self._ingresses[ingress_id] = now

    def expire(self, now: float) -> tuple[str, ...]:
        """Forget silent replicas; returns their ids."""
        silent = tuple(key for key, seen in self._seen.items() if now - seen.at > EXPIRE_S)
        for key in silent:
            del self._seen[key]
        self._gone = {boot: at for boot, at in self._gone.items() if now - at < GONE_KEPT_S}
        self._ingresses = {key: at for key, at in self._ingresses.items() if now - at < INGRESS_SILENT_S}
        return silent

    def newest(self) -> tuple[Seen, ...]:
        """Every known replica's newest report, in a stable order."""
        return tuple(self._seen[key] for key in sorted(self._seen))

    def serving(self) -> tuple[Capabilities, ...]:
        """What every running replica says that it can do."""
        return tuple(
            seen.report.capabilities for seen in self.newest() if seen.report.state is ReplicaState.RUNNING
        )

    def served_fingerprint(self) -> str | None:
        """The one model that may be served: what most running replicas have, the present one on a tie.

        In a rolling change of the model replicas of the other one wait until they are the majority, so
        that two requests never meet two models.
        """
        counts = Counter(
            seen.report.capabilities.fingerprint
            for seen in self._seen.values()
            if seen.report.state is ReplicaState.RUNNING
        )
        if counts and counts[self._fingerprint or ""] < max(counts.values()):
            self._fingerprint = max(sorted(counts), key=lambda fingerprint: counts[fingerprint])
        return self._fingerprint

    @property
    def epoch(self) -> int:
        """This controller life's number."""
        return self._epoch

    def succeed(self, epoch: int, now: float) -> bool:
        """Rise above an epoch that an ingress holds; only a young controller may, so that two never race.

        A controller without a store, or on a node whose clock was set back, would be ignored for ever.
        A claim that leaves no room above it is nobody's epoch.
        """
        if not self._epoch <= epoch < LARGEST_EPOCH or now - self._born > SUCCEED_WITHIN_S:
            return False
        self._epoch = epoch + 1
        return True

    def young(self, now: float) -> bool:
        """Whether replicas may exist that have had no time to report yet."""
        return now - self._born < PARTIAL_FOR_S

    def snapshot(
        self,
        now: float,
        rules: Mapping[Role, PoolRules] | None = None,
        retry_after_s: int | None = None,
        routing: RoutingRules | None = None,
    ) -> Snapshot:
        """What the ingresses may know, numbered one above the last; `rules` may change the limits."""
        self.expire(now)
        self._seq += 1
        live = max(1, len(self._ingresses))
        return Snapshot(
            epoch=self._epoch,
            seq=self._seq,
            partial=self.young(now),
            ingresses=live,
            replicas=tuple(_views(self.newest(), live, self.served_fingerprint(), rules or {}, now)),
            stopping=self.stopping,
            retry_after_s=retry_after_s,
            routing=routing,
        )


def _views(
    seen: Iterable[Seen],
    ingresses: int,
    fingerprint: str | None,
    rules: Mapping[Role, PoolRules],
    now: float,
) -> Iterable[ReplicaView]:
    for item in seen:
        report = item.report
        rule = rules.get(report.role)
        soft = soft_limit_of(report, rule)
        yield ReplicaView(
            replica_id=report.replica_id,
            boot_id=report.boot_id,
            seq=report.seq,
            pool=report.pool,
            role=report.role,
            node_id=report.node_id,
            host=report.host,
            port=report.port,
            token=report.token,
            accepting=report.state is ReplicaState.RUNNING and report.capabilities.fingerprint == fingerprint,
            age_s=now - item.at,
            inflight=report.inflight,
            running=report.running,
            waiting=report.waiting,
            # Rounded up: every ingress may start at least one.  The sum may be above the limit, which
            # is told as well.
            soft_share=_share(soft, ingresses),
            hard_share=_share(_hard(report, rule), ingresses),
            capabilities=report.capabilities,
            soft_limit=soft,
        )


def soft_limit_of(report: ReplicaReport, rule: PoolRules | None) -> int:
    """Requests in flight up to which this replica is sent new work, as ingresses obey it."""
    found = soft_limit(report.soft_limit, batch_limit(report), rule)
    return report.soft_limit if found is None else found


def _hard(report: ReplicaReport, rule: PoolRules | None) -> int:
    own, allowed = report.hard_limit, None if rule is None else rule.hard_limit
    return own if allowed is None else min(own, allowed)


def _share(limit: int, ingresses: int) -> int:
    """One ingress's part of a limit."""
    return ceil(limit / ingresses)
