"""What no single field can say: contradictions that refuse a policy, and warnings that do not."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autoscaling.policy_file import read_policy
from autoscaling.zones import unknown_zone, zone
from tests.autoscaling.bad_policies import GOOD, edit

SPECULATIVE = "      minReplicas: 1\n      maxReplicas: 3\n      limits"
PLAIN = "    plain:\n      minReplicas: 1\n      maxReplicas: 3\n"
NIGHT = '      start: "22:00"\n      end: "06:00"\n'
UNTIL = datetime(2036, 12, 1, tzinfo=UTC).timestamp()


def problems(text: str, wall: float | None = None) -> list[tuple[str, str]]:
    return [(problem.field, problem.message) for problem in read_policy(text, wall).problems]


def warnings(text: str, wall: float | None = None) -> list[tuple[str, str]]:
    """The warnings of a text that is a policy."""
    read = read_policy(text, wall)
    assert () == read.problems
    return [(warning.field, warning.message) for warning in read.warnings]


def schedule(name: str, days: str, start: str, end: str, pools: str, where: str = "Europe/Berlin") -> str:
    return (
        f'    - {{name: {name}, timeZone: {where}, days: [{days}], start: "{start}", end: "{end}", '
        f"pools: {{{pools}}}}}\n"
    )


def scheduled(*schedules: str) -> str:
    """The good policy without its override, with these schedules in place of its own."""
    return (
        GOOD[: GOOD.index("    - name: night")] + "".join(schedules) + GOOD[GOOD.index("  onMetricsLoss") :]
    )


# --- bounds and budget


def test_a_minimum_above_its_maximum_names_both() -> None:
    """Case C9: min 5 with max 2 is refused at the minimum, with both values, and with what else it breaks."""
    text = edit(SPECULATIVE, SPECULATIVE.replace("s: 1", "s: 5").replace("s: 3", "s: 2"))
    assert [
        (
            "spec.budget.max",
            "the pools' minimums need 6 accelerators (speculative 5 x 1, plain 1 x 1), but budget.max is 4",
        ),
        ("spec.pools.speculative.minReplicas", "is 5, above maxReplicas 2"),
    ] == problems(text)


def test_a_bootstrap_outside_the_bounds_is_refused() -> None:
    """Case C9: sizes of a new application below a pool's minimum or above its maximum are refused."""
    assert [
        (
            "spec.bootstrap.speculative",
            "is 0, outside minReplicas 1 to maxReplicas 3 of the pool speculative",
        ),
        ("spec.bootstrap.plain", "is 4, outside minReplicas 1 to maxReplicas 3 of the pool plain"),
    ] == problems(edit("    speculative: 2\n    plain: 2", "    speculative: 0\n    plain: 4"))


def test_an_absent_bootstrap_clashes_with_no_minimum() -> None:
    """Case C9: a minimum above half of the budget is fine when the file does not say how to begin."""
    text = edit("  bootstrap:\n    speculative: 2\n    plain: 2\n", "").replace(
        "plain: {minReplicas: 2}", "plain: {}"
    )
    text = text.replace(SPECULATIVE, SPECULATIVE.replace("s: 1", "s: 3"))
    assert [] == problems(text)


def test_minimums_above_the_budget_count_accelerators() -> None:
    """Case C9: replicas are counted with their accelerators; what holds always is not repeated per layer."""
    big = "      acceleratorsPerReplica: 4\n      limits"
    assert [
        (
            "spec.budget.max",
            "the pools' minimums need 5 accelerators (speculative 1 x 4, plain 1 x 1), but budget.max is 4",
        ),
        ("spec.bootstrap", "needs 10 accelerators (speculative 2 x 4, plain 2 x 1), above budget.max 4"),
    ] == problems(edit("      limits", big))


def test_minimums_of_a_schedule_must_fit_the_budget() -> None:
    """Case C9: the sum is checked as each schedule changes it."""
    text = scheduled(
        schedule("rush", "Mon", "08:00", "09:00", "speculative: {minReplicas: 3}, plain: {minReplicas: 2}")
    )
    assert [
        (
            "spec.schedules[0].pools",
            "the pools' minimums need 5 accelerators (speculative 3 x 1, plain 2 x 1) while schedule rush "
            "holds, but budget.max is 4",
        )
    ] == problems(text)


EARLY = schedule("early", "Mon", "22:00", "02:00", "speculative: {minReplicas: 3}")


@pytest.mark.parametrize(
    ("days", "start", "end", "where", "meet"),
    [
        ("Tue", "01:59", "03:00", "Europe/Berlin", True),  # after midnight, still early's window
        ("Tue", "02:00", "03:00", "Europe/Berlin", False),  # an end is outside
        ("Mon", "21:00", "22:00", "Europe/Berlin", False),
        ("Mon", "21:00", "21:00", "Europe/Berlin", True),  # equal times are 24 hours
        ("Wed", "22:00", "02:00", "Europe/Berlin", False),
        ("Mon", "20:00", "20:30", "UTC", True),  # 22:00 in Berlin in summer only
        ("Mon", "19:00", "20:00", "UTC", False),
        ("Tue", "00:30", "00:45", "UTC", True),  # 01:30 in Berlin in winter only
        ("Mon", "13:00", "18:00", "America/New_York", True),
    ],
)
def test_two_schedules_clash_when_they_meet(days: str, start: str, end: str, where: str, meet: bool) -> None:
    """Minimums that fit alone are refused together if the windows share a minute of any week of a year."""
    late = schedule("late", days, start, end, "plain: {minReplicas: 2}", where)
    clash = (
        "spec.schedules[1].pools",
        "the pools' minimums need 5 accelerators (speculative 3 x 1, plain 2 x 1) while schedule early and "
        "schedule late hold, but budget.max is 4",
    )
    assert ([clash] if meet else []) == problems(scheduled(EARLY, late))


def test_an_override_clashes_with_every_schedule_until_it_ends() -> None:
    """An override and a schedule that fit alone are refused together; one that has ended is left out."""
    text = edit("plain: {minReplicas: 2}", "plain: {minReplicas: 3}")
    clash = (
        "spec.overrides[0]",
        "the pools' minimums need 5 accelerators (speculative 2 x 1, plain 3 x 1) while schedule night and "
        "override launch hold, but budget.max is 4",
    )
    assert [clash] == problems(text)
    assert [clash] == problems(text, UNTIL - 1.0)
    assert [] == problems(text, UNTIL)


def test_of_two_overrides_of_a_pool_the_later_counts() -> None:
    """The later override takes the place of the earlier one, so their minimums are not added."""
    second = "    - {name: calm, pool: speculative, replicas: 1, until: 2036-11-01T00:00:00Z, reason: calm}\n"
    assert [] == problems(edit("  onMetricsLoss", f"{second}  onMetricsLoss"))


def test_a_layer_that_crosses_the_pools_bounds_gives_both() -> None:
    """Case C9: a schedule or an override never makes a pool's own bound void in silence."""
    assert [
        (
            "spec.overrides[0].minReplicas",
            "is 3, above maxReplicas 2 of the pool; give a maxReplicas here too",
        )
    ] == problems(
        edit(SPECULATIVE, SPECULATIVE.replace("s: 3", "s: 2"))
        .replace("      minReplicas: 2\n      until", "      minReplicas: 3\n      until")
        .replace("plain: {minReplicas: 2}", "plain: {}")
    )
    assert [
        (
            "spec.schedules[0].pools.plain.maxReplicas",
            "is 1, below minReplicas 2 of the pool; give a minReplicas here too",
        )
    ] == problems(
        edit(PLAIN, PLAIN.replace("s: 1", "s: 2")).replace(
            "plain: {minReplicas: 2}", "plain: {maxReplicas: 1}"
        )
    )


def test_a_check_without_its_parts_is_left_out() -> None:
    """A pool that does not read is not guessed: only what the readable parts say is checked."""
    text = edit(SPECULATIVE, SPECULATIVE.replace("s: 3", "s: three"))
    assert [
        ("spec.pools.speculative.maxReplicas", "must be a whole number, given the text 'three'"),
        ("spec.pools.plain.minReplicas", "is 9, above maxReplicas 3"),
    ] == problems(text.replace(PLAIN, PLAIN.replace("s: 1", "s: 9")))


# --- time zones


@pytest.mark.parametrize("name", ["Europe/Berlin", "UTC", "America/Argentina/Buenos_Aires"])
def test_known_zones_are_known(name: str) -> None:
    """IANA names have a zone."""
    assert zone(name) is not None
    assert unknown_zone(name) is None


@pytest.mark.parametrize(
    "name", ["Berlin", "America", "../etc/passwd", "/etc/localtime", "Europe/Berlin ", "a\x00b", "x" * 400]
)
def test_other_names_are_no_zone(name: str) -> None:
    """Unknown names, folders of zones, paths and odd characters are refused without an exception."""
    assert zone(name) is None
    assert "is no known time zone" in (unknown_zone(name) or "")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Factory", "write an IANA name such as Europe/Berlin"),
        ("posixrules", "write an IANA name such as Europe/Berlin"),
        ("localtime", "write an IANA name such as Europe/Berlin"),
        ("right/UTC", "did you mean UTC?"),
        ("right/Europe/Berlin", "did you mean Europe/Berlin?"),
        ("posix/Europe/Berlin", "did you mean Europe/Berlin?"),
    ],
)
def test_zone_data_that_is_no_place(name: str, hint: str) -> None:
    """Files that only some machines have, that count leap seconds, or that mean nothing are refused."""
    assert zone(name) is None
    assert f"'{name}' is no known time zone; {hint}" == unknown_zone(name)


def test_without_zone_data_only_utc_is_known() -> None:
    """Where no zone can be looked up that is what the problem says; UTC needs no data."""
    code = (
        "import sys; sys.modules['tzdata'] = None\n"
        "from autoscaling.zones import unknown_zone\n"
        "print(unknown_zone('UTC'), unknown_zone('Europe/Berlin'), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONTZPATH": ""},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert [
        "None",
        "'Europe/Berlin' cannot be looked up: no time zone data here; install tzdata, or use UTC",
    ] == done.stdout.splitlines()


# --- warnings


def test_settings_that_flap_are_warned_about() -> None:
    """Case C4: a short window with a short cooldown, and a narrow dead band, are warnings and not refused."""
    text = edit("stabilizationWindowSeconds: 30\n", "stabilizationWindowSeconds: 1\n").replace(
        "cooldownSeconds: 60", "cooldownSeconds: 0"
    )
    assert [
        (
            "spec.behavior.scaleUp.stabilizationWindowSeconds",
            "is 1 together with cooldownSeconds 0: capacity may move to and fro; "
            "give a window of 10 or a cooldown of 30 at least",
        )
    ] == warnings(text)
    assert [
        (
            "spec.behavior.utilization.below",
            "is 0.8, close to above 0.85: capacity may move to and fro; leave 0.1 between them at least",
        )
    ] == warnings(edit("below: 0.6", "below: 0.8"))


@pytest.mark.parametrize(("window", "cooldown"), [("0", "30"), ("10", "0"), ("30", "60")])
def test_either_a_window_or_a_cooldown_is_enough(window: str, cooldown: str) -> None:
    """Case C4: a quick reaction with a pause after it, or a slow one without, is not warned about."""
    text = edit("stabilizationWindowSeconds: 30\n", f"stabilizationWindowSeconds: {window}\n")
    assert [] == warnings(text.replace("cooldownSeconds: 60", f"cooldownSeconds: {cooldown}"))


def test_a_dead_band_of_a_tenth_is_wide_enough() -> None:
    """Case C4: 0.85 and 0.75 are apart by a tenth, whatever binary fractions say."""
    assert [] == warnings(edit("below: 0.6", "below: 0.75"))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "stabilizationWindowSeconds: 300",
            "stabilizationWindowSeconds: 20",
            [
                (
                    "spec.behavior.scaleDown.stabilizationWindowSeconds",
                    "is 20, shorter than scaleUp's 30: a pool gives sooner than it receives",
                )
            ],
        ),
        (
            "plain: {minReplicas: 2}",
            "plain: {minReplicas: 1, maxReplicas: 3}",
            [("spec.schedules[0].pools", "schedule night changes nothing: its bounds are the pools' own")],
        ),
        (
            "plain: {minReplicas: 2}",
            "{}",
            [("spec.schedules[0].pools", "schedule night changes nothing: its bounds are the pools' own")],
        ),
        (
            "      maxReplicas: 3\n      limits",
            "      maxReplicas: 4\n      limits",
            [
                (
                    "spec.pools.speculative.maxReplicas",
                    "is 4, but budget.max 4 less the other pool's minimum leaves room for 3",
                )
            ],
        ),
        (
            "{min: 4, max: 4}",
            "{min: 4, max: 7}",
            [("spec.budget.max", "is 7, but both pools' maxReplicas together take 6 accelerators")],
        ),
        (
            "      tpotSeconds: 0.05\n",
            "      tpotSeconds: 0.05\n    standard: {ttftSeconds: 0.5, tpotSeconds: 0.1}\n",
            [
                (
                    "spec.objectives.standard.ttftSeconds",
                    "is 0.5, stricter than 1 of the more urgent tier before it",
                )
            ],
        ),
    ],
)
def test_what_is_hardly_meant_is_a_warning(old: str, new: str, expected: list[tuple[str, str]]) -> None:
    """The policy is taken; the warning says what it does."""
    assert expected == warnings(edit(old, new))


@pytest.mark.parametrize(
    ("old", "new", "field", "message"),
    [
        (
            "ttftSeconds: 1.0",
            "ttftSeconds: 500",
            "spec.objectives.interactive.ttftSeconds",
            "is 500, more than 60 seconds; is this milliseconds?",
        ),
        (
            "tpotSeconds: 0.05",
            "tpotSeconds: 50",
            "spec.objectives.interactive.tpotSeconds",
            "is 50, more than 2 seconds; is this milliseconds?",
        ),
        (
            "cooldownSeconds: 60",
            "cooldownSeconds: 60000",
            "spec.behavior.cooldownSeconds",
            "is 60000, more than 10000 seconds; is this milliseconds?",
        ),
    ],
)
def test_seconds_that_look_like_milliseconds_are_a_warning(
    old: str, new: str, field: str, message: str
) -> None:
    """Case C12: a value that is possible but implausible in seconds is warned about, not refused."""
    assert [(field, message)] == warnings(edit(old, new))


def test_pools_that_cannot_change_are_a_warning() -> None:
    """Where both pools have one possible size, nothing can ever move."""
    text = GOOD.replace("minReplicas: 1\n      maxReplicas: 3", "minReplicas: 2\n      maxReplicas: 2")
    assert ("spec.pools", "minReplicas equals maxReplicas in both pools: nothing can ever move") in warnings(
        text
    )


def test_an_expired_override_is_a_warning() -> None:
    """From its last moment on it is named with its end and the present; without a clock nothing is said."""
    assert [
        ("spec.overrides[0].until", "ended at 2036-12-01T00:00:00Z; it is 2036-12-01T00:00:00Z")
    ] == warnings(GOOD, UNTIL)
    assert [] == warnings(GOOD, UNTIL - 1.0)
    assert [] == warnings(GOOD)


def test_a_schedule_that_puts_bounds_back_has_an_effect() -> None:
    """A later schedule with the pool's own bounds undoes an earlier one and is no mistake."""
    lunch = schedule("lunch", "Mon", "12:00", "13:00", "speculative: {minReplicas: 1}")
    day = schedule("day", "Mon", "08:00", "18:00", "speculative: {minReplicas: 2}")
    assert [] == warnings(scheduled(day, lunch))
    assert ["spec.schedules[0].pools"] == [field for field, _ in warnings(scheduled(lunch, day))]


def test_a_later_schedule_that_asks_less_is_a_warning() -> None:
    """Two places whose hours overlap, where the later one takes away what the earlier one asks."""
    berlin = schedule("berlin", "Mon", "08:00", "18:00", "plain: {minReplicas: 3}")
    ny = schedule("ny", "Mon", "08:00", "18:00", "plain: {minReplicas: 2}", "America/New_York")
    apart = schedule("ny", "Tue", "08:00", "18:00", "plain: {minReplicas: 2}", "America/New_York")
    words = (
        "is 2, below minReplicas 3 of berlin: ny lowers what berlin asks while both hold; the later one wins"
    )
    assert [("spec.schedules[1].pools.plain.minReplicas", words)] == warnings(scheduled(berlin, ny))
    assert [] == warnings(scheduled(ny, berlin))
    assert [] == warnings(scheduled(berlin, apart))


def test_a_move_that_is_given_up_before_its_drain_is_late_is_a_warning() -> None:
    """The drain of each pool has to fit the time of a move."""
    text = edit("    maxStepReplicas: 1", "    maxStepReplicas: 1\n    moveTimeoutSeconds: 300")
    assert [] == warnings(text)
    words = "a move is given up while its replicas may still finish their answers"
    assert [
        (
            "spec.guardrails.moveTimeoutSeconds",
            f"is 200, below drainTimeoutSeconds 300 of {role}: {words}",
        )
        for role in ("plain", "speculative")
    ] == warnings(text.replace("moveTimeoutSeconds: 300", "moveTimeoutSeconds: 200"))


def test_a_surge_that_holds_no_replica_is_a_warning() -> None:
    """One accelerator above the budget starts no replica of two."""
    text = edit("  bootstrap:\n    speculative: 2\n", "  surgeSlots: 1\n  bootstrap:\n    speculative: 1\n")
    assert [] == warnings(text)
    text = text.replace(
        "maxReplicas: 3\n      limits", "maxReplicas: 1\n      acceleratorsPerReplica: 2\n      limits"
    )
    text = text.replace("      minReplicas: 2\n      until", "      minReplicas: 1\n      until")
    assert (
        "spec.surgeSlots",
        "is 1, below acceleratorsPerReplica 2 of speculative: alone it lets no replica of that pool start",
    ) in warnings(text)


def test_an_override_that_hardly_ends_is_a_warning() -> None:
    """More than a year ahead is no exception any more."""
    year = 366 * 86_400.0
    assert [] == warnings(GOOD, UNTIL - year)
    assert [
        (
            "spec.overrides[0].until",
            "is 2036-12-01T00:00:00Z, more than a year ahead; "
            "what should last belongs into the pool's bounds or a schedule",
        )
    ] == warnings(GOOD, UNTIL - year - 1.0)
