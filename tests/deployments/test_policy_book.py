"""Revisions of the policy: numbers, what acts, what is refused, and what a successor finds."""

from __future__ import annotations

import hashlib

import pytest

from autoscaling.decisions import Sizes
from autoscaling.policy_world import World
from autoscaling.types import Role
from deployments import policy_book
from deployments.kept_state import RevisionState, State
from deployments.policy_book import PolicyBook, PolicyEvent
from deployments.policy_source import Seen
from tests.autoscaling.bad_policies import BAD_EDITS, BAD_FOR_WORLD, GOOD, BadEdit
from tests.policies import policy

WALL = 1_800_000_000.0
WORLD = World(
    ceiling_accelerators=4,
    floors={Role.SPECULATIVE: 1, Role.PLAIN: 1},
    most={Role.SPECULATIVE: 4, Role.PLAIN: 4},
    accelerators={Role.SPECULATIVE: 1, Role.PLAIN: 1},
)
TARGETS: Sizes = {Role.SPECULATIVE: 1, Role.PLAIN: 3}
FIRST, SECOND = policy(2, 2, name="first"), policy(2, 2, name="second")
BROKEN = "spec: [\n"


def seen(text: str) -> Seen:
    return Seen(text, hashlib.sha256(text.encode()).hexdigest(), None)


def take(book: PolicyBook, text: str, targets: Sizes | None = None, wall: float = WALL) -> PolicyEvent | None:
    return book.take(seen(text), targets, wall)


def history(book: PolicyBook) -> list[tuple[int, str]]:
    return [(record.revision, record.state.value) for record in book.revisions]


def active(book: PolicyBook) -> tuple[int, str] | None:
    return None if book.active is None else (book.active.number, book.active.policy.metadata.name)


def test_the_first_good_text_is_revision_1() -> None:
    """It acts, and is told with its text, to be kept before it acts."""
    book = PolicyBook(WORLD)
    event = take(book, FIRST)
    assert event is not None
    assert (1, RevisionState.ACTIVE, WALL, FIRST, ()) == (
        event.record.revision,
        event.record.state,
        event.record.at,
        event.text,
        event.problems,
    )
    assert (1, "first") == active(book)
    assert (1, None, 0) == (book.seen_revision, book.last_error, book.refused)


def test_before_any_text() -> None:
    """Nothing acts, nothing was seen, and that is not zero."""
    book = PolicyBook(WORLD)
    assert (None, None, None, ()) == (book.active, book.seen_revision, book.last_error, book.revisions)


def test_the_same_text_again_is_no_news() -> None:
    """Neither a good one nor a refused one is judged twice."""
    book = PolicyBook(WORLD)
    for text in (FIRST, BROKEN):
        assert take(book, text) is not None
        assert take(book, text) is None
    assert [(1, "active"), (2, "refused")] == history(book)
    assert 1 == book.refused


def test_numbers_count_refused_texts_too() -> None:
    """Every new text has the next number; a good one supersedes the one that acted."""
    book = PolicyBook(WORLD)
    for text in (FIRST, BROKEN, SECOND):
        take(book, text)
    assert [(1, "superseded"), (2, "refused"), (3, "active")] == history(book)
    assert (3, "second") == active(book)
    assert book.last_error is None


def test_an_old_text_is_a_new_revision() -> None:
    """A rollback is the old text written again: it has the next number and its own time."""
    book = PolicyBook(WORLD)
    for text in (FIRST, SECOND):
        take(book, text)
    event = take(book, FIRST, wall=WALL + 9)
    assert event is not None
    assert (3, WALL + 9) == (event.record.revision, event.record.at)
    assert [(1, "superseded"), (2, "superseded"), (3, "active")] == history(book)
    assert book.revisions[0].sha == book.revisions[2].sha
    assert [FIRST, SECOND, FIRST, None] == [book.text_of(number) for number in (1, 2, 3, 4)]


def test_the_good_text_after_a_bad_edit_acts_again() -> None:
    """Taking a bad edit back clears the error."""
    book = PolicyBook(WORLD)
    for text in (FIRST, BROKEN, FIRST):
        take(book, text)
    assert [(1, "superseded"), (2, "refused"), (3, "active")] == history(book)
    assert book.last_error is None


@pytest.mark.parametrize("bad", BAD_EDITS, ids=lambda bad: bad.name)
def test_a_bad_edit_keeps_the_last_good_revision(bad: BadEdit) -> None:
    """Case C10: every bad text is a refused revision with line and field, and the good one acts on."""
    book = PolicyBook(WORLD)
    take(book, GOOD)
    event = take(book, bad.text, {Role.SPECULATIVE: 2, Role.PLAIN: 2})
    assert event is not None
    assert (2, RevisionState.REFUSED, bad.text) == (event.record.revision, event.record.state, event.text)
    assert (1, "good") == active(book)
    assert book.last_error == event.problems[0]
    places = [(problem["line"], problem["field"]) for problem in event.problems]
    assert (bad.line, bad.field or None) in places
    (message,) = (
        problem["message"]
        for problem in event.problems
        if (problem["line"], problem["field"]) == (bad.line, bad.field or None)
        and bad.message_part in problem["message"]
    )
    assert message in event.record.message
    assert f"line {bad.line}, column " in event.record.message
    assert take(book, GOOD) is not None
    assert (3, "good") == active(book)


@pytest.mark.parametrize("bad", BAD_FOR_WORLD, ids=lambda bad: bad.name)
def test_what_this_service_cannot_obey_is_refused(bad: BadEdit) -> None:
    """Case C9: beyond the ceiling, below a floor, or a cut that is too large against the present targets."""
    book = PolicyBook(WORLD)
    take(book, GOOD)
    event = take(book, bad.text, TARGETS)
    assert event is not None
    assert RevisionState.REFUSED is event.record.state
    assert (1, "good") == active(book)
    found = [problem["message"] for problem in event.problems if problem["field"] == bad.field]
    assert any(bad.message_part in message for message in found), event.problems


def test_a_minimum_above_the_maximum_is_refused_by_name() -> None:
    """Case C9: a running service refuses it, names the field, and keeps the old policy."""
    book = PolicyBook(WORLD)
    take(book, FIRST)
    event = take(book, policy(2, 2, pools={"speculative": {"minReplicas": 5, "maxReplicas": 2}}))
    assert event is not None
    assert RevisionState.REFUSED is event.record.state
    assert {
        "message": "is 5, above maxReplicas 2",
        "line": 14,
        "field": "spec.pools.speculative.minReplicas",
    } in event.problems
    assert (1, "first") == active(book)


def test_a_large_cut_needs_the_revision_that_it_replaces() -> None:
    """The guard counts against the present targets; naming the acting revision lets the cut through."""
    cut = {"budget": {"max": 2}, "bootstrap": {"speculative": 1, "plain": 1}}
    book = PolicyBook(WORLD)
    take(book, FIRST)
    event = take(book, policy(2, 2, **cut), TARGETS)
    assert event is not None
    assert RevisionState.REFUSED is event.record.state
    event = take(book, policy(2, 2, **cut, guardrails={"allowLargeChange": 2}), TARGETS)
    assert event is not None
    assert RevisionState.REFUSED is event.record.state
    event = take(book, policy(2, 2, **cut, guardrails={"allowLargeChange": 1}), TARGETS)
    assert event is not None
    assert (4, RevisionState.ACTIVE) == (event.record.revision, event.record.state)


def test_a_cut_is_judged_against_the_targets_of_now() -> None:
    """The same text is no cut while the targets are small."""
    small = policy(1, 1, most=2)
    book = PolicyBook(WORLD)
    take(book, FIRST)
    event = take(book, small, {Role.SPECULATIVE: 1, Role.PLAIN: 1})
    assert event is not None
    assert RevisionState.ACTIVE is event.record.state


# --- shadow ------------------------------------------------------------------------------------------


def shadow(name: str) -> str:
    return policy(2, 2, name=name, mode="shadow")


def test_a_shadow_leaves_the_active_revision() -> None:
    """It is evaluated beside it, a newer shadow replaces it, and a revision that acts ends it."""
    book = PolicyBook(WORLD)
    for text in (FIRST, shadow("one")):
        take(book, text)
    assert [(1, "active"), (2, "shadow")] == history(book)
    assert (1, "first") == active(book)
    assert book.shadow is not None
    assert 2 == book.shadow.number
    take(book, shadow("two"))
    assert [(1, "active"), (2, "superseded"), (3, "shadow")] == history(book)
    take(book, SECOND)
    assert [(1, "superseded"), (2, "superseded"), (3, "superseded"), (4, "active")] == history(book)
    assert book.shadow is None


def test_a_shadow_alone_acts_as_nothing() -> None:
    """Without an enforced revision there is no active one."""
    book = PolicyBook(WORLD)
    take(book, shadow("one"))
    assert (None, 1) == (book.active, book.seen_revision)


# --- no text -----------------------------------------------------------------------------------------


def test_a_file_that_is_gone_is_refused_once() -> None:
    """The last good revision acts on; the same words are no news, and the file's return ends the error."""
    book = PolicyBook(WORLD)
    take(book, FIRST)
    gone = Seen(None, None, "the file is gone")
    event = book.take(gone, None, WALL)
    assert event is not None
    assert (2, RevisionState.REFUSED, "", None) == (
        event.record.revision,
        event.record.state,
        event.record.sha,
        event.text,
    )
    assert {"message": "the file is gone", "line": 1, "field": None} == book.last_error
    assert book.take(gone, None, WALL) is None
    assert (1, "first") == active(book)
    take(book, FIRST)
    assert book.last_error is None
    assert "first" == (active(book) or (0, ""))[1]


# --- restarts ----------------------------------------------------------------------------------------


def successor(book: PolicyBook, texts: dict[int, str] | None = None) -> tuple[PolicyBook, str | None]:
    """The book of the next life, and what was wrong with the texts; `texts` is what is still kept."""
    after = PolicyBook(WORLD)
    text_of = book.text_of if texts is None else texts.get
    return after, after.restore(State(revisions=book.revisions), text_of, WALL)


def test_a_successor_finds_what_acted() -> None:
    """Active revision, shadow and history are the same, and the present text is no news."""
    book = PolicyBook(WORLD)
    for text in (FIRST, SECOND, shadow("one")):
        take(book, text)
    after, problem = successor(book)
    assert problem is None
    assert history(book) == history(after)
    assert (2, "second") == active(after)
    assert after.shadow is not None
    assert 3 == after.shadow.number
    assert take(after, shadow("one")) is None
    assert history(book) == history(after)


def test_a_successor_that_finds_a_bad_file_keeps_the_last_good_one() -> None:
    """Case C10: also across a restart; the refusal is shown with its line, and no new revision is made."""
    book = PolicyBook(WORLD)
    for text in (FIRST, BROKEN):
        take(book, text)
    after, _ = successor(book)
    assert after.last_error is not None
    assert {"message", "line", "field"} == set(after.last_error)
    assert book.revisions[1].message == after.last_error["message"]
    assert take(after, BROKEN) is None
    assert book.last_error == after.last_error
    assert [(1, "active"), (2, "refused")] == history(after)
    assert (1, "first") == active(after)


def test_a_successor_that_finds_no_file_makes_no_new_revision() -> None:
    """The file is still gone: nothing new, and the error is shown."""
    book = PolicyBook(WORLD)
    take(book, FIRST)
    gone = Seen(None, None, "the file is gone")
    book.take(gone, None, WALL)
    after, _ = successor(book)
    assert after.take(gone, None, WALL) is None
    assert book.last_error == after.last_error
    assert 2 == after.seen_revision


def test_a_refused_text_may_be_good_for_the_successor() -> None:
    """What was refused for this service's size is taken by a larger one."""
    larger = policy(2, 2, most=5)
    book = PolicyBook(WORLD)
    take(book, larger)
    after = PolicyBook(
        World(
            ceiling_accelerators=5,
            floors=WORLD.floors,
            most={Role.SPECULATIVE: 5, Role.PLAIN: 5},
            accelerators=WORLD.accelerators,
        )
    )
    after.restore(State(revisions=book.revisions), book.text_of, WALL)
    event = take(after, larger)
    assert event is not None
    assert [(1, "refused"), (2, "active")] == history(after)


def test_an_override_that_has_ended_ends_no_revision() -> None:
    """A successor revives a policy whose ended override asks for more than there is, as it was taken."""
    ended = {"name": "launch", "pool": "plain", "replicas": 9, "until": "2026-12-01T00:00:00Z", "reason": "x"}
    book = PolicyBook(WORLD)
    take(book, policy(2, 2, name="first", overrides=[ended]))
    assert (1, "first") == active(book)
    take(book, BROKEN)
    after, problem = successor(book)
    assert problem is None
    assert (1, "first") == active(after)


@pytest.mark.parametrize("broken", ["read_policy", "check_against", "in_force"])
def test_a_text_that_breaks_the_checks_is_refused(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a revision and words, and what acted goes on; a successor does not break on it either."""

    def breaks(*_: object, **__: object) -> None:
        raise OverflowError("date value out of range")

    book = PolicyBook(WORLD)
    take(book, FIRST)
    monkeypatch.setattr(policy_book, broken, breaks)
    event = take(book, SECOND)
    assert event is not None
    assert [(1, "active"), (2, "refused")] == history(book)
    words = "it cannot be judged (OverflowError: date value out of range); take back the last edit"
    assert words in event.record.message
    assert take(book, SECOND) is None
    after, problem = successor(book)
    assert f"revision 1 acts no more: line 1, column 1: {words}" == problem
    assert after.active is None


def test_judging_changes_nothing() -> None:
    """A thread may do it: what acts is changed when it is settled."""
    book = PolicyBook(WORLD)
    read = book.judge(seen(FIRST), None, WALL)
    assert (None, []) == (active(book), history(book))
    assert book.settle(seen(FIRST), read, WALL) is not None
    assert (1, "first") == active(book)


def test_a_lost_text_is_said_and_the_file_is_taken_anew() -> None:
    """A revision whose text is gone cannot act; the file in its place gets a number of its own."""
    book = PolicyBook(WORLD)
    take(book, FIRST)
    after, problem = successor(book, texts={})
    assert "revision 1 is recorded as active and its text is lost" == problem
    assert after.active is None
    assert take(after, FIRST) is not None
    assert [(1, "superseded"), (2, "active")] == history(after)
    assert (2, "first") == active(after)


def test_a_service_that_was_started_smaller_does_not_obey_its_old_policy() -> None:
    """Case C9: what acted and no longer fits is said, and refused again from the file."""
    book = PolicyBook(WORLD)
    take(book, FIRST)
    smaller = World(
        ceiling_accelerators=3,
        floors=WORLD.floors,
        most={Role.SPECULATIVE: 3, Role.PLAIN: 3},
        accelerators=WORLD.accelerators,
    )
    after = PolicyBook(smaller)
    problem = after.restore(State(revisions=book.revisions), book.text_of, WALL)
    assert problem is not None
    assert problem.startswith("revision 1 acts no more: line ")
    assert after.active is None
    take(after, FIRST)
    assert after.active is None
    assert after.last_error is not None
    assert "spec.budget.max" == after.last_error["field"]
    take(after, policy(2, 1, name="third"))
    assert "third" == (active(after) or (0, ""))[1]


def test_texts_of_this_life_are_kept_for_a_while() -> None:
    """The newest 20, for a service without a folder, and the one that acts however old."""
    book = PolicyBook(WORLD)
    take(book, FIRST)
    for number in range(30):
        take(book, f"{BROKEN}# {number}\n")
    assert f"{BROKEN}# 29\n" == book.text_of(31)
    assert book.text_of(5) is None
    assert FIRST == book.text_of(1)
