"""Moves of capacity under open streams: nothing is lost, the budget holds, and how long a move takes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.policies import policy
from tests.serve.load import Load
from tests.serve.lookout import Lookout
from tests.serve.movement import (
    bring,
    clear,
    edit,
    ids,
    move_of,
    newest,
    settings,
    targets,
    wait_done,
)
from tests.serve.timeline import plain, table, table_lines, timed_move
from tests.service import Service

pytestmark = [pytest.mark.serve, pytest.mark.timeout(240)]

ONE_EACH = {"speculative": 1, "plain": 1}
# Sizes of the speculative pool, of four replicas in all, one move after another, there and back.
CYCLE = (1, 3, 2, 3)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    calm = policy(3, 1, name="calm", behavior={"cooldownSeconds": 2})
    with Service(tmp_path_factory.mktemp("moves"), settings(), policy=calm) as service:
        service.wait(lambda: service.ready(3, 1), 30, "all four replicas")
        yield service


@pytest.fixture
def service(running: Service) -> Iterator[Service]:
    """3+1 replicas, idle, without overrides; afterwards idle again."""
    bring(running, 3, 1)
    yield running
    clear(running)
    running.wait(running.idle, 60, "every counter of open work at 0")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_moves_of_unequal_accelerators_stay_in_the_budget(tmp_path: Path) -> None:
    """A speculative replica takes two accelerators, a plain one takes one: two for one, there and back."""
    sizes: dict[str, Any] = {
        "speculative": {"acceleratorsPerReplica": 2, "maxReplicas": 2},
        "plain": {"maxReplicas": 3},
    }
    made = settings(slots=5, speculative={"tensor_parallel_size": 2})
    with Service(tmp_path, made, policy=policy(1, 3, most=5, pools=sizes)) as service:
        service.wait(lambda: service.ready(1, 3), 30, "1+3 replicas")
        lookout = Lookout(service, budget=5, least=ONE_EACH, shares={"speculative": 2, "plain": 1})
        with Load(service, streams=2, seconds=(2, 4)) as load, lookout:
            to_speculative = timed_move(service, load, "speculative", 2)
            assert {"speculative": 2, "plain": 1} == targets(service.status())
            to_plain = timed_move(service, load, "plain", 3)
            assert {"speculative": 1, "plain": 3} == targets(service.status())
        load.check()
        lookout.check()
        assert ("m1", "plain", "speculative", 1) == (
            to_speculative.id,
            to_speculative.source,
            to_speculative.receiver,
            to_speculative.count,
        )
        assert ("m2", "speculative", "plain", 2) == (
            to_plain.id,
            to_plain.source,
            to_plain.receiver,
            to_plain.count,
        )


@pytest.mark.long
def test_moves_there_and_back_lose_nothing(service: Service) -> None:
    """3+1, 1+3, 3+1 under open streams: none is cut, no token is missing, the budget holds."""
    before = newest(service.status())
    timelines = []
    lookout = Lookout(service, budget=4, least=ONE_EACH)
    with Load(service, streams=3, seconds=(4, 8)) as load, lookout:
        for speculative in CYCLE[:2]:
            timelines.append(timed_move(service, load, "speculative", speculative))
            print(timelines[-1].line(), flush=True)
            assert {"speculative": speculative, "plain": 4 - speculative} == targets(service.status())
    load.check()
    lookout.check()
    assert [f"m{before + step}" for step in (1, 2)] == [one.id for one in timelines]
    assert [("speculative", "plain", 2), ("plain", "speculative", 2)] == [
        (one.source, one.receiver, one.count) for one in timelines
    ]
    # The same by the status: no move beside them, none unfinished.
    assert before + 2 == newest(service.status())
    for step in (1, 2):
        move = move_of(service, before + step)
        assert move is not None
        assert ("done", "override") == (move["state"], move["reason"])


@pytest.mark.long
def test_load_moves_a_replica_and_brings_it_back(service: Service) -> None:
    """A short pool gets a replica of the idle one by the policy alone, and gives it back when load turns."""
    calm = service.policy_file.read_text()
    quick = policy(
        1,
        3,
        name="quick",
        pools={
            "speculative": {"maxReplicas": 2, "limits": {"softInflight": 2}},
            "plain": {"maxReplicas": 3, "limits": {"softInflight": 2}},
        },
        behavior={
            "cooldownSeconds": 2,
            "scaleUp": {"stabilizationWindowSeconds": 2},
            "scaleDown": {"stabilizationWindowSeconds": 2},
        },
    )
    bring(service, 1, 3)
    edit(service, quick)
    try:
        before = service.status()
        number = newest(before) + 1
        lookout = Lookout(service, budget=4, least={"speculative": 1, "plain": 2})
        with lookout:
            interactive = {"speculative": {"x-twinpool-tier": "interactive"}}
            with Load(service, interactive, streams=6, seconds=(1, 2)) as load:
                there = wait_done(service, number)
                new = ids(service.status(), "speculative") - ids(before, "speculative")
                service.wait(
                    lambda: any(told.replica in new for told in list(load.told)),
                    30,
                    "work on the new replica",
                )
            load.check()
            batch = {"plain": {"x-twinpool-tier": "batch"}}
            with Load(service, batch, streams=6, seconds=(2, 4)) as load:
                back = wait_done(service, number + 1)
            load.check()
        lookout.check()
        assert 1 == len(new)
        words = ("from", "to", "count", "reason")
        assert ("plain", "speculative", 1, "shortfall") == tuple(there[word] for word in words)
        assert ("speculative", "plain", 1, "shortfall") == tuple(back[word] for word in words)
        assert {"speculative": 1, "plain": 3} == targets(service.status())
        assert number + 1 == newest(service.status())
    finally:
        edit(service, calm)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_a_hundred_moves_lose_nothing(service: Service) -> None:
    """Moves in both directions under streams of 20 to 60 s; prints and keeps how long each part took.

    `TWINPOOL_MOVES` is their number: 100 take 45 min, and 20 leave room for the rest of the long suite.
    `TWINPOOL_MOVES_JSON` is a file for the figures.
    """
    count = int(os.environ.get("TWINPOOL_MOVES", "20"))
    before = newest(service.status())
    timelines = []
    lookout = Lookout(service, budget=4, least=ONE_EACH)
    with Load(service, streams=3, seconds=(20, 60)) as load, lookout:
        for step in range(count):
            timelines.append(timed_move(service, load, "speculative", CYCLE[step % len(CYCLE)]))
            print(f"{step + 1}/{count} {timelines[-1].line()}; lost {len(load.lost)}", flush=True)
    load.check()
    lookout.check()
    assert [f"m{before + step + 1}" for step in range(count)] == [one.id for one in timelines]
    found = table(timelines)
    print("\n".join(table_lines(found)), flush=True)
    kept = os.environ.get("TWINPOOL_MOVES_JSON")
    if kept:
        figures = {
            "moves": plain(timelines),
            "seconds": found,
            "streams": len(load.told),
            "tokens": load.tokens,
            "lost": len(load.lost),
        }
        Path(kept).write_text(json.dumps(figures, indent=1) + "\n")
