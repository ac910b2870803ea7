"""A good policy, and edits of it that must be refused, each with the line and the field that are wrong.

`BAD_EDITS` are refused by reading alone; `BAD_FOR_WORLD` only by a service that is smaller than they say.
"""

from __future__ import annotations

from dataclasses import dataclass

from autoscaling.policy_world import World
from autoscaling.types import Role

GOOD = """\
apiVersion: twinpool.dev/v1alpha1
kind: CapacityPolicy
metadata:
  name: good
  annotations: {change: "CHG-1234"}
spec:
  mode: enforce
  budget: {min: 4, max: 4}
  bootstrap:
    speculative: 2
    plain: 2
  objectives:
    interactive:
      ttftSeconds: 1.0
      tpotSeconds: 0.05
  pools:
    speculative:
      role: speculative
      minReplicas: 1
      maxReplicas: 3
      limits: {softInflight: 8, hardInflight: 64}
    plain:
      minReplicas: 1
      maxReplicas: 3
  behavior:
    utilization: {above: 0.85, below: 0.6}
    cooldownSeconds: 60
    scaleUp:
      stabilizationWindowSeconds: 30
      policies:
        - {type: Replicas, value: 1, periodSeconds: 60}
    scaleDown:
      stabilizationWindowSeconds: 300
  schedules:
    - name: night
      timeZone: Europe/Berlin
      days: [Mon, Tue, Wed, Thu, Fri]
      start: "22:00"
      end: "06:00"
      pools:
        plain: {minReplicas: 2}
  overrides:
    - name: launch
      pool: speculative
      minReplicas: 2
      until: 2036-12-01T00:00:00Z
      reason: launch day
  onMetricsLoss: {afterSeconds: 10, minFreshShare: 0.5, action: hold}
  guardrails:
    maxStepReplicas: 1
    maxCutShare: 0.5
  overload:
    retryAfterSeconds: 5
"""


@dataclass(frozen=True)
class BadEdit:
    """A text that must be refused, with a problem at this line and field that says this."""

    name: str
    text: str
    line: int
    field: str
    message_part: str


def edit(old: str, new: str, count: int = 1) -> str:
    """`GOOD` with one place changed; `old` must be there exactly `count` times."""
    assert GOOD.count(old) == count, old
    return GOOD.replace(old, new)


def bad(name: str, old: str, new: str, line: int, field: str, message_part: str) -> BadEdit:
    return BadEdit(name, edit(old, new), line, field, message_part)


BAD_EDITS = [
    bad(
        "broken_yaml",
        "  mode: enforce",
        "  mode: enforce: now",
        7,
        "",
        "broken YAML: a colon where no field can begin",
    ),
    bad(
        "bad_indentation",
        "    cooldownSeconds: 60",
        "   cooldownSeconds: 60",
        27,
        "",
        "broken YAML: this line does not fit the ones above it; check the indentation",
    ),
    bad(
        "tab",
        "  mode: enforce",
        "\tmode: enforce",
        7,
        "",
        "broken YAML: a tab cannot indent or begin a value; use spaces",
    ),
    bad(
        "open_quote",
        "  name: good",
        '  name: "good',
        5,
        "",
        "broken YAML: this line does not fit the ones above it; check the indentation",
    ),
    bad(
        "open_brace",
        "{min: 4, max: 4}",
        "{min: 4, max: 4",
        9,
        "",
        "broken YAML: a brace { is not closed, or a comma is missing",
    ),
    bad(
        "control_character",
        "  name: good",
        "  name: go\x07od",
        4,
        "",
        "the character U+0007 is not allowed in YAML",
    ),
    bad(
        "second_document",
        "spec:\n",
        "---\nspec:\n",
        6,
        "",
        "a second document begins here; a policy file has one",
    ),
    bad(
        "anchor",
        "{min: 4, max: 4}",
        "&budget {min: 4, max: 4}",
        8,
        "spec.budget",
        "anchor &budget: anchors are not used in a policy",
    ),
    bad(
        "alias",
        "    plain: 2",
        "    plain: *two",
        11,
        "spec.bootstrap.plain",
        "alias *two: write the value out again",
    ),
    bad(
        "tag",
        "    plain: 2",
        "    plain: !!int 2",
        11,
        "spec.bootstrap.plain",
        "tag tag:yaml.org,2002:int: tags are not used in a policy",
    ),
    bad(
        "duplicate_key",
        "    plain: 2\n",
        "    plain: 2\n    plain: 3\n",
        12,
        "spec.bootstrap.plain",
        "is given twice, on line 11 and on line 12",
    ),
    bad(
        "key_that_is_no_text",
        "    plain: 2\n",
        "    plain: 2\n    3: 2\n",
        12,
        "spec.bootstrap",
        "a field's name must be text, given the number 3",
    ),
    bad(
        "unknown_key",
        "    cooldownSeconds: 60",
        "    cooldownSecs: 60",
        27,
        "spec.behavior.cooldownSecs",
        "there is no such field; did you mean cooldownSeconds?",
    ),
    bad(
        "typo_in_a_bound",
        "      minReplicas: 1\n      maxReplicas: 3\n      limits",
        "      minReplica: 1\n      maxReplicas: 3\n      limits",
        19,
        "spec.pools.speculative.minReplica",
        "there is no such field; did you mean minReplicas?",
    ),
    bad("missing_kind", "kind: CapacityPolicy\n", "", 1, "kind", "is required but missing"),
    bad(
        "missing_maximum",
        "      maxReplicas: 3\n      limits",
        "      limits",
        17,
        "spec.pools.speculative.maxReplicas",
        "is required but missing",
    ),
    bad(
        "other_version",
        "v1alpha1",
        "v1",
        1,
        "apiVersion",
        "must be twinpool.dev/v1alpha1, given the text 'twinpool.dev/v1'",
    ),
    bad(
        "empty_part",
        "    plain: 2\n  objectives:\n    interactive:\n      ttftSeconds: 1.0\n      tpotSeconds: 0.05\n",
        "    plain: 2\n  objectives:\n",
        12,
        "spec.objectives",
        "must be a mapping, given nothing; give a value or leave the field out",
    ),
    bad(
        "number_for_a_mapping",
        "budget: {min: 4, max: 4}",
        "budget: 4",
        8,
        "spec.budget",
        "must be a mapping, given the number 4; write budget: {max: 8}",
    ),
    bad(
        "text_for_a_number",
        "      minReplicas: 1\n      maxReplicas: 3\n      limits",
        '      minReplicas: 1\n      maxReplicas: "3"\n      limits',
        20,
        "spec.pools.speculative.maxReplicas",
        "must be a whole number, given the text '3'; write 3 without quotes, sign or leading zeros",
    ),
    bad(
        "leading_zero",
        "      minReplicas: 1\n      maxReplicas: 3\n      limits",
        "      minReplicas: 1\n      maxReplicas: 03\n      limits",
        20,
        "spec.pools.speculative.maxReplicas",
        "must be a whole number, given the text '03'; write 3 without quotes, sign or leading zeros",
    ),
    bad(
        "yes_for_a_number",
        "      minReplicas: 1\n      maxReplicas: 3\n      limits",
        "      minReplicas: 1\n      maxReplicas: yes\n      limits",
        20,
        "spec.pools.speculative.maxReplicas",
        "must be a whole number, given the text 'yes'",
    ),
    bad(
        "fraction_of_a_replica",
        "      minReplicas: 1\n      maxReplicas: 3\n      limits",
        "      minReplicas: 1\n      maxReplicas: 2.5\n      limits",
        20,
        "spec.pools.speculative.maxReplicas",
        "must be a whole number, given the number 2.5",
    ),
    bad(
        "negative_minimum",
        "      minReplicas: 1\n      maxReplicas: 3\n      limits",
        "      minReplicas: -1\n      maxReplicas: 3\n      limits",
        19,
        "spec.pools.speculative.minReplicas",
        "must be at least 0, given -1",
    ),
    bad(
        "number_for_text",
        "  name: good",
        "  name: 1234",
        4,
        "metadata.name",
        "must be text, given the number 1234; write it in quotes",
    ),
    bad(
        "unknown_mode",
        "mode: enforce",
        "mode: off",
        7,
        "spec.mode",
        "must be enforce, shadow or hold, given the text 'off'",
    ),
    bad(
        "unknown_action",
        "action: hold",
        "action: shrink",
        48,
        "spec.onMetricsLoss.action",
        "must be hold, given the text 'shrink'",
    ),
    bad(
        "not_a_number",
        "minFreshShare: 0.5",
        "minFreshShare: .nan",
        48,
        "spec.onMetricsLoss.minFreshShare",
        ".nan is not a number that can be obeyed; write a finite one",
    ),
    bad(
        "infinity",
        "    cooldownSeconds: 60",
        "    cooldownSeconds: .inf",
        27,
        "spec.behavior.cooldownSeconds",
        ".inf is not a number that can be obeyed; write a finite one",
    ),
    bad(
        "number_out_of_range",
        "    cooldownSeconds: 60",
        "    cooldownSeconds: 1e999",
        27,
        "spec.behavior.cooldownSeconds",
        "1e999 is too large for a number",
    ),
    bad(
        "share_above_one",
        "    maxCutShare: 0.5",
        "    maxCutShare: 50",
        51,
        "spec.guardrails.maxCutShare",
        "must be at most 1, given 50; it is a share: write 0.5",
    ),
    bad(
        "ttft_in_milliseconds",
        "ttftSeconds: 1.0",
        "ttftSeconds: 2000",
        14,
        "spec.objectives.interactive.ttftSeconds",
        "is in seconds, at most 600, given 2000; is this milliseconds?",
    ),
    bad(
        "ttft_with_a_unit",
        "ttftSeconds: 1.0",
        "ttftSeconds: 2s",
        14,
        "spec.objectives.interactive.ttftSeconds",
        "must be a number, given the text '2s'; write seconds as a plain number: 2",
    ),
    bad(
        "ttft_with_milliseconds",
        "ttftSeconds: 1.0",
        "ttftSeconds: 2000ms",
        14,
        "spec.objectives.interactive.ttftSeconds",
        "must be a number, given the text '2000ms'; write seconds as a plain number: 2",
    ),
    bad(
        "ttft_in_another_case",
        "ttftSeconds: 1.0",
        "ttft_seconds: 1.0",
        14,
        "spec.objectives.interactive.ttft_seconds",
        "there is no such field; did you mean ttftSeconds?",
    ),
    bad(
        "ttft_under_another_unit",
        "ttftSeconds: 1.0",
        "ttftMs: 1000",
        14,
        "spec.objectives.interactive.ttftMs",
        "there is no such field; did you mean ttftSeconds (in seconds)?",
    ),
    bad(
        "counter_sum",
        "ttftSeconds: 1.0",
        "time_to_first_token_seconds_sum: 1.0",
        14,
        "spec.objectives.interactive.time_to_first_token_seconds_sum",
        "there is no such field; a counter only ever grows and cannot be a setting or an objective",
    ),
    bad(
        "counter_total",
        "ttftSeconds: 1.0",
        "requests_total: 1.0",
        14,
        "spec.objectives.interactive.requests_total",
        "there is no such field; a counter only ever grows and cannot be a setting or an objective",
    ),
    bad(
        "window_in_milliseconds",
        "stabilizationWindowSeconds: 300",
        "stabilizationWindowSeconds: 400000",
        33,
        "spec.behavior.scaleDown.stabilizationWindowSeconds",
        "is in seconds, at most 3600, given 400000; is this milliseconds?",
    ),
    bad(
        "retry_after_zero",
        "    retryAfterSeconds: 5",
        "    retryAfterSeconds: 0",
        53,
        "spec.overload.retryAfterSeconds",
        "must be at least 1, given 0",
    ),
    bad(
        "retry_after_fraction",
        "    retryAfterSeconds: 5",
        "    retryAfterSeconds: 0.2",
        53,
        "spec.overload.retryAfterSeconds",
        "must be a whole number, given the number 0.2",
    ),
    bad(
        "retry_after_negative",
        "    retryAfterSeconds: 5",
        "    retryAfterSeconds: -1",
        53,
        "spec.overload.retryAfterSeconds",
        "must be at least 1, given -1",
    ),
    bad(
        "retry_after_nan",
        "    retryAfterSeconds: 5",
        "    retryAfterSeconds: .nan",
        53,
        "spec.overload.retryAfterSeconds",
        ".nan is not a number that can be obeyed; write a finite one",
    ),
    bad(
        "retry_after_inf",
        "    retryAfterSeconds: 5",
        "    retryAfterSeconds: .inf",
        53,
        "spec.overload.retryAfterSeconds",
        ".inf is not a number that can be obeyed; write a finite one",
    ),
    bad(
        "minimum_above_maximum",
        "      minReplicas: 1\n      maxReplicas: 3\n      limits",
        "      minReplicas: 5\n      maxReplicas: 2\n      limits",
        19,
        "spec.pools.speculative.minReplicas",
        "is 5, above maxReplicas 2",
    ),
    bad(
        "bootstrap_below_minimum",
        "      minReplicas: 1\n      maxReplicas: 3\n      limits",
        "      minReplicas: 3\n      maxReplicas: 3\n      limits",
        10,
        "spec.bootstrap.speculative",
        "is 2, outside minReplicas 3 to maxReplicas 3 of the pool speculative",
    ),
    bad(
        "bootstrap_above_budget",
        "    plain: 2",
        "    plain: 3",
        9,
        "spec.bootstrap",
        "needs 5 accelerators (speculative 2 x 1, plain 3 x 1), above budget.max 4",
    ),
    bad(
        "minimums_above_budget",
        "      minReplicas: 1\n      maxReplicas: 3\n      limits",
        "      minReplicas: 2\n      maxReplicas: 3\n      acceleratorsPerReplica: 2\n      limits",
        8,
        "spec.budget.max",
        "the pools' minimums need 5 accelerators (speculative 2 x 2, plain 1 x 1), but budget.max is 4",
    ),
    bad(
        "minimums_above_budget_by_schedule",
        "plain: {minReplicas: 2}",
        "plain: {minReplicas: 2}\n        speculative: {minReplicas: 3}",
        40,
        "spec.schedules[0].pools",
        "the pools' minimums need 5 accelerators (speculative 3 x 1, plain 2 x 1)",
    ),
    bad(
        "minimums_above_budget_by_override",
        "      minReplicas: 2\n      until",
        "      replicas: 4\n      until",
        43,
        "spec.overrides[0]",
        "the pools' minimums need 5 accelerators (speculative 4 x 1, plain 1 x 1)",
    ),
    bad(
        "schedule_meets_override",
        "plain: {minReplicas: 2}",
        "plain: {minReplicas: 3}",
        43,
        "spec.overrides[0]",
        "the pools' minimums need 5 accelerators (speculative 2 x 1, plain 3 x 1)",
    ),
    bad(
        "schedule_above_maximum",
        "plain: {minReplicas: 2}",
        "plain: {minReplicas: 4}",
        41,
        "spec.schedules[0].pools.plain.minReplicas",
        "is 4, above maxReplicas 3 of the pool; give a maxReplicas here too",
    ),
    bad(
        "budget_minimum_above_maximum",
        "{min: 4, max: 4}",
        "{min: 5, max: 4}",
        8,
        "spec.budget.min",
        "is 5, above budget.max 4",
    ),
    bad(
        "budget_minimum_out_of_reach",
        "{min: 4, max: 4}",
        "{min: 7, max: 7}",
        8,
        "spec.budget.min",
        "is 7, but both pools' maxReplicas together take 6 accelerators",
    ),
    bad(
        "other_role",
        "role: speculative",
        "role: plain",
        18,
        "spec.pools.speculative.role",
        "is plain, but this is the pool speculative",
    ),
    bad(
        "soft_limit_above_hard",
        "softInflight: 8",
        "softInflight: 65",
        21,
        "spec.pools.speculative.limits.softInflight",
        "is 65, above hardInflight 64",
    ),
    bad(
        "no_dead_band",
        "below: 0.6",
        "below: 0.9",
        26,
        "spec.behavior.utilization.below",
        "is 0.9, not below utilization.above 0.85",
    ),
    bad(
        "unknown_zone",
        "Europe/Berlin",
        "Europe/Berln",
        36,
        "spec.schedules[0].timeZone",
        "'Europe/Berln' is no known time zone; did you mean Europe/Berlin?",
    ),
    bad(
        "unquoted_time",
        '"22:00"',
        "22:00",
        38,
        "spec.schedules[0].start",
        'write it in quotes, "22:00": some YAML readers take 22:00 for a number',
    ),
    bad(
        "no_time_of_day",
        '"22:00"',
        '"24:00"',
        38,
        "spec.schedules[0].start",
        "'24:00' is not a time of day: write it in quotes as HH:MM, such as '08:00'",
    ),
    bad(
        "unknown_day",
        "[Mon,",
        "[Monday,",
        37,
        "spec.schedules[0].days[0]",
        "must be Mon, Tue, Wed, Thu, Fri, Sat or Sun, given the text 'Monday'",
    ),
    bad(
        "override_without_zone",
        "2036-12-01T00:00:00Z",
        "2036-12-01T00:00:00",
        46,
        "spec.overrides[0].until",
        "'2036-12-01T00:00:00' is not a time with a zone: the zone is missing",
    ),
    bad(
        "override_without_end",
        "      until: 2036-12-01T00:00:00Z\n",
        "",
        43,
        "spec.overrides[0].until",
        "is required but missing",
    ),
    bad(
        "override_without_reason",
        "      reason: launch day",
        "      reason: ''",
        47,
        "spec.overrides[0].reason",
        "must not be empty",
    ),
    bad(
        "override_forces_nothing",
        "      minReplicas: 2\n      until",
        "      until",
        43,
        "spec.overrides[0]",
        "forces nothing; give replicas, or minReplicas or maxReplicas",
    ),
    bad(
        "override_forces_twice",
        "      minReplicas: 2\n      until",
        "      minReplicas: 2\n      replicas: 2\n      until",
        46,
        "spec.overrides[0].replicas",
        "is 2, and minReplicas or maxReplicas is given too; give one or the other",
    ),
    bad(
        "two_overrides_of_one_name",
        "launch day\n",
        "launch day\n    - {name: launch, pool: plain, replicas: 1, until: 2036-12-01T00:00Z, reason: x}\n",
        48,
        "spec.overrides[1].name",
        "launch is the name of entry 1 of the list too",
    ),
    BadEdit(
        "whole_file_empty", "", 1, "", "the file is empty; a policy needs apiVersion, kind, metadata and spec"
    ),
    BadEdit(
        "only_a_comment",
        "# nothing yet\n",
        1,
        "",
        "the file is empty; a policy needs apiVersion, kind, metadata and spec",
    ),
    BadEdit(
        "a_list",
        "- apiVersion: twinpool.dev/v1alpha1\n",
        1,
        "",
        "the file is a list; it must be a mapping with apiVersion, kind, metadata and spec",
    ),
    BadEdit(
        "a_single_value",
        "enforce\n",
        1,
        "",
        "the file is a single value; it must be a mapping with apiVersion, kind, metadata and spec",
    ),
    BadEdit("half_written", GOOD[: GOOD.index("bootstrap")], 6, "spec.pools", "is required but missing"),
    BadEdit(
        "half_a_word",
        GOOD[: GOOD.index("olicies:")],
        30,
        "",
        "broken YAML: a field's name without its colon; a line may be cut off",
    ),
    BadEdit(
        "half_written_inside_a_brace",
        GOOD[: GOOD.index(", hardInflight")],
        21,
        "",
        "broken YAML: a brace { is not closed, or a comma is missing",
    ),
]

# A small service that obeys GOOD as its revision 7 and has moved one replica to the plain pool since.
WORLD = World(
    ceiling_accelerators=4,
    floors={Role.SPECULATIVE: 1, Role.PLAIN: 1},
    most={Role.SPECULATIVE: 4, Role.PLAIN: 4},
    accelerators={Role.SPECULATIVE: 1, Role.PLAIN: 1},
    targets={Role.SPECULATIVE: 1, Role.PLAIN: 3},
    active_revision=7,
    active_budget=4,
    active_cut_share=0.5,
)
_PLAIN = "    plain:\n      minReplicas: 1\n      maxReplicas: 3\n"
_TWO_EACH = (
    edit("      limits:", "      acceleratorsPerReplica: 2\n      limits:")
    .replace("    speculative: 2\n", "    speculative: 1\n")
    .replace("      minReplicas: 2\n      until", "      minReplicas: 1\n      until")
)

BAD_FOR_WORLD = [
    bad(
        "budget_above_the_ceiling",
        "{min: 4, max: 4}",
        "{min: 4, max: 40}",
        8,
        "spec.budget.max",
        "is 40, but this service has 4 accelerators",
    ),
    bad(
        "surge_above_the_ceiling",
        "{min: 4, max: 4}",
        "{min: 4, max: 4}\n  surgeSlots: 1",
        9,
        "spec.surgeSlots",
        "is 1: with budget.max 4 that is 5 accelerators, but this service has 4",
    ),
    bad(
        "empty_pool",
        _PLAIN,
        _PLAIN.replace("1", "0"),
        23,
        "spec.pools.plain.minReplicas",
        "is 0, but the pool plain was set up to keep 1: needs may_be_empty",
    ),
    bad(
        "empty_by_override",
        "      minReplicas: 2\n      until",
        "      replicas: 0\n      until",
        45,
        "spec.overrides[0].replicas",
        "is 0, but the pool speculative was set up to keep 1: needs may_be_empty",
    ),
    bad(
        "maximum_above_serves",
        _PLAIN,
        _PLAIN.replace("3", "5"),
        24,
        "spec.pools.plain.maxReplicas",
        "is 5, but the pool plain was set up for 4 at most",
    ),
    BadEdit(
        "other_accelerators",
        _TWO_EACH,
        21,
        "spec.pools.speculative.acceleratorsPerReplica",
        "is 2, but a replica of this pool was set up with 1",
    ),
    BadEdit(
        "large_cut",
        edit(_PLAIN, _PLAIN.replace("3", "1"))
        .replace("    plain: 2\n", "    plain: 1\n")
        .replace("plain: {minReplicas: 2}", "plain: {minReplicas: 1}"),
        24,
        "spec.pools.plain.maxReplicas",
        "takes 2 of the 3 replicas of plain (67% at once, maxCutShare is 0.5)",
    ),
]
