"""A policy file's text to a `CapacityPolicy`, or to everything that is wrong with it, each in its place."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from autoscaling.policy import CapacityPolicy
from autoscaling.policy_checks import contradictions
from autoscaling.policy_problem import MOST_PROBLEMS, Finding, Path, Positions, Problem
from autoscaling.policy_readable import Readable, all_of, what_reads
from autoscaling.policy_warnings import doubts
from autoscaling.policy_words import finding
from autoscaling.policy_yaml import Document, read_yaml

__all__ = ["PolicyRead", "Problem", "read_policy"]


@dataclass(frozen=True, slots=True)
class PolicyRead:
    """What a text says.  `policy` is there exactly when `problems` is empty."""

    policy: CapacityPolicy | None
    problems: tuple[Problem, ...]  # by line
    warnings: tuple[Problem, ...]  # by line; none of them refuses the file
    sha: str  # SHA-256 of the text as UTF-8, hex
    positions: Positions  # of every field that the file gives


def read_policy(text: str, wall: float | None = None) -> PolicyRead:
    """Read and check a whole file; never raises.

    `wall` is the present as Unix seconds: with it, an expired override is a warning and not a limit.
    """
    sha = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    document = read_yaml(text)
    problems = list(document.problems)
    policy: CapacityPolicy | None = None
    warnings: tuple[Problem, ...] = ()
    if document.whole:
        policy, findings, parts = _validated(document)
        findings += contradictions(parts, wall)
        problems += [found.at(document.positions) for found in findings]
    if policy is not None and not problems:
        warnings = tuple(sorted(found.at(document.positions) for found in doubts(policy, wall)))
    return PolicyRead(
        policy=None if problems else policy,
        problems=tuple(sorted(set(problems))[:MOST_PROBLEMS]),
        warnings=warnings,
        sha=sha,
        positions=document.positions,
    )


def _validated(document: Document) -> tuple[CapacityPolicy | None, list[Finding], Readable]:
    """The policy when the models take it, else their complaints and the parts that read well."""
    data = document.data
    if not isinstance(data, dict):
        kind = "a list" if isinstance(data, list) else "a single value"
        message = f"the file is {kind}; it must be a mapping with apiVersion, kind, metadata and spec"
        return None, [] if document.problems else [Finding("", message)], Readable()
    try:
        policy = CapacityPolicy.model_validate_json(json.dumps(data))
    except ValidationError as error:
        return None, list(_findings(error, document.broken)), what_reads(data)
    return policy, [], all_of(policy)


def _findings(error: ValidationError, broken: set[Path]) -> Iterator[Finding]:
    """The models' complaints, but for those about a place that is refused already."""
    for details in error.errors(include_url=False)[:MOST_PROBLEMS]:
        path = details["loc"]
        if any(path[:length] in broken for length in range(len(path) + 1)):
            continue
        found = finding(details)
        if found is not None:
            yield found
