"""Settings of the service and its pools, validated at the edge.

A deployment's settings travel as one JSON value in its own environment, so that changing them
restarts only that deployment; a change of the application's `args` would restart every replica.
"""

from __future__ import annotations

import os
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from autoscaling.types import Role

POOL_ENV = "TWINPOOL_POOL"
INGRESS_ENV = "TWINPOOL_INGRESS"
CONTROLLER_ENV = "TWINPOOL_CONTROLLER"
# Acted on outside the replica.
SERVE_FIELDS = ("replicas", "may_be_empty", "health_check_period_s", "start_timeout_s")
APP_NAME = "twinpool"
CONTROLLER = "controller"
INGRESS = "ingress"
DEFAULT_SPECULATION: dict[str, Any] = {
    "method": "ngram",
    "num_speculative_tokens": 4,
    "prompt_lookup_max": 4,
    "prompt_lookup_min": 2,
}


class Settings(BaseModel):
    """Base of every settings model: frozen, and a mistyped key is an error."""

    # Infinity would be written into a pool's environment as null.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class SimulationSettings(Settings):
    """The simulated engine's step clock, t = base + per_token * tokens + per_context * context."""

    start_s: float = Field(0.0, ge=0, description="Seconds that start-up takes.")
    step_base_s: float = Field(0.015, ge=0, description="Fixed cost of a step in seconds (c0).")
    step_per_token_s: float = Field(0.0005, ge=0, description="Seconds per token in a step (c1).")
    step_per_context_s: float = Field(0.0, ge=0, description="Seconds per sequence and context token (c2).")
    acceptance: float = Field(0.7, ge=0, le=1, description="Chance that a draft token is accepted.")
    seed: int = 0
    max_prefill_tokens: int = Field(2048, ge=1, description="Prefill tokens that share one step.")


class EngineSettings(Settings):
    """What one replica's engine runs."""

    kind: Literal["vllm", "simulated"] = "vllm"
    model: str = Field("embedded", description="`embedded`, a local folder, or a hub id.")
    served_name: str = Field("smollm2-135m", min_length=1)
    max_model_len: int = Field(2048, ge=64, description="Tokens, prompt plus answer.")
    max_num_seqs: int = Field(16, ge=1, description="Sequences in one step.")
    dtype: str = "bfloat16"
    kv_cache_memory_bytes: int = Field(256 << 20, ge=16 << 20)
    enforce_eager: bool = True
    tensor_parallel_size: int = Field(1, ge=1)
    speculative_config: dict[str, Any] | None = None
    extra_args: tuple[str, ...] = Field(
        (), description="Further vLLM server arguments, as on its command line."
    )
    simulation: SimulationSettings = SimulationSettings()

    @property
    def served_names(self) -> tuple[str, ...]:
        """Canonical name first, then the tier aliases."""
        return (
            self.served_name,
            f"{self.served_name}:interactive",
            f"{self.served_name}:batch",
        )


class PoolSettings(Settings):
    """One pool: its role, its engine, its limits."""

    role: Role
    replicas: int = Field(1, ge=1, le=64)
    may_be_empty: bool = Field(
        False,
        description="Whether the policy may take the last replica; if so, a new application is called "
        "running before this pool is up.",
    )
    engine: EngineSettings = EngineSettings()
    soft_limit: int = Field(8, ge=1, description="In flight per replica up to which new work is welcome.")
    hard_limit: int = Field(64, ge=1, description="In flight per replica above which it refuses.")
    cores_per_replica: int = Field(1, ge=0, description="CPU cores leased by a replica; 0 leases none.")
    accelerators_per_replica: int = Field(0, ge=0)
    port_range: tuple[int, int] = (21000, 21999)
    hung_after_s: float = Field(30.0, gt=0, description="No engine step for this long, work pending: hung.")
    longest_generation_s: float = Field(300.0, gt=0, description="L: the longest promised generation.")
    health_check_period_s: float = Field(1.0, gt=0)
    start_timeout_s: float = Field(600.0, gt=0)

    @field_validator("port_range")
    @classmethod
    def _ports(cls, value: tuple[int, int]) -> tuple[int, int]:
        low, high = value
        if not 1024 <= low <= high <= 65535:
            raise ValueError(f"port_range {low}-{high} must lie in 1024-65535, lowest first")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> PoolSettings:
        if self.soft_limit > self.hard_limit:
            raise ValueError(f"soft_limit {self.soft_limit} is above hard_limit {self.hard_limit}")
        if self.accelerators_per_replica not in (0, self.engine.tensor_parallel_size):
            raise ValueError(
                f"accelerators_per_replica is {self.accelerators_per_replica}, "
                f"engine.tensor_parallel_size is {self.engine.tensor_parallel_size}: "
                "a replica uses one accelerator per tensor-parallel rank, on one node"
            )
        if (self.role is Role.SPECULATIVE) != (self.engine.speculative_config is not None):
            raise ValueError(
                f"pool {self.role}: the speculative pool needs engine.speculative_config, "
                "the plain pool must not have one"
            )
        return self

    @property
    def share(self) -> int:
        """Accelerators of the budget that one replica takes; on the CPU an engine slot per rank."""
        return self.accelerators_per_replica or self.engine.tensor_parallel_size

    def to_env(self) -> dict[str, str]:
        """The environment of this pool's deployment.

        Without what Serve's config says itself: a changed environment restarts every replica, and a
        change of the replica count must not.
        """
        return {POOL_ENV: self.model_dump_json(exclude=set(SERVE_FIELDS))}

    @classmethod
    def from_env(cls) -> PoolSettings:
        """Read back what `to_env` wrote; raises KeyError outside a pool's deployment."""
        return cls.model_validate_json(os.environ[POOL_ENV])


class IngressSettings(Settings):
    """How the ingress relays."""

    longest_generation_s: float = Field(300.0, gt=0, description="L: the longest wait for a first byte.")
    between_chunks_s: float = Field(60.0, gt=0, description="Silence in a begun stream that ends it.")
    poll_s: float = Field(0.25, gt=0, le=3, description="How often the snapshot is fetched.")
    admin_writable: bool = Field(
        True, description="Whether /admin takes orders: only on a loopback address while there are no keys."
    )

    def to_env(self) -> dict[str, str]:
        """The environment of the ingress deployment."""
        return {INGRESS_ENV: self.model_dump_json()}

    @classmethod
    def from_env(cls) -> IngressSettings:
        """Read back what `to_env` wrote; raises KeyError outside the ingress deployment."""
        return cls.model_validate_json(os.environ[INGRESS_ENV])


class PoolWorld(Settings):
    """What the controller knows of a pool before it hears from it."""

    replicas: int = Field(ge=0, description="Replicas to begin with, unless the policy says.")
    share: int = Field(ge=1, description="Accelerators of the budget per replica.")
    floor: int = Field(ge=0, le=1, description="Serve's own minimum.")
    most: int = Field(ge=1, description="Serve's own maximum: the ceiling in replicas of this pool.")


class ControllerSettings(Settings):
    """What the controller acts on, and where it keeps what it must not forget."""

    policy: str | None = Field(
        None, description="Policy file, or a folder that holds one; a default without."
    )
    profile: str | None = Field(
        None, description="Profile file, what was measured of this model; limits are unmeasured without."
    )
    state_dir: str | None = Field(None, description="Folder of the controller's state; lost without one.")
    record_dir: str | None = Field(
        None, description="Folder for records of observations, decisions and requests."
    )
    record_stdout: bool = Field(False, description="Whether records go to standard output too.")
    ceiling: int = Field(
        ge=1, description="Accelerators that exist for both pools; no policy may exceed them."
    )
    speculative: PoolWorld
    plain: PoolWorld

    def pool(self, role: Role) -> PoolWorld:
        """What is known of one pool."""
        return self.speculative if role is Role.SPECULATIVE else self.plain

    def to_env(self) -> dict[str, str]:
        """The environment of the controller deployment."""
        return {CONTROLLER_ENV: self.model_dump_json()}

    @classmethod
    def from_env(cls) -> ControllerSettings:
        """Read back what `to_env` wrote; raises KeyError outside the controller deployment."""
        return cls.model_validate_json(os.environ[CONTROLLER_ENV])
