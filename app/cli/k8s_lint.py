"""`twinpool k8s lint`: overlays and rendered files against every rule, without a cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from app.cli.k8s_instead import instead
from app.cli.k8s_lint_output import FORMS, Checked, as_github, as_json, as_text
from app.cli.k8s_render import OVERLAYS, CannotRender, folder_of, rendered
from app.cli.output import OK, choose, fail, print_json
from app.k8s.definitions import CannotCheck
from app.k8s.documents import Document, Unreadable, read
from app.k8s.lint import Finding, Report
from app.k8s.lint import lint as lint_objects
from app.k8s.named_files import Broken
from app.k8s.rules import Rule
from app.k8s.schemas import Schemas
from app.k8s.sources import Tree, tree
from app.k8s.timings_file import of_timings_file


def lint(
    targets: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[OVERLAY|FILE]...",
            help="Kustomize folders, their names below k8s/overlays, rendered files, or - for standard "
            "input; every overlay without any.",
        ),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", "-o", help="text, json, or github (annotations of a review).")
    ] = "text",
    crds: Annotated[
        Path | None,
        typer.Option(
            help="Folder with KubeRay's CustomResourceDefinitions, to check Ray's objects by them too."
        ),
    ] = None,
) -> None:
    """Check manifests by every rule and show each finding with its file and field; no cluster is needed.

    The rules and their reasons are listed in docs/manifest-rules.md.
    Exit codes: 0 nothing was found, 1 a finding or an overlay that kustomize refuses, 2 something cannot be
    read or checked.
    """
    choose(form, as_json=False, words=FORMS)
    try:
        schemas = Schemas.load(None if crds is None else crd_texts(crds))
        checked = [_checked(target, schemas) for target in targets or _overlays()]
    except CannotCheck as error:
        fail(str(error), error.mend)
    if form == "json":
        print_json([as_json(item) for item in checked])
    else:
        for item in checked:
            print("\n".join(as_github(item) if form == "github" else as_text(item)))
    raise typer.Exit(max((item.code for item in checked), default=OK))


def crd_texts(folder: Path) -> dict[str, str]:
    """The texts of the files with definitions in a folder, by their names; raises CannotCheck."""
    found = {}
    for path in sorted(folder.glob("*.yaml")):
        if path.is_dir():
            continue
        try:
            found[str(path)] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            words = getattr(error, "strerror", None) or error
            raise CannotCheck(f"--crds {path}: {words}", "take it out, or write it in UTF-8") from error
    if not found:
        raise CannotCheck(f"--crds {folder}: no *.yaml there", "name the folder with ray.io_rayservices.yaml")
    return found


def _overlays() -> list[Path]:
    found = sorted(path.parent for path in OVERLAYS.glob("*/kustomization.yaml"))
    if not found:
        fail(f"there is no overlay below {OVERLAYS}", "name an overlay, or run this where k8s/ lies")
    return found


def _checked(target: Path, schemas: Schemas) -> Checked:
    """Render, read and check one target."""
    name = str(target)
    try:
        if name == "-":
            # Without a standard input there is nothing to read.
            return _judged(name, read("" if sys.stdin is None else sys.stdin.read(), name), None, schemas)
        if target.is_file():
            documents = read(target.read_text(encoding="utf-8"), name)
            mend = instead(target, documents)
            if mend:
                return Checked(name, None, f"{name}: this is a source of an overlay, no render", mend)
            return _judged(name, documents, None, schemas)
        folder = folder_of(target)
        found = tree(folder, _read, _names)
        # What kustomize refuses to render may have its reason in the sources, which are judged then alone.
        documents = [] if found.broken else _rendered(folder, found)
        return _judged(str(folder), documents, found, schemas)
    except Unreadable as error:
        finding = Finding(name, error.line, "", Rule.YAML, error.message)
        return Checked(name, Report((finding,), (), 0))
    except CannotRender as error:
        return Checked(name, None, str(error), error.mend, error.whole)
    except (OSError, UnicodeDecodeError) as error:
        return Checked(
            name, None, f"{name}: {getattr(error, 'strerror', None) or error}", "name a file of YAML"
        )


def _rendered(folder: Path, found: Tree) -> list[Document]:
    """The objects of an overlay; none where remote parts, or times that kustomize cannot copy, are why."""
    try:
        return read(rendered(folder), str(folder))
    except CannotRender as error:
        if not error.whole or not (found.remote or any(of_timings_file(found))):
            raise
        for item in found.remote:
            words = f"{item.entry} is remote, and the render fails: {error}: keep a copy beside the overlay"
            found.broken.append(Broken(item.file, item.line, words, item.path))
        return []


def _judged(name: str, documents: list[Document], found: Tree | None, schemas: Schemas) -> Checked:
    """By every rule; nothing at all is not good: a command in front of a pipe may have failed."""
    if not documents and not (found is not None and (found.broken or any(of_timings_file(found)))):
        mend = "see whether what should have written them has failed, and name what holds them"
        return Checked(name, None, f"{name}: there are no objects", mend)
    return Checked(name, lint_objects(documents, found, schemas, name))


def _read(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _names(folder: Path) -> list[str] | None:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return None
