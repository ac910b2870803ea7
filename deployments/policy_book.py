"""Revisions of the policy: which one acts, which is only evaluated, and why the newest was refused.

No IO: texts come in, what must be kept goes out as `PolicyEvent`.  A refused revision changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from autoscaling.decisions import Mode, Sizes
from autoscaling.policy import CapacityPolicy
from autoscaling.policy_file import PolicyRead, read_policy
from autoscaling.policy_in_force import in_force
from autoscaling.policy_problem import Problem
from autoscaling.policy_world import World, check_against
from deployments.kept_state import IN_FORCE, RevisionRecord, RevisionState, State, newest_revisions
from deployments.policy_source import Seen

TEXTS_KEPT = 20


@dataclass(frozen=True, slots=True)
class Revision:
    """A valid policy and its number."""

    number: int
    sha: str
    policy: CapacityPolicy
    at: float  # wall, when it was taken


@dataclass(frozen=True, slots=True)
class PolicyEvent:
    """What became of a text; to be recorded, and the text kept, before it acts."""

    record: RevisionRecord
    text: str | None
    problems: tuple[dict[str, Any], ...]


class PolicyBook:
    """The revisions of one service, oldest first."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.active: Revision | None = None
        self.shadow: Revision | None = None
        self.revisions: tuple[RevisionRecord, ...] = ()
        self.last_error: dict[str, Any] | None = None
        self.refused = 0  # since this life began
        self._problem_seen: str | None = None
        self._texts: dict[int, str] = {}  # of this life, for a service that keeps nothing

    @property
    def acting(self) -> Revision | None:
        """The revision whose words count: the active one, or the shadow where none was ever enforced."""
        return self.active or self.shadow

    @property
    def seen_revision(self) -> int | None:
        """The newest revision, good or not."""
        return self.revisions[-1].revision if self.revisions else None

    def restore(self, state: State, text_of: Callable[[int], str | None], wall: float) -> str | None:
        """Bring back what acted before; returns why a revision could not be, None if all is well."""
        problem = None
        kept = []
        for record in state.revisions:
            if record.state in IN_FORCE:
                problem = self._revive(record, text_of(record.revision), wall) or problem
            gone = record.state in IN_FORCE and record.revision not in self._in_force()
            kept.append(replace(record, state=RevisionState.SUPERSEDED) if gone else record)
        self.revisions = tuple(kept)
        if self.revisions and self.revisions[-1].state is RevisionState.REFUSED:
            self.last_error = {"message": self.revisions[-1].message, "line": None, "field": None}
        return problem

    def _revive(self, record: RevisionRecord, text: str | None, wall: float) -> str | None:
        """One revision that was in force, back in force; why not, when it cannot be."""
        if text is None:
            return f"revision {record.revision} is recorded as {record.state} and its text is lost"
        # A service may have been started with less than before.
        read = _judged(text, record.sha, replace(self._world, wall=wall), wall)
        if read.policy is None or read.problems:
            return f"revision {record.revision} acts no more: {(*read.problems, 'its text says nothing')[0]}"
        revision = Revision(record.revision, record.sha, read.policy, record.at)
        if record.state is RevisionState.ACTIVE:
            self.active = revision
        else:
            self.shadow = revision
        return None

    def text_of(self, revision: int) -> str | None:
        """The text of a revision of this life."""
        return self._texts.get(revision)

    def judge(self, seen: Seen, targets: Sizes | None, wall: float) -> PolicyRead | None:
        """What a text says and what is wrong with it here; None without a text.

        The long part of `take`: it changes nothing and raises nothing, so any thread may do it.
        """
        if seen.text is None:
            return None
        return _judged(seen.text, seen.sha or "", self._world_now(targets, wall), wall)

    def take(self, seen: Seen, targets: Sizes | None, wall: float) -> PolicyEvent | None:
        """Judge what the source has found, and settle it."""
        return self.settle(seen, self.judge(seen, targets, wall), wall)

    def settle(self, seen: Seen, read: PolicyRead | None, wall: float) -> PolicyEvent | None:
        """What becomes of a finding after it was judged; None when it is what was settled last."""
        newest = self.revisions[-1] if self.revisions else None
        if seen.text is None or read is None:
            words = seen.problem or "nothing to read"
            if words == self._problem_seen:
                return None
            self._problem_seen = words
            problem = Problem(1, 1, "", words)
            if newest is not None and newest.message == str(problem):
                self.last_error = _plain(problem)  # a former life has said so
                return None
            return self._refuse(seen.sha or "", (problem,), None, wall)
        self._problem_seen = None
        again = newest is not None and newest.sha == read.sha
        if again and self.seen_revision in self._in_force():
            self.last_error = None
            return None
        if read.problems or read.policy is None:
            if again:
                self.last_error = _first(read.problems)
                return None
            return self._refuse(read.sha, read.problems, seen.text, wall)
        return self._accept(read, read.policy, seen.text, wall)

    def _world_now(self, targets: Sizes | None, wall: float) -> World:
        active = self.active
        return replace(
            self._world,
            targets=targets,
            active_revision=None if active is None else active.number,
            active_budget=None if active is None else active.policy.spec.budget.max,
            active_cut_share=None if active is None else active.policy.spec.guardrails.max_cut_share,
            wall=wall,
        )

    def _accept(self, read: PolicyRead, policy: CapacityPolicy, text: str, wall: float) -> PolicyEvent:
        shadow = policy.spec.mode is Mode.SHADOW
        state = RevisionState.SHADOW if shadow else RevisionState.ACTIVE
        record = RevisionRecord(self._next(), read.sha, state, wall)
        revision = Revision(record.revision, read.sha, policy, wall)
        # A revision that acts ends the shadow of an older one; one that is only evaluated replaces a shadow.
        ended = {RevisionState.SHADOW} if shadow else {RevisionState.ACTIVE, RevisionState.SHADOW}
        former = (
            replace(old, state=RevisionState.SUPERSEDED) if old.state in ended else old
            for old in self.revisions
        )
        self.revisions = newest_revisions((*former, record))
        if shadow:
            self.shadow = revision
        else:
            self.active, self.shadow = revision, None
        self.last_error = None
        self._remember(record.revision, text)
        return PolicyEvent(record, text, ())

    def _refuse(self, sha: str, problems: tuple[Problem, ...], text: str | None, wall: float) -> PolicyEvent:
        self.refused += 1
        self.last_error = _first(problems)
        message = "; ".join(str(problem) for problem in problems)
        record = RevisionRecord(self._next(), sha, RevisionState.REFUSED, wall, message)
        self.revisions = newest_revisions((*self.revisions, record))
        self._remember(record.revision, text)
        return PolicyEvent(record, text, tuple(_plain(problem) for problem in problems))

    def _remember(self, revision: int, text: str | None) -> None:
        if text is not None:
            self._texts[revision] = text
            kept = self._in_force() | set(range(revision - TEXTS_KEPT + 1, revision + 1))
            self._texts = {number: known for number, known in self._texts.items() if number in kept}

    def _in_force(self) -> set[int]:
        return {one.number for one in (self.active, self.shadow) if one is not None}

    def _next(self) -> int:
        return (self.seen_revision or 0) + 1


def _judged(text: str, sha: str, world: World, wall: float) -> PolicyRead:
    """What a text says, with its problems; one that breaks the checks, or cannot be obeyed, is refused."""
    try:
        read = read_policy(text, wall)
        if read.policy is None:
            return read
        problems = check_against(read, world)
        if not problems:
            in_force(read.policy, 0, read.sha, overrides=(), hold=None, wall=wall)
        return replace(read, problems=problems)
    except Exception as error:
        words = f"it cannot be judged ({type(error).__name__}: {error}"[:300] + "); take back the last edit"
        return PolicyRead(None, (Problem(1, 1, "", words),), (), sha, {})


def _first(problems: tuple[Problem, ...]) -> dict[str, Any]:
    return _plain(problems[0]) if problems else {"message": "unknown", "line": None, "field": None}


def _plain(problem: Problem) -> dict[str, Any]:
    return {"message": problem.message, "line": problem.line, "field": problem.field or None}
