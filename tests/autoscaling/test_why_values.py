"""Records with odd values in words: never an error."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.why import explain_decision, explain_move
from autoscaling.why_request import explain_request
from autoscaling.why_values import figure, moment, seconds

NAMES = [
    "number",
    "wall",
    "revision",
    "summary",
    "signals",
    "steps",
    "targets",
    "reason",
    "plan",
    "budget",
    "hold",
    "move",
    "begun",
    "id",
    "state",
    "before",
    "after",
    "count",
    "source",
    "receiver",
    "at",
    "drained_at",
    "started_at",
    "ended_at",
    "waiting_for",
    "waits_for",
    "name",
    "detail",
    "by",
    "who",
    "expires",
    "since",
    "engine_id",
    "tier",
    "tier_requested",
    "workload",
    "workload_reason",
    "features",
    "tokens_per_step",
    "sequences",
    "decision",
    "pools",
    "replicas",
    "verdict",
    "accepting",
    "able",
    "reserve",
    "load",
    "limit",
    "free",
    "from",
    "predicted_ttft_s",
    "work",
    "chosen",
    "why",
    "pool",
    "replica",
    "waited_s",
    "outcome",
    "status",
    "code",
    "e2e_s",
    "attempts",
    "wider",
    "generated_tokens",
    "acceptance",
    "ttft_s",
    "tpot_s",
    "objective",
    "pending",
    "plain",
    "speculative",
]
WORDS = ["steady", "done", "draining", "operator", "met", "ok", "want", "chosen", "window", "unmeasured", ""]
LEAF = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats()
    | st.sampled_from([*WORDS, 10**400, -(10**400)])
)
JSON = st.recursive(
    LEAF,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=30,
)
RECORDS = st.dictionaries(st.sampled_from(NAMES), JSON, max_size=20)


@pytest.mark.parametrize("explain", [explain_decision, explain_move, explain_request])
@given(record=RECORDS)
def test_no_record_is_a_surprise(explain: Any, record: dict[str, Any]) -> None:
    """Whatever a service of another version answers, it is explained as far as it is understood."""
    assert explain(record).endswith("\n")


@pytest.mark.parametrize("odd", [None, True, [], {}, float("nan"), float("inf"), 10**400, -(10**400)])
def test_what_is_no_number_is_unknown(odd: Any) -> None:
    """As a duration, a number and a time."""
    assert ("unknown", "unknown", "an unknown time") == (seconds(odd), figure(odd), moment(odd))


def test_numbers_in_words() -> None:
    """Four digits; a text is shown as it is, except where a time is asked for."""
    assert ("1.235 s", "12.5", "1.88") == (seconds(1.23456), figure(12.5), figure(1.875, ".2f"))
    assert ("soon", "soon", "an unknown time") == (seconds("soon"), figure("soon"), moment("soon"))
    assert "2027-01-15T08:00:00Z" == moment(1.8e9)
