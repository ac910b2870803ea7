"""The manifests of this repository, copied to be spoilt, and what the lint says of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from app.cli.k8s_lint import crd_texts
from app.cli.k8s_render import rendered
from app.k8s.documents import Document, read
from app.k8s.lint import Finding, Report, lint
from app.k8s.schemas import Schemas
from app.k8s.sources import tree

ROOT = Path(__file__).parents[3]
K8S = ROOT / "k8s"
OVERLAYS = sorted(path.parent.name for path in (K8S / "overlays").glob("*/kustomization.yaml"))
# Not part of this repository: the CustomResourceDefinitions of KubeRay 1.7.0.
CRDS = ROOT.parent / "shared" / "data" / "kuberay"
needs_kubectl = pytest.mark.skipif(
    shutil.which("kubectl") is None and shutil.which("kustomize") is None,
    reason="there is neither kubectl nor kustomize here: nothing can be rendered",
)


class Copy:
    """A copy of k8s/ that a test may change."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "k8s"
        shutil.copytree(K8S, self.root)

    def edit(self, file: str, old: str, new: str) -> None:
        """Replace one text in one file; it must stand there."""
        path = self.root / file
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{file} has no {old!r}"
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def write(self, file: str, text: str) -> None:
        """Make a file."""
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def render(self, overlay: str) -> str:
        """What kustomize makes of an overlay."""
        return rendered(self.root / "overlays" / overlay)

    def report(self, overlay: str, schemas: Schemas | None = None) -> Report:
        """The lint of an overlay."""
        folder = self.root / "overlays" / overlay
        found = tree(folder, read_file)
        documents = read(rendered(folder), str(folder))
        return lint(documents, found, schemas or plain_schemas(), str(folder))

    def findings(self, overlay: str) -> list[Finding]:
        """Its findings, with files relative to the copy."""
        return [relative(finding, self.root) for finding in self.report(overlay).findings]


def relative(finding: Finding, root: Path) -> Finding:
    file = finding.file.removeprefix(f"{root}/")
    return Finding(file, finding.line, finding.field, finding.rule, finding.message)


def read_file(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.is_file() else None


@cache
def plain_schemas() -> Schemas:
    """Without definitions of KubeRay, as in a checkout of this repository alone."""
    return Schemas.load(None)


@cache
def crd_schemas() -> Schemas:
    """With them; skips, and says so, where they are not there."""
    if not CRDS.is_dir():
        pytest.skip("the CustomResourceDefinitions of KubeRay are not here: only our own lists are tried")
    return Schemas.load(crd_texts(CRDS))


def objects(text: str) -> dict[str, Document]:
    """Rendered objects by Kind/name."""
    return {document.label: document for document in read(text, "rendered")}


Edit = Callable[[Copy], None]
