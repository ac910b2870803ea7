"""All rules over the objects of one render, with each finding at its source file where that can be told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from app.k8s.cluster_rules import of_cluster
from app.k8s.documents import Document, Found, Unreadable, at, line_of, value_and_lines
from app.k8s.fleet import SERVE, Fleet, fleets
from app.k8s.mounts import of_mounts, ray_config_maps
from app.k8s.origins import file_of_text, origin
from app.k8s.pod_rules import of_images, of_pods, of_ray_pods, of_ray_version, of_tokens, placeholders
from app.k8s.policy_rules import of_policy
from app.k8s.port_rules import of_ports
from app.k8s.rules import Rule
from app.k8s.schemas import Schemas
from app.k8s.serve_rules import of_serve
from app.k8s.source_rules import Located, generated, of_sources, secret_data, secrets
from app.k8s.sources import Tree
from app.k8s.timing_rules import of_timings
from autoscaling.policy_problem import Path, field_name

LOCAL = "config.kubernetes.io/local-config"


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing to mend; `line` is 0 where only the rendered object is known, which `field` then names."""

    file: str
    line: int
    field: str
    rule: Rule
    message: str


@dataclass(frozen=True, slots=True)
class Report:
    """What came of one overlay or file."""

    findings: tuple[Finding, ...]
    notes: tuple[str, ...]  # no findings: what was not checked, or is to be filled in
    objects: int


def lint(documents: list[Document], tree: Tree | None, schemas: Schemas, name: str) -> Report:
    """Every rule over the objects called `name`; `tree` is what they were rendered from."""
    # kustomize leaves out what is marked as local; `kubectl apply -f` sends it.
    kept = [document for document in documents if tree is None or not _local(document)]
    found = [*_objects(kept, schemas)]
    services = fleets(kept)
    for fleet in services:
        found += _fleet(fleet, kept, schemas)
    located = list(of_sources(tree, ray_config_maps(kept))) if tree is not None else []
    if tree is None:
        located += [item for document in kept for item in secret_data(document)]
    else:
        found += [item for document in kept if not generated(tree, document) for item in secrets(document)]
    findings = {_finding(item, tree, name) for item in found} | set(map(_of_source, located))
    if not services:
        notes = ["there is no RayService: only single objects were checked"]
    else:
        notes = placeholders(kept)
    for file, line, entry in () if tree is None else tree.remote:
        notes.append(
            f"{file}:{line}: {entry} is remote: its files are not looked into, only what they render to"
        )
    return Report(tuple(sorted(findings)), (*notes, *schemas.notes(kept)), len(kept))


def _local(document: Document) -> bool:
    return bool(at(document.data, "metadata", "annotations", LOCAL) == "true")


def _objects(documents: list[Document], schemas: Schemas) -> Iterator[Found]:
    seen: set[tuple[str, str, str, str]] = set()
    for document in documents:
        namespace = str(at(document.data, "metadata", "namespace") or "")
        key = (str(document.data.get("apiVersion")), document.kind, namespace, document.name)
        if key in seen:
            yield Found(
                Rule.DUPLICATE_OBJECT, document, ("metadata", "name"), f"{document.label} stands twice"
            )
        seen.add(key)
        yield from schemas.of(document)
        yield from of_pods(document)
        yield from of_ray_pods(document)


def _fleet(fleet: Fleet, documents: list[Document], schemas: Schemas) -> Iterable[Found]:
    yield from of_cluster(fleet, documents)
    yield from of_serve(fleet)
    yield from of_policy(fleet, documents)
    yield from of_timings(fleet, documents)
    yield from of_ports(fleet, documents)
    yield from of_mounts(fleet, documents)
    yield from of_images(fleet, documents)
    yield from of_ray_version(fleet, schemas.ray_version)
    yield from of_tokens(fleet)


def _of_source(item: Located) -> Finding:
    return Finding(item.file, item.line, field_name(item.path), item.rule, item.message)


def _finding(item: Found, tree: Tree | None, name: str) -> Finding:
    """The place of a finding: the text inside, else the patch or file that set the field, else the render."""
    document = item.document
    inside = item.inner or item.problem or item.path == SERVE
    text = at(document.data, *item.path) if inside else None
    file = file_of_text(tree, text) if tree is not None and isinstance(text, str) else None
    if item.problem is not None:
        where, line, field = file, item.problem.line, item.problem.field
        if file is None:
            where, line, outer = _outer(document, item.path, tree, name)
            field = f"{outer}: {field}" if field else outer
        assert where is not None
        return Finding(where, line, field, item.rule, item.message)
    if item.inner or (item.path == SERVE and file is not None):
        field = field_name(item.inner)
        if file is not None:
            return Finding(file, line_of(_lines(str(text)), item.inner), field, item.rule, item.message)
        where, line, outer = _outer(document, item.path, tree, name)
        return Finding(where, line, f"{outer}: {field}", item.rule, item.message)
    where, line, field = _outer(document, item.path, tree, name)
    return Finding(where, line, field, item.rule, item.message)


def _outer(document: Document, path: Path, tree: Tree | None, name: str) -> tuple[str, int, str]:
    field = field_name(path)
    if tree is None:
        return document.file, line_of(document.lines, path), f"{document.label}: {field}"
    found = origin(tree, document, path)
    if found is None:
        return name, 0, f"{document.label}: {field}"
    file, line, own = found
    return file, line, field_name(own)


def _lines(text: str) -> Mapping[Path, int]:
    try:
        return value_and_lines(text)[1]
    except Unreadable as error:
        return {(): error.line}
