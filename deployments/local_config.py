"""The local service as one declarative Serve config; the same shape a RayService carries."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from autoscaling.types import Role
from deployments.config import (
    APP_NAME,
    CONTROLLER,
    DEFAULT_SPECULATION,
    INGRESS,
    ControllerSettings,
    EngineSettings,
    IngressSettings,
    PoolSettings,
    PoolWorld,
    Settings,
    SimulationSettings,
)
from deployments.ports import is_loopback

ENGINE_SLOT = "engine_slot"  # Ray's logical resource: one per replica on the CPU
INGRESS_EXTRA_S = 35.0  # an ingress outlives the longest stream by Serve's own draining period
STOP_MARGIN_S = 30.0  # of a pool's Serve deadline, for ending the engine after its last stream
# How often Serve asks the controller for its plan, and how long it keeps an answer.
PLAN_INTERVAL_S = 0.25
PLAN_KEPT_S = 1.25
# Admission is ours: Serve must never queue at the ingress.
INGRESS_ONGOING = 100_000
# Above the 60 s that load balancers keep an idle connection.
KEEP_ALIVE_S = 90
# Every method of the controller is short: passing each call to a second thread would cost more than it does.
ONE_LOOP = {"RAY_SERVE_RUN_USER_CODE_IN_SEPARATE_THREAD": "0"}


class ServiceSettings(Settings):
    """Everything `twinpool serve` runs."""

    host: str = "127.0.0.1"
    port: int = Field(8000, ge=1, le=65535)
    front: Literal["proxy", "haproxy"] = "proxy"
    ingresses: int = Field(1, ge=1, le=16)
    between_chunks_s: float = Field(60.0, gt=0)
    policy: str | None = Field(None, description="The policy file; a default from these settings without.")
    profile: str | None = Field(
        None,
        description="The profile file, what was measured of this model on these machines; limits are "
        "unmeasured without.",
    )
    state_dir: str | None = Field(
        None, description="Folder of the controller's state; one of the user's per port without."
    )
    record_dir: str | None = Field(
        None, description="Folder for records of observations, decisions and requests; none are kept without."
    )
    slots: int | None = Field(
        None,
        ge=1,
        le=4096,
        description="Engine slots, or accelerators, of this machine for both pools: the ceiling of every "
        "policy; what the replicas take without.",
    )
    speculative: PoolSettings
    plain: PoolSettings

    @model_validator(mode="after")
    def _pair(self) -> ServiceSettings:
        for role in Role:
            if self.pool(role).role is not role:
                raise ValueError(f"pool {role} has role {self.pool(role).role}")
        if self.speculative.engine.served_name != self.plain.engine.served_name:
            raise ValueError("both pools serve one model: engine.served_name must be the same in both")
        if self.speculative.engine.model != self.plain.engine.model:
            raise ValueError("both pools serve one model: engine.model must be the same in both")
        if self.taken > self.ceiling:
            raise ValueError(
                f"slots is {self.slots}, but {self.speculative.replicas} speculative and "
                f"{self.plain.replicas} plain replicas take {self.taken}"
            )
        return self

    def pool(self, role: Role) -> PoolSettings:
        """The settings of one pool."""
        return self.speculative if role is Role.SPECULATIVE else self.plain

    @property
    def longest_generation_s(self) -> float:
        """L: the longest generation that any pool promises."""
        return max(self.pool(role).longest_generation_s for role in Role)

    @property
    def ceiling(self) -> int:
        """Engine slots, or accelerators, that both pools may take together."""
        return self.slots or self.taken

    @property
    def taken(self) -> int:
        """What the replicas that are set take together."""
        return sum(self.pool(role).replicas * self.pool(role).share for role in Role)

    def controller(self) -> ControllerSettings:
        """The controller's part."""
        return ControllerSettings(
            policy=self.policy,
            profile=self.profile,
            state_dir=self.state_dir,
            record_dir=self.record_dir,
            ceiling=self.ceiling,
            **{role.value: self._world(self.pool(role)) for role in Role},
        )

    def _world(self, pool: PoolSettings) -> PoolWorld:
        return PoolWorld(
            replicas=pool.replicas,
            share=pool.share,
            floor=0 if pool.may_be_empty else 1,
            most=max(1, self.ceiling // pool.share),
        )


def default_settings(
    engine: Literal["vllm", "simulated"] = "vllm",
    model: str = "embedded",
    served_name: str = "smollm2-135m",
    speculation: dict[str, Any] | None = None,
    **service: Any,
) -> ServiceSettings:
    """One replica per pool, n-gram speculation with K = 4 unless told otherwise."""
    common: dict[str, Any] = {"kind": engine, "model": model, "served_name": served_name}
    simulated = engine == "simulated"
    if simulated:
        common["simulation"] = SimulationSettings()
    return ServiceSettings(
        speculative=PoolSettings(
            role=Role.SPECULATIVE,
            engine=EngineSettings(**common, speculative_config=speculation or DEFAULT_SPECULATION),
            cores_per_replica=0 if simulated else 1,
        ),
        plain=PoolSettings(
            role=Role.PLAIN,
            engine=EngineSettings(**common, max_num_seqs=32),
            soft_limit=32,
            hard_limit=128,
            cores_per_replica=0 if simulated else 1,
        ),
        **service,
    )


def serve_config(settings: ServiceSettings) -> dict[str, Any]:
    """The config for `deployments.serve_internals.deploy`."""
    longest = settings.longest_generation_s
    ingress = IngressSettings(
        longest_generation_s=longest,
        between_chunks_s=settings.between_chunks_s,
        admin_writable=is_loopback(settings.host),
    )
    controller = settings.controller()
    return {
        "proxy_location": "HeadOnly",
        "http_options": {
            "host": settings.host,
            "port": settings.port,
            "keep_alive_timeout_s": KEEP_ALIVE_S,
        },
        "logging_config": {"enable_access_log": False},
        "applications": [
            {
                "name": APP_NAME,
                "route_prefix": "/",
                "import_path": "app.main:build",
                "args": {},
                # Names and a hard ceiling only: a change of these restarts every replica.
                "autoscaling_policy": {
                    "policy_function": "deployments.actuator:ApplyPlan",
                    "policy_kwargs": {
                        "controller": CONTROLLER,
                        "pools": [role.value for role in Role],
                        "ceiling": settings.ceiling,
                    },
                },
                "deployments": [
                    {
                        "name": INGRESS,
                        "num_replicas": settings.ingresses,
                        "max_ongoing_requests": INGRESS_ONGOING,
                        "max_surge_percent": 100,  # a new ingress is up before an old one drains
                        "graceful_shutdown_timeout_s": longest + INGRESS_EXTRA_S,
                        "graceful_shutdown_wait_loop_s": 0.1,
                        "health_check_period_s": 1.0,
                        "ray_actor_options": {"num_cpus": 0, "runtime_env": {"env_vars": ingress.to_env()}},
                    },
                    {
                        "name": CONTROLLER,
                        "num_replicas": "auto",
                        # One, and its statistics are asked for: they are the plan.
                        "autoscaling_config": _bounds(1, 1),
                        "max_ongoing_requests": 1000,
                        "graceful_shutdown_timeout_s": 2.0,
                        "graceful_shutdown_wait_loop_s": 0.1,
                        "health_check_period_s": 1.0,
                        "ray_actor_options": {
                            "num_cpus": 0,
                            "runtime_env": {"env_vars": controller.to_env() | ONE_LOOP},
                        },
                    },
                    *(_pool(settings.pool(role), controller.pool(role)) for role in Role),
                ],
            }
        ],
    }


def _bounds(least: int, most: int) -> dict[str, Any]:
    """Serve's own bounds, as wide as they can be; without the plan it holds what it has.

    No `initial_replicas`: any change of the config would go back to them.
    """
    return {
        "min_replicas": least,
        "max_replicas": most,
        "upscale_delay_s": 0,
        "downscale_delay_s": 0,
        "metrics_interval_s": PLAN_INTERVAL_S,
        "look_back_period_s": PLAN_KEPT_S,
        "policy": {"policy_function": "deployments.actuator:hold"},
    }


def _pool(pool: PoolSettings, world: PoolWorld) -> dict[str, Any]:
    options: dict[str, Any] = {"num_cpus": 0, "runtime_env": {"env_vars": pool.to_env()}}
    if pool.accelerators_per_replica:
        options["num_gpus"] = pool.accelerators_per_replica
    else:
        options["resources"] = {ENGINE_SLOT: pool.share}
    return {
        "name": pool.role.value,
        "num_replicas": "auto",
        "autoscaling_config": _bounds(world.floor, world.most),
        "max_ongoing_requests": 100,  # only control calls come through Serve
        "graceful_shutdown_timeout_s": pool.longest_generation_s + STOP_MARGIN_S,
        "graceful_shutdown_wait_loop_s": 0.1,  # the time until a stopping replica refuses new work
        "health_check_period_s": pool.health_check_period_s,
        "health_check_timeout_s": 10.0,
        "ray_actor_options": options,
    }
