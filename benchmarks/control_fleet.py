"""A thousand replicas that do not exist: their reports, what Ray Serve says of them, and what callers want.

Time is an argument, so that the same fleet serves a run in virtual time and one on the clock.
"""

from __future__ import annotations

import math
from functools import lru_cache

from autoscaling.decisions import Sizes
from autoscaling.types import (
    Capabilities,
    EngineTotals,
    FinishedRequest,
    IngressLoad,
    ReplicaReport,
    ReplicaState,
    Role,
    ServePool,
    ServeStates,
)
from deployments.config import ControllerSettings, PoolWorld

FLEET = 1000  # replicas
FINISHED = 5  # requests that a replica finishes between two reports
SOFT_LIMIT, HARD_LIMIT = 8, 64  # sequences in flight per replica
SWING_S = 3600.0  # callers change their mind with this period, so that capacity moves both ways
INGRESS = "ingress-0"
ORDER = {role: index for index, role in enumerate(Role)}


def settings(policy: str | None = None, replicas: int = FLEET) -> ControllerSettings:
    """A controller of so many accelerators, half of them per pool to begin with; it keeps nothing."""
    pools = {
        role.value: PoolWorld(replicas=max(1, replicas // 2), share=1, floor=1, most=replicas)
        for role in Role
    }
    return ControllerSettings(policy=policy, ceiling=replicas, **pools)


def replica_id(role: Role, index: int) -> str:
    """An id as long as Ray Serve's own."""
    return f"{role.value[:1]}{index:07d}"


def report(
    role: Role, index: int, seq: int, finished: tuple[FinishedRequest, ...] | None = None
) -> ReplicaReport:
    """One report as a replica makes it, with everything a real one carries; its own records by default."""
    name = replica_id(role, index)
    inflight = (7 * index + seq) % SOFT_LIMIT
    speculative = role is Role.SPECULATIVE
    drafts = 40 * seq if speculative else 0
    return ReplicaReport(
        replica_id=name,
        boot_id=f"{index:032x}",
        seq=seq,
        pool=role.value,
        role=role,
        node_id=f"{index // 8:056x}",
        host=f"10.{ORDER[role]}.{index // 250}.{index % 250}",
        port=21000 + index % 1000,
        token=f"{index:064x}",
        state=ReplicaState.RUNNING,
        pid=1000 + index,
        soft_limit=SOFT_LIMIT,
        hard_limit=HARD_LIMIT,
        inflight=inflight,
        running=inflight,
        waiting=0,
        kv_cache_usage=0.5,
        draft_length=4 if speculative else 0,
        capabilities=_CAPABILITIES[role],
        totals=EngineTotals(
            steps=50 * seq,
            drafts=drafts,
            drafted=4 * drafts,
            accepted=2 * drafts,
            accepted_per_position=(drafts, drafts // 2, drafts // 3, drafts // 6),
            drafted_per_position=(drafts,) * 4,
            prefill_tokens=400 * seq,
            decode_tokens=300 * seq,
            request_steps=200 * seq,
            finished=FINISHED * seq,
            finished_prompt_tokens=400 * seq,
            finished_generated_tokens=300 * seq,
            longest_step_s=0.05,
        ),
        finished=finished_requests(name, seq) if finished is None else finished,
    )


def finished_requests(name: str, seq: int) -> tuple[FinishedRequest, ...]:
    """What a replica has finished since its last report; the times vary with `seq`."""
    return tuple(_finished(name, seq, each) for each in range(FINISHED))


def ingress_load(at: float, replicas: int = FLEET) -> IngressLoad:
    """What callers want of each pool: in turn three quarters of the fleet's soft limit and one quarter."""
    share = 0.5 + 0.25 * math.sin(2 * math.pi * at / SWING_S)
    whole = 0.9 * SOFT_LIMIT * replicas
    wanted = {Role.SPECULATIVE: int(whole * share), Role.PLAIN: int(whole * (1 - share))}
    return IngressLoad(wanted=wanted, refused=dict.fromkeys(Role, 0))


def serve_states(sizes: Sizes, at: float) -> ServeStates:
    """Ray Serve's word when every pool has exactly its target, all of it running."""
    return ServeStates(
        at,
        {
            role: ServePool(
                target=sizes[role],
                states={"RUNNING": sizes[role]},
                running_ids=_ids(role, sizes[role]),
            )
            for role in Role
        },
    )


@lru_cache(maxsize=8)
def _ids(role: Role, size: int) -> frozenset[str]:
    return frozenset(replica_id(role, index) for index in range(size))


def _finished(name: str, seq: int, each: int) -> FinishedRequest:
    spread = (7919 * seq + 4001 * each) % 10_007 / 10_007  # in no order, as latencies come
    return FinishedRequest(
        request_id=f"chatcmpl-{name}-{seq:08d}-{each:02d}-{0:012x}",
        prompt_tokens=80,
        generated_tokens=60,
        finish_reason="stop",
        queued_s=0.01 * spread,
        prefill_s=0.05 + 0.05 * spread,
        decode_s=1.5 + spread,
        e2e_s=1.6 + spread,
    )


def _capabilities(role: Role) -> Capabilities:
    speculative = role is Role.SPECULATIVE
    return Capabilities(
        role=role,
        engine="vllm",
        engine_version="0.32.0",
        method="ngram" if speculative else None,
        runner="v1",
        draft_length_max=4 if speculative else 0,
        draft_length_adjustable=speculative,
        max_model_len=8192,
        max_num_seqs=32,
        refuses=("min_p", "logit_bias") if speculative else (),
        per_request_metrics=True,
        models=("smollm2-135m", "smollm2-135m:interactive", "smollm2-135m:batch"),
        fingerprint="ab" * 32,
    )


_CAPABILITIES = {role: _capabilities(role) for role in Role}
