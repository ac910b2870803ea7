"""Moves of capacity between two real pools, under long answers: nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.policies import policy
from tests.real.conftest import settings
from tests.serve.load import Load
from tests.serve.lookout import Lookout
from tests.serve.movement import newest, order_size, targets, wait_done
from tests.service import Service

pytestmark = [pytest.mark.real, pytest.mark.long, pytest.mark.timeout(2400)]

TOKENS = 2000  # the longest answer that fits the default context
ONE_EACH = {"speculative": 1, "plain": 1}


def test_one_move_each_way_under_long_answers(tmp_path: Path) -> None:
    """Three slots: 2+1 to 1+2 and back under answers of 2,000 tokens on both pools; every token arrives."""
    made = settings(speculative={"longest_generation_s": 600.0}, plain={"longest_generation_s": 600.0}) | {
        "slots": 3
    }
    with Service(tmp_path, made, engine="vllm", policy=policy(2, 1)) as service:
        service.wait(lambda: service.ready(2, 1), 60, "2+1 replicas")
        lookout = Lookout(service, budget=3, least=ONE_EACH)
        with lookout, Load(service, streams=2, tokens=TOKENS) as load:
            for sizes in ({"speculative": 1, "plain": 2}, {"speculative": 2, "plain": 1}):
                number = newest(service.status()) + 1
                order_size(service, "speculative", sizes["speculative"])
                move = wait_done(service, number, 900)
                print(move, flush=True)
                assert sizes == targets(service.status())
                told = load.probe("plain" if sizes["plain"] == 2 else "speculative")
                assert told is not None
                assert told.fault is None
        load.check()
        lookout.check()
