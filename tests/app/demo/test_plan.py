"""The load of the demo: as large as the service, the same for the same seed."""

from __future__ import annotations

from itertools import islice

import pytest

from app.demo.answers import Phase
from app.demo.plan import copy_task, lengths, load_for, requests
from app.samples import Sample, samples
from autoscaling.types import Role, Tier


def sizes(speculative: int, plain: int) -> dict[Role, int]:
    return {Role.SPECULATIVE: speculative, Role.PLAIN: plain}


@pytest.mark.parametrize(
    ("interactive", "standard", "batch", "fills", "replicas", "limit"),
    [
        (2, 4, 48, True, sizes(1, 1), 32),
        (6, 12, 36, True, sizes(3, 3), 8),
        (2, 4, 12, True, sizes(1, 1), None),
        (2, 2, 12, True, sizes(1, 0), 8),
        (2, 8, 48, False, sizes(0, 4), 32),
        (64, 64, 48, False, sizes(100, 20), 32),
    ],
)
def test_the_load_follows_the_size_of_the_service(
    interactive: int, standard: int, batch: int, fills: bool, replicas: dict[Role, int], limit: int | None
) -> None:
    """Twice the speculative replicas, twice all, half more than the plain pool welcomes; within bounds."""
    load = load_for(replicas, {Role.SPECULATIVE: 8, Role.PLAIN: limit})

    assert {Tier.INTERACTIVE: interactive, Tier.STANDARD: standard, Tier.BATCH: batch} == load.streams
    assert fills is load.fills


def test_each_phase_sends_its_tiers() -> None:
    """Interactive in all of them, standard and batch for a time, nothing at the end."""
    load = load_for(sizes(1, 1), {Role.SPECULATIVE: 8, Role.PLAIN: 32})

    assert {
        Phase.QUIET: [2, 0, 0],
        Phase.MIXED: [2, 4, 0],
        Phase.BUSY: [2, 4, 48],
        Phase.FALL_OFF: [2, 0, 0],
        Phase.FINISHING: [0, 0, 0],
    } == {phase: list(load.at(phase).values()) for phase in Phase}


def test_the_phases_share_the_time() -> None:
    """The busy one is the longest."""
    assert [15.0, 18.75, 26.25, 15.0] == pytest.approx(list(lengths(75).values()))


def test_the_same_seed_sends_the_same_requests() -> None:
    """In the same order for each tier; another seed has another order, of the same samples."""

    def sent(seed: int) -> list[str]:
        return [one.sample for one in islice(requests(Tier.STANDARD, samples(), seed), 46)]

    assert sent(1) == sent(1)
    assert sent(1) != sent(2)
    assert set(sent(1)) == set(sent(2))


def test_interactive_callers_chat_and_copy() -> None:
    """Every kind is sent by standard callers; interactive and batch callers have their own."""
    workloads = {one.id: one.workload for one in samples()}
    found = {
        tier: {workloads[one.sample] for one in islice(requests(tier, samples(), 1), 200)} for tier in Tier
    }

    assert {"chat", "code", "rag", "summarize"} == found[Tier.INTERACTIVE]
    assert set(workloads.values()) == found[Tier.STANDARD]
    assert {"bulk", "creative", "structured", "translate"} == found[Tier.BATCH]


def test_every_request_is_a_short_stream_with_usage() -> None:
    """An answer longer than its tier's is shortened, a shorter one stays; the rest is the sample's."""
    kept = {"messages": [{"role": "user", "content": "hello"}], "temperature": 0.5}
    given = [Sample("a", "chat", kept | {"max_tokens": 320}), Sample("b", "chat", kept | {"max_tokens": 4})]
    bodies = {one.sample: one.body for one in islice(requests(Tier.INTERACTIVE, given, 1), 2)}

    usage = {"stream": True, "stream_options": {"include_usage": True}}
    assert {"a": kept | usage | {"max_tokens": 64}, "b": kept | usage | {"max_tokens": 4}} == bodies


def test_what_needs_a_parser_is_not_sent() -> None:
    """vLLM refuses tools unless its operator has named a parser for them."""
    given = [Sample("a", "chat", {"tools": [], "messages": []}), Sample("b", "chat", {"messages": []})]

    assert ["b", "b"] == [one.sample for one in islice(requests(Tier.STANDARD, given, 1), 2)]


def test_without_samples_it_says_so() -> None:
    """Instead of looking for ever."""
    with pytest.raises(ValueError, match="no sample is of a kind that batch sends"):
        next(requests(Tier.BATCH, [], 1))


def test_the_copying_task_has_one_length() -> None:
    """So that both pools have the same to do."""
    task = copy_task()

    assert (64, True, 0) == tuple(task.body[key] for key in ("max_tokens", "ignore_eos", "temperature"))
