"""One edit of the policy in a cluster: the new text, what it is compared with, what stands against it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from app.cli.config_map import ConfigMap
from app.cli.policy_running import Running, refusals
from autoscaling.policy import CapacityPolicy
from autoscaling.policy_diff import Difference, differences, render
from autoscaling.policy_file import PolicyRead, Problem, read_policy


@dataclass(frozen=True, slots=True)
class Candidate:
    """A valid policy that is to be applied."""

    file: str
    text: str
    read: PolicyRead
    policy: CapacityPolicy

    @property
    def sha(self) -> str:
        """By which the controller names it."""
        return self.read.sha


@dataclass(frozen=True, slots=True)
class Edit:
    """A candidate beside what the cluster has; `beside` is None where the service does not answer."""

    new: Candidate
    held: ConfigMap
    key: str
    beside: Running | None
    silent: str  # why the service does not answer

    @property
    def is_there(self) -> bool:
        """Whether the ConfigMap has this very text already."""
        return self.held.data.get(self.key) == self.new.text

    @property
    def is_active(self) -> bool:
        """Whether the controller runs this very text already."""
        return self.beside is not None and self.beside.sha == self.new.sha

    @property
    def where(self) -> str:
        """The place that is written to."""
        return f"{self.held}, entry {self.key}"

    def changes(self) -> tuple[Difference, ...] | None:
        """From the active revision, else from the ConfigMap; None where neither has a valid policy."""
        old = self._active()
        if old is None:
            old = read_policy(self.held.data.get(self.key, "")).policy
        return None if old is None else differences(old, self.new.policy)

    def refusals(self, wall: float) -> tuple[Problem, ...]:
        """What the controller would refuse, as far as it can be told from here."""
        if self.beside is None:
            return ()
        return refusals(self.new.read, self.beside, wall)

    def notes(self) -> list[str]:
        """What whoever applies it should know, each on one line."""
        found = []
        if self.beside is None:
            found.append(f"the service does not say what it runs: {self.silent}")
        if not self.is_there and self._is_unseen():
            found.append("the ConfigMap holds another text than the controller runs: it is replaced")
        return found

    def words(self) -> str:
        """The comparison for people, several lines."""
        changes = self.changes()
        if changes is None:
            return f"{self.new.file}: there is no valid policy to compare it with\n"
        other = str(self.held)
        if self._active() is not None and self.beside is not None:
            other = f"revision {self.beside.revision}, which the controller runs"
        return f"{self.new.file} compared with {other}:\n{render(changes)}"

    def document(self) -> dict[str, Any]:
        """The comparison for programs."""
        changes = self.changes()
        other = "config_map" if self._active() is None else "active_revision"
        return {
            "file": self.new.file,
            "sha": self.new.sha,
            "namespace": self.held.namespace,
            "config_map": self.held.name,
            "key": self.key,
            "compared_with": None if changes is None else other,
            "active_revision": None if self.beside is None else self.beside.revision,
            "differences": None if changes is None else [dataclasses.asdict(item) for item in changes],
        }

    def _active(self) -> CapacityPolicy | None:
        return None if self.beside is None else self.beside.policy

    def _is_unseen(self) -> bool:
        """Whether the ConfigMap's text is neither the active one nor unknown."""
        text = self.held.data.get(self.key)
        if text is None or self.beside is None or self.beside.sha is None:
            return False
        return read_policy(text).sha != self.beside.sha


def unread(file: str, namespace: str, name: str, key: str | None) -> dict[str, Any]:
    """What there is for programs before the file and the ConfigMap are read; `Edit.document` has the rest."""
    return {
        "file": file,
        "sha": None,
        "namespace": namespace,
        "config_map": name,
        "key": key,
        "compared_with": None,
        "active_revision": None,
        "differences": None,
    }
