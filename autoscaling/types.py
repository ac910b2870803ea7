"""The values that cross between replicas, controller and ingresses; read this first.

Frozen, plain and free of IO.  `None` means unknown: never zero, never NaN.
Every message carries `schema`; readers ignore unknown fields and refuse a major they do not know.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from autoscaling.request_line import RequestLine
from autoscaling.roles import Role as Role  # noqa: PLC0414  # passed on to the readers of this module
from autoscaling.roles import Tier as Tier  # noqa: PLC0414
from autoscaling.routing_rules import RoutingRules

SCHEMA = 1


class ReplicaState(StrEnum):
    """A replica's own word on whether it takes new work."""

    RUNNING = "running"
    DRAINING = "draining"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What one replica can serve; fixed from its start to its end."""

    role: Role
    engine: str  # "vllm" | "simulated"
    engine_version: str
    method: str | None  # speculation method; None on a plain replica
    runner: str | None  # vLLM model runner, "v1" | "v2"; None where it has no meaning
    draft_length_max: int  # Kmax; 0 on a plain replica
    draft_length_adjustable: bool
    max_model_len: int  # tokens, prompt plus answer
    max_num_seqs: int  # sequences the engine runs at once; more wait inside it
    refuses: tuple[str, ...]  # request parameters this engine answers with 400
    per_request_metrics: bool
    models: tuple[str, ...]  # served names; the first is canonical, the rest aliases
    fingerprint: str  # model_fingerprint, hex
    cores: tuple[int, ...] = ()  # leased CPU cores; empty on an accelerator
    oversubscribed: bool = False  # another replica holds the same cores
    device: str | None = None  # kind of accelerator or CPU
    kv_cache_tokens: int | None = None  # tokens that fit at once
    tensor_parallel: int | None = None  # accelerators that share the model
    draft: str | None = None  # draft model, by content where it is a folder; None without one


@dataclass(frozen=True, slots=True)
class EngineTotals:
    """Counters since the engine started; they only grow."""

    steps: int = 0
    preemptions: int = 0
    drafts: int = 0  # steps of a request that carried a draft
    drafted: int = 0  # draft tokens proposed
    accepted: int = 0  # draft tokens accepted
    accepted_per_position: tuple[int, ...] = ()
    drafted_per_position: tuple[int, ...] = ()
    prefill_tokens: int = 0
    decode_tokens: int = 0
    request_steps: int = 0  # decode steps summed over requests, with or without a draft
    finished: int = 0
    finished_prompt_tokens: int = 0
    finished_generated_tokens: int = 0
    longest_step_s: float = 0.0


@dataclass(frozen=True, slots=True)
class FinishedRequest:
    """The engine's own record of one finished request: the only source of usage."""

    request_id: str
    prompt_tokens: int
    generated_tokens: int
    finish_reason: str  # "stop" | "length" | "abort" | ...
    queued_s: float
    prefill_s: float
    decode_s: float
    e2e_s: float
    preemptions: int = 0


@dataclass(frozen=True, slots=True)
class ReplicaReport:
    """What a replica pushes once a second; the newest (boot_id, seq) wins."""

    replica_id: str
    boot_id: str  # random per replica process
    seq: int  # grows by one per report
    pool: str
    role: Role
    node_id: str
    host: str
    port: int
    token: str = field(repr=False)  # bearer token of this replica's endpoint
    state: ReplicaState
    pid: int
    soft_limit: int  # requests in flight up to which new work is welcome
    hard_limit: int  # requests in flight above which the replica refuses
    inflight: int
    running: int | None
    waiting: int | None
    kv_cache_usage: float | None  # 0..1
    draft_length: int | None
    capabilities: Capabilities
    totals: EngineTotals
    finished: tuple[FinishedRequest, ...] = ()  # since the last report that was taken
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """One replica as an ingress sees it in a snapshot."""

    replica_id: str
    boot_id: str
    seq: int
    pool: str
    role: Role
    node_id: str
    host: str
    port: int
    token: str = field(repr=False)
    accepting: bool
    age_s: float  # of the report, by the controller's clock, when the snapshot was made
    inflight: int
    running: int | None
    waiting: int | None
    soft_share: int  # this ingress's part of the soft limit
    hard_share: int  # this ingress's part of the hard limit
    capabilities: Capabilities
    soft_limit: int | None = None  # of all ingresses together; None: of a controller that does not say


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the controller publishes; an ingress ignores an older (epoch, seq)."""

    epoch: int  # one per controller life, growing
    seq: int
    partial: bool  # young controller: may add replicas, must not remove any
    ingresses: int  # live ingresses the shares were divided by
    replicas: tuple[ReplicaView, ...]
    stopping: bool = False  # the service is being taken down: no new work anywhere
    retry_after_s: int | None = None  # what a caller without room is told; None: the ingress's own value
    routing: RoutingRules | None = None  # None: the ingress's own defaults
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True)
class IngressLoad:
    """What an ingress tells the controller each time it fetches the snapshot."""

    wanted: dict[Role, int]  # sequences open now, by the pool that their callers prefer
    refused: dict[Role, int]  # sequences that found no room, since the ingress started
    epoch: int | None = None  # of the newest snapshot that it holds
    waiting: dict[Tier, int] = field(default_factory=dict)  # sequences in its queues now
    lines: tuple[RequestLine, ...] = ()  # requests that ended, oldest first; repeated until the call returns
    lines_dropped: int = 0  # lines that were lost for want of room, since it started
    schema: int = SCHEMA


# Ray Serve's words for a replica, by what they mean for capacity.
STARTING_STATES = ("STARTING", "UPDATING", "RECOVERING")
RUNNING_STATES = ("RUNNING", "PENDING_MIGRATION")
DRAINING_STATES = ("STOPPING",)


@dataclass(frozen=True, slots=True)
class ServePool:
    """One pool's deployment, by Ray Serve's word."""

    target: int
    states: dict[str, int]  # Serve's replica state, such as "RUNNING" or "STOPPING", to count
    running_ids: frozenset[str]

    def count(self, states: tuple[str, ...]) -> int:
        """Replicas in any of these states."""
        return sum(self.states.get(state, 0) for state in states)


@dataclass(frozen=True, slots=True)
class ServeStates:
    """Both pools at one look."""

    at: float  # the controller's monotonic clock
    pools: dict[Role, ServePool]
