"""A policy file's text: a policy, or all of its problems, each with line, column, field and plain words."""

from __future__ import annotations

import hashlib
import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaling.policy import Mode
from autoscaling.policy_file import read_policy
from autoscaling.policy_problem import MOST_PROBLEMS
from autoscaling.policy_yaml import LARGEST, MOST_NODES
from tests.autoscaling.bad_policies import BAD_EDITS, GOOD, BadEdit, edit

BY_NAME = {bad.name: bad for bad in BAD_EDITS}
RETRY = "    retryAfterSeconds: 5"


def lines(text: str) -> list[str]:
    return [str(problem) for problem in read_policy(text).problems]


def test_a_good_file_is_a_policy() -> None:
    """It has no problem and no warning, and the hash of its bytes."""
    read = read_policy(GOOD)
    assert ((), ()) == (read.problems, read.warnings)
    assert hashlib.sha256(GOOD.encode()).hexdigest() == read.sha
    assert read.policy is not None
    spec = read.policy.spec
    assert (Mode.ENFORCE, 4, 4) == (spec.mode, spec.budget.min, spec.budget.max)
    assert (1, 3, 64) == (
        spec.pools.speculative.min_replicas,
        spec.pools.speculative.max_replicas,
        spec.pools.speculative.limits.hard_inflight,
    )
    assert ("22:00", "06:00") == (spec.schedules[0].start, spec.schedules[0].end)
    assert "2036-12-01T00:00:00+00:00" == spec.overrides[0].until.isoformat()


def test_every_field_has_its_place() -> None:
    """Line and column of each key and of each entry of a list, from 1."""
    positions = read_policy(GOOD).positions
    assert (1, 1) == positions[""]
    assert (8, 12) == positions["spec.budget.min"]
    assert (19, 7) == positions["spec.pools.speculative.minReplicas"]
    assert (37, 24) == positions["spec.schedules[0].days[2]"]
    assert (5, 17) == positions["metadata.annotations.change"]


@pytest.mark.parametrize("bad", BAD_EDITS, ids=lambda bad: bad.name)
def test_a_bad_edit_is_refused_where_it_is(bad: BadEdit) -> None:
    """There is no policy, and a problem names the line, the field, what is given and what is wanted."""
    read = read_policy(bad.text)
    assert read.policy is None
    found = [problem for problem in read.problems if (problem.line, problem.field) == (bad.line, bad.field)]
    assert [True] == [bad.message_part in problem.message for problem in found]


@pytest.mark.parametrize("bad", BAD_EDITS, ids=lambda bad: bad.name)
def test_messages_are_plain(bad: BadEdit) -> None:
    """No words of the libraries, no links, one line each, ordered by place."""
    problems = read_policy(bad.text).problems
    assert sorted(problems) == list(problems)
    for problem in problems:
        assert not re.search(r"pydantic|https?:|Input should|Value error|<unicode|\n", str(problem))


def test_the_bad_edits_are_many_and_different() -> None:
    """At least thirty, each with its own name and text, and none is the good file."""
    assert len(BAD_EDITS) >= 30
    assert len(BAD_EDITS) == len(BY_NAME) == len({bad.text for bad in BAD_EDITS} - {GOOD})


@pytest.mark.parametrize("value", ["0", "0.2", "-1", ".nan", ".inf"])
def test_retry_after_is_a_whole_second_at_least(value: str) -> None:
    """Case B6: zero, fractions, negative numbers, NaN and infinity are refused at their line."""
    (problem,) = read_policy(edit(RETRY, f"    retryAfterSeconds: {value}")).problems
    assert (53, "spec.overload.retryAfterSeconds") == (problem.line, problem.field)


@pytest.mark.parametrize(
    "name",
    [
        "broken_yaml",
        "whole_file_empty",
        "a_list",
        "half_written",
        "half_a_word",
        "half_written_inside_a_brace",
    ],
)
def test_a_broken_file_has_its_own_message(name: str) -> None:
    """Case C10: broken YAML, an empty file, a list and a half-written file are refused in plain words."""
    bad = BY_NAME[name]
    (problem,) = read_policy(bad.text).problems
    assert (bad.line, True) == (problem.line, bad.message_part in problem.message)


def test_every_beginning_of_a_file_is_refused() -> None:
    """Case C10: wherever a writer was interrupted before the pools were whole, there is no policy."""
    whole = GOOD.index("  behavior:")
    for length in range(GOOD.index("maxReplicas: 3\n  behavior")):
        assert read_policy(GOOD[:length]).policy is None
    assert read_policy(GOOD[:whole]).policy is not None


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "ttftSeconds: 1.0",
            "ttftSeconds: 2000",
            "is in seconds, at most 600, given 2000; is this milliseconds?",
        ),
        (
            "ttftSeconds: 1.0",
            "ttftSeconds: 2s",
            "must be a number, given the text '2s'; write seconds as a plain number: 2",
        ),
        (
            "ttftSeconds: 1.0",
            "ttftSeconds: 2000ms",
            "must be a number, given the text '2000ms'; write seconds as a plain number: 2",
        ),
        (
            "stabilizationWindowSeconds: 30\n",
            "stabilizationWindowSeconds: 400000\n",
            "is in seconds, at most 3600, given 400000; is this milliseconds?",
        ),
        (
            "afterSeconds: 10",
            "afterSeconds: 20",
            "is in seconds, at most 10, given 20",
        ),
        (
            "ttftSeconds: 1.0",
            "ttft_seconds_sum: 1.0",
            "there is no such field; a counter only ever grows and cannot be a setting or an objective",
        ),
        (
            "ttftSeconds: 1.0",
            "prompt_tokens_total: 1.0",
            "there is no such field; a counter only ever grows and cannot be a setting or an objective",
        ),
        (
            "ttftSeconds: 1.0",
            "ttftMs: 1000",
            "there is no such field; did you mean ttftSeconds (in seconds)?",
        ),
    ],
)
def test_a_unit_mistake_says_the_unit(old: str, new: str, expected: str) -> None:
    """Case C12: milliseconds, units in the value, and counters in place of a promise are refused."""
    (problem,) = read_policy(edit(old, new)).problems
    assert expected == problem.message


def test_all_problems_come_together() -> None:
    """One reading finds the typo, the wrong type, the contradiction and the bad zone, ordered by line."""
    text = (
        edit("mode: enforce", "moode: enforce")
        .replace("    plain: 2\n", '    plain: "2"\n')
        .replace("below: 0.6", "below: 0.9")
        .replace(
            "      minReplicas: 1\n      maxReplicas: 3\n  b",
            "      minReplicas: 5\n      maxReplicas: 3\n  b",
        )
        .replace("Europe/Berlin", "Europe/Berln")
    )
    assert [
        "line 7, column 3: spec.moode: there is no such field; did you mean mode?",
        "line 8, column 20: spec.budget.max: the pools' minimums need 6 accelerators (speculative 1 x 1, "
        "plain 5 x 1), but budget.max is 4",
        "line 11, column 5: spec.bootstrap.plain: must be a whole number, given the text '2'; "
        "write 2 without quotes, sign or leading zeros",
        "line 23, column 7: spec.pools.plain.minReplicas: is 5, above maxReplicas 3",
        "line 26, column 32: spec.behavior.utilization.below: is 0.9, not below utilization.above 0.85",
        "line 36, column 7: spec.schedules[0].timeZone: 'Europe/Berln' is no known time zone; "
        "did you mean Europe/Berlin?",
    ] == lines(text)


def test_a_refused_value_is_said_once() -> None:
    """What YAML's own checks refuse is not refused again for its type."""
    assert [
        "line 20, column 20: spec.pools.speculative.maxReplicas: alias *most: write the value out again"
    ] == lines(edit("maxReplicas: 3\n      limits", "maxReplicas: *most\n      limits"))


@pytest.mark.parametrize(
    ("given", "expected"),
    [("yes", "yes"), ("on", "on"), ("2026-12-01", "2026-12-01"), ("0o17", "0o17"), ("1_000", "1_000")],
)
def test_yaml_surprises_stay_text(given: str, expected: str) -> None:
    """Unquoted words, dates and other number systems are text, not booleans, times or numbers."""
    policy = read_policy(edit('"CHG-1234"', given)).policy
    assert policy is not None
    assert {"change": expected} == policy.metadata.annotations


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("12", "must be text, given the number 12; write it in quotes"),
        ("true", "must be text, given true; write it in quotes"),
        ("", "must be text, given nothing; give a value or leave the field out"),
        ("8:30", 'write it in quotes, "8:30": some YAML readers take 8:30 for a number'),
    ],
)
def test_what_yaml_would_convert_needs_quotes(given: str, expected: str) -> None:
    """A number, a boolean or a time of day where text is wanted says so."""
    assert [f"line 5, column {25 if ':' in given else 17}: metadata.annotations.change: {expected}"] == lines(
        edit('"CHG-1234"', given)
    )


def test_an_alias_bomb_is_only_refused() -> None:
    """Aliases are never followed: a file that would unfold into a billion entries is refused at once."""
    bomb = "a0: &a0 [x]\n" + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(9))
    found = lines(bomb)
    assert "line 1, column 5: a0: anchor &a0: anchors are not used in a policy" in found
    assert "line 2, column 10: a1[0]: alias *a0: write the value out again" in found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[" * 50_000, "nested more than 16 levels deep"),
        ("a" * (LARGEST + 1), f"the file has more than {LARGEST} characters"),
        ("\ud800", "the character U+D800 is not allowed in YAML"),
        ('a: "\\UFFFFFFFF"', "broken YAML: an escape or a number in it is out of range"),
        ('a: "\\ud800"', "half of a surrogate pair is no character"),
    ],
)
def test_hostile_text_is_refused(text: str, expected: str) -> None:
    """Depth, size and characters have limits, each with its message."""
    assert expected in [problem.message for problem in read_policy(text).problems]


TOO_MANY = "the file has more than 5000 keys and values; a policy has fewer"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a:\n" + "- 1\n" * 20_000, 5000 - 1),
        ("".join(f"k{number}: 1\n" for number in range(8000)), 2500),
        ("a: {" + ",".join(f"k{number}" for number in range(12_000)) + "}", 1),
        (edit("  schedules:\n", "  schedules:\n" + "    - {}\n" * 8000), None),
    ],
)
def test_a_file_of_thousands_of_values_is_one_problem(text: str, line: int | None) -> None:
    """It is read to a bound and no further, however short its values are."""
    (problem,) = read_policy(text).problems
    assert (TOO_MANY, "") == (problem.message, problem.field)
    assert line in (problem.line, None)


def test_a_file_at_the_bound_is_read_to_its_end() -> None:
    """5000 keys, values and entries of lists may be there; what is wrong with them is said."""
    text = "a:\n" + "- 1\n" * (MOST_NODES - 3)
    assert TOO_MANY not in [problem.message for problem in read_policy(text).problems]
    assert TOO_MANY in [problem.message for problem in read_policy(text + "- 1\n").problems]


@pytest.mark.parametrize(
    "text", ["a:\n" + "- *b\n" * 19_000, "a: 1\n" * 16_000, "a:\n" + "- &b 1\n" * 14_000]
)
def test_reading_ends_at_a_hundred_problems(text: str) -> None:
    """More are read by nobody; the first ones are kept."""
    problems = read_policy(text).problems
    assert MOST_PROBLEMS == len(problems)
    assert problems[0].line == 2


@pytest.mark.parametrize("directive", ["%YAML 1.1", "%YAML 2.0", "%TAG ! tag:x,2000:", "%OTHER words"])
def test_a_directive_is_refused(directive: str) -> None:
    """What changes how the rest is read is not used in a policy, whether or not PyYAML obeys it."""
    (problem,) = read_policy(f"# words\n{directive}\n---\n{GOOD}").problems
    assert (2, "") == (problem.line, problem.field)
    assert "directives are not used in a policy" in problem.message


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('"  "', "must not be blank"),
        ('""', "must not be empty"),
        ('"a\\e[2J"', "must be one line of plain text; it holds the control character U+001B"),
        ('"a\\x9b"', "must be one line of plain text; it holds the control character U+009B"),
        ('"\\u202ea"', "must be one line of plain text; it holds the control character U+202E"),
        ("|\n        two\n        lines", "must be one line of plain text; it holds a line break"),
    ],
)
def test_a_reason_is_one_line_that_says_something(given: str, expected: str) -> None:
    """It is shown wherever the override acts, so nothing in it may steer a terminal."""
    (problem,) = read_policy(edit("reason: launch day", f"reason: {given}")).problems
    assert ("spec.overrides[0].reason", expected) == (problem.field, problem.message)


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        ("0001-01-01T00:00:00+14:00", "ended at 1970-01-01T00:00:00Z; it is 2027-01-15T08:00:00Z"),
        ("0001-01-01T00:00:00Z", "ended at 1970-01-01T00:00:00Z; it is 2027-01-15T08:00:00Z"),
        ("9999-12-31T23:59:59-14:00", "is 9999-12-31T23:59:59Z, more than a year ahead"),
        ("9999-12-31T23:59:59.999999Z", "is 9999-12-31T23:59:59Z, more than a year ahead"),
    ],
)
def test_the_first_and_the_last_moment_of_a_calendar(until: str, expected: str) -> None:
    """An end that is in no calendar in UTC is a doubt like any other, never an exception."""
    read = read_policy(edit("2036-12-01T00:00:00Z", until), 1.8e9)
    assert ((), True) == (read.problems, read.warnings[0].message.startswith(expected))


def test_a_key_cannot_break_the_line() -> None:
    """A name with line breaks in it, or a long one, is shown escaped and cut."""
    unknown = "there is no such field; known here: speculative, plain"
    found = lines(edit("    plain: 2\n", '    plain: 2\n    "a\\nb": 1\n    ' + "c" * 200 + ": 1\n"))
    assert [
        f"line 12, column 5: spec.bootstrap.a\\nb: {unknown}",
        f"line 13, column 5: spec.bootstrap.{'c' * 60}...: {unknown}",
    ] == found


PIECES = (
    "spec pools plain minReplicas 1 x { } [ ] &a *a !!int ? ' \" --- # , .nan 8:00 << \\u \\x85 é %YAML | >"
)
WORDS = st.sampled_from([*PIECES.split(), *(": ", "- ", "\n", "  ", "\t", "|\n", "---\n", "...\n", "\x85")])


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60) | st.lists(WORDS, max_size=30).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing raises; a text without a policy has a problem, with a place from line 1, column 1 on."""
    read = read_policy(text)
    assert (read.policy is None) == bool(read.problems)
    assert all(problem.line >= 1 and problem.column >= 1 and problem.message for problem in read.problems)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(GOOD)), st.integers(0, 12), st.lists(WORDS, max_size=3).map("".join))
def test_any_damage_to_a_good_file_is_read_or_refused(at: int, cut: int, put: str) -> None:
    """Wherever characters are lost or written, it is a policy or problems whose lines the file has."""
    text = GOOD[:at] + put + GOOD[at + cut :]
    read = read_policy(text, 1.8e9)
    assert (read.policy is None) == bool(read.problems)
    assert all(
        problem.line <= len(re.split("[\n\x85]", text)) for problem in (*read.problems, *read.warnings)
    )


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_any_value_anywhere_is_read_or_refused(data: st.DataObject) -> None:
    """Plain values of every type in place of any part are a policy or problems, never an exception."""
    plain = yaml.safe_load(GOOD)
    values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    new = data.draw(
        st.recursive(
            values, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(values, inner, max_size=2)
        )
    )
    here = plain
    while True:
        key = data.draw(st.sampled_from(list(here) if isinstance(here, dict) else list(range(len(here)))))
        if not isinstance(here[key], dict | list) or not here[key] or data.draw(st.booleans()):
            here[key] = new
            break
        here = here[key]
    read = read_policy(yaml.safe_dump(plain))
    assert (read.policy is None) == bool(read.problems)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("cooldownSeconds: 60", "cooldown: 60", "there is no such field; did you mean cooldownSeconds?"),
        ("above: 0.85", "above: 85", "must be at most 4, given 85; it is a share: write 0.85"),
        ("above: 0.85", "above: 5", "must be at most 4, given 5"),
        (
            "{above: 0.85, below: 0.6}",
            "{above: 0.5}",
            "is 0.5, and below is 0.6 by default, not below above: give below too",
        ),
        (
            "maxStepReplicas: 1",
            "maxStepReplicas: 6.0",
            "must be a whole number, given the number 6.0; write 6",
        ),
        (
            "[Mon, Tue, Wed, Thu, Fri]",
            "Mon-Fri",
            "must be a list, given the text 'Mon-Fri'; write [Mon, Tue, Wed, Thu, Fri]",
        ),
        ("[Mon, Tue, Wed, Thu, Fri]", "Monday", "must be a list, given the text 'Monday'; write [Mon]"),
        (
            "[Mon, Tue, Wed, Thu, Fri]",
            "[Monday]",
            "must be Mon, Tue, Wed, Thu, Fri, Sat or Sun, given the text 'Monday'; write Mon",
        ),
        (
            "[Mon, Tue, Wed, Thu, Fri]",
            "[Sat-Mon]",
            "must be Mon, Tue, Wed, Thu, Fri, Sat or Sun, given the text 'Sat-Mon'; write Sat, Sun, Mon",
        ),
        (
            "[Mon, Tue, Wed, Thu, Fri]",
            "weekdays",
            "must be a list, given the text 'weekdays'; write for example [Mon, Tue]",
        ),
    ],
)
def test_a_usual_slip_says_what_to_write(old: str, new: str, expected: str) -> None:
    """What was probably meant, as it has to be written."""
    assert [expected] == [problem.message for problem in read_policy(edit(old, new)).problems]
