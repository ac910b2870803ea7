"""All rules over the objects of one render, with each finding at its source file where that can be told."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from app.k8s.cluster_rules import of_cluster
from app.k8s.documents import Document, Found, Unreadable, at, line_of, value_and_lines
from app.k8s.environment import of_switches, of_variables
from app.k8s.fleet import SERVE, Fleet, fleets
from app.k8s.model_rules import length_note, of_model
from app.k8s.mounts import of_mounts, ray_config_maps
from app.k8s.named_files import NAMES
from app.k8s.origins import file_of_text, origin
from app.k8s.placeholders import placeholders
from app.k8s.pod_rules import of_images, of_pods, of_ray_pods, of_ray_version, of_tokens
from app.k8s.policy_rules import of_policy
from app.k8s.port_rules import of_ports
from app.k8s.references import of_references
from app.k8s.rights import of_rights
from app.k8s.rules import Rule
from app.k8s.schemas import Schemas
from app.k8s.serve_options import of_serve_options
from app.k8s.serve_rules import of_serve
from app.k8s.size_rules import of_limits, of_sizes
from app.k8s.source_rules import Located, generated, of_sources, secret_data, secrets
from app.k8s.sources import Tree
from app.k8s.state_rules import of_state
from app.k8s.timing_rules import of_timings
from app.k8s.timings_file import of_timings_file
from app.k8s.wiring_rules import of_late_groups, of_no_wiring, of_order, unwired
from autoscaling.policy_problem import Path, field_name

NO_SERVICE = "there is no RayService: only single objects were checked"
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
    located = [] if tree is None else [*of_sources(tree, ray_config_maps(kept)), *of_timings_file(tree)]
    order = [] if tree is None else list(of_order(tree))
    located += order
    for fleet in services:
        if unwired(fleet):
            wiring = [of_no_wiring(fleet, tree)]
        else:
            wiring = list(of_late_groups(fleet, tree))
            # Times that the wiring did not reach are as they stand in the base, and say nothing.
            hidden = {Rule.TIMINGS} if wiring or order else set()
            found += [one for one in _fleet(fleet, kept, schemas) if one.rule not in hidden]
        if not order:
            found += [one for one in wiring if isinstance(one, Found)]
            located += [one for one in wiring if isinstance(one, Located)]
    found += of_references(kept) if services else ()
    if tree is None:
        located += [item for document in kept for item in secret_data(document)]
    else:
        found += [item for document in kept if not generated(tree, document) for item in secrets(document)]
    placed = {_finding(item, tree, name) for item in found}
    if tree is not None:
        placed = {_mended_in(item, name) for item in placed}
    findings = placed | set(map(_of_source, located))
    if tree is not None and tree.broken:
        notes = ["nothing was rendered: only the sources were checked, mend this first"]
    elif not services:
        notes = [NO_SERVICE]
    else:
        notes = placeholders(kept, tree) + [note for fleet in services for note in length_note(fleet)]
    for item in () if tree is None else tree.remote:
        notes.append(
            f"{item.file}:{item.line}: {item.entry} is remote: its files are not looked into, only what they "
            "render to"
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
        yield from of_rights(document)
        yield from of_limits(document)
        yield from of_variables(document)
        yield from of_ray_pods(document)


def _fleet(fleet: Fleet, documents: list[Document], schemas: Schemas) -> Iterable[Found]:
    yield from of_cluster(fleet, documents)
    yield from of_sizes(fleet)
    yield from of_serve(fleet)
    yield from of_serve_options(fleet, documents)
    yield from of_switches(fleet)
    yield from of_policy(fleet, documents)
    yield from of_timings(fleet, documents)
    yield from of_ports(fleet, documents)
    yield from of_mounts(fleet, documents)
    yield from of_state(fleet, documents)
    yield from of_model(fleet, documents)
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


def _mended_in(item: Finding, overlay: str) -> Finding:
    """With the place to mend a thing whose file is shared: the overlay."""
    if item.file == overlay or item.file.startswith(f"{os.path.normpath(overlay)}/"):
        return item
    how = "set it under `images`" if item.rule is Rule.IMAGE_DIGEST else "patch it"
    words = f"{how} in {overlay}/{NAMES[0]}, this file is shared by all overlays"
    return replace(item, message=f"{item.message} ({words})")


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
