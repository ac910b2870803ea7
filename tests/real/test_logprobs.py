"""Log probabilities, penalties and `min_p` beside speculation: the same values, nothing hidden in a mean."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from typing import Any

import pytest

from tests.real.prompts import COPY_HEAVY
from tests.service import MODEL, Service, chat

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
PENALTY = 0.5
MEDIAN_NAT = 0.05
EACH_NAT = 0.25  # a logit of 16 to 32 has steps of 0.125 in bfloat16, the engines' number type
NEAR_TIE_NAT = 0.25  # as in tests/real/test_pools.py
SHOWN = 5  # most probable tokens per position: a near tie has both of its tokens among them
DRAFTS = re.compile(r"^vllm:spec_decode_num_(\w+?)_total (\S+)$", re.MULTILINE)

Position = tuple[str, float, dict[str, float]]  # token, its log probability, the most probable ones


def ask(service: Service, path: str, pool: str) -> tuple[list[Position], dict[str, Any]]:
    """A greedy answer on a copy-heavy prompt with the case's parameters: its positions, and all of it."""
    text = COPY_HEAVY["records"]
    if path == CHAT:
        body = chat(f"Copy this text.\n{text}", logprobs=True, top_logprobs=SHOWN)
    else:
        body = {"model": MODEL, "prompt": text, "temperature": 0, "logprobs": SHOWN}
    body |= {"max_tokens": 48, "frequency_penalty": PENALTY}
    answer = service.post(body, path=path, headers={"x-twinpool-pool": pool})
    assert answer.status_code == 200, answer.text
    whole: dict[str, Any] = answer.json()
    said = whole["choices"][0]["logprobs"]
    if path == COMPLETIONS:
        positions = list(zip(said["tokens"], said["token_logprobs"], said["top_logprobs"], strict=True))
    else:
        positions = [
            (one["token"], one["logprob"], {top["token"]: top["logprob"] for top in one["top_logprobs"]})
            for one in said["content"]
        ]
    return positions, whole


def drafts_of(whole: dict[str, Any]) -> int:
    """Draft tokens of one answer, by its own word; 0 when it says nothing of speculation."""
    found = (whole.get("metrics") or {}).get("speculative_decoding") or {}
    return int(found.get("num_draft_tokens", 0))


def fleet(service: Service) -> dict[str, float]:
    """The drafts of the whole fleet: `drafts`, `draft_tokens` and `accepted_tokens`, once all is reported."""
    service.settled("finished")
    found = {name: float(value) for name, value in DRAFTS.findall(service.get("/metrics").text)}
    assert {"drafts", "draft_tokens", "accepted_tokens"} == set(found)
    return found


def acceptance(service: Service) -> float | None:
    found: float | None = service.status()["pools"]["speculative"]["draft_acceptance_rate"]
    return found


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_logprobs_of_both_pools_agree(service: Service, path: str) -> None:
    """Case D7: with a penalty drafts are still made, and values are the plain pool's while texts agree."""
    plain, plain_whole = ask(service, path, "plain")
    speculative, whole = ask(service, path, "speculative")
    assert drafts_of(whole) > 0
    assert drafts_of(plain_whole) == 0
    apart = []
    parted = None
    for at, (left, right) in enumerate(zip(plain, speculative, strict=False)):
        if left[0] != right[0]:
            parted = at
            break
        apart.append(abs(left[1] - right[1]))
    print(f"{path}: {len(apart)} tokens, apart {statistics.median(apart):.4f}, at most {max(apart):.4f}")
    assert len(apart) >= 4
    assert statistics.median(apart) <= MEDIAN_NAT
    assert max(apart) <= EACH_NAT
    assert (
        min(value for _, value, _ in speculative) < -0.01
    )  # not the 0.0 of a position that was not computed
    if parted is not None:
        # The engine chooses after the penalty, and shows the values before it.
        used = Counter(token for token, _, _ in plain[:parted])
        shown = plain[parted][2]
        chosen = [
            shown[token] - PENALTY * used[token] for token in (plain[parted][0], speculative[parted][0])
        ]
        assert abs(chosen[0] - chosen[1]) <= NEAR_TIE_NAT, (parted, shown)


def test_a_request_without_speculation_is_visible(service: Service) -> None:
    """Case D7: `min_p` goes to the plain pool and says so; pinned it is refused; no draft is counted."""
    ask(service, COMPLETIONS, "speculative")
    before, rate = fleet(service), acceptance(service)
    body = chat("Hi", logprobs=True, top_logprobs=2, frequency_penalty=PENALTY, min_p=0.1, max_tokens=8)
    answer = service.post(body, headers={"x-twinpool-tier": "interactive"})
    assert answer.status_code == 200, answer.text
    assert ("plain", "capability") == (
        answer.headers["x-twinpool-pool"], answer.headers["x-twinpool-route-reason"]
    )  # fmt: skip
    assert "speculative_decoding" not in (answer.json().get("metrics") or {})
    assert len(answer.json()["choices"][0]["logprobs"]["content"][0]["top_logprobs"]) == 2
    pinned = service.post(body, headers={"x-twinpool-pool": "speculative"})
    assert (400, "parameter_not_supported") == (pinned.status_code, pinned.json()["error"]["code"])
    assert before == fleet(service)
    assert rate == acceptance(service)


def test_an_answer_without_drafts_lowers_nothing(service: Service) -> None:
    """Case D7: on the speculative pool an answer of one token has no drafts, and leaves the acceptance be."""
    ask(service, COMPLETIONS, "speculative")
    before, rate = fleet(service), acceptance(service)
    assert before["draft_tokens"] > 0
    assert rate is not None
    answer = service.post(chat("Hi", max_tokens=1), headers={"x-twinpool-pool": "speculative"})
    assert answer.status_code == 200, answer.text
    assert drafts_of(answer.json()) == 0
    assert before == fleet(service)
    assert rate == acceptance(service)
