"""A replica's report for tests of what receives or makes one."""

from __future__ import annotations

from autoscaling.types import Capabilities, EngineTotals, FinishedRequest, ReplicaReport, ReplicaState, Role


def report(
    replica_id: str = "a",
    seq: int = 1,
    *,
    boot_id: str = "boot-1",
    role: Role = Role.PLAIN,
    state: ReplicaState = ReplicaState.RUNNING,
    soft_limit: int = 8,
    hard_limit: int = 64,
    inflight: int = 0,
    finished: tuple[FinishedRequest, ...] = (),
    fingerprint: str = "f",
    schema: int = 1,
) -> ReplicaReport:
    """One report of one replica."""
    return ReplicaReport(
        replica_id=replica_id,
        boot_id=boot_id,
        seq=seq,
        pool=role.value,
        role=role,
        node_id="node",
        host="10.0.0.1",
        port=21000,
        token="secret",
        state=state,
        pid=7,
        soft_limit=soft_limit,
        hard_limit=hard_limit,
        inflight=inflight,
        running=3,
        waiting=None,
        kv_cache_usage=0.5,
        draft_length=0,
        capabilities=Capabilities(
            role=role,
            engine="simulated",
            engine_version="0",
            method=None,
            runner=None,
            draft_length_max=0,
            draft_length_adjustable=False,
            max_model_len=2048,
            max_num_seqs=16,
            refuses=(),
            per_request_metrics=False,
            models=("m",),
            fingerprint=fingerprint,
        ),
        totals=EngineTotals(),
        finished=finished,
        schema=schema,
    )


def finished_request(request_id: str) -> FinishedRequest:
    """The engine's record of one finished request."""
    return FinishedRequest(
        request_id=request_id,
        prompt_tokens=5,
        generated_tokens=7,
        finish_reason="stop",
        queued_s=0.0,
        prefill_s=0.1,
        decode_s=0.2,
        e2e_s=0.3,
    )
