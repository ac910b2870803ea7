"""A replica that stands for another one where a rule reads its role and name alone; pure."""

from __future__ import annotations

from autoscaling.types import Capabilities, ReplicaView, Role


def replica_like(role: Role, replica_id: str) -> ReplicaView:
    """A replica of which only role and name count; it accepts work."""
    nothing = Capabilities(
        role=role,
        engine="",
        engine_version="",
        method=None,
        runner=None,
        draft_length_max=0,
        draft_length_adjustable=False,
        max_model_len=0,
        max_num_seqs=0,
        refuses=(),
        per_request_metrics=False,
        models=(),
        fingerprint="",
    )
    return ReplicaView(
        replica_id=replica_id,
        boot_id="",
        seq=0,
        pool=role.value,
        role=role,
        node_id="",
        host="",
        port=0,
        token="",
        accepting=True,
        age_s=0.0,
        inflight=0,
        running=None,
        waiting=None,
        soft_share=0,
        hard_share=0,
        capabilities=nothing,
    )
