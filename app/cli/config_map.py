"""The ConfigMap that holds the policy: read it, find the policy in it, replace that text and nothing else."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.cli.kubectl import Kubectl, KubectlError, Why

FIELD_MANAGER = "twinpool-policy"  # whose the text is in `kubectl get --show-managed-fields`
MAX_BYTES = 1 << 20  # of all data of a ConfigMap, as the API server
# By these a GitOps tool marks what it keeps as its repository has it.
_KEEPERS = (
    ("annotations", "argocd.argoproj.io/tracking-id", "Argo CD"),
    ("labels", "argocd.argoproj.io/instance", "Argo CD"),
    ("labels", "kustomize.toolkit.fluxcd.io/name", "Flux"),
    ("labels", "helm.toolkit.fluxcd.io/name", "Flux"),
)
# By these Flux leaves an object alone once it is there.
_LET_GO = (
    ("kustomize.toolkit.fluxcd.io/reconcile", "disabled"),
    ("kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent"),
    ("kustomize.toolkit.fluxcd.io/ssa", "Ignore"),
)


class ConfigMapError(Exception):
    """The ConfigMap cannot be used as it is; `mend` says what to do."""

    def __init__(self, message: str, mend: str) -> None:
        super().__init__(message)
        self.mend = mend


class ChangedError(ConfigMapError):
    """Somebody else changed it since it was read: nothing was written."""


class UncertainError(ConfigMapError):
    """It may have been written, and may not."""

    def __init__(self, found: ConfigMap, key: str, why: str, *, interrupted: bool = False) -> None:
        super().__init__(
            f"{why}: {found} may have the new text, or not",
            f"`kubectl get configmap {found.name} --namespace {found.namespace} -o yaml` shows its entry "
            f"{key}, and `twinpool policy history` what becomes of it",
        )
        self.interrupted = interrupted


@dataclass(frozen=True, slots=True)
class ConfigMap:
    """One ConfigMap as it was read."""

    namespace: str
    name: str
    version: str  # resourceVersion: another one means that it was changed
    data: Mapping[str, str]
    keeper: str | None = None  # the GitOps tool that would take a change back
    immutable: bool = False

    def __str__(self) -> str:
        return f"ConfigMap {self.namespace}/{self.name}"


def read(kubectl: Kubectl, name: str, namespace: str) -> ConfigMap:
    """What the cluster has now; raises KubectlError, ConfigMapError."""
    try:
        found = kubectl.run("get", "configmap", name, f"--namespace={namespace}", "--output=json")
    except KubectlError as error:
        if error.why is not Why.NOT_FOUND:
            raise
        mend = "install the service first, or name another one with --namespace and --config-map"
        raise KubectlError(
            f"there is no ConfigMap {name} in the namespace {namespace}: {error}", error.why, mend
        ) from error
    try:
        return _parsed(json.loads(found))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigMapError(
            f"kubectl get configmap {name} answered no ConfigMap", "see what it prints with -o json"
        ) from error


def policy_key(found: ConfigMap, wanted: str | None) -> str:
    """The entry that is the policy: `wanted`, else the only *.yaml, as the controller takes it.

    Raises ConfigMapError where that is not one.
    """
    if wanted is not None:
        if wanted not in found.data:
            raise ConfigMapError(
                f"{found} has no entry {wanted}, only {_listed(found.data)}",
                "leave --key out, or name one of these",
            )
        return wanted
    names = sorted(key for key in found.data if key.endswith(".yaml") and not key.startswith("."))
    if len(names) != 1:
        raise ConfigMapError(
            f"{found} has {len(names)} entries *.yaml ({_listed(found.data)}), and the controller takes "
            "exactly one",
            "leave one in it, or name the policy's with --key",
        )
    return names[0]


def replace(kubectl: Kubectl, found: ConfigMap, key: str, text: str, *, dry_run: bool = False) -> None:
    """Put `text` under `key`; with `dry_run` the server only says whether it would take it.

    The version that was read travels along, so a change of somebody else in between is never undone.
    Raises ChangedError then, and nothing is written; UncertainError where the answer is lost and nothing can
    be read any more; KubectlError otherwise.  An answer that is lost after the write is no error: the text is
    there.
    """
    patch = {"metadata": {"resourceVersion": found.version}, "data": {key: text}}
    with tempfile.TemporaryDirectory(prefix="twinpool-") as folder:
        file = Path(folder) / "patch.json"  # a policy may be longer than an argument
        file.write_text(json.dumps(patch), encoding="utf-8")
        arguments = [
            "patch",
            "configmap",
            found.name,
            f"--namespace={found.namespace}",
            "--type=merge",
            f"--patch-file={file}",
            f"--field-manager={FIELD_MANAGER}",
        ]
        try:
            kubectl.run(*arguments, *(["--dry-run=server"] if dry_run else []))
        except KubectlError as error:
            _as_it_went(kubectl, found, (key, text), error, dry_run=dry_run)


def _as_it_went(
    kubectl: Kubectl, found: ConfigMap, entry: tuple[str, str], error: KubectlError, *, dry_run: bool
) -> None:
    """Return where the text is there all the same; raises ChangedError, UncertainError, or else `error`."""
    if error.why not in (Why.OTHER, Why.NO_ANSWER):
        raise error
    key, text = entry
    try:
        now = read(kubectl, found.name, found.namespace)
    except (KubectlError, ConfigMapError):
        if dry_run:
            raise error from None
        raise UncertainError(found, key, str(error)) from error
    if now.version == found.version:
        raise error
    if now.data.get(key) != text:
        raise ChangedError(
            f"{found} was changed by somebody else in the meantime, nothing was written",
            "run the command again: it compares with what is there now",
        ) from error


def _parsed(found: dict[str, Any]) -> ConfigMap:
    metadata = found["metadata"]
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    marks = {"annotations": annotations, "labels": labels}
    keeper = next((who for where, mark, who in _KEEPERS if mark in marks[where]), None)
    if any(annotations.get(mark) == value for mark, value in _LET_GO):
        keeper = None
    return ConfigMap(
        namespace=str(metadata["namespace"]),
        name=str(metadata["name"]),
        version=str(metadata["resourceVersion"]),
        data={str(key): str(value) for key, value in (found.get("data") or {}).items()},
        keeper=keeper,
        immutable=found.get("immutable") is True,
    )


def _listed(data: Mapping[str, str]) -> str:
    return ", ".join(sorted(data)[:5]) or "none"
