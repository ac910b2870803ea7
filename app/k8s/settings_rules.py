"""The settings in the deployments' environments: one JSON text each, judged on its own lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from app.k8s.documents import Found, meant
from app.k8s.fleet import MODELS, SERVE, Deployed, Fleet
from app.k8s.inner_lines import line_inside, nearest, offsets
from app.k8s.rules import Rule
from app.k8s.serve_schema import models, plain
from autoscaling.policy_problem import Path, Problem, field_name

SHOWN = 24  # characters before the place where JSON ends to be JSON
_OTHERS_ENV = ("RAY_", "VLLM_", "HF_", "TOKENIZERS_", "OMP_", "CUDA_", "NCCL_")
_OURS_ENV = {"TWINPOOL_CACHE", "TWINPOOL_NODE_DIR"}
_INSTEAD = {"gpu_memory_utilization": "kv_cache_memory_bytes is used here, the bytes of a replica's KV cache"}
_WORDS = {
    "Expecting ',' delimiter": "a comma or a closing bracket is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Expecting property name enclosed in double quotes": "a key in double quotes has to follow",
    "Illegal trailing comma before end of object": "the comma is one too many",
    "Illegal trailing comma before end of array": "the comma is one too many",
    "Expecting value": "a value has to follow: a text in double quotes, a number, true, false or null",
    "Extra data": "it is at its end there, and more text follows",
}


def of_settings(fleet: Fleet, text: str) -> Iterator[Found]:
    """All findings in the settings of a Serve config, whose text gives the lines."""
    for deployed in fleet.deployments:
        if deployed.name in MODELS:
            yield from _variables(fleet, deployed)
            yield from _settings(fleet, deployed, text)


def _variables(fleet: Fleet, deployed: Deployed) -> Iterator[Found]:
    variable = MODELS[deployed.name][0]
    for name in deployed.env:
        if name not in {variable, *_OURS_ENV} and not str(name).startswith(_OTHERS_ENV):
            words = f"{deployed.name} does not read this variable"
            yield Found(Rule.SETTINGS, fleet.document, SERVE, words, (*deployed.env_path, name))


def _settings(fleet: Fleet, deployed: Deployed, text: str) -> Iterator[Found]:
    variable, model = MODELS[deployed.name]
    here = (*deployed.env_path, variable)
    said = deployed.env.get(variable)
    if not isinstance(said, str):
        words = f"{deployed.name} reads its settings from {variable}, as one JSON text"
        yield Found(Rule.SETTINGS, fleet.document, SERVE, words, here)
        return
    for offset, words in _complaints(deployed, model, said):
        problem = Problem(line_inside(text, here, said, offset), 1, field_name(here), words)
        yield Found(Rule.SETTINGS, fleet.document, SERVE, words, problem=problem)


def _complaints(deployed: Deployed, model: type[BaseModel], said: str) -> Iterator[tuple[int, str]]:
    """What is wrong with a JSON text, each with its offset there."""
    try:
        json.loads(said)
        places = offsets(said)
    except json.JSONDecodeError as error:
        before = said[: error.pos].rstrip()
        shown = before.rpartition("\n")[2].strip()[-SHOWN:]
        after = f" after {shown}" if shown else ""
        yield max(len(before) - 1, 0), f"this is no JSON{after}: {_WORDS.get(error.msg, error.msg)}"
        return
    except RecursionError:
        yield 0, "this JSON is nested too deeply"
        return
    try:
        settings = model.model_validate_json(said)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            field, words = field_name(details["loc"]), _told(details, model)
            yield nearest(places, details["loc"]), f"{field}: {words}" if field else words
        return
    for key in _repeated(said):
        yield said.rfind(f'"{key}"'), f"the key {key} stands twice, and the last one counts: keep one of them"
    role = getattr(settings, "role", None)
    if role is not None and role.value != deployed.name:
        yield nearest(places, ("role",)), f"role: is {role}, and the deployment is {deployed.name}"


def _repeated(text: str) -> list[str]:
    """Keys that stand twice in one mapping of a JSON text that is whole."""
    found: list[str] = []

    def kept(items: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in items]
        found.extend(sorted({name for name in names if names.count(name) > 1}))

    json.loads(text, object_pairs_hook=kept)
    return found


def _told(details: Mapping[str, Any], model: type[BaseModel]) -> str:
    """A complaint of a settings model in plain words."""
    match details["type"]:
        case "extra_forbidden":
            *above, key = details["loc"]
            near = f": {_INSTEAD[key]}" if key in _INSTEAD else meant(str(key), _known(model, tuple(above)))
            return f"unknown key {key}{near}"
        case "missing":
            return "is missing"
        case _:
            return plain(details["msg"]).replace("Input should be", "must be")


def _known(model: type[BaseModel], path: Path) -> list[str]:
    """The keys of the settings at a path."""
    for part in path:
        field = model.model_fields.get(str(part))
        inner = models(field.annotation) if field is not None else []
        if not inner:
            return []
        model = inner[0]
    return list(model.model_fields)
