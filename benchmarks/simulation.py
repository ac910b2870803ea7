"""The engine that `benchmarks.path` puts behind every path, and the service around it."""

from __future__ import annotations

from typing import Literal

from autoscaling.types import Role
from deployments.config import DEFAULT_SPECULATION, EngineSettings, PoolSettings, SimulationSettings
from deployments.local_config import ServiceSettings

Front = Literal["proxy", "haproxy"]

STEP_S = 0.02
REPLICAS = 2  # engines behind every path
LONGEST_GENERATION_S = 60.0  # far above an answer here, so that a stop need not wait for long


def engine_settings() -> EngineSettings:
    """One plain engine: a step takes 20 ms whatever is in it, so that 64 streams are 3,200 chunks/s."""
    return EngineSettings(
        kind="simulated",
        max_num_seqs=64,
        simulation=SimulationSettings(step_base_s=STEP_S, step_per_token_s=0.0, step_per_context_s=0.0),
    )


def service_settings(front: Front, port: int) -> ServiceSettings:
    """The service: two plain replicas take all requests; one speculative replica stands by, as it must."""
    engine = engine_settings()
    speculative = engine.model_copy(update={"speculative_config": DEFAULT_SPECULATION})
    return ServiceSettings(
        port=port,
        front=front,
        speculative=PoolSettings(
            role=Role.SPECULATIVE,
            engine=speculative,
            cores_per_replica=0,
            longest_generation_s=LONGEST_GENERATION_S,
        ),
        plain=PoolSettings(
            role=Role.PLAIN,
            replicas=REPLICAS,
            engine=engine,
            soft_limit=64,
            hard_limit=128,
            cores_per_replica=0,
            longest_generation_s=LONGEST_GENERATION_S,
        ),
    )
