"""Schemas of kinds: Kubernetes' own by kubernetes-validate, Ray's by our lists and, when given, its CRDs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

from pydantic import ValidationError

from app.k8s import other_kinds, ray_kinds
from app.k8s.crd import schema_of
from app.k8s.documents import Document, Found, Unreadable, meant, read_any
from app.k8s.pods import clusters, groups
from app.k8s.rules import Rule
from autoscaling.policy_problem import Path

KUBERNETES = "1.33"  # the oldest that has every field used here; newer ones have them too
KINDS = ray_kinds.KINDS | other_kinds.KINDS
# Both become part of a file's name.
_VERSION = re.compile(r"[a-z][a-z0-9.-]*(/[a-z][a-z0-9]*)?")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")
EXTRA = "pip install 'twinpool[k8s]'"
Complaint = tuple[Path, str]


class CannotCheck(Exception):  # noqa: N818  # an outcome for the user
    """What checking needs is not there; `mend` says what to do."""

    def __init__(self, message: str, mend: str) -> None:
        super().__init__(message)
        self.mend = mend


@dataclass(frozen=True, slots=True)
class Schemas:
    """Judges the fields of objects; loaded once, since some are large."""

    validate: Any  # of kubernetes-validate
    missing_schema: type[Exception]
    invalid: type[Exception]
    package: str  # its version
    ray_version: str  # of the Ray that is installed here
    crds: Mapping[str, Any] = field(default_factory=dict)  # kind -> a compiled validator

    @classmethod
    def load(cls, crd_texts: list[str] | None) -> Schemas:
        """Load what is needed; raises CannotCheck."""
        try:
            import jsonschema  # noqa: PLC0415
            import kubernetes_validate  # noqa: PLC0415
        except ImportError as error:
            raise CannotCheck(f"{error.name} is not installed", EXTRA) from error
        crds = {}
        for text in crd_texts or ():
            try:
                kind, schema = schema_of(read_any(text))
            except Unreadable as error:
                raise CannotCheck(f"a definition is no YAML: {error}", "fetch it again") from error
            if kind:
                crds[kind] = jsonschema.Draft7Validator(schema)
        return cls(
            kubernetes_validate.validate,
            kubernetes_validate.SchemaNotFoundError,
            kubernetes_validate.ValidationError,
            metadata.version("kubernetes-validate"),
            metadata.version("ray"),
            crds,
        )

    def notes(self) -> list[str]:
        """What was checked by what, and what was not."""
        core = f"kinds of Kubernetes by the {KUBERNETES} schemas of kubernetes-validate {self.package}"
        if self.crds:
            return [f"{core}; Ray's kinds by {', '.join(sorted(self.crds))} of --crds and by our field lists"]
        return [
            f"{core}; Ray's kinds by our field lists only: the schemas of KubeRay were not given (--crds)"
        ]

    def of(self, document: Document) -> Iterator[Found]:
        """Findings about the fields of one object."""
        version, kind = document.data.get("apiVersion"), document.kind
        own = KINDS.get((str(version), kind))
        if own is not None:
            rule = Rule.RAY_FIELDS if version == ray_kinds.RAY else Rule.OTHER_FIELDS
            try:
                own.model_validate(document.data)
            except ValidationError as error:
                for details in error.errors(include_url=False):
                    yield Found(rule, document, details["loc"], _words(details))
            if kind in self.crds:
                for path, message in _errors(self.crds[kind], document.data):
                    yield Found(Rule.CRD_SCHEMA, document, path, message)
            yield from self._templates(document)
            return
        named = isinstance(document.data.get("kind"), str) and isinstance(version, str) and document.name
        if not (named and _VERSION.fullmatch(str(version)) and _KIND.fullmatch(kind)):
            yield Found(Rule.KIND, document, (), "an object has apiVersion, kind and metadata.name as texts")
            return
        try:
            yield from (
                Found(Rule.CORE_SCHEMA, document, path, message)
                for path, message in self._core(document.data)
            )
        except self.missing_schema:
            words = f"Kubernetes {KUBERNETES} has no {kind} in {version}, and no other schema here knows it"
            yield Found(Rule.KIND, document, ("kind",), words)

    def _templates(self, document: Document) -> Iterator[Found]:
        cluster = clusters(document)
        for group in groups(document, cluster) if cluster is not None else ():
            wrapped = {
                "apiVersion": "v1",
                "kind": "PodTemplate",
                "metadata": {"name": "template"},
                "template": group.data.get("template"),
            }
            for path, message in self._core(wrapped):
                yield Found(Rule.POD_SCHEMA, document, (*group.path, *path), message)

    def _core(self, data: Mapping[str, Any]) -> Iterator[Complaint]:
        """The first complaint of the strict schema; raises its error for an unknown kind."""
        try:
            self.validate(dict(data), KUBERNETES, strict=True)
        except self.invalid as error:
            yield from _complaints(error)


def _errors(validator: Any, data: Mapping[str, Any]) -> Iterator[Complaint]:
    for error in validator.iter_errors(_pruned(data)):
        yield from _complaints(error)


def _complaints(error: Any) -> Iterator[Complaint]:
    path: Path = tuple(error.absolute_path)
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = set(error.schema.get("properties", {}))
        for key in sorted(set(error.instance) - known):
            yield (*path, key), f"there is no such field{meant(key, known)}"
    else:
        yield path, str(error.message)


def _pruned(data: Any) -> Any:
    """Without nulls, which the API server takes out before it looks."""
    if isinstance(data, dict):
        return {key: _pruned(value) for key, value in data.items() if value is not None}
    if isinstance(data, list):
        return [_pruned(value) for value in data]
    return data


def _words(details: Any) -> str:
    match details["type"]:
        case "extra_forbidden":
            return "there is no such field"
        case "missing":
            return "is missing"
        case _:
            return str(details["msg"]).removeprefix("Value error, ").replace("Input should be", "must be")
