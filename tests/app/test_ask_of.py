"""From a body to what routing knows of a request."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.ask_of import LONG_PROMPT, Asked, asked
from app.peek import fields_of, peek
from app.workload.classify import WorkloadClass
from autoscaling.routing_rules import RoutingRules
from autoscaling.types import Role, Tier

CHAT = "/v1/chat/completions"
RULES = RoutingRules()
CODE = (
    "def add(one, other):\n    return one + other\n\n\ndef subtract(one, other):\n    return one - other\n"
    * 8
)


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def read(
    messages: list[dict[str, str]],
    rules: RoutingRules = RULES,
    method: str | None = "ngram",
    pin: Role | None = None,
    **more: Any,
) -> Asked:
    """A chat request of the standard tier."""
    body = msgspec.json.encode({"messages": messages, "max_tokens": 128, "temperature": 0, **more})
    fields = fields_of(b"application/json", body)
    return asked(CHAT, fields, peek(CHAT, fields), Tier.STANDARD, pin, rules, method)


def test_what_routing_reads_of_a_request() -> None:
    """Tier and pin as given, sequences and parameters as peeked at, lengths as estimated."""
    found = read([user("x" * 400)], pin=Role.PLAIN, n=3, min_p=0.1).ask

    assert (found.tier, found.pin, found.sequences, found.max_tokens) == (Tier.STANDARD, Role.PLAIN, 3, 128)
    assert found.parameters == frozenset({"min_p"})
    assert found.prompt_tokens == 100
    assert found.among is None


def test_drafts_pay_for_code_and_not_for_talk() -> None:
    """By the class, for a drafter that copies from the prompt."""
    code, talk = read([user(f"Add type hints:\n{CODE}")]), read([user("Tell me a story about the sea.")])

    assert (code.workload.kind, code.ask.draftable) == (WorkloadClass.CODE, True)
    assert (talk.workload.kind, talk.ask.draftable) == (WorkloadClass.CHAT, False)
    assert code.ask.tokens_per_step is not None
    assert talk.ask.tokens_per_step is not None
    assert code.ask.tokens_per_step >= 1.3 > talk.ask.tokens_per_step


@pytest.mark.parametrize(
    ("rules", "method"), [(RoutingRules(classify=False), "ngram"), (RULES, None)], ids=["off", "no drafter"]
)
def test_nothing_is_draftable_without_a_drafter_or_when_the_policy_leaves_it_out(
    rules: RoutingRules, method: str | None
) -> None:
    """The prediction itself stays, where there is one: it tells the time per token."""
    found = read([user(f"Add type hints:\n{CODE}")], rules, method).ask

    assert not found.draftable
    assert (found.tokens_per_step is None) == (method is None)


def test_what_the_profile_measured_wins() -> None:
    """Talk drafts well on this engine, so it is sent where drafts are made."""
    measured = RoutingRules(tokens_per_step={"chat": 3.0})

    assert read([user("Tell me a long story about the sea and its ships.")], measured).ask.draftable


def test_the_turns_of_a_conversation_are_told_by_their_beginning() -> None:
    """From the second turn on; the first one goes anywhere, unless it is long."""
    first = [user("Hello, who are you?")]
    second = [*first, {"role": "assistant", "content": "A model."}, user("And what can you do?")]
    third = [*second, {"role": "assistant", "content": "Talk."}, user("Then talk.")]
    other = [user("Hello, who am I?"), *second[1:]]

    assert read(first).ask.conversation is None
    assert read(second).ask.conversation is not None
    assert read(second).ask.conversation == read(third).ask.conversation
    assert read(second).ask.conversation != read(other).ask.conversation


def test_a_long_first_prompt_has_a_home_too() -> None:
    """From 512 tokens on, that of 2048 bytes: whoever sends it again meets its prefix."""
    assert LONG_PROMPT == 512
    assert read([user("x" * 2047)]).ask.conversation is not None
    assert read([user("x" * 2040)]).ask.conversation is None
