"""A control world whose policy is a mounted folder, read by the service's own source."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from deployments.policy_source import PolicySource, Seen
from tests.deployments.control_world import World, controller_settings


@dataclass
class Mounted(World):
    """Like `World`, but the policy file is a real one."""

    source: PolicySource = field(default_factory=lambda: PolicySource(Path("/nowhere")))

    def start_anew(self, mount: Path) -> None:
        """A new life of the controller, which reads the mount anew."""
        self.source = PolicySource(mount)
        self.start()

    def _poll(self) -> Seen | None:
        return self.source.poll()


def mounted(state: Path, mount: Path, *, slots: int = 4) -> Mounted:
    """A world that is not started yet."""
    settings = controller_settings(state, slots=slots, policy=str(mount))
    return Mounted(settings, source=PolicySource(mount))
