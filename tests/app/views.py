"""Replica views and snapshots for the ingress's tests."""

from __future__ import annotations

from autoscaling.types import Capabilities, ReplicaView, Role, Snapshot


def view(
    replica_id: str = "a",
    role: Role = Role.PLAIN,
    *,
    boot_id: str = "boot-1",
    seq: int = 1,
    accepting: bool = True,
    age_s: float = 0.0,
    inflight: int = 0,
    soft_share: int = 4,
    hard_share: int = 8,
    soft_limit: int | None = None,
    refuses: tuple[str, ...] = (),
    models: tuple[str, ...] = ("m", "m:interactive", "m:batch"),
) -> ReplicaView:
    """One replica as a snapshot shows it."""
    return ReplicaView(
        replica_id=replica_id,
        boot_id=boot_id,
        seq=seq,
        pool=role.value,
        role=role,
        node_id="node",
        host="10.0.0.1",
        port=21000,
        token="secret",
        accepting=accepting,
        age_s=age_s,
        inflight=inflight,
        running=None,
        waiting=None,
        soft_share=soft_share,
        hard_share=hard_share,
        capabilities=Capabilities(
            role=role,
            engine="simulated",
            engine_version="0",
            method="ngram" if role is Role.SPECULATIVE else None,
            runner=None,
            draft_length_max=4 if role is Role.SPECULATIVE else 0,
            draft_length_adjustable=False,
            max_model_len=2048,
            max_num_seqs=16,
            refuses=refuses,
            per_request_metrics=True,
            models=models,
            fingerprint="f",
        ),
        soft_limit=soft_limit,
    )


def snapshot(
    *replicas: ReplicaView, epoch: int = 1, seq: int = 1, partial: bool = False, ingresses: int = 1
) -> Snapshot:
    """One snapshot of the controller."""
    return Snapshot(epoch=epoch, seq=seq, partial=partial, ingresses=ingresses, replicas=replicas)
