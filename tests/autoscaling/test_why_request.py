"""Recorded requests in plain words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from autoscaling.request_line import Outcome
from autoscaling.request_record import RequestRecord, Verdict, as_fields, measured
from autoscaling.request_words import OUTCOMES, POOLS, REPLICAS, ROUTES, VERDICTS
from autoscaling.route_reasons import RouteReason
from autoscaling.types import Tier
from autoscaling.why_request import explain_request
from tests.autoscaling.request_lines import line, record

POOL = {
    "accepting": 2,
    "able": 2,
    "load": 7,
    "limit": 8,
    "free": 1,
    "reserve": 2,
    "predicted_ttft_s": 0.2,
    "predicted_tpot_s": 0.03,
    "from": "recent",
    "verdict": "reserve_kept",
}
DECISION = {
    "pools": {
        "speculative": POOL,
        "plain": POOL | {"verdict": "chosen", "reserve": 0, "from": "unmeasured", "load": 3, "free": 5},
    },
    "objective": {"ttft_s": 1.0, "tpot_s": 0.1},
    "replicas": [
        {"id": "a", "load": 3, "work": 120.0, "chosen": True, "why": "less_work"},
        {"id": "b", "load": 4, "work": 300.5, "chosen": False, "why": None},
    ],
    "reason": "spill",
}


def kept(**changes: Any) -> dict[str, Any]:
    """A record of a complete answer as it is written."""
    fields = {"decision": DECISION, "reason": "spill", "workload": "code", "tokens_per_step": 2.5} | changes
    found: dict[str, Any] = msgspec.to_builtins(
        as_fields(RequestRecord(line(1, **fields), "i", measured([record(1)]), 1.0, 0.1, Verdict.MET))
    )
    return found


def test_a_request_from_its_arrival_to_its_end() -> None:
    """What was asked, what the pools looked like, what was chosen, how long it took, what it counts as."""
    acceptance = {"drafted": 40, "draft_acceptance_rate": 0.775}
    features = {"fenced_code": True, "copy_share": 0.41234}
    assert (
        """\
request req-1 at 2027-01-15T08:00:00Z, inside the engine req-1-abc
asked: tier standard, the default: the caller named none; 1 sequence, streamed
work: class code, because of no_evidence; tokens per step with drafts predicted to be 2.5
  seen in it: fenced_code yes, copy_share 0.4123
pools when it was routed:
  speculative: what was left of it is reserved for interactive requests (reserve_kept)
    2 replicas took work, 2 of them could serve it; the emptiest had 7 of 8 sequences, 1 free, 2 of each replica reserved for interactive requests
    predicted there: TTFT 0.2 s, TPOT 0.03 s, by the requests of the last minute
  plain: taken (chosen)
    2 replicas took work, 2 of them could serve it; the emptiest had 3 of 8 sequences, 5 free
    TTFT and TPOT not predicted: nothing is measured yet
replicas compared:
  a: taken: less work left than the other one of two drawn at random (less_work); 3 sequences open, work left 120
  b: not taken; 4 sequences open, work left 300.5
route: plain, replica a, because the pool that it prefers had no room inside the objective, and this one had (spill)
waited: 0.25 s in the ingress
outcome: a complete answer (ok), HTTP 200, 1 s after its arrival
tokens: 5 of the prompt, 9 generated, ended by stop
  in the engine: 0.125 s queued, 0.125 s prefill, 0.5 s decode
  drafts: drafted 40, draft_acceptance_rate 0.775
TTFT: 0.5 s, objective 1 s
TPOT: 0.0625 s, objective 0.1 s
attainment: counts as met (met)
"""  # noqa: E501  # printed as it is
        == explain_request(kept(acceptance=acceptance, features=features))
    )


def test_retries_are_told() -> None:
    """How many replicas were asked, and that one refused what another took."""
    found = explain_request(kept(attempts=2, wider=True))
    assert "  2 replicas were asked\n  one refused a parameter with 400, and a wider one answered" in found


def test_what_the_caller_said_of_the_tier() -> None:
    """Its own word, or a word above what it may have."""
    assert "asked: tier standard, as the caller said; 3 sequences, not streamed\n" in explain_request(
        kept(tier_requested=Tier.STANDARD, sequences=3, stream=False)
    )
    assert "tier standard; the caller said interactive, which is above what it may have" in explain_request(
        kept(tier_requested=Tier.INTERACTIVE)
    )


def test_a_refused_request() -> None:
    """It reached no replica, and why; a miss counts."""
    refused = line(
        1,
        outcome=Outcome.SHED,
        status=429,
        code="queue_full",
        pool=None,
        replica=None,
        reason=None,
        attempts=0,
        first_byte_s=None,
    )
    found = explain_request(
        msgspec.to_builtins(as_fields(RequestRecord(refused, "i", None, 1.0, None, Verdict.MISSED)))
    )
    assert "pools: not known\nroute: none: it reached no replica\n" in found
    assert "outcome: refused at once: the tier's queue was full (shed), HTTP 429, queue_full, 1 s" in found
    assert found.endswith("TTFT: unknown, objective 1 s\nattainment: counts as missed (missed)\n")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"pending": True, "verdict": None}, "not judged yet, the engine's record of it is awaited"),
        ({"verdict": None}, "does not count"),
        ({"verdict": None, "objective": None}, "does not count, the tier has no objective"),
        ({"verdict": "unknown"}, f"{VERDICTS[Verdict.UNKNOWN]} (unknown)"),
        ({"verdict": "maybe"}, "maybe"),
    ],
)
def test_what_it_counts_as(changes: dict[str, Any], expected: str) -> None:
    """Why it does not count, where it does not."""
    assert explain_request(kept() | changes).endswith(f"attainment: {expected}\n")


def test_an_engine_whose_record_never_came() -> None:
    """The tokens are unknown, and said to be."""
    fields = as_fields(RequestRecord(line(1), "i"))
    assert "tokens: unknown, the engine's record of it has not come\n" in explain_request(fields)


def test_what_is_absent_is_unknown() -> None:
    """A record of another version may lack anything."""
    found = explain_request({})
    assert found.startswith("request unknown at an unknown time, inside the engine unknown\n")
    assert "asked: tier unknown; unknown sequences\n" in found
    assert found.endswith("attainment: unknown\n")


def test_unknown_words_are_shown_as_they_are() -> None:
    """A verdict, a reason and an outcome of another version, and values of another kind."""
    pools = {"third": {"verdict": "asleep", "from": "dream", "predicted_ttft_s": "soon"}, "odd": 7}
    found = explain_request(
        {
            "decision": {"pools": pools, "replicas": "none"},
            "reason": "moon",
            "pool": "third",
            "outcome": "ok?",
        }
    )
    for words in ("  third: asleep\n", "TTFT soon, TPOT unknown, dream", "because moon", "outcome: ok?,"):
        assert words in found


def test_every_word_has_a_sentence() -> None:
    """Of those that are closed lists."""
    assert (set(RouteReason), set(Outcome), set(Verdict)) == (set(ROUTES), set(OUTCOMES), set(VERDICTS))


def test_every_word_of_the_router_has_a_sentence() -> None:
    """Those that the ingress writes of a pool, and of a replica."""
    verdicts = pytest.importorskip("app.routing.verdicts")
    replicas = pytest.importorskip("app.routing.replicas")
    assert {word.value for word in verdicts.Verdict} <= set(POOLS)
    assert {word.value for word in replicas.Pick} <= set(REPLICAS)
