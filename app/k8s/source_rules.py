"""Rules about the kustomize files themselves: what a render does not show any more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.k8s.documents import Document, Found, entries, line_of, mapping
from app.k8s.rules import Rule
from app.k8s.sources import Kustomization, Patch, Tree, groups_of, pointer_parts
from autoscaling.policy_problem import Path

_SECRETS = ("literals", "files", "envs", "env")


@dataclass(frozen=True, slots=True)
class Located:
    """A finding whose file and line are known."""

    rule: Rule
    file: str
    line: int
    path: Path
    message: str


def of_sources(found: Tree, mounted: set[str]) -> Iterator[Located]:
    """All findings in the files of an overlay; `mounted` are the ConfigMaps that Ray's pods mount."""
    for broken in found.broken:
        yield Located(Rule.YAML, broken.file, broken.line, broken.path, broken.message)
    for kustomization in found.kustomizations:
        yield from _hashes(kustomization, mounted)
        yield from _secret_generators(kustomization)
    for patch in found.patches:
        yield from _patch(patch)
    for document in found.objects:
        yield from secret_data(document)


def generated(found: Tree, document: Document) -> bool:
    """Whether a `secretGenerator` made this Secret: its own place is where that is found."""
    names = [
        str(mapping(generator).get("name"))
        for kustomization in found.kustomizations
        for generator in entries(kustomization.data.get("secretGenerator"))
    ]
    return any(document.name == name or document.name.startswith(f"{name}-") for name in names)


def _hashes(kustomization: Kustomization, mounted: set[str]) -> Iterator[Located]:
    general = mapping(kustomization.data.get("generatorOptions")).get("disableNameSuffixHash")
    for index, generator in enumerate(entries(kustomization.data.get("configMapGenerator"))):
        name = mapping(generator).get("name")
        own = mapping(mapping(generator).get("options")).get("disableNameSuffixHash")
        if name in mounted and not (general if own is None else own):
            path: Path = ("configMapGenerator", index, "options", "disableNameSuffixHash")
            yield Located(
                Rule.POLICY_HASH,
                kustomization.file,
                line_of(kustomization.lines, path),
                path,
                f"{name} gets a hash in its name, and Ray's pods mount it: set it to true here "
                "or in generatorOptions",
            )


def _secret_generators(kustomization: Kustomization) -> Iterator[Located]:
    for index, generator in enumerate(entries(kustomization.data.get("secretGenerator"))):
        for key in _SECRETS:
            if mapping(generator).get(key):
                path: Path = ("secretGenerator", index, key)
                yield Located(
                    Rule.SECRET_DATA,
                    kustomization.file,
                    line_of(kustomization.lines, path),
                    path,
                    "makes a Secret out of what is in Git: make it in the cluster, or by External Secrets",
                )


def secret_data(document: Document) -> Iterator[Located]:
    """A Secret with data among the objects of a file."""
    for item in secrets(document):
        line = line_of(document.lines, item.path)
        yield Located(item.rule, document.file, line, item.path, item.message)


def secrets(document: Document) -> Iterator[Found]:
    """A Secret with data, however it came there: a List and a patch are seen in the render only."""
    if document.kind != "Secret":
        return
    for key in ("data", "stringData"):
        if document.data.get(key):
            yield Found(
                Rule.SECRET_DATA,
                document,
                (key,),
                f"Secret {document.name} has data: make it in the cluster (`kubectl create secret`), "
                "or by External Secrets, and take the old value out of use",
            )


def _patch(patch: Patch) -> Iterator[Located]:
    if isinstance(patch.data, dict):
        yield from _merged(patch)
        return
    operations = [mapping(operation) for operation in entries(patch.data)]
    if not operations:
        return

    def finding(index: int, message: str) -> Located:
        path = (*patch.inside, index, "path") if not patch.inside else patch.inside
        return Located(Rule.PATCH_TEST, patch.file, line_of(patch.lines, (index,)), path, message)

    if operations[0].get("op") != "test":
        yield finding(0, "the patch begins without `op: test`: test first that it meets what it means")
    tested: set[int] = set()
    for index, group in groups_of(patch):
        operation = operations[index]
        if operation.get("op") == "test" and pointer_parts(str(operation.get("path")))[4:] == ("groupName",):
            tested.add(group)
        elif group not in tested:
            tested.add(group)
            yield finding(
                index,
                f"changes workerGroupSpecs/{group} without a test of its groupName before: "
                f"{{op: test, path: /spec/rayClusterConfig/workerGroupSpecs/{group}/groupName, value: NAME}}",
            )


def _merged(patch: Patch) -> Iterator[Located]:
    for path in _paths_to(patch.data, "workerGroupSpecs"):
        yield Located(
            Rule.PATCH_GROUPS,
            patch.file,
            line_of(patch.lines, path),
            (*patch.inside, *path),
            "this merge replaces the whole list of groups: write a JSON patch with `op: test` on groupName",
        )


def _paths_to(data: Mapping[str, Any], key: str, above: Path = ()) -> Iterator[Path]:
    for name, value in data.items():
        if name == key:
            yield (*above, name)
        elif isinstance(value, dict):
            yield from _paths_to(value, key, (*above, name))
