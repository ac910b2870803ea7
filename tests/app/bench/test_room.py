"""Which batches both engines have room for, and which still show something."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from app.bench.plan import Pair, Plan
from app.bench.room import Room
from autoscaling.types import Role
from tests.app.bench.test_saturation import runs

PLAN = Plan(batches=(1, 4, 16), hold_out=(32,), lengths=(4,), workloads=("chat",), rounds=3, answer_tokens=40)


def engine(tokens: int | None) -> Any:
    return SimpleNamespace(capabilities=SimpleNamespace(kv_cache_tokens=tokens))


def test_a_batch_needs_room_for_its_longest_prompt_and_its_answers() -> None:
    """16 times 60 and 40 tokens; an engine that does not tell what it holds refuses nothing."""
    room = Room({Role.SPECULATIVE: engine(1599), Role.PLAIN: engine(None)}, PLAN)
    room.learn("chat", [SimpleNamespace(prompt_tokens=60), SimpleNamespace(prompt_tokens=None)])  # type: ignore[list-item]
    room.learn("chat", [SimpleNamespace(prompt_tokens=12)])  # type: ignore[list-item]

    words = "chat at 16 sequences: needs 1600 tokens of KV cache, the speculative engine has 1599"
    assert words == room.too_large(Pair(16, "chat", 4))
    assert room.too_large(Pair(4, "chat", 4)) is None


def test_what_is_left_out_by_saturation_is_told_once_with_its_round() -> None:
    """Later rounds find the same: the larger batches of the first one are still among what was measured."""
    room = Room(dict.fromkeys(Role, engine(None)), PLAN)
    found = runs({1: 100.0, 4: 300.0, 16: 301.0, 32: 301.0}, {1: 100.0, 4: 300.0, 16: 301.0, 32: 301.0})

    assert 32 == room.most
    assert "more than 16 sequences from round 2 on: no engine gains there" == room.saturate(found, 2)
    assert 16 == room.most
    assert room.saturate(found, 3) is None
