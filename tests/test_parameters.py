"""The probes of parameters name every field of vLLM's request models; the table's words."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from deployments.edits import STEERING_FIELDS, TEMPLATE_FIELD
from tests.parameters import (
    ABSENT,
    CHAT,
    COMPLETIONS,
    HEAD,
    NOT_ACCEPTED,
    PATHS,
    PROBES,
    SERVED,
    Measured,
    Result,
    body,
    cell,
    note,
    probes,
    table,
)

MODELS = {
    CHAT: "chat_completion.protocol:ChatCompletionRequest",
    COMPLETIONS: "completion.protocol:CompletionRequest",
}
EACH = [(path, name) for path in PATHS for name in PROBES[path]]
OK = Result(200)


def model_of(path: str) -> Any:
    """VLLM's own request model of an endpoint."""
    pytest.importorskip("vllm")
    module, _, name = MODELS[path].partition(":")
    return getattr(import_module(f"vllm.entrypoints.openai.{module}"), name)


@pytest.mark.contract
@pytest.mark.parametrize("path", PATHS)
def test_every_field_of_vllm_is_probed(path: str) -> None:
    """A version with another field needs another probe, and docs/parameters.md written anew."""
    assert set(model_of(path).model_fields) == set(PROBES[path])


@pytest.mark.contract
@pytest.mark.parametrize(("path", "name"), EACH)
def test_every_probe_asks_for_something(path: str, name: str) -> None:
    """The engine reads it as something else than its default; what we take out, it would not read at all."""
    model = model_of(path)
    if name in STEERING_FIELDS:
        with pytest.raises(ValueError, match=name):
            model.model_validate(body(path, name))
        return
    read = model.model_validate(body(path, name))
    default = model.model_fields[name].get_default(call_default_factory=True)

    assert name in read.model_fields_set
    assert default != getattr(read, name)


# --- the table


def measured(changes: Measured) -> Measured:
    """Everything served, but for `changes`."""
    return dict.fromkeys(probes(), OK) | dict(changes)


def row(name: str, changes: Measured) -> tuple[str, ...]:
    (found,) = [row for row in table(measured(changes)) if row[0] == name]
    return found


def test_the_table_has_each_field_once() -> None:
    """In the order of the alphabet, each with a word per column."""
    rows = table(measured({}))

    assert sorted({*PROBES[CHAT], *PROBES[COMPLETIONS]}) == [row[0] for row in rows]
    assert {len(HEAD)} == {len(row) for row in rows}
    assert len(list(probes())) == 3 * len(EACH)


def test_a_served_and_an_absent_field() -> None:
    """A field that one endpoint lacks has no word there."""
    assert ("seed", SERVED, SERVED, SERVED, SERVED) == row("seed", {})
    assert ("messages", SERVED, ABSENT, SERVED, SERVED) == row("messages", {})
    assert ("prompt", ABSENT, SERVED, SERVED, SERVED) == row("prompt", {})


def test_a_refusal_of_one_pool() -> None:
    """A caller who names no pool is served; the pool's word is in its column, with the engine's reason."""
    refused = Result(400, "parameter_not_supported", "It is not yet `supported`. Or | is it?")
    changes: Measured = {(path, "min_p", "speculative"): refused for path in PATHS}

    expected = ("min_p", SERVED, SERVED, "refused (parameter_not_supported)", SERVED)
    assert expected == row("min_p", changes)
    assert "“It is not yet 'supported'”" == note(measured(changes), "min_p")
    assert ABSENT == note(measured({}), "min_p")


def test_endpoints_that_differ() -> None:
    """Then the pool's column has a word for each."""
    changes: Measured = {(CHAT, "echo", "plain"): Result(400, "invalid_value", "No.")}

    assert ("echo", SERVED, SERVED, SERVED, "chat: refused (invalid_value); completions: served") == row(
        "echo", changes
    )


def test_what_is_not_accepted_from_clients() -> None:
    """Taken out and answered, or refused by us; a refusal by the engine would show that it came through."""
    assert NOT_ACCEPTED == cell("priority", OK)
    assert NOT_ACCEPTED == cell(TEMPLATE_FIELD, Result(400, "unsafe_parameter", "No."))
    assert "refused (invalid_value)" == cell("priority", Result(400, "invalid_value", "No."))
