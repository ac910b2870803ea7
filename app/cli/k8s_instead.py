"""What to name instead of a file that is a source of an overlay."""

from __future__ import annotations

from pathlib import Path

from app.k8s.documents import Document
from app.k8s.named_files import NAMES

POLICY, TIMINGS = "CapacityPolicy", "Timings"
SETTINGS = Path("settings", "policy.yaml")


def instead(file: Path, documents: list[Document]) -> str:
    """What to lint instead of a source; empty for a file of objects."""
    kinds = {document.kind for document in documents}
    if POLICY in kinds:
        return (
            f"`twinpool policy validate {file}` checks it alone, and the lint of {_overlay(file)} the whole"
        )
    is_serve = any("applications" in document.data and not document.kind for document in documents)
    if file.name in NAMES or is_serve or TIMINGS in kinds:
        return f"lint the folder {_overlay(file)}"
    return ""


def policy_instead(path: Path) -> str:
    """The policy below a folder that is an overlay; empty where there is none."""
    return f"name {path / SETTINGS}" if path.is_dir() and (path / SETTINGS).is_file() else ""


def _overlay(file: Path) -> Path:
    """The outermost folder around a file that is a kustomization, without a gap."""
    folder = file.parent
    while any((folder.parent / name).is_file() for name in NAMES):
        folder = folder.parent
    return folder
