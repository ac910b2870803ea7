"""Write the tables of `docs/configuration.md` from the settings models: `python docs/generate.py`.

Only the part between the two marks is written; the words around it are kept.  `tests/test_docs.py`
fails when the page and the models differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from autoscaling.types import Role
from deployments.config import EngineSettings, IngressSettings, PoolSettings, SimulationSettings
from deployments.local_config import ServiceSettings, default_settings

PAGE = Path(__file__).parent / "configuration.md"
BEGIN = "<!-- tables: written by docs/generate.py -->"
END = "<!-- end of tables -->"

# The models' own descriptions win; these stand in where a field has none.
WORDS: Mapping[type[BaseModel], Mapping[str, str]] = {
    ServiceSettings: {
        "host": "Address to listen on.",
        "port": "Port to listen on.",
        "front": "Serve's own proxy, or HAProxy.",
        "ingresses": "Ingress replicas; a fixed number.",
        "between_chunks_s": "Silence in a begun answer, in seconds, that ends it.",
        "speculative": "The speculative pool: see the pool's table.",
        "plain": "The plain pool: see the pool's table.",
    },
    PoolSettings: {
        "role": "Must be the pool's own name; it is already set.",
        "replicas": "Replicas to begin with, unless the policy says; each has one engine.",
        "engine": "The engine of each replica: see the engine's table.",
        "accelerators_per_replica": "Accelerators that Ray reserves for each; 0 takes an `engine_slot`.",
        "port_range": "Ports of the replicas, lowest and highest; one rests 150 s before it is used again.",
        "health_check_period_s": "Seconds between two health checks by Ray Serve.",
        "start_timeout_s": "Seconds after which `twinpool serve` gives up on a start.",
    },
    EngineSettings: {
        "kind": "The real engine, or the simulated one, which needs no model and no torch.",
        "served_name": "Model name in the API, with `NAME:interactive` and `NAME:batch`; one for both pools.",
        "dtype": "Number type of the weights, as vLLM names it.",
        "kv_cache_memory_bytes": "Memory for the KV cache of one replica, in bytes.",
        "enforce_eager": "Run without compiled graphs.",
        "tensor_parallel_size": "vLLM's tensor parallelism within a replica.",
        "speculative_config": "vLLM's own object; needed in the speculative pool, refused in the plain one.",
        "simulation": "The simulated engine's clock: see its table.",
    },
    SimulationSettings: {"seed": "Seed of the draws for acceptance and text."},
    IngressSettings: {},
}
TITLES: Mapping[type[BaseModel], str] = {
    ServiceSettings: "Service (top level)",
    PoolSettings: "Pool (`speculative` and `plain`)",
    EngineSettings: "Engine (`speculative.engine` and `plain.engine`)",
    SimulationSettings: "Simulation (`speculative.engine.simulation` and `plain.engine.simulation`)",
    IngressSettings: "Ingress (derived; not in the settings file)",
}
TYPES: Mapping[Any, str] = {
    str: "text",
    int: "integer",
    int | None: "integer or null",
    str | None: "text or null",
    float: "number",
    bool: "true or false",
    Role: "word",
    tuple[str, ...]: "list of texts",
    tuple[int, int]: "two integers",
    dict[str, Any] | None: "mapping or null",
}
SIGNS = {Ge: "≥", Gt: ">", Le: "≤", Lt: "<"}


def tables() -> str:
    """All tables as Markdown."""
    return "\n\n".join(
        f"### {title}\n\n| setting | type | default | meaning |\n|---|---|---|---|\n{_rows(model)}"
        for model, title in TITLES.items()
    )


def _rows(model: type[BaseModel]) -> str:
    rows = []
    for name, field in model.model_fields.items():
        words = field.description or WORDS[model][name]
        rows.append(f"| `{name}` | {_type(field)} | {_default(model, name)} | {words} |")
    return "\n".join(rows)


def _type(field: FieldInfo) -> str:
    """The annotation in plain words, with its bounds; raises KeyError for a type that has none yet."""
    kind: Any = field.annotation
    if get_origin(kind) is Literal:
        text = " or ".join(get_args(kind))
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        text = "mapping"
    else:
        text = TYPES[kind]
    return ", ".join([text, *_bounds(field)])


def _bounds(field: FieldInfo) -> Iterator[str]:
    for item in field.metadata:
        for kind, sign in SIGNS.items():
            if isinstance(item, kind):
                value = getattr(item, kind.__name__.lower())
                yield f"{sign} {value}"
        if isinstance(item, MinLen):
            yield f"length ≥ {item.min_length}"


def _default(model: type[BaseModel], name: str) -> str:
    """The value that `twinpool serve` starts from, per pool and engine where it differs."""
    found: dict[str, list[str]] = {}
    for engine in ("vllm", "simulated"):
        for where, holder in _holders(default_settings(engine), model):
            value = getattr(holder, name)
            if isinstance(value, BaseModel):
                return "-"
            found.setdefault(_show(value), []).append(f"{engine} {where}".strip())
    if len(found) == 1:
        return next(iter(found))
    if name == "kind":
        return f"`{default_settings().plain.engine.kind}`"
    return "; ".join(f"{value} ({_who(places)})" for value, places in found.items())


def _who(places: list[str]) -> str:
    """What a set of places has in common: an engine, or a pool."""
    for place in range(2):
        parts = {item.split()[place] for item in places}
        if len(parts) == 1:
            return parts.pop()
    return ", ".join(places)


def _holders(settings: ServiceSettings, model: type[BaseModel]) -> Iterator[tuple[str, Any]]:
    if model is ServiceSettings:
        yield "", settings
    elif model is IngressSettings:
        yield "", IngressSettings()
    else:
        for role in Role:
            pool = settings.pool(role)
            yield (
                role.value,
                {
                    PoolSettings: pool,
                    EngineSettings: pool.engine,
                    SimulationSettings: pool.engine.simulation,
                }[model],
            )


def _show(value: Any) -> str:
    return f"`{json.dumps(value)}`" if not isinstance(value, str) else f"`{value}`"


def page(old: str) -> str:
    """The page with its tables written anew."""
    before, _, rest = old.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
