"""A policy against a running service: what exists there, and how much an edit may take away."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoscaling.policy_file import read_policy
from autoscaling.policy_world import World, check_against
from autoscaling.types import Role
from tests.autoscaling.bad_policies import BAD_FOR_WORLD, GOOD, WORLD, BadEdit, edit

PLAIN = "    plain:\n      minReplicas: 1\n      maxReplicas: 3\n"


def found(text: str, world: World) -> list[tuple[str, str]]:
    """Field and message of each problem of a text that reads well."""
    read = read_policy(text)
    assert () == read.problems
    return [(problem.field, problem.message) for problem in check_against(read, world)]


def shares(text: str, share: str) -> str:
    return text.replace("maxCutShare: 0.5", f"maxCutShare: {share}")


def cut_to(maximum: int) -> str:
    """The good policy with a lower maximum of the plain pool, and nothing that contradicts it."""
    return (
        edit(PLAIN, PLAIN.replace("3", str(maximum)))
        .replace("    plain: 2\n", f"    plain: {maximum}\n")
        .replace("plain: {minReplicas: 2}", "plain: {}")
    )


def test_a_policy_that_fits_has_no_problem() -> None:
    """The good policy fits the small service, before its first decision too."""
    assert [] == found(GOOD, WORLD)
    assert [] == found(GOOD, replace(WORLD, targets=None, active_revision=None, active_budget=None))


@pytest.mark.parametrize("bad", BAD_FOR_WORLD, ids=lambda bad: bad.name)
def test_what_the_service_cannot_do_is_refused_where_it_is(bad: BadEdit) -> None:
    """The file reads well; the problem names the line, the field and both numbers."""
    read = read_policy(bad.text)
    assert () == read.problems
    problems = [
        problem
        for problem in check_against(read, WORLD)
        if (problem.line, problem.field) == (bad.line, bad.field)
    ]
    assert [True] == [bad.message_part in problem.message for problem in problems]


def test_a_bad_file_keeps_its_own_problems() -> None:
    """A file that is no policy is never said to fit."""
    read = read_policy("")
    assert read.problems == check_against(read, WORLD) != ()


def test_bounds_of_schedules_and_overrides_count_too() -> None:
    """Each bound is compared with Ray Serve's own, wherever the file gives it."""
    small = replace(WORLD, most={Role.SPECULATIVE: 1, Role.PLAIN: 1}, targets=None)
    assert [
        "spec.pools.speculative.maxReplicas",
        "spec.pools.plain.maxReplicas",
        "spec.schedules[0].pools.plain.minReplicas",
        "spec.overrides[0].minReplicas",
    ] == [field for field, _ in found(GOOD, small)]


def test_a_pool_that_may_be_empty_may_have_no_minimum() -> None:
    """With a floor of 0 a minimum of 0 is fine."""
    text = edit(PLAIN, PLAIN.replace("1", "0"))
    assert [] == found(text, replace(WORLD, floors={Role.SPECULATIVE: 1, Role.PLAIN: 0}))


@pytest.mark.parametrize(("maximum", "refused"), [(2, False), (1, True)])
def test_a_cut_of_a_pool_has_a_limit(maximum: int, refused: bool) -> None:
    """Of three replicas one may go (a third), two may not (two thirds), with a share of a half."""
    fields = [field for field, _ in found(cut_to(maximum), WORLD)]
    assert (["spec.pools.plain.maxReplicas"] if refused else []) == fields


def test_a_cut_of_exactly_the_share_is_allowed() -> None:
    """The guard refuses more than its share, not the share itself."""
    even = replace(WORLD, targets={Role.SPECULATIVE: 2, Role.PLAIN: 2})
    assert [] == found(cut_to(1), even)


def test_lowering_the_guard_and_cutting_in_one_edit_is_refused() -> None:
    """The smaller of the old and the new share counts, whichever it is."""
    text = shares(cut_to(1), "1.0")
    expected = (
        "takes 2 of the 3 replicas of plain (67% at once, the active revision's maxCutShare is 0.5); cut in "
        "smaller edits, or give guardrails.allowLargeChange: 7 to replace revision 7 all the same"
    )
    assert [("spec.pools.plain.maxReplicas", expected)] == found(text, WORLD)
    assert [] == found(text, replace(WORLD, active_cut_share=1.0))
    assert [] == found(text, replace(WORLD, active_cut_share=None))
    assert ["spec.pools.plain.maxReplicas"] == [
        field for field, _ in found(shares(cut_to(2), "0.3"), replace(WORLD, active_cut_share=1.0))
    ]


@pytest.mark.parametrize(("allowed", "refused"), [("7", False), ("6", True), ("8", True), ("null", True)])
def test_a_large_cut_is_allowed_for_one_revision(allowed: str, refused: bool) -> None:
    """Only the number of the revision that acts now allows it, so that it cannot be left in the file."""
    text = cut_to(1).replace("    maxCutShare", f"    allowLargeChange: {allowed}\n    maxCutShare")
    assert refused == bool(found(text, WORLD))


def test_the_first_policy_cuts_nothing() -> None:
    """Where no revision acts there is no edit to guard."""
    assert [] == found(cut_to(1), replace(WORLD, active_revision=None))


def test_a_lower_budget_is_a_cut_of_both_pools() -> None:
    """Eight replicas under a new budget of four lose a half, though no maximum was lowered."""
    roomy = replace(
        WORLD,
        ceiling_accelerators=8,
        most={Role.SPECULATIVE: 8, Role.PLAIN: 8},
        targets={Role.SPECULATIVE: 2, Role.PLAIN: 6},
    )
    wide = GOOD.replace("maxReplicas: 3", "maxReplicas: 6")
    assert [] == found(wide.replace("{min: 4, max: 4}", "{min: 4, max: 7}"), roomy)
    messages = [message.partition(" (")[0] for _, message in found(shares(wide, "0.4"), roomy)]
    assert [
        "takes 3 of the 6 replicas of plain: 4 accelerators leave room for 3",
        "takes 4 of 8 accelerators in use",
    ] == messages


def test_a_higher_minimum_takes_from_the_other_pool() -> None:
    """What the other pool must have is gone for this one, though its own maximum is as it was."""
    text = (
        edit(
            "      minReplicas: 1\n      maxReplicas: 3\n      limits",
            "      minReplicas: 3\n      maxReplicas: 3\n      limits",
        )
        .replace("    speculative: 2\n    plain: 2\n", "    speculative: 3\n    plain: 1\n")
        .replace("plain: {minReplicas: 2}", "plain: {}")
    )
    assert ["takes 2 of the 3 replicas of plain: 4 accelerators leave room for 1"] == [
        message.partition(" (")[0] for _, message in found(text, WORLD)
    ]


def test_without_targets_the_budgets_are_compared() -> None:
    """Before the first decision of a controller the active budget stands for what would go."""
    big = replace(WORLD, targets=None, active_budget=12)
    assert ["lowers the budget from 12 to 4 (67% at once, maxCutShare is 0.5)"] == [
        message.partition(";")[0] for _, message in found(GOOD, big)
    ]
    assert [] == found(GOOD, replace(big, active_budget=8))


def test_what_holds_now_counts_when_the_time_is_known() -> None:
    """An override that cuts acts at once and is guarded; one that has ended is not."""
    text = edit(
        "      pool: speculative\n      minReplicas: 2\n", "      pool: plain\n      replicas: 1\n"
    ).replace("plain: {minReplicas: 2}", "plain: {}")
    until = 2_111_702_400.0  # 2036-12-01T00:00:00Z
    assert ["spec.pools.plain.maxReplicas"] == [
        field for field, _ in found(text, replace(WORLD, wall=until - 1.0))
    ]
    assert [] == found(text, replace(WORLD, wall=until))
    assert [] == found(text, WORLD)
