"""`twinpool k8s lint`: overlays and rendered files against every rule, without a cluster."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli import problem_lines
from app.cli.k8s_instead import instead
from app.cli.k8s_render import OVERLAYS, CannotRender, folder_of, rendered
from app.cli.output import CANNOT_TELL, FINDING, OK, choose, fail, print_json, printable
from app.k8s.definitions import CannotCheck
from app.k8s.documents import Document, Unreadable, read
from app.k8s.lint import NO_SERVICE, Finding, Report
from app.k8s.lint import lint as lint_objects
from app.k8s.named_files import Broken
from app.k8s.rules import Rule
from app.k8s.schemas import Schemas
from app.k8s.sources import Tree, tree
from app.k8s.timings_file import of_timings_file
from autoscaling.policy_problem import Problem

FORMS = ("text", "json", "github")


@dataclass(frozen=True, slots=True)
class _Checked:
    """One overlay or file: its report, or why there is none."""

    name: str
    report: Report | None
    unreadable: str = ""
    mend: str = ""
    refused: str = ""  # by kustomize, in its own words

    @property
    def code(self) -> int:
        """Its part of the exit code."""
        if self.report is None:
            return FINDING if self.refused else CANNOT_TELL
        return FINDING if self.report.findings else OK


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
        print_json([_json(item) for item in checked])
    else:
        for item in checked:
            print("\n".join(_github(item) if form == "github" else _text(item)))
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


def _checked(target: Path, schemas: Schemas) -> _Checked:
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
                return _Checked(name, None, f"{name}: this is a source of an overlay, no render", mend)
            return _judged(name, documents, None, schemas)
        folder = folder_of(target)
        found = tree(folder, _read, _names)
        # What kustomize refuses to render may have its reason in the sources, which are judged then alone.
        documents = [] if found.broken else _rendered(folder, found)
        return _judged(str(folder), documents, found, schemas)
    except Unreadable as error:
        finding = Finding(name, error.line, "", Rule.YAML, error.message)
        return _Checked(name, Report((finding,), (), 0))
    except CannotRender as error:
        return _Checked(name, None, str(error), error.mend, error.whole)
    except (OSError, UnicodeDecodeError) as error:
        return _Checked(
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


def _judged(name: str, documents: list[Document], found: Tree | None, schemas: Schemas) -> _Checked:
    """By every rule; nothing at all is not good: a command in front of a pipe may have failed."""
    if not documents and not (found is not None and (found.broken or any(of_timings_file(found)))):
        mend = "see whether what should have written them has failed, and name what holds them"
        return _Checked(name, None, f"{name}: there are no objects", mend)
    return _Checked(name, lint_objects(documents, found, schemas, name))


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


def _text(item: _Checked) -> list[str]:
    report = item.report
    if report is None:
        lines = [printable(f"{item.unreadable}: {item.mend}")]
        return lines + ([printable(f"note: kustomize: {item.refused}")] if item.refused else [])
    lines = [_line(finding) for finding in report.findings]
    if not lines:
        lines.append(_ok(item.name, report))
    return lines + [
        printable(f"note: {note}") for note in report.notes if report.findings or note != NO_SERVICE
    ]


def _ok(name: str, report: Report) -> str:
    said = f"{printable(name)}: ok, {report.objects} objects"
    if NO_SERVICE in report.notes:
        return f"{said} and no RayService: most of the {len(Rule)} rules had nothing to check"
    return f"{said}, {len(Rule)} rules"


def _line(finding: Finding) -> str:
    place = f"{finding.file}:{finding.line}" if finding.line else finding.file
    field = f"{finding.field}: " if finding.field else ""
    return printable(f"{place}: {field}{finding.message} [{finding.rule}]")


def _github(item: _Checked) -> list[str]:
    report = item.report
    if report is None:
        return [problem_lines.file_annotation(item.name, f"{item.unreadable}: {item.mend}")]
    lines = []
    for finding in report.findings:
        words = f"{finding.message} [{finding.rule}]"
        problem = Problem(max(finding.line, 1), 1, finding.field, words)
        lines.append(problem_lines.annotation(finding.file, problem, "error"))
    return lines or [_ok(item.name, report)]


def _json(item: _Checked) -> dict[str, Any]:
    report = item.report
    found: dict[str, Any] = {
        "name": item.name,
        "ok": False if item.refused else None,
        "unreadable": item.unreadable or None,
        "findings": [],
        "notes": [],
    }
    if report is None:
        return found
    return found | {
        "ok": not report.findings,
        "findings": [
            {
                "file": finding.file,
                "line": finding.line or None,
                "field": finding.field,
                "rule": finding.rule.value,
                "message": finding.message,
            }
            for finding in report.findings
        ],
        "notes": list(report.notes),
    }
