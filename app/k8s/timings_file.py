"""Rules about settings/timings.yaml itself: kustomize copies its fields and never says which is amiss."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from app.k8s.documents import Document, at, line_of, mapping, meant
from app.k8s.rules import Rule
from app.k8s.source_rules import Located
from app.k8s.sources import Tree
from autoscaling.policy_problem import Path

API_VERSION = "twinpool.dev/v1alpha1"
KIND = "Timings"
NAME = "timings"
FIELDS = (
    "longestGenerationSeconds",
    "moveDelaySeconds",
    "haproxyHardStopSeconds",
    "rayDrainSeconds",
    "podGraceSeconds",
    "clusterDeletionDelaySeconds",
)
_TOP = ("apiVersion", "kind", "metadata", "spec")


def of_timings_file(found: Tree) -> Iterator[Located]:
    """All findings about the objects that are meant to be an overlay's times."""
    for document in found.objects:
        if _meant(document):
            for path, words in _complaints(document):
                yield Located(Rule.TIMINGS_FILE, document.file, line_of(document.lines, path), path, words)


def _meant(document: Document) -> bool:
    version = str(document.data.get("apiVersion") or "")
    ours = version.startswith("twinpool.dev/") and document.kind != "CapacityPolicy"
    return ours or document.kind == KIND or PurePosixPath(document.file).name == "timings.yaml"


def _complaints(document: Document) -> Iterator[tuple[Path, str]]:
    expected: list[tuple[tuple[str, ...], str]] = [
        (("apiVersion",), API_VERSION),
        (("kind",), KIND),
        (("metadata", "name"), NAME),
    ]
    for path, value in expected:
        said = at(document.data, *path)
        if said != value:
            yield path, f"is {said!r}: {value} is meant? components/wiring and this lint know no other"
    for key in document.data:
        if key not in _TOP:
            yield (str(key),), f"there is no such field{meant(str(key), _TOP)}"
    spec = mapping(document.data.get("spec"))
    unknown = [str(key) for key in spec if key not in FIELDS]
    absent = [field for field in FIELDS if field not in spec]
    for key in unknown:
        yield ("spec", key), f"there is no such field{meant(key, absent or FIELDS)}"
    suggested = " ".join(meant(key, absent) for key in unknown)
    for field in absent:
        if field not in suggested:
            yield ("spec", field), "is missing: components/wiring copies it into the RayService"
