"""Rules about components/wiring, which puts an overlay's settings where they belong, and so comes last."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from app.k8s.documents import Found, at, entries, line_of
from app.k8s.fleet import SERVE, Fleet
from app.k8s.rules import Rule
from app.k8s.source_rules import Located
from app.k8s.sources import Kustomization, Tree
from app.k8s.timing_rules import DRAIN_ENV, LONGEST
from autoscaling.policy_problem import Path

UNWIRED = "set by components/wiring"  # what stands in the base where the wiring puts a value
WIRING = "wiring"


def component_names(kustomization: Kustomization) -> list[str]:
    """The last part of each component's path."""
    return [PurePosixPath(str(entry)).name for entry in entries(kustomization.data.get("components"))]


def of_order(found: Tree) -> Iterator[Located]:
    """Components that stand after the wiring: it does not see what they add."""
    for kustomization in found.kustomizations:
        names = component_names(kustomization)
        if WIRING not in names[:-1]:
            continue
        place = names.index(WIRING)
        path: Path = ("components", place)
        after = ", ".join(names[place + 1 :])
        words = (
            f"wiring must be the last component: settings/ does not reach what {after} adds after it; move "
            "this line to the end of the list"
        )
        yield Located(Rule.WIRING, kustomization.file, line_of(kustomization.lines, path), path, words)


def unwired(fleet: Fleet) -> bool:
    """Whether no wiring has met this RayService at all."""
    return UNWIRED in (at(fleet.document.data, *SERVE), fleet.annotation(LONGEST))


def of_no_wiring(fleet: Fleet, found: Tree | None) -> Found | Located:
    """The one finding for that; everything else would be a consequence."""
    words = (
        "settings/ reaches nothing without components/wiring: add it as the last of the overlay's components"
    )
    return _in_overlay(fleet, found, SERVE, words)


def of_late_groups(fleet: Fleet, found: Tree | None) -> Iterator[Found | Located]:
    """Groups that came after the wiring."""
    for group in fleet.workers:
        text, path = group.env(DRAIN_ENV)
        if text == UNWIRED:
            words = (
                f"group {group.name} came after components/wiring, so settings/timings.yaml does not reach "
                "it: make wiring the last of all components"
            )
            yield _in_overlay(fleet, found, path, words)


def _in_overlay(fleet: Fleet, found: Tree | None, path: Path, words: str) -> Found | Located:
    """At the list of components, where it is known; the wiring's own targets would lead to what it copies."""
    if found is None or not found.kustomizations:
        return Found(Rule.WIRING, fleet.document, path, words)
    overlay, place = found.kustomizations[-1], ("components",)
    return Located(Rule.WIRING, overlay.file, line_of(overlay.lines, place), place, words)
