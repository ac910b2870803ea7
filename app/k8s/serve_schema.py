"""`serveConfigV2` against Ray Serve's own models, strictly: Ray drops unknown keys without a word.

Imports Ray when it is called, and nothing that the config names: what a config says must not run here.
"""

from __future__ import annotations

import ast
import copy
import importlib.util
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path as File
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from app.k8s.documents import at, meant, pairs
from app.k8s.rules import Rule
from autoscaling.policy_problem import Path

# What these hold is free, or judged elsewhere.
_FREE = {"args", "user_config", "runtime_env", "policy_kwargs", "request_router_kwargs", "resources"}
OURS = ("app", "deployments", "autoscaling")
Complaint = tuple[Rule, Path, str]


def complaints(config: Any) -> Iterator[Complaint]:
    """Everything that Ray Serve would refuse, or drop."""
    from ray.serve.config import AutoscalingConfig  # noqa: PLC0415
    from ray.serve.schema import ServeDeploySchema  # noqa: PLC0415

    if not isinstance(config, dict):
        yield Rule.SERVE_SCHEMA, (), "it is no mapping with applications"
        return
    yield from _unknown(ServeDeploySchema, config, ())
    bare = copy.deepcopy(config)
    for path, deployment in _deployments(bare):
        autoscaling = deployment.pop("autoscaling_config", None)
        if isinstance(autoscaling, dict):
            own = {key: value for key, value in autoscaling.items() if key in AutoscalingConfig.model_fields}
            # A policy is imported by this model.
            own.pop("policy", None)
            if deployment.get("num_replicas") == "auto":
                deployment["num_replicas"] = 1
            for inner, message in _refusals(partial(AutoscalingConfig, **own)):
                yield Rule.AUTOSCALING_CONFIG, (*path, "autoscaling_config", *inner), message
    for inner, message in _refusals(partial(ServeDeploySchema.model_validate, bare)):
        yield Rule.SERVE_SCHEMA, inner, message


def _refusals(make: Callable[[], object]) -> list[tuple[Path, str]]:
    """What a model of Ray's says against its input; some of its validators fail before they can say it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            make()
        except ValidationError as error:
            return [(details["loc"], plain(details["msg"])) for details in error.errors(include_url=False)]
        except Exception as error:
            return [((), f"Ray Serve cannot read it ({type(error).__name__}: {error})")]
    return []


def plain(message: str) -> str:
    """A complaint of pydantic without its prefix."""
    return message.removeprefix("Value error, ")


def _deployments(config: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    for number, application in pairs(at(config, "applications")):
        for index, deployment in pairs(application.get("deployments")):
            if isinstance(deployment, dict):
                yield ("applications", number, "deployments", index), deployment


def _unknown(model: type[BaseModel], data: dict[str, Any], path: Path) -> Iterator[Complaint]:
    for key, value in data.items():
        here = (*path, key)
        field = model.model_fields.get(str(key))
        if field is None:
            rule = Rule.AUTOSCALING_CONFIG if "autoscaling_config" in path else Rule.SERVE_KEY
            words = f"Ray Serve has no such key and would drop it{meant(str(key), model.model_fields)}"
            yield rule, here, words
        elif key not in _FREE:
            yield from _deeper(models(field.annotation), value, here)


def _deeper(models: list[type[BaseModel]], value: Any, path: Path) -> Iterator[Complaint]:
    if not models:
        return
    if isinstance(value, dict):
        yield from _unknown(models[0], value, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict):
                yield from _unknown(models[0], item, (*path, index))
            else:
                yield Rule.SERVE_SCHEMA, (*path, index), "must be a mapping"


def models(annotation: Any) -> list[type[BaseModel]]:
    """The models that a field may hold, out of its optional, union and list parts."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (Union, types.UnionType, list):
        return [model for part in get_args(annotation) for model in models(part)]
    return []


def import_paths(config: Any) -> Iterator[tuple[Path, str]]:
    """Each `module:name` of a config, with its place."""
    for number, application in pairs(at(config, "applications")):
        path: Path = ("applications", number)
        places: list[Path] = [("import_path",), ("autoscaling_policy", "policy_function")]
        places += [
            ("deployments", index, "autoscaling_config", "policy", "policy_function")
            for index, _ in pairs(application.get("deployments"))
        ]
        for place in places:
            value = at(application, *place)
            if value is not None:
                yield (*path, *place), str(value)


def missing(import_path: str) -> str | None:
    """Why a `module:name` does not resolve in this version of twinpool; None when it does.

    By the text of the module, which is not run.
    """
    module, _, name = import_path.partition(":")
    if not name:
        module, _, name = import_path.rpartition(".")
    if module.partition(".")[0] not in OURS:
        return f"{module} is no module of twinpool: the image holds {', '.join(OURS)}"
    file = _file(module)
    if file is None:
        return f"twinpool has no module {module}"
    names = _names(ast.parse(file.read_text(encoding="utf-8")))
    if name in names:
        return None
    return f"{module} has no {name}{meant(name, names)}"


def _file(module: str) -> File | None:
    head, *rest = module.split(".")
    spec = sys.modules[head].__spec__ if head in sys.modules else importlib.util.find_spec(head)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = File(folder, *rest)
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return file
    return None


def _names(tree: ast.Module) -> set[str]:
    names = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Import() | ast.ImportFrom():
                names.update((alias.asname or alias.name) for alias in node.names)
            case ast.Assign():
                names.update(target.id for target in node.targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case _:
                pass
    return names
