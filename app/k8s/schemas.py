"""Schemas of kinds: Kubernetes' own by kubernetes-validate, Ray's by our lists and, when given, its CRDs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from pydantic import ValidationError

from app.k8s import other_kinds, ray_kinds
from app.k8s.api_groups import group_of, is_built_in, mistyped_group, mistyped_kind
from app.k8s.crd import Key
from app.k8s.definitions import CannotCheck, validators
from app.k8s.documents import Document, Found, meant
from app.k8s.pods import clusters, groups
from app.k8s.rules import Rule
from autoscaling.policy_problem import Path

KUBERNETES = "1.33"  # the oldest that has every field used here; newer ones have them too
KINDS = ray_kinds.KINDS | other_kinds.KINDS
# Both become part of a file's name.
_VERSION = re.compile(r"[a-z][a-z0-9.-]*(/[a-z][a-z0-9]*)?")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")
_RAYS = {(group_of(version), kind) for version, kind in ray_kinds.KINDS}
EXTRA = "pip install 'twinpool[k8s]'"
Complaint = tuple[Path, str]


@dataclass(frozen=True, slots=True)
class Schemas:
    """Judges the fields of objects; loaded once, since some are large."""

    validate: Any  # of kubernetes-validate
    missing_schema: type[Exception]
    invalid: type[Exception]
    package: str  # its version
    ray_version: str  # of the Ray that is installed here
    crds: Mapping[Key, Any] | None = None  # compiled validators of the given definitions

    @classmethod
    def load(cls, crd_texts: Mapping[str, str] | None) -> Schemas:
        """Load what is needed, with the texts of definitions by their files; raises CannotCheck."""
        try:
            import kubernetes_validate  # noqa: PLC0415
        except ImportError as error:
            raise CannotCheck(f"{error.name} is not installed", EXTRA) from error
        return cls(
            kubernetes_validate.validate,
            kubernetes_validate.SchemaNotFoundError,
            kubernetes_validate.ValidationError,
            metadata.version("kubernetes-validate"),
            metadata.version("ray"),
            None if crd_texts is None else validators(crd_texts),
        )

    def notes(self, documents: list[Document]) -> list[str]:
        """What was checked by what, and what was not."""
        core = f"kinds of Kubernetes by the {KUBERNETES} schemas of kubernetes-validate {self.package}"
        if self.crds is None:
            rest = "Ray's kinds by our field lists only: the schemas of KubeRay were not given (--crds)"
            return [f"{core}; {rest}", *self._unchecked(documents)]
        given, missing = self._rays()
        also = f"; Ray's kinds by our field lists, and by --crds for {', '.join(given) or 'none of them'}"
        if missing:
            found = ", ".join(sorted({kind for _, kind in self.crds})) or "no definition at all"
            also += f": --crds has {found}, and not {', '.join(missing)}"
        return [f"{core}{also}", *self._unchecked(documents)]

    def _rays(self) -> tuple[list[str], list[str]]:
        """Kinds of Ray's that --crds has, and those that it lacks."""
        kinds = sorted(kind for version, kind in KINDS if version == ray_kinds.RAY)
        given = [kind for kind in kinds if (ray_kinds.RAY, kind) in (self.crds or {})]
        return given, [kind for kind in kinds if kind not in given]

    def _unchecked(self, documents: list[Document]) -> list[str]:
        """The kinds of other groups that nothing here has a schema of."""
        kinds = {
            (str(item.data.get("apiVersion")), item.kind) for item in documents if self._is_foreign(item)
        }
        listed = ", ".join(f"{kind} ({version})" for version, kind in sorted(kinds))
        mend = "give a folder with their CustomResourceDefinitions (--crds)"
        return [f"not checked, since there is no schema here: {listed}: {mend}"] if kinds else []

    def _is_foreign(self, document: Document) -> bool:
        key = (str(document.data.get("apiVersion")), document.kind)
        return (
            _is_named(document)
            and not is_built_in(group_of(key[0]))
            and key not in {*KINDS, *(self.crds or {})}
        )

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
            yield from self._by_definition((str(version), kind), document)
            yield from self._templates(document)
            return
        if (group_of(str(version)), kind) in _RAYS:
            words = f"is {version}: the rules here are those of {ray_kinds.RAY}: write that"
            yield Found(Rule.KIND, document, ("apiVersion",), words)
        elif not _is_named(document):
            yield Found(Rule.KIND, document, (), "an object has apiVersion, kind and metadata.name as texts")
        elif is_built_in(group_of(str(version))):
            try:
                for path, message in self._core(document.data):
                    yield Found(Rule.CORE_SCHEMA, document, path, message)
            except self.missing_schema:
                words = f"Kubernetes {KUBERNETES} has no {kind} in {version}: see `kubectl api-resources`"
                yield Found(Rule.KIND, document, ("kind",), words)
        elif self._is_foreign(document):
            yield from self._mistyped(str(version), document)
        else:
            yield from self._by_definition((str(version), kind), document)

    def _by_definition(self, key: Key, document: Document) -> Iterator[Found]:
        if self.crds is not None and key in self.crds:
            for path, message in _errors(self.crds[key], document.data):
                yield Found(Rule.CRD_SCHEMA, document, path, message)

    def _mistyped(self, version: str, document: Document) -> Iterator[Found]:
        """An unknown kind of another group is no finding, unless a known one is meant."""
        group, kind = group_of(version), document.kind
        meant_kind, meant_group = mistyped_kind(group, kind), mistyped_group(group)
        if meant_kind is not None:
            yield Found(
                Rule.KIND, document, ("kind",), f"there is no {kind} in {group}: {meant_kind} is meant?"
            )
        elif meant_group is not None and self._has(version.replace(group, meant_group, 1), kind):
            words = f"there is no {kind} in {version}: the group {meant_group} is meant?"
            yield Found(Rule.KIND, document, ("apiVersion",), words)

    def _has(self, version: str, kind: str) -> bool:
        try:
            list(self._core({"apiVersion": version, "kind": kind}))
        except self.missing_schema:
            return (version, kind) in KINDS
        return True

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


def _is_named(document: Document) -> bool:
    """Whether an object says what it is, in words that can be part of a file's name."""
    version, kind = document.data.get("apiVersion"), document.data.get("kind")
    if not (isinstance(version, str) and isinstance(kind, str) and document.name):
        return False
    return bool(_VERSION.fullmatch(version) and _KIND.fullmatch(kind))


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
