"""/v1/models from what the replicas say."""

from __future__ import annotations

from dataclasses import replace

from app.models import model_cards
from autoscaling.types import ReplicaView, Role
from tests.app.views import view


def with_length(replica_id: str, length: int, role: Role = Role.PLAIN) -> ReplicaView:
    found = view(replica_id, role)
    return replace(found, capabilities=replace(found.capabilities, max_model_len=length))


def test_no_replica_no_model() -> None:
    """Nothing is announced that nobody serves."""
    assert model_cards([]) == []


def test_one_card_per_name() -> None:
    """The canonical name first, then the aliases, each with its root."""
    assert model_cards([view()]) == [
        {
            "id": name,
            "object": "model",
            "created": 1764547200,
            "owned_by": "twinpool",
            "root": "m",
            "parent": None,
            "max_model_len": 2048,
        }
        for name in ("m", "m:interactive", "m:batch")
    ]


def test_replicas_of_one_model_share_its_cards() -> None:
    """However many replicas of both pools, a name is listed once, with the widest context."""
    replicas = [with_length("a", 2048), with_length("b", 4096, Role.SPECULATIVE), with_length("c", 1024)]
    assert [(card["id"], card["max_model_len"]) for card in model_cards(replicas)] == [
        ("m", 4096),
        ("m:interactive", 4096),
        ("m:batch", 4096),
    ]


def test_another_name_is_another_card() -> None:
    """During a rename both names are listed, each under its own root."""
    found = model_cards([view("a", models=("m", "m:batch")), view("b", models=("new", "m:batch"))])
    assert [(card["id"], card["root"]) for card in found] == [("m", "m"), ("m:batch", "m"), ("new", "new")]
