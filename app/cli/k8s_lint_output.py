"""What `twinpool k8s lint` prints: for people, for programs, for a review."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.cli import problem_lines
from app.cli.output import CANNOT_TELL, FINDING, OK, printable
from app.k8s.lint import NO_SERVICE, Finding, Report
from app.k8s.rules import Rule
from autoscaling.policy_problem import Problem

FORMS = ("text", "json", "github")


@dataclass(frozen=True, slots=True)
class Checked:
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


def as_text(item: Checked) -> list[str]:
    """Lines for a person: findings or that all is well, then notes."""
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


def as_github(item: Checked) -> list[str]:
    """Annotations of a review, one for each finding."""
    report = item.report
    if report is None:
        return [problem_lines.file_annotation(item.name, f"{item.unreadable}: {item.mend}")]
    lines = []
    for finding in report.findings:
        words = f"{finding.message} [{finding.rule}]"
        problem = Problem(max(finding.line, 1), 1, finding.field, words)
        lines.append(problem_lines.annotation(finding.file, problem, "error"))
    return lines or [_ok(item.name, report)]


def as_json(item: Checked) -> dict[str, Any]:
    """One object for a program; `ok` is null where nothing could be checked."""
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
