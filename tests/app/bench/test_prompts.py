"""The prompts of a measurement: built in, from a file, and which ones a cell gets."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from app.bench.prompts import (
    CONTEXTS,
    WORKLOADS,
    Context,
    Prompt,
    PromptsError,
    built_in,
    cells_of,
    context_of,
    for_workloads,
    read_prompts,
)
from app.peek import peek
from tests.app.workload.bodies import CHAT, classed, fields


def text_of(prompt: Prompt) -> str:
    return "\n".join(message["content"] for message in prompt.body["messages"])


def made(workload: str, number: int) -> tuple[Prompt, ...]:
    return tuple(
        Prompt(
            f"{workload}-{at}", workload, {"messages": [{"role": "user", "content": f"text {at}"}]}, "short"
        )
        for at in range(number)
    )


def write(path: Path, *found: Any) -> Path:
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in found), "utf-8")
    return path


def quiet(_text: str) -> None:
    return


# Built in


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_there_are_enough_for_a_batch_of_sixteen(workload: str, context: Context) -> None:
    """At least 16 of each kind and length, all different, each with a name of its own."""
    found = built_in([workload], [context])

    assert 16 <= len(found) == len({one.id for one in found}) == len({text_of(one) for one in found})
    assert {(workload, context)} == {(one.workload, one.context) for one in found}
    assert {context} == {context_of(one.body["messages"]) for one in found}


def test_the_headline_workloads_have_more() -> None:
    """40 questions and 24 texts to copy before any comes again."""
    found = Counter(one.workload for one in built_in(["chat", "copy"]))

    assert found["chat"] >= 40
    assert found["copy"] >= 24


@pytest.mark.parametrize(("context", "tokens"), [("short", 128), ("medium", 512), ("long", 1250)])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_lengths_are_what_they_are_called(workload: str, context: Context, tokens: int) -> None:
    """On average 0.75 to 1.5 times 128, 512 and 1250 tokens; a question of a chat is shorter."""
    found = built_in([workload], [context])
    mean = sum(len(text_of(one)) for one in found) / len(found) / 4

    assert mean <= 1.5 * tokens
    assert mean >= 0.75 * tokens or (workload, context) == ("chat", "short")


@pytest.mark.parametrize("workload", ["chat", "code", "math", "translate", "grounded", "structured"])
def test_short_prompts_are_of_the_class_that_they_stand_for(workload: str) -> None:
    """The ingress would put at least four of five into the class whose name they have."""
    found = [str(classed(*one.body["messages"]).kind) for one in built_in([workload])]

    assert found.count(workload) >= 0.8 * len(found)


def test_texts_to_copy_come_with_the_request() -> None:
    """Programs and records in turn, so that a batch of any size has both."""
    found = built_in(["copy"])

    assert 12 == sum("code" in text_of(one).split("\n")[0] for one in found[:24:2])
    assert all(len(text_of(one)) > 200 for one in found)


def test_built_in_prompts_are_bodies_that_the_endpoint_takes() -> None:
    """Messages alone: how an answer is sampled, and how long it is, is for who measures."""
    for prompt in built_in(WORKLOADS, CONTEXTS):
        assert {"messages"} == set(prompt.body)
        assert (None, False) == (
            peek(CHAT, fields(prompt.body)).model,
            peek(CHAT, fields(prompt.body)).stream,
        )


def test_workloads_and_contexts_come_in_the_order_asked_for() -> None:
    """One after the other, the contexts inside of a workload."""
    found = built_in(["math", "chat"], ["long", "short"])

    seen = dict.fromkeys((one.workload, one.context) for one in found)
    assert [("math", "long"), ("math", "short"), ("chat", "long"), ("chat", "short")] == list(seen)


def test_an_unknown_workload_is_refused_with_those_that_are_known() -> None:
    """The message names it and what can be chosen."""
    with pytest.raises(PromptsError) as caught:
        built_in(["chat", "poems"])

    assert (
        "no built-in prompts of workload 'poems': "
        "choose of chat, copy, code, math, translate, grounded, structured" == str(caught.value)
    )


# Which prompts a cell gets


def test_a_cell_gets_its_prompts_from_the_rotation_on() -> None:
    """The ones of its workload, in their order, and the same at every call."""
    prompts = (*made("a", 4), *made("b", 4))

    assert ["b-1", "b-2"] == [one.id for one in cells_of(prompts, "b", 2, 1)]
    assert cells_of(prompts, "b", 2, 1) == cells_of(prompts, "b", 2, 1)
    assert () == cells_of(prompts, "b", 0, 3)


def test_prompts_that_come_again_are_other_prompts() -> None:
    """A case number before the text keeps them apart in a prefix cache, in this round and the next."""
    found = cells_of(made("a", 2), "a", 5, 1)

    assert ["a-1", "a-0/2", "a-1/2", "a-0/3", "a-1/3"] == [one.id for one in found]
    assert ["text 1", "Case 2.\ntext 0", "Case 2.\ntext 1", "Case 3.\ntext 0", "Case 3.\ntext 1"] == [
        text_of(one) for one in found
    ]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_batch_of_128_has_no_two_alike(workload: str) -> None:
    """Also where there are only 24 texts."""
    found = cells_of(built_in([workload]), workload, 128, 640)

    assert 128 == len({text_of(one) for one in found}) == len({one.id for one in found})


def test_the_case_number_comes_first_whatever_the_first_message_is() -> None:
    """A list of parts gets a part more, a call of a tool a message before it."""
    parts = [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]
    call = [{"role": "assistant", "content": None, "tool_calls": []}]
    prompts = [
        Prompt("p", "parts", {"messages": parts}, "short"),
        Prompt("c", "call", {"messages": call}, "short"),
    ]

    assert [{"type": "text", "text": "Case 2."}, {"type": "text", "text": "hello"}] == cells_of(
        prompts, "parts", 1, 1
    )[0].body["messages"][0]["content"]
    assert [{"role": "system", "content": "Case 2."}, *call] == cells_of(prompts, "call", 1, 1)[0].body[
        "messages"
    ]
    assert "hello" == parts[0]["content"][0]["text"]  # the prompt itself is as it was


def test_a_workload_without_prompts_is_refused() -> None:
    """The message names those that have some."""
    with pytest.raises(PromptsError, match=r"no prompt of workload 'x': choose one that is there \(a, b\)"):
        cells_of((*made("b", 1), *made("a", 1)), "x", 1, 0)


# From a file


def test_a_line_is_a_chat_or_a_prompt(tmp_path: Path) -> None:
    """Both become bodies of a chat; a line without an id is named by its number, counted with empty ones."""
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    path = write(
        tmp_path / "p.jsonl", {"messages": chat, "class": "chat", "id": 7}, "", {"prompt": "Hi there."}
    )

    first, second = read_prompts(path, quiet)

    assert Prompt("7", "chat", {"messages": chat}, "short") == first
    assert (
        Prompt("line-3", "chat", {"messages": [{"role": "user", "content": "Hi there."}]}, "short") == second
    )


def test_without_a_class_a_line_is_classified_as_the_ingress_does_it(tmp_path: Path) -> None:
    """By its text and its fields; a word that is given wins, whatever the text."""
    path = write(
        tmp_path / "p.jsonl",
        {"prompt": "Translate into German: The door is open."},
        {"prompt": "Will it rain?", "tools": [{"type": "function", "function": {"name": "weather"}}]},
        {"prompt": "Translate into German: The door was open.", "workload": "tickets"},
    )

    assert ["translate", "structured", "tickets"] == [one.workload for one in read_prompts(path, quiet)]


def test_what_shapes_an_answer_is_kept(tmp_path: Path) -> None:
    """Sampling, tools and a grammar; the limit of the answer under whichever of its names."""
    given = {"prompt": "Hi", "temperature": 0.5, "top_p": 0.9, "response_format": {"type": "json_object"}}
    path = write(tmp_path / "p.jsonl", given | {"output_tokens": 12}, {"prompt": "Ho", "max_tokens": 5})

    first, second = read_prompts(path, quiet)

    assert {
        "temperature": 0.5,
        "top_p": 0.9,
        "response_format": {"type": "json_object"},
        "max_tokens": 12,
        "messages": [{"role": "user", "content": "Hi"}],
    } == dict(first.body)
    assert 5 == second.body["max_tokens"]


def test_the_context_follows_from_the_length(tmp_path: Path) -> None:
    """Up to 256 and 1000 tokens of four characters, over all messages and parts."""
    parts = [{"type": "text", "text": "y" * 4000}, {"type": "image_url", "image_url": {"url": "x"}}]
    path = write(
        tmp_path / "p.jsonl",
        {"prompt": "x" * 1024},
        {"prompt": "x" * 1025},
        {"messages": [{"role": "user", "content": parts}]},
        {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": parts}]},
    )

    assert ["short", "medium", "medium", "long"] == [one.context for one in read_prompts(path, quiet)]


def test_nothing_of_a_usable_line_is_left_out_in_silence(tmp_path: Path) -> None:
    """Fields that are not sent, repeated lines, and words that routing does not know are counted and told."""
    told: list[str] = []
    path = write(
        tmp_path / "p.jsonl",
        {"prompt": "Hi", "stream": True, "stop": "x", "class": "chat"},
        {"prompt": "Ho", "stream": False, "class": "tickets"},
        {"prompt": "Hi", "class": "chat"},
    )

    found = read_prompts(path, told.append)

    assert ["line-1", "line-2"] == [one.id for one in found]
    assert [
        f"{path}: these fields are not sent, the number of lines behind each: stop (1), stream (2)",
        f"{path}: 1 lines say the same as earlier ones and are left out: 3",
        f"{path}: measured, but no classes that requests are routed by: tickets",
    ] == told


def test_without_a_listener_it_is_told_on_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Standard output stays for what programs read."""
    path = write(tmp_path / "p.jsonl", {"prompt": "Hi", "stop": "x"})

    read_prompts(path)

    assert ("", f"{path}: these fields are not sent, the number of lines behind each: stop (1)\n") == (
        capsys.readouterr()
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "{",
            "no JSON at character 2, Expecting property name enclosed in double quotes: write",
        ),
        ('{"prompt": NaN}', "no JSON, NaN is no number: write one object a line"),
        ("[" * 100_000, "no JSON, maximum recursion depth exceeded"),
        ("[1]", "a list and no object: write messages or a prompt in braces"),
        ({"class": "chat"}, "neither messages nor a prompt: write one of them"),
        ({"prompt": "a", "messages": []}, "both messages and a prompt: write one of them"),
        ({"prompt": " "}, "prompt is empty: write one text that is not empty"),
        ({"prompt": [1, 2]}, "prompt is list: write one text that is not empty"),
        ({"messages": []}, "messages is empty: write a list with at least one message"),
        ({"messages": "hello"}, "messages is text: write a list with at least one message"),
        (
            {"messages": ["hello"]},
            "message 1 has the role None: give one of system, developer, user, assistant, tool",
        ),
        ({"messages": [{"role": "user"}]}, "message 1 has null as content: write a text"),
        ({"messages": [{"role": "user", "content": 5}]}, "message 1 has number as content: write a text"),
        (
            {"prompt": "a", "max_tokens": 0},
            "max_tokens is 0: give a whole number of at least 1, or leave it out",
        ),
        (
            {"prompt": "a", "output_tokens": True},
            "output_tokens is True: give a whole number of at least 1, or leave it out",
        ),
        (
            {"prompt": "a", "temperature": -1},
            "temperature is -1: give a number of 0 or more, or leave it out",
        ),
        ('{"prompt": "a", "temperature": 1e999}', "temperature is inf: give a number of 0 or more"),
        ('{"prompt": "half \\ud800 of a pair"}', "it cannot be sent, JSON is malformed"),
        ({"prompt": "a", "temperature": "hot"}, "temperature is 'hot': give a number of 0 or more"),
        ({"prompt": "a", "id": []}, "id is []: give a text or a whole number, or leave it out"),
        ({"prompt": "a", "class": 3}, "class is 3: give one word of at most 32 letters and digits"),
        ({"prompt": "a", "class": "two words"}, "class is 'two words': give one word"),
        ({"prompt": "a", "workload": "mean"}, "workload is 'mean': give one word of at most 32 letters"),
        (
            {"prompt": "a", "workload": "chat", "class": "code"},
            "class and workload differ, chat and code: write one of them",
        ),
    ],
)
def test_a_line_that_cannot_be_used_is_named(tmp_path: Path, line: Any, words: str) -> None:
    """File and line, what is wrong with it, and what to do; one such line is enough to refuse the file."""
    path = write(tmp_path / "p.jsonl", {"prompt": "good"}, line)

    with pytest.raises(PromptsError) as caught:
        read_prompts(path, quiet)

    assert str(caught.value).startswith(f"{path}:2: {words}")


def test_a_byte_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    """With its line and its place."""
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'{"prompt": "good"}\n{"prompt": "caf\xe9"}\n')

    with pytest.raises(PromptsError) as caught:
        read_prompts(path, quiet)

    assert f"{path}:2: byte 16 is not UTF-8: save the file as UTF-8" == str(caught.value)


def test_two_lines_with_one_id_are_refused(tmp_path: Path) -> None:
    """The message names both lines."""
    path = write(tmp_path / "p.jsonl", {"prompt": "a", "id": "x"}, {"prompt": "b", "id": "x"})

    with pytest.raises(PromptsError) as caught:
        read_prompts(path, quiet)

    assert f"{path}:2: id 'x' is that of line 1 too: give each its own" == str(caught.value)


def test_of_many_bad_lines_ten_are_named_and_the_others_counted(tmp_path: Path) -> None:
    """Whoever has exported a file wrongly sees that at once."""
    path = write(tmp_path / "p.jsonl", *["{}"] * 13)

    with pytest.raises(PromptsError) as caught:
        read_prompts(path, quiet)

    lines = str(caught.value).split("\n")
    assert [f"{path}:{n}: neither messages nor a prompt: write one of them" for n in range(1, 11)] == lines[
        :10
    ]
    assert ["and 3 more lines"] == lines[10:]


def test_more_classes_than_a_profile_holds_are_refused(tmp_path: Path) -> None:
    """With the file, how many there are and how many there may be; 99 are taken."""
    lines = [{"prompt": f"text {number}", "class": f"kind-{number}"} for number in range(100)]
    path = write(tmp_path / "p.jsonl", *lines)
    words = rf"^{path}: 100 classes, a profile holds at most 99: give fewer, wider ones$"
    with pytest.raises(PromptsError, match=words):
        read_prompts(path, quiet)

    assert 99 == len(read_prompts(write(tmp_path / "q.jsonl", *lines[:99]), quiet))


@pytest.mark.parametrize("content", ["", "\n \n\r\n"])
def test_a_file_without_a_prompt_is_refused(tmp_path: Path, content: str) -> None:
    """Empty, or nothing but empty lines."""
    path = write(tmp_path / "p.jsonl", content)

    with pytest.raises(PromptsError, match=r"there is no prompt in it; write lines such as"):
        read_prompts(path, quiet)


def test_a_file_above_the_limit_is_not_read(tmp_path: Path) -> None:
    """The limit is stated, and what to do; the file is only measured."""
    path = tmp_path / "p.jsonl"
    with path.open("wb") as file:
        file.truncate(250_000_000)  # a sparse file: it needs no room

    with pytest.raises(PromptsError, match=r"has 250 MB, the limit is 100 MB: .* so take a sample of it"):
        read_prompts(path, quiet)


@pytest.mark.parametrize("name", ["nothing.jsonl", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    """A path without a file, and a folder."""
    with pytest.raises(PromptsError, match=r"cannot be read: .*; name a file of JSON lines"):
        read_prompts(tmp_path / name, quiet)


def test_files_of_other_systems_are_read(tmp_path: Path) -> None:
    """A byte order mark, and lines that end with carriage return and line feed."""
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"prompt": "one"}\r\n{"prompt": "two"}\r\n')

    assert ["one", "two"] == [text_of(one) for one in read_prompts(path, quiet)]


def test_a_workload_may_say_its_length():
    """`copy` is short; `copy-long` is a workload of its own, of about 1250 tokens."""
    found = for_workloads(("copy", "copy-long"))
    assert {"copy": "short", "copy-long": "long"} == {one.workload: one.context for one in found}


@pytest.mark.parametrize(
    ("name", "words"), [("copy-huge", "no prompts of length 'huge'"), ("x", "workload 'x'")]
)
def test_an_unknown_workload_or_length_is_named(name, words):
    """With those that exist."""
    with pytest.raises(PromptsError, match=words):
        for_workloads((name,))
