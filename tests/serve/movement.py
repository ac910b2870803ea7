"""What tests of moves share: settings, the words of a status, and an operator's orders."""

from __future__ import annotations

import hashlib
import time
from typing import Any

import httpx

from tests.service import Service

STEP_S = 0.05
ROLES = ("speculative", "plain")
REPORTED_S = 1.5  # a replica's newest report is younger
MOVING = ("draining", "starting")

Status = dict[str, Any]
Sizes = dict[str, int]


def settings(slots: int = 4, start_s: float = 2.0, **changes: Any) -> dict[str, Any]:
    """Settings whose engines make 20 steps a second; `changes` are per pool, for its engine, or top-level."""
    pools = {}
    for role in ROLES:
        simulation = {"start_s": start_s, "step_base_s": STEP_S, "step_per_token_s": 0.0}
        # A context in which 60 s of speculative steps fit.
        engine = {"simulation": simulation, "max_model_len": 8192} | changes.pop(role, {})
        pools[role] = {"longest_generation_s": 120.0, "engine": engine}
    return pools | {"slots": slots} | changes


# --- what the service says -------------------------------------------------------------------------


def targets(status: Status) -> dict[str, int | None]:
    """Both pools' targets; None where nothing has been decided yet."""
    return {role: pool["target"] for role, pool in (status["pools"] or {}).items()}


def ids(status: Status, role: str) -> set[str]:
    """The replicas of a pool that report."""
    return {replica["id"] for replica in status["pools"][role]["replicas"]}


def newest(status: Status) -> int:
    """The number of the newest move, 0 before the first."""
    return int(status["moves"][0]["id"].removeprefix("m")) if status["moves"] else 0


def known(service: Service) -> Status | None:
    """The status while a controller answers that has decided something; None otherwise."""
    try:
        status = service.status()
    except httpx.HTTPError:
        return None
    if not status["controller"]["reachable"] or None in targets(status).values():
        return None
    return status


def move_of(service: Service, number: int) -> dict[str, Any] | None:
    """The newest word on a move; None while nobody knows it."""
    status = known(service)
    found = [] if status is None else [move for move in status["moves"] if move["id"] == f"m{number}"]
    return found[0] if found else None


def wait_done(service: Service, number: int, limit_s: float = 90) -> dict[str, Any]:
    """The move, once it has ended well; any other end fails."""

    def ended() -> bool:
        move = move_of(service, number)
        return move is not None and move["state"] not in MOVING

    service.wait(ended, limit_s, f"the end of m{number}")
    move = move_of(service, number)
    assert move is not None
    assert move["state"] == "done", move
    return move


def generated(service: Service) -> int:
    """Tokens in the engines' own records of finished requests, replicas that are gone included."""
    service.wait(service.idle, 30, "every counter of open work at 0")
    time.sleep(REPORTED_S)
    return int(service.status()["finished"]["generated_tokens"])


# --- what an operator does -------------------------------------------------------------------------


def order_size(service: Service, pool: str, replicas: int) -> dict[str, Any]:
    """Force a pool's size for an hour; returns the override.  An earlier one should have been cleared."""
    order = {"pool": pool, "replicas": replicas, "for_s": 3600.0, "reason": "test", "who": "test"}
    found: dict[str, Any] = service.order("POST", "/admin/overrides", order)["override"]
    return found


def clear(service: Service) -> None:
    """End every override; targets stay where the policy allows them."""
    service.order("DELETE", "/admin/overrides/all?who=test")


def bring(service: Service, speculative: int, plain: int) -> None:
    """Have the pools at these sizes, and no override left."""
    status = service.status()
    if targets(status) != {"speculative": speculative, "plain": plain}:
        clear(service)
        order_size(service, "speculative", speculative)
        wait_done(service, newest(status) + 1)
    service.wait(lambda: service.ready(speculative, plain), 30, f"{speculative}+{plain} replicas")
    clear(service)


def edit(service: Service, text: str) -> None:
    """Write a policy and wait until it acts."""
    service.policy_file.write_text(text)
    sha = hashlib.sha256(text.encode()).hexdigest()

    def acts() -> bool:
        policy = service.status()["policy"]
        return policy["sha"] == sha and policy["last_error"] is None

    service.wait(acts, 15, "the policy to act")
