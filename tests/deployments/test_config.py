"""Settings of the pools and the service, and the Serve config made of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError
from ray.serve.schema import ServeDeploySchema

from autoscaling.types import Role
from deployments.config import (
    CONTROLLER_ENV,
    INGRESS_ENV,
    POOL_ENV,
    ControllerSettings,
    EngineSettings,
    IngressSettings,
    PoolSettings,
    PoolWorld,
    SimulationSettings,
)
from deployments.local_config import ONE_LOOP, ServiceSettings, default_settings, serve_config

NGRAM = {"method": "ngram", "num_speculative_tokens": 2, "prompt_lookup_max": 3, "prompt_lookup_min": 1}
# What Serve hands through without a look at its keys.
FREE = {"env_vars"}


def deployments(settings: ServiceSettings) -> dict[str, dict[str, Any]]:
    (application,) = serve_config(settings)["applications"]
    return {deployment["name"]: deployment for deployment in application["deployments"]}


def dropped(written: Any, understood: Any, path: str = "") -> Iterator[str]:
    """Keys that Serve's schema silently leaves out."""
    if isinstance(written, dict):
        for key, value in written.items():
            if key not in understood:
                yield f"{path}.{key}"
            elif key not in FREE:
                yield from dropped(value, understood[key], f"{path}.{key}")
    elif isinstance(written, list):
        for index, (left, right) in enumerate(zip(written, understood, strict=True)):
            yield from dropped(left, right, f"{path}[{index}]")


def fields_of(error: ValidationError) -> list[str]:
    return [".".join(str(part) for part in item["loc"]) for item in error.errors()]


# --- the Serve config ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        default_settings(),
        default_settings("simulated"),
        default_settings(
            model="/models/m", served_name="m", speculation=NGRAM, host="0.0.0.0", port=80, ingresses=2
        ),
        ServiceSettings(
            speculative=PoolSettings(
                role=Role.SPECULATIVE,
                engine=EngineSettings(speculative_config=NGRAM, tensor_parallel_size=2),
                accelerators_per_replica=2,
            ),
            plain=PoolSettings(
                role=Role.PLAIN, accelerators_per_replica=2, engine=EngineSettings(tensor_parallel_size=2)
            ),
        ),
    ],
    ids=["default", "simulated", "own", "accelerators"],
)
def test_serve_takes_every_key(settings: ServiceSettings) -> None:
    """Serve validates the config and understands each of its keys: a mistyped one would be dropped."""
    config = serve_config(settings)
    understood = ServeDeploySchema.model_validate(config).model_dump(exclude_unset=True)
    assert list(dropped(config, understood)) == []


def test_the_schema_does_drop_keys() -> None:
    """The check above can fail: Serve takes an unknown key of a deployment without a word."""
    config = serve_config(default_settings())
    config["applications"][0]["deployments"][0]["num_replica"] = 2
    understood = ServeDeploySchema.model_validate(config).model_dump(exclude_unset=True)
    assert list(dropped(config, understood)) == [".applications[0].deployments[0].num_replica"]


def test_four_deployments() -> None:
    """Ingress, controller and one deployment per pool, in one application at the root."""
    config = serve_config(default_settings())
    assert config["http_options"]["host"] == "127.0.0.1"
    assert config["http_options"]["port"] == 8000
    (application,) = config["applications"]
    assert (application["name"], application["route_prefix"], application["import_path"]) == (
        "twinpool",
        "/",
        "app.main:build",
    )
    assert list(deployments(default_settings())) == ["ingress", "controller", "speculative", "plain"]


def test_the_draft_changes_one_deployment() -> None:
    """Engine settings travel in that pool's own environment: another draft restarts no other replica."""
    before = deployments(default_settings())
    after = deployments(default_settings(speculation=NGRAM))
    assert [name for name in before if before[name] != after[name]] == ["speculative"]
    one, two = (
        found["applications"][0] | {"deployments": []}
        for found in (serve_config(default_settings()), serve_config(default_settings(speculation=NGRAM)))
    )
    assert one == two


def test_the_plain_engine_changes_one_deployment() -> None:
    """And the other way round."""
    settings = default_settings()
    plain = settings.plain.model_copy(update={"engine": EngineSettings(max_num_seqs=7)})
    before, after = deployments(settings), deployments(settings.model_copy(update={"plain": plain}))
    assert [name for name in before if before[name] != after[name]] == ["plain"]


def test_no_engine_setting_outside_a_pools_environment() -> None:
    """The other deployments say nothing about an engine, and `args`, which restart all, say nothing."""
    config = serve_config(default_settings(model="/models/marker"))
    assert json.dumps(config).count("/models/marker") == 2
    assert config["applications"][0]["args"] == {}
    for deployment in config["applications"][0]["deployments"]:
        environment = deployment["ray_actor_options"].get("runtime_env", {}).get("env_vars", {})
        assert list(environment) == {"ingress": [INGRESS_ENV], "controller": [CONTROLLER_ENV, *ONE_LOOP]}.get(
            deployment["name"], [POOL_ENV]
        )


@pytest.mark.parametrize(("longest_s", "ingress_s", "pool_s"), [(300.0, 335.0, 330.0), (20.0, 55.0, 50.0)])
def test_shutdown_outlives_the_longest_generation(longest_s: float, ingress_s: float, pool_s: float) -> None:
    """An ingress stays L + 35 s; a pool L and what its engine needs to end."""
    settings = default_settings()
    pools = {
        role.value: settings.pool(role).model_copy(update={"longest_generation_s": longest_s})
        for role in Role
    }
    found = deployments(settings.model_copy(update=pools))
    assert found["ingress"]["graceful_shutdown_timeout_s"] == ingress_s
    assert found["plain"]["graceful_shutdown_timeout_s"] == pool_s
    assert found["speculative"]["graceful_shutdown_timeout_s"] == pool_s


def test_the_ingress_outlives_the_slower_pool() -> None:
    """L of the service is the longest of any pool, and the relay waits as long."""
    settings = default_settings()
    plain = settings.plain.model_copy(update={"longest_generation_s": 900.0})
    settings = settings.model_copy(update={"plain": plain})
    ingress = deployments(settings)["ingress"]
    assert settings.longest_generation_s == 900.0
    assert ingress["graceful_shutdown_timeout_s"] == 935.0
    written = ingress["ray_actor_options"]["runtime_env"]["env_vars"]["TWINPOOL_INGRESS"]
    assert json.loads(written) == {
        "longest_generation_s": 900.0,
        "between_chunks_s": 60.0,
        "poll_s": 0.25,
        "admin_writable": True,
    }


def test_the_ingress_changes_one_deployment() -> None:
    """Another limit of the relay restarts no replica of a pool."""
    before, after = deployments(default_settings()), deployments(default_settings(between_chunks_s=30.0))
    assert [name for name in before if before[name] != after[name]] == ["ingress"]


def test_only_the_ingress_surges() -> None:
    """A new ingress is up before an old one drains; a pool has no room for an additional replica."""
    found = deployments(default_settings())
    assert {name: deployment.get("max_surge_percent") for name, deployment in found.items()} == {
        "ingress": 100,
        "controller": None,
        "speculative": None,
        "plain": None,
    }


def test_what_a_replica_takes_from_the_cluster() -> None:
    """One engine slot on CPUs, whole accelerators else; never a CPU, which is leased on its node."""
    settings = default_settings()
    gpu = settings.plain.model_copy(update={"accelerators_per_replica": 2})
    found = deployments(settings.model_copy(update={"plain": gpu}))
    options = {name: deployment["ray_actor_options"] for name, deployment in found.items()}
    assert {name: option["num_cpus"] for name, option in options.items()} == {
        "ingress": 0,
        "controller": 0,
        "speculative": 0,
        "plain": 0,
    }
    assert options["speculative"]["resources"] == {"engine_slot": 1}
    assert options["plain"]["num_gpus"] == 2
    assert "resources" not in options["plain"]


def test_a_pool_reads_back_what_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment carries every setting of the pool, and nothing else is needed."""
    settings = default_settings("simulated", served_name="é 😀", speculation=NGRAM).speculative
    (key,) = settings.to_env()
    monkeypatch.setenv(key, settings.to_env()[key])
    assert PoolSettings.from_env() == settings
    monkeypatch.delenv(key)
    with pytest.raises(KeyError, match="TWINPOOL_POOL"):
        PoolSettings.from_env()


def test_the_ingress_reads_back_what_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for the ingress."""
    settings = IngressSettings(longest_generation_s=7.5, between_chunks_s=1.5, poll_s=0.1)
    monkeypatch.setenv("TWINPOOL_INGRESS", settings.to_env()["TWINPOOL_INGRESS"])
    assert IngressSettings.from_env() == settings
    monkeypatch.delenv("TWINPOOL_INGRESS")
    with pytest.raises(KeyError, match="TWINPOOL_INGRESS"):
        IngressSettings.from_env()


# --- capacity in the Serve config ------------------------------------------------------------------


def capacity() -> ServiceSettings:
    """Two speculative and one plain replica, five slots, and a plain pool that may be empty."""
    base = default_settings("simulated").model_dump()
    base["speculative"]["replicas"] = 2
    base["plain"]["may_be_empty"] = True
    return ServiceSettings.model_validate(base | {"slots": 5, "policy": "/p.yaml", "state_dir": "/state"})


def test_the_controller_and_the_pools_are_scaled_by_the_plan() -> None:
    """Case C7: Serve's own bounds are the widest; without delays, and asked for the plan 4 times a second."""
    found = deployments(capacity())
    bounds = {
        name: (d["autoscaling_config"]["min_replicas"], d["autoscaling_config"]["max_replicas"])
        for name, d in found.items()
        if name != "ingress"
    }
    assert {"controller": (1, 1), "speculative": (1, 5), "plain": (0, 5)} == bounds
    for name in bounds:
        assert "auto" == found[name]["num_replicas"]
        config = found[name]["autoscaling_config"]
        assert (0, 0, 0.25) == (
            config["upscale_delay_s"],
            config["downscale_delay_s"],
            config["metrics_interval_s"],
        )
        assert {"policy_function": "deployments.actuator:hold"} == config["policy"]
    assert "autoscaling_config" not in found["ingress"]


@pytest.mark.parametrize("settings", [default_settings(), capacity()], ids=["default", "capacity"])
def test_what_would_move_targets_behind_our_back_is_unset(settings: ServiceSettings) -> None:
    """Case C7: a change of the config would go back to `initial_replicas`; a factor would scale the plan."""
    config = serve_config(settings)
    (application,) = ServeDeploySchema.model_validate(config).applications
    for deployment in application.deployments:
        found = deployment.autoscaling_config
        if deployment.name == "ingress":
            assert found is None or not isinstance(found, dict)
            continue
        assert isinstance(found, dict)
        for name in (
            "initial_replicas",
            "upscaling_factor",
            "downscaling_factor",
            "upscale_smoothing_factor",
            "downscale_smoothing_factor",
            "smoothing_factor",
        ):
            assert found.get(name) is None, (deployment.name, name)


def test_the_plan_is_applied_by_names_and_a_ceiling() -> None:
    """What else stood in there would restart every replica when it changes."""
    (application,) = serve_config(capacity())["applications"]
    assert {
        "policy_function": "deployments.actuator:ApplyPlan",
        "policy_kwargs": {"controller": "controller", "pools": ["speculative", "plain"], "ceiling": 5},
    } == application["autoscaling_policy"]


def test_the_number_of_replicas_changes_the_controller_alone() -> None:
    """No pool's deployment says how many replicas there are: a change restarts none of them."""
    more = capacity().model_copy(update={"plain": capacity().plain.model_copy(update={"replicas": 2})})
    before, after = deployments(capacity()), deployments(more)
    assert ["controller"] == [name for name in before if before[name] != after[name]]


@pytest.mark.parametrize(
    "change",
    [{"policy": "/q.yaml"}, {"profile": "/p.json"}, {"state_dir": "/other"}, {"record_dir": "/records"}],
)
def test_the_controllers_settings_change_one_deployment(change: dict[str, Any]) -> None:
    """Another policy file restarts the controller and nothing that serves."""
    before, after = deployments(capacity()), deployments(capacity().model_copy(update=change))
    assert ["controller"] == [name for name in before if before[name] != after[name]]


def test_the_controllers_part() -> None:
    """Paths, the ceiling, and of each pool its size, its share, and Serve's bounds."""
    assert (
        ControllerSettings(
            policy="/p.yaml",
            state_dir="/state",
            ceiling=5,
            speculative=PoolWorld(replicas=2, share=1, floor=1, most=5),
            plain=PoolWorld(replicas=1, share=1, floor=0, most=5),
        )
        == capacity().controller()
    )


def test_the_controller_is_told_of_the_profile() -> None:
    """The path travels as it is; without one there is none."""
    told = capacity().model_copy(update={"profile": "/profile.json"})
    assert ["/profile.json", None] == [one.controller().profile for one in (told, capacity())]


def test_the_controller_reads_back_what_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for the controller."""
    settings = capacity().controller()
    monkeypatch.setenv("TWINPOOL_CONTROLLER", settings.to_env()["TWINPOOL_CONTROLLER"])
    assert ControllerSettings.from_env() == settings
    monkeypatch.delenv("TWINPOOL_CONTROLLER")
    with pytest.raises(KeyError, match="TWINPOOL_CONTROLLER"):
        ControllerSettings.from_env()


@pytest.mark.parametrize(("slots", "ceiling"), [(None, 3), (3, 3), (9, 9)])
def test_the_ceiling(slots: int | None, ceiling: int) -> None:
    """What exists, or what the replicas take when nothing was said."""
    found = capacity().model_copy(update={"slots": slots})
    assert (3, ceiling) == (found.taken, found.ceiling)


def test_slots_below_the_replicas_are_refused() -> None:
    """All numbers are in the refusal."""
    settings = capacity().model_dump() | {"slots": 2}
    with pytest.raises(ValidationError, match="slots is 2, but 2 speculative and 1 plain replicas take 3"):
        ServiceSettings.model_validate(settings)


@pytest.mark.parametrize(("ranks", "accelerators", "share"), [(1, 0, 1), (2, 0, 2), (2, 2, 2)])
def test_what_a_replica_takes_of_the_budget(ranks: int, accelerators: int, share: int) -> None:
    """Its accelerators; on the CPU an engine slot per rank."""
    pool = PoolSettings(
        role=Role.PLAIN,
        accelerators_per_replica=accelerators,
        engine=EngineSettings(tensor_parallel_size=ranks),
    )
    assert share == pool.share


@pytest.mark.parametrize(("host", "writable"), [("127.0.0.1", True), ("localhost", True), ("0.0.0.0", False)])
def test_orders_are_taken_on_loopback_only(host: str, writable: bool) -> None:
    """While there are no keys, a service that others can reach takes no orders."""
    ingress = deployments(default_settings(host=host))["ingress"]
    written = ingress["ray_actor_options"]["runtime_env"]["env_vars"]["TWINPOOL_INGRESS"]
    assert writable is json.loads(written)["admin_writable"]


# --- settings --------------------------------------------------------------------------------------


def test_defaults() -> None:
    """One replica per pool on the embedded model, K = 4; room as before anything is measured."""
    settings = default_settings()
    assert (settings.speculative.replicas, settings.plain.replicas) == (1, 1)
    assert (settings.speculative.soft_limit, settings.speculative.hard_limit) == (8, 64)
    assert (settings.plain.soft_limit, settings.plain.hard_limit) == (32, 128)
    assert settings.speculative.engine.speculative_config == {
        "method": "ngram",
        "num_speculative_tokens": 4,
        "prompt_lookup_max": 4,
        "prompt_lookup_min": 2,
    }
    assert settings.plain.engine.speculative_config is None
    assert (settings.plain.engine.model, settings.plain.engine.kv_cache_memory_bytes) == (
        "embedded",
        268435456,
    )


def test_the_aliases() -> None:
    """The canonical name first, then the name of each tier that is not the default."""
    assert EngineSettings(served_name="m").served_names == ("m", "m:interactive", "m:batch")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"replicas": 0}, "replicas"),
        ({"replicas": 65}, "replicas"),
        ({"replicas": 1.5}, "replicas"),
        ({"soft_limit": 0}, "soft_limit"),
        ({"hard_limit": 0}, "hard_limit"),
        ({"cores_per_replica": -1}, "cores_per_replica"),
        ({"accelerators_per_replica": -1}, "accelerators_per_replica"),
        ({"accelerators_per_replica": 0.5}, "accelerators_per_replica"),
        ({"port_range": (22000, 21000)}, "port_range"),
        ({"port_range": (80, 90)}, "port_range"),
        ({"port_range": (60000, 70000)}, "port_range"),
        ({"hung_after_s": 0}, "hung_after_s"),
        ({"longest_generation_s": float("inf")}, "longest_generation_s"),
        ({"longest_generation_s": float("nan")}, "longest_generation_s"),
        ({"role": "fast"}, "role"),
        ({"soft_limits": 1}, "soft_limits"),
        ({"engine": {"kind": "other"}}, "engine.kind"),
        ({"engine": {"max_model_len": 1}}, "engine.max_model_len"),
        ({"engine": {"max_num_seqs": 0}}, "engine.max_num_seqs"),
        ({"engine": {"served_name": ""}}, "engine.served_name"),
        ({"engine": {"kv_cache_memory_bytes": 1}}, "engine.kv_cache_memory_bytes"),
        ({"engine": {"modell": "m"}}, "engine.modell"),
        ({"engine": {"simulation": {"acceptance": 1.1}}}, "engine.simulation.acceptance"),
        ({"engine": {"simulation": {"step_base_s": -1}}}, "engine.simulation.step_base_s"),
    ],
)
def test_bad_settings_are_refused_by_name(change: dict[str, Any], field: str) -> None:
    """A setting that cannot work, or a mistyped one, is refused with its name."""
    with pytest.raises(ValidationError) as raised:
        PoolSettings.model_validate({"role": "plain"} | change)
    assert fields_of(raised.value) == [field]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"role": "plain", "soft_limit": 9, "hard_limit": 8}, "soft_limit 9 is above hard_limit 8"),
        ({"role": "speculative"}, "the speculative pool needs engine.speculative_config"),
        ({"role": "plain", "engine": {"speculative_config": {}}}, "the plain pool must not have one"),
        ({"role": "plain", "port_range": (22000, 21000)}, "port_range 22000-21000 must lie in 1024-65535"),
    ],
)
def test_settings_that_contradict_each_other(settings: dict[str, Any], words: str) -> None:
    """The message names both settings."""
    with pytest.raises(ValidationError, match=words):
        PoolSettings.model_validate(settings)


def test_the_pools_have_their_own_roles() -> None:
    """A pool under the other's name is refused, and so is a second pool of one role."""
    pools = default_settings()
    with pytest.raises(ValidationError, match="pool speculative has role plain"):
        ServiceSettings(speculative=pools.plain, plain=pools.speculative)
    with pytest.raises(ValidationError, match="pool plain has role speculative"):
        ServiceSettings(speculative=pools.speculative, plain=pools.speculative)


def test_both_pools_serve_one_model() -> None:
    """Another served name in one pool is refused: an answer must not depend on the pool."""
    pools = default_settings()
    plain = PoolSettings(role=Role.PLAIN, engine=EngineSettings(served_name="other"))
    with pytest.raises(ValidationError, match=r"engine\.served_name must be the same in both"):
        ServiceSettings(speculative=pools.speculative, plain=plain)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"port": 0}, "port"),
        ({"port": 65536}, "port"),
        ({"front": "nginx"}, "front"),
        ({"ingresses": 0}, "ingresses"),
        ({"between_chunks_s": 0}, "between_chunks_s"),
        ({"portt": 1}, "portt"),
    ],
)
def test_bad_service_settings_are_refused_by_name(change: dict[str, Any], field: str) -> None:
    """The same for what concerns the whole service."""
    with pytest.raises(ValidationError) as raised:
        default_settings(**change)
    assert fields_of(raised.value) == [field]


def test_settings_do_not_change() -> None:
    """Settings are values: a changed one is a new one."""
    with pytest.raises(ValidationError, match="frozen"):
        SimulationSettings().seed = 3  # type: ignore[misc]


def test_accelerators_and_ranks_go_together() -> None:
    """A replica with accelerators has one per tensor-parallel rank; both figures are in the refusal."""
    with pytest.raises(ValidationError, match=r"accelerators_per_replica is 2, .*tensor_parallel_size is 1"):
        PoolSettings(role=Role.PLAIN, accelerators_per_replica=2)


def test_both_pools_have_one_model() -> None:
    """A different `engine.model` in the two pools is refused: one model is served."""
    settings = default_settings().model_dump()
    settings["plain"]["engine"]["model"] = "/models/other"
    with pytest.raises(ValidationError, match="must be the same in both"):
        ServiceSettings.model_validate(settings)
