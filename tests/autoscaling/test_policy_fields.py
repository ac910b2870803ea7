"""The fields of the policy file as its pages and `policy explain` show them."""

from __future__ import annotations

import pytest

from autoscaling.policy import CapacityPolicy
from autoscaling.policy_examples import EXAMPLES, key
from autoscaling.policy_fields import FieldDoc, close, fields, find, matches
from tests.autoscaling.good_policy import policy

FIELDS = fields()


def test_one_field_whole() -> None:
    """Everything that a person wants to know about one field."""
    assert find("spec.pools.plain.minReplicas") == FieldDoc(
        path="spec.pools.plain.minReplicas",
        type="integer",
        unit="replicas",
        default=1,
        effect="Never fewer; 0 needs a pool that was set up to be empty (`may_be_empty`).",
        example=2,
        required=False,
        bounds="≥ 0, ≤ 10000",
    )


def test_fields_come_in_the_files_order() -> None:
    """Each mapping before what is in it, each list before the fields of its entries."""
    paths = [field.path for field in FIELDS]
    assert paths[:6] == ["apiVersion", "kind", "metadata", "metadata.name", "metadata.annotations", "spec"]
    assert len(paths) == len(set(paths))
    start = paths.index("spec.behavior.scaleUp")
    assert paths[start : start + 5] == [
        "spec.behavior.scaleUp",
        "spec.behavior.scaleUp.stabilizationWindowSeconds",
        "spec.behavior.scaleUp.selectPolicy",
        "spec.behavior.scaleUp.policies",
        "spec.behavior.scaleUp.policies[].type",
    ]


@pytest.mark.parametrize(
    ("path", "type_", "unit", "default", "required", "bounds"),
    [
        ("spec.mode", "`enforce`, `shadow`, `hold`", None, "enforce", False, ""),
        ("spec.budget.max", "integer", "accelerators", None, True, "≥ 1, ≤ 100000"),
        ("spec.surgeSlots", "integer", "accelerators", 0, False, "≥ 0, ≤ 100000"),
        ("spec.objectives.interactive.ttftSeconds", "number", "s", None, False, "> 0, ≤ 600"),
        ("spec.workload.classify", "true or false", None, True, False, ""),
        ("spec.backfill.reserve", "integer", "sequences", 2, False, "≥ 0, ≤ 100000"),
        ("spec.admission.batch.deadlineSeconds", "number", "s", 300, False, "≥ 0, ≤ 3600"),
        ("spec.admission.interactive.maxWaiting", "integer", "sequences", 64, False, "≥ 0, ≤ 1000000"),
        ("spec.admission.batchShare", "number", "ratio 0..1", 0.1, False, "≥ 0, ≤ 1"),
        ("spec.behavior.cooldownSeconds", "number", "s", 60, False, "≥ 0, ≤ 86400"),
        ("spec.behavior.utilization.above", "number", "ratio", 0.85, False, "> 0, ≤ 4"),
        ("spec.onMetricsLoss.minFreshShare", "number", "ratio 0..1", 0.5, False, "≥ 0, ≤ 1"),
        ("spec.overrides[].replicas", "integer", "replicas", None, False, "≥ 0, ≤ 10000"),
        ("spec.overrides[].until", "time, RFC 3339", None, None, True, ""),
        ("spec.pools.plain.limits.softInflight", "integer", "sequences", None, False, "≥ 1, ≤ 100000"),
        ("spec.guardrails.allowLargeChange", "integer", "revision", None, False, "≥ 0"),
        ("spec.bootstrap.plain", "integer", "replicas", None, True, "≥ 0, ≤ 10000"),
        (
            "metadata.name",
            "text",
            None,
            None,
            True,
            "lower-case letters, digits, inner hyphens; at most 63",
        ),
        ("metadata.annotations", "mapping of texts", None, None, False, ""),
    ],
)
def test_type_unit_default_and_bounds(
    path: str, type_: str, unit: str | None, default: object, required: bool, bounds: str
) -> None:
    """Read from the models, by the name's suffix for the unit."""
    field = find(path)
    assert field is not None
    assert (type_, unit, default, required, bounds) == (
        field.type,
        field.unit,
        field.default,
        field.required,
        field.bounds,
    )


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.path)
def test_every_quantity_has_a_unit_and_every_field_its_words(field: FieldDoc) -> None:
    """Case C12: a number without a unit is a mistake in the names."""
    assert (field.unit is not None) == (field.type in ("integer", "number"))
    assert field.effect.endswith(".")
    assert field.path.endswith("Seconds") == (field.unit == "s")


@pytest.mark.parametrize(
    "field", [field for field in FIELDS if field.path != "spec"], ids=lambda field: field.path
)
def test_every_example_is_valid_in_its_place(field: FieldDoc) -> None:
    """Put into a good policy, the models take it."""
    taken = policy({field.path: field.example})
    assert isinstance(taken, CapacityPolicy)


def test_no_pattern_is_shown_raw() -> None:
    """A pattern is said in words."""
    assert [field.path for field in FIELDS if "^" in field.bounds] == []


def test_every_example_belongs_to_a_field() -> None:
    """The table has one for each field, and none for what is no field."""
    assert set(EXAMPLES) == {key(field.path) for field in FIELDS}
    assert policy({"spec": EXAMPLES["spec"]}).spec.budget.max == 8
    with pytest.raises(KeyError):
        key("spec.speed")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("spec.pools.plain.minReplicas", "spec.pools.plain.minReplicas"),
        ("pools.plain.minReplicas", "spec.pools.plain.minReplicas"),
        ("overrides.max_replicas", "spec.overrides[].maxReplicas"),
        (".spec.mode", "spec.mode"),
        ("COOLDOWNSECONDS", "spec.behavior.cooldownSeconds"),
        ("spec.schedules[].start", "spec.schedules[].start"),
        ("spec.schedules[0].start", "spec.schedules[].start"),
        ("schedules.start", "spec.schedules[].start"),
        ("spec.pools.plain", "spec.pools.plain"),
        ("pools.plain", "spec.pools.plain"),
        ("name", None),
        ("minReplicas", None),
        ("spec.speed", None),
        ("", None),
    ],
)
def test_finding_a_field(asked: str, expected: str | None) -> None:
    """By its path or the end of it, when that names one field alone."""
    found = find(asked)
    assert expected == (found and found.path)


def test_an_ambiguous_name_has_all_its_matches() -> None:
    """In the file's order."""
    assert [field.path for field in matches("minReplicas")] == [
        "spec.pools.speculative.minReplicas",
        "spec.pools.plain.minReplicas",
        "spec.schedules[].pools.speculative.minReplicas",
        "spec.schedules[].pools.plain.minReplicas",
        "spec.overrides[].minReplicas",
    ]
    assert matches("speed") == ()


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("cooldownSecond", "spec.behavior.cooldownSeconds"),
        ("spec.pools.plian.maxReplicas", "spec.pools.plain.maxReplicas"),
        ("retryAfter", "spec.overload.retryAfterSeconds"),
        ("behaviour", "spec.behavior"),
    ],
)
def test_what_may_have_been_meant(asked: str, expected: str) -> None:
    """A mistyped path has close ones, at most three; one that resembles nothing has none."""
    found = close(asked)
    assert (found[0], len(found) <= 3) == (expected, True)
    assert close("qqqqqq") == ()
