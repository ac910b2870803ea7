"""The document that a controller leaves for its successor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

STATE_SCHEMA = 1
AUDIT = "audit"  # the name of the records that are kept beside the state
MOVES_KEPT = 200
REVISIONS_KEPT = 200


class RevisionState(StrEnum):
    """What became of a revision of the policy.  A new word needs a new schema."""

    ACTIVE = "active"
    SHADOW = "shadow"
    REFUSED = "refused"
    SUPERSEDED = "superseded"


IN_FORCE = (RevisionState.ACTIVE, RevisionState.SHADOW)


@dataclass(frozen=True, slots=True)
class RevisionRecord:
    """One revision of the policy file, good or not."""

    revision: int
    sha: str
    state: RevisionState
    at: float  # wall
    message: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """The document.  A reader ignores fields that it does not know.

    Plain values inside: `msgspec.to_builtins` makes them, `msgspec.convert` takes them back.
    """

    schema: int = STATE_SCHEMA
    epoch: int = 0  # of the life that saved it; the store sets it
    saved_wall: float = 0.0  # Unix seconds
    saved_now: float = 0.0  # the same moment by the monotonic clock of that life
    memory: dict[str, Any] | None = None
    shadow_memory: dict[str, Any] | None = None
    holds: tuple[dict[str, Any], ...] = ()
    overrides: tuple[dict[str, Any], ...] = ()
    revisions: tuple[RevisionRecord, ...] = ()  # oldest first
    active_revision: int | None = None
    seen_revision: int | None = None
    move_log: tuple[dict[str, Any], ...] = ()  # oldest first
    audit_seq: int = 0  # the newest audit line that this document knows


def in_use(state: State) -> frozenset[int]:
    """The revisions that act or are evaluated, whose records and texts stay however old they are."""
    acting = frozenset(one.revision for one in state.revisions if one.state in IN_FORCE)
    return acting if state.active_revision is None else acting | {state.active_revision}


def newest_revisions(
    revisions: tuple[RevisionRecord, ...], kept: frozenset[int] = frozenset()
) -> tuple[RevisionRecord, ...]:
    """The newest 200, and those that are in force or `kept`."""
    old, new = revisions[:-REVISIONS_KEPT], revisions[-REVISIONS_KEPT:]
    return (*(one for one in old if one.state in IN_FORCE or one.revision in kept), *new)


def trimmed(state: State) -> State:
    """The state with its newest 200 moves and revisions, and the revisions in use."""
    return replace(
        state,
        revisions=newest_revisions(state.revisions, in_use(state)),
        move_log=state.move_log[-MOVES_KEPT:],
    )
