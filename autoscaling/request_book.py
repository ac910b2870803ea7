"""The book of requests: lines of ingresses joined with the engines' records, judged and counted; pure.

Lines and records come in either order, mostly within a second of each other.  `now` is the controller's
monotonic clock.  Memory is bounded at any rate.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from autoscaling.request_counts import RequestCounts
from autoscaling.request_gain import Gains
from autoscaling.request_line import Outcome, RequestLine
from autoscaling.request_record import Measured, RequestRecord, Verdict, measured
from autoscaling.request_unmatched import Unmatched
from autoscaling.request_verdict import judge
from autoscaling.request_window import WindowSums, WindowValues
from autoscaling.routing_rules import TierRules
from autoscaling.types import FinishedRequest, IngressLoad, Tier

JOIN_S = 5.0  # five reports
SILENT_S = 3.0  # an ingress that said nothing for so long is gone, and its queues with it
MOST = 10_000  # lines that wait for a record; that `why` finds; that wait to be written
INGRESSES = 1000  # remembered
RAN = (Outcome.OK, Outcome.FAILED, Outcome.CANCELLED)  # an engine may have a record of it

Rules = Mapping[Tier, TierRules]


@dataclass(frozen=True, slots=True)
class TierPicture:
    """A tier over the last five minutes; None is unknown."""

    attainment: float | None  # 0..1
    ttft_p95_s: float | None
    tpot_p95_s: float | None
    queued: int | None  # sequences that wait in ingresses now


@dataclass(slots=True)
class _Ingress:
    seq: int  # of the newest line
    dropped: int
    waiting: Mapping[Tier, int]
    at: float


@dataclass(frozen=True, slots=True)
class _Waiting:
    line: RequestLine
    ingress: str
    since: float


class _Window:
    def __init__(self) -> None:
        self.judged = WindowSums(2)  # met, missed
        self.ttft = WindowValues()
        self.tpot = WindowValues()


class RequestBook:
    """Loads and records in; finished requests, pictures and counts out."""

    def __init__(self) -> None:
        self.counts = RequestCounts()
        self.gains = Gains()
        self._ingresses: dict[str, _Ingress] = {}  # the one heard of last at the end
        self._unmatched = Unmatched()
        self._waiting: dict[str, _Waiting] = {}  # by engine id, oldest first
        self._ready: list[tuple[_Waiting, Measured | None]] = []
        self._windows = {tier: _Window() for tier in Tier}
        self._finished: deque[RequestRecord] = deque()
        self._by_id: dict[str, RequestRecord] = {}  # by the caller's id and by the engine's
        self._unwritten: deque[RequestRecord] = deque()

    def take_load(
        self, ingress_id: str, load: IngressLoad, now: float, unread: Sequence[int | None] = ()
    ) -> None:
        """Take what an ingress says; lines that it repeats are taken once.

        `unread` are the numbers of lines that could not be understood.  They count as dropped, as do
        numbers that never came: a message was lost, or two ingresses have one id.
        """
        known = self._ingresses.pop(ingress_id, None)
        newest = None if known is None else known.seq
        before = 0 if known is None else known.dropped
        numbers = [line.seq for line in load.lines] + [seq for seq in unread if seq is not None]
        begin = min(numbers, default=0) - 1 if newest is None else newest
        taken = 0
        for line in load.lines:
            if newest is None or line.seq > newest:
                newest = line.seq
                taken += 1
                self._take_line(_Waiting(line, ingress_id, now))
        if numbers:
            newest = max(begin, *numbers)
        # An ingress that drops lines skips their numbers, too: the larger of the two counts is whole.
        skipped = (begin if newest is None else newest) - begin - taken
        self.counts.lines_dropped += max(0, load.lines_dropped - before, skipped, unread.count(None))
        self._ingresses[ingress_id] = _Ingress(
            seq=-1 if newest is None else newest,
            dropped=max(before, load.lines_dropped),
            waiting=load.waiting,
            at=now,
        )
        if len(self._ingresses) > INGRESSES:
            del self._ingresses[next(iter(self._ingresses))]

    def take_records(self, replica_id: str, records: Iterable[FinishedRequest]) -> None:
        """Take records of a replica, none of them twice (`finished`)."""
        for key in self._unmatched.take(replica_id, records):
            if key in self._waiting:
                self._join(key)

    def settle(self, now: float, rules: Rules) -> None:
        """Judge and count what is joined, and what has waited too long for its record."""
        while self._waiting:
            key, oldest = next(iter(self._waiting.items()))
            if now - oldest.since <= JOIN_S and len(self._waiting) <= MOST:
                break
            del self._waiting[key]
            self._unmatched.drop(key)
            self.counts.unjoined += 1
            self._ready.append((oldest, None))
        ready, self._ready = self._ready, []
        for waited, found in ready:
            self._finish(waited, found, now, rules.get(waited.line.tier, TierRules()))

    def drain(self) -> tuple[RequestRecord, ...]:
        """Requests that were finished since the last call, oldest first: to be written."""
        found = tuple(self._unwritten)
        self._unwritten.clear()
        return found

    def find(self, wanted: str | None) -> RequestRecord | None:
        """The newest request with this id, the caller's or the engine's; the newest of all with None.

        One that still waits for its engine's record is found too, not judged yet.
        """
        for waited in reversed(self._waiting.values()):
            if wanted in (None, waited.line.id, waited.line.engine_id):
                return RequestRecord(waited.line, waited.ingress, pending=True)
        if wanted is None:
            return self._finished[-1] if self._finished else None
        return self._by_id.get(wanted)

    def queued(self, tier: Tier, now: float) -> int | None:
        """Sequences that wait in ingresses; None when no ingress has spoken of late."""
        live = [one for one in self._ingresses.values() if now - one.at <= SILENT_S]
        return sum(max(0, one.waiting.get(tier, 0)) for one in live) if live else None

    def picture(self, tier: Tier, now: float, rules: Rules) -> TierPicture:
        """How a tier is doing; attainment is None without an objective, and before anything is judged."""
        window, promised = self._windows[tier], rules.get(tier, TierRules())
        met, missed = window.judged.sums(now)
        known = met + missed and (promised.ttft_s is not None or promised.tpot_s is not None)
        return TierPicture(
            attainment=met / (met + missed) if known else None,
            ttft_p95_s=window.ttft.p95(now),
            tpot_p95_s=window.tpot.p95(now),
            queued=self.queued(tier, now),
        )

    def _take_line(self, waited: _Waiting) -> None:
        line = waited.line
        if line.outcome not in RAN or (line.attempts == 0 and line.pool is None):
            self._ready.append((waited, None))
            return
        if line.engine_id in self._waiting:  # nobody can tell their records apart
            self.counts.unjoined += 1
            self._ready.append((self._waiting.pop(line.engine_id), None))
        self._waiting[line.engine_id] = waited
        self._join(line.engine_id)

    def _join(self, key: str) -> None:
        """End the wait of a line whose sequences have all been reported."""
        line = self._waiting[key].line
        records = self._unmatched.of(key, line.replica)
        if len(records) >= max(1, line.sequences):
            self._ready.append((self._waiting.pop(key), measured(records)))
            self._unmatched.drop(key)

    def _finish(self, waited: _Waiting, found: Measured | None, now: float, rules: TierRules) -> None:
        line = waited.line
        verdict = judge(line, found, rules)
        record = RequestRecord(line, waited.ingress, found, rules.ttft_s, rules.tpot_s, verdict)
        self.counts.note(record)
        self.gains.take(record, now)
        window = self._windows[line.tier]
        if verdict in (Verdict.MET, Verdict.MISSED):
            window.judged.add(now, verdict is Verdict.MET, verdict is Verdict.MISSED)
        if line.outcome is Outcome.OK and record.ttft_s is not None:
            window.ttft.add(now, record.ttft_s)
        if line.outcome is Outcome.OK and record.tpot_s is not None:
            window.tpot.add(now, record.tpot_s)
        self._keep(record)

    def _keep(self, record: RequestRecord) -> None:
        self._finished.append(record)
        self._by_id[record.line.id] = self._by_id[record.line.engine_id] = record
        if len(self._finished) > MOST:
            gone = self._finished.popleft()
            for key in (gone.line.id, gone.line.engine_id):
                if self._by_id.get(key) is gone:
                    del self._by_id[key]
        self._unwritten.append(record)
        if len(self._unwritten) > MOST:
            self._unwritten.popleft()
            self.counts.unwritten += 1
