"""What is read of a body, how much of it, and that nothing in it can break the reading."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.workload.features import Features, read_features
from app.workload.text import start_and_end
from app.workload.words import VERBS, Verb
from tests.app.workload.bodies import (
    CHAT,
    COMPLETIONS,
    DOCUMENT,
    assistant,
    chat,
    features,
    fields,
    system,
    user,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = (
    "messages",
    "prompt",
    "tools",
    "functions",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "response_format",
    "structured_outputs",
    "guided_json",
)
MESSAGE = st.fixed_dictionaries(
    {},
    optional={"role": st.sampled_from(["user", "system", "assistant", "tool"]) | JSON, "content": JSON},
)


def test_nothing_is_known_of_an_empty_body() -> None:
    """Absent fields are unknown, and shares of nothing are zero."""
    assert Features() == read_features(CHAT, {})
    assert Features() == read_features(COMPLETIONS, {})


def test_counts_of_a_conversation() -> None:
    """Turns are the user's; all text counts, in bytes as sent; tokens are estimated at four bytes each."""
    seen = chat(system("Be short."), "One two.", assistant("Three."), "Four five six.")
    assert (2, True, True) == (seen.turns, seen.has_system, seen.has_history)
    assert (37, 10) == (seen.prompt_chars, seen.prompt_tokens)


def test_tools_are_a_part_of_the_prompt() -> None:
    """The engine writes the tools into the prompt: they count as tokens, not as text."""
    tools = [{"type": "function", "function": {"name": "look"}}]
    seen = chat("Look.", tools=tools)
    assert (True, 5, 15) == (seen.tools, seen.prompt_chars, seen.prompt_tokens)


def test_token_ids_are_counted() -> None:
    """A prompt of token ids has no text, but its length is known."""
    assert (4, 0, None) == (
        features(path=COMPLETIONS, prompt=[5, 6, 7, 8]).prompt_tokens,
        features(path=COMPLETIONS, prompt=[5, 6, 7, 8]).prompt_chars,
        features(path=COMPLETIONS, prompt=[5, 6, 7, 8]).verb,
    )
    assert 5 == features(path=COMPLETIONS, prompt=[[1, 2], [3, 4, 5]]).prompt_tokens


def test_of_several_prompts_the_first_is_read_and_all_are_counted() -> None:
    """They belong together; their length adds up."""
    seen = features(path=COMPLETIONS, prompt=["Summarize: a b c.", "Translate: d e f."])
    assert (Verb.SUMMARIZE, 34) == (seen.verb, seen.prompt_chars)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, None),
        ({"max_tokens": 7}, 7),
        ({"max_tokens": "7"}, 7),
        ({"max_tokens": 7, "max_completion_tokens": 9}, 9),
        ({"max_tokens": 7, "max_completion_tokens": None}, 7),
        ({"max_tokens": 0}, None),
        ({"max_tokens": [7]}, None),
        ({"max_tokens": 10**400}, None),
    ],
)
def test_the_limit_of_an_answer(body: dict[str, Any], expected: int | None) -> None:
    """The newer name wins; what is no count of at least 1 is unknown."""
    assert expected == chat("Hi.", **body).max_tokens


def test_the_newer_name_of_the_limit_is_no_field_of_completions() -> None:
    """The older endpoint does not know it."""
    seen = features(path=COMPLETIONS, prompt="Hi.", max_tokens=7, max_completion_tokens=9)
    assert 7 == seen.max_tokens


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, 0.0), (0.5, 0.5), ("1", 1.0), (-1, None), ("NaN", None), ([], None), (None, None)],
)
def test_the_temperature(value: Any, expected: float | None) -> None:
    """Zero is a temperature; what is none is unknown."""
    assert expected == chat("Hi.", temperature=value).temperature


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, False),
        ({"response_format": {"type": "text"}}, False),
        ({"response_format": {"type": "json_object"}}, True),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, True),
        ({"response_format": "json"}, False),
        ({"guided_regex": "a+"}, True),
        ({"guided_json": None}, False),
    ],
)
def test_whether_an_answer_is_held_to_a_form(body: dict[str, Any], expected: bool) -> None:
    """JSON formats and grammars; plain text is no form."""
    assert expected is chat("Hi.", **body).structured


def test_the_share_of_code() -> None:
    """Between fences by their length, without fences by the look of the lines; prose has none."""
    assert 0.0 == chat(DOCUMENT).code_share
    assert 0.5 < chat("Faster:\n```\nx = 1\ny = 2\nz = 3\n```").code_share < 1.0
    assert 0.8 < chat("def area(w, h):\n    return w * h\n").code_share


def test_the_share_of_material() -> None:
    """Text after the instruction is material, an instruction alone is none."""
    assert 0.0 == chat("Write a poem about a mill.").context_share
    assert 0.95 < chat(f"Summarize: {DOCUMENT}").context_share < 1.0
    assert 0.95 < chat(f"{DOCUMENT}\n\nWho owns it?").context_share < 1.0
    assert 0.5 < chat(system(DOCUMENT * 2), "Who owns it?").context_share < 0.9


def test_repetition() -> None:
    """The share of words that were there before."""
    assert 0.0 == chat("one two three").repetition
    assert 0.5 == chat("one two one two").repetition


def test_repetition_is_that_of_the_first_words() -> None:
    """Of a long text the first 120 words count."""
    different = " ".join(f"w{n}" for n in range(120))
    assert 0.0 == chat(f"{different} w0 w1 w2").repetition
    assert 0.008 == chat(f"w1 {different}").repetition


@pytest.mark.parametrize(("word", "verb"), VERBS.items())
def test_every_verb_asks(word: str, verb: Verb) -> None:
    """Each known word is found where it asks, in any case of letters and beside any script."""
    assert verb is chat(f"{word} this").verb
    assert verb is chat(f"Hello. Please {word.title()}、磨坊").verb
    assert chat(f"The guides {word} this").verb is None


@pytest.mark.parametrize(
    "word",
    [
        *("Python", "JavaScript", "typescript", "Java", "C++", "Rust", "golang", "SQL", "regex", "html"),
        *("css", "bash", "script", "program", "function", "algorithm", "unit test", "unit tests"),
        "source code",
    ],
)
def test_every_word_of_programs_is_known(word: str) -> None:
    """Each names a program where it stands alone, and none inside another word."""
    assert chat(f"Look: {word}!").program
    assert not chat(f"Look: x{word}s!").program


def test_parts_are_read_like_a_string() -> None:
    """Text parts are joined by their ends; images and odd parts have no text."""
    image = {"type": "image_url", "image_url": {"url": "data:" + "A" * 5000}}
    parts = [{"type": "text", "text": "Summarize:"}, image, 7, {"type": "text", "text": DOCUMENT}]
    seen = chat(user(parts))
    assert (Verb.SUMMARIZE, len(DOCUMENT) + 10) == (seen.verb, seen.prompt_chars)


def test_features_are_plain_values() -> None:
    """A record takes them as JSON, a verb as its word."""
    plain = chat(f"Summarize: {DOCUMENT}", temperature=0).plain()
    assert asdict(chat(f"Summarize: {DOCUMENT}", temperature=0)) == plain
    assert "summarize" == json.loads(json.dumps(plain))["verb"]


def test_no_text_is_among_the_features() -> None:
    """What a caller wrote stays out of records: only numbers, closed words and the key."""
    plain = chat(system("zebra"), "okapi quagga").plain()
    assert {"zebra", "okapi", "quagga"} & set(json.dumps(plain).replace('"', " ").split()) == set()


# --- how much is looked at


@given(st.text("abcdefgh .\n", min_size=900, max_size=3000))
@settings(max_examples=50)
def test_the_middle_of_a_long_turn_is_not_read(middle: str) -> None:
    """Of the last user turn 1 KB at either end counts, of all else only the length."""
    first, last = "Summarize the report. " * 60, " and so the year ended." * 60
    plain = "x" * len(json.dumps(middle)[1:-1])  # as many bytes as sent
    assert chat(first + plain + last) == chat(first + middle + last)


@given(st.text("abcdefgh ", min_size=1200, max_size=3000))
@settings(max_examples=25)
def test_other_turns_and_the_rest_of_a_system_message_are_not_read(text: str) -> None:
    """Nothing but their length counts, so that at most 4 KB of text are looked at."""
    start = "You help with mills. " * 60
    blank = "x" * len(text)
    seen = [
        chat(system(start + filler), user("a b " * 300 + filler), assistant(filler), "And then?")
        for filler in (text, blank)
    ]
    assert seen[0] == seen[1]


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("text", ["磨坊在河边。", "😀", 'a"b\\', "\\", "\\\\n", "é", "ab"])
def test_a_cut_breaks_no_character(text: str, ascii_only: bool) -> None:
    """Text without spaces is cut between characters and between escapes, in either spelling, at any place."""
    for before in range(13):
        raw = json.dumps(f"{'.' * before}{text * 2000}", ensure_ascii=ascii_only)
        head, tail = start_and_end([msgspec.Raw(raw.encode())], 1024)
        assert len(head.encode()) <= 1024
        assert head or text == "\\"  # a run of backslashes has no place to cut
        assert f"{'.' * before}{text * 2000}".startswith(head)
        assert (text * 2000).endswith(tail)
        assert tail or text in {'a"b\\', "\\", "\\\\n"}  # where all is escapes none may be found


# --- conversations


def test_a_conversation_keeps_its_key() -> None:
    """Later turns, other limits and other temperatures leave the key as it was."""
    opening = [system("Be short."), user("Name a river.")]
    later = [*opening, assistant("Rhine."), user("Another one."), assistant("Po."), user("More.")]
    assert chat(*opening).conversation_key == chat(*later, max_tokens=5, temperature=1).conversation_key


@pytest.mark.parametrize(
    "other",
    [
        [user("Name a river.")],
        [system("Be long."), user("Name a river.")],
        [system("Be short."), user("Name a lake.")],
        [system("Be short.Name a river."), user("")],
    ],
)
def test_another_beginning_is_another_conversation(other: list[dict[str, Any]]) -> None:
    """The system message and the first user turn both count, and where one ends."""
    assert chat(system("Be short."), user("Name a river.")).conversation_key != chat(*other).conversation_key


def test_a_key_is_short_and_tells_no_text() -> None:
    """Sixteen hexadecimal digits; without a user there is none, nor for a completion."""
    key = chat("Name a river.").conversation_key
    assert key is not None
    assert (16, True) == (len(key), all(digit in "0123456789abcdef" for digit in key))
    assert chat(system("Be short.")).conversation_key is None
    assert features(path=COMPLETIONS, prompt="Name a river.").conversation_key is None


@given(
    st.text(max_size=1500),
    st.text(max_size=1500),
    st.lists(st.tuples(st.text(max_size=200), st.text(max_size=200)), min_size=1, max_size=3),
)
def test_the_key_holds_over_any_turns(about: str, first: str, turns: list[tuple[str, str]]) -> None:
    """Whatever is said, the key of turn n is the key of turn 1."""
    opening = [system(about), user(first)]
    later = opening + [one for said, asked in turns for one in (assistant(said), user(asked))]
    assert chat(*opening).conversation_key == chat(*later).conversation_key


# --- whatever is in there


def check(path: str, top: dict[str, msgspec.Raw]) -> None:
    """Read twice; every share is within 0..1, every count at least zero."""
    seen = read_features(path, top)
    assert seen == read_features(path, top)
    for share in (seen.code_share, seen.context_share, seen.repetition):
        assert 0.0 <= share <= 1.0
    for count in (seen.prompt_chars, seen.prompt_tokens, seen.turns):
        assert count >= 0
    json.dumps(seen.plain(), allow_nan=False)


@given(st.sampled_from([CHAT, COMPLETIONS, "/"]), st.dictionaries(st.sampled_from(NAMES), JSON, max_size=6))
@settings(max_examples=300)
def test_any_json_is_read(path: str, body: dict[str, Any]) -> None:
    """A field of any kind is read or left out; reading never raises, and says the same each time."""
    check(path, fields(body))


@given(st.lists(MESSAGE, max_size=5))
@settings(max_examples=300)
def test_any_messages_are_read(messages: list[Any]) -> None:
    """Messages with odd roles, contents and parts are read or left out."""
    check(CHAT, fields({"messages": messages}))


@pytest.mark.parametrize("name", NAMES)
def test_deep_nesting_is_left_out(name: str) -> None:
    """What is nested deeper than the decoder goes is as good as absent."""
    deep = msgspec.Raw(b"[" * 100_000 + b"]" * 100_000)
    parts = msgspec.Raw(b'[{"role":"user","content":[{"text":' + b"[" * 100_000 + b"]" * 100_000 + b"}]}]")
    for value in (deep, parts, msgspec.Raw(b'{"a":' * 100_000 + b"1" + b"}" * 100_000)):
        check(CHAT, {name: value})
        check(COMPLETIONS, {name: value})


@pytest.mark.parametrize("value", [b"", b"nul", b'"', b"[", b'"\\ud800"', b'["\\ud800', b'"\xff"', b"\xff"])
def test_what_is_no_json_is_left_out(value: bytes) -> None:
    """The body was checked before; should a value still be broken, it is as good as absent."""
    for name in NAMES:
        check(CHAT, {name: msgspec.Raw(value)})
        check(COMPLETIONS, {name: msgspec.Raw(value)})
        check(CHAT, {"messages": msgspec.Raw(b'[{"role":"user","content":' + value + b"}]")})


@pytest.mark.parametrize("tools", [b"[]", b"[  ]", b"[        ]", b"[\n\t\r\n  \n]", b"{     }", b"null"])
def test_no_tools_are_no_tools(tools: bytes) -> None:
    """A list without a first item holds no tools, however much space is in it."""
    body = msgspec.json.decode(b'{"tools":%b}' % tools, type=dict[str, msgspec.Raw])
    assert not read_features(CHAT, body).tools
    body = msgspec.json.decode(b'{"tools":[   {}]}', type=dict[str, msgspec.Raw])
    assert read_features(CHAT, body).tools


def test_parts_are_read_up_to_a_budget() -> None:
    """The texts of 1,024 parts are measured; messages beyond count as long as they were sent."""
    parts = [{"text": "abcd"}] * 64
    assert chat(*[user(parts)] * 16).prompt_chars == 16 * 64 * 4
    sent = len(json.dumps(parts))
    assert chat(*[user(parts)] * 18).prompt_chars == 16 * 64 * 4 + 2 * sent


@pytest.mark.parametrize("prompt", [b"[1,2,3]", b"[ [1,2],[3]]", b"[\n-1, 2 ,3]"])
def test_token_ids_are_counted_by_their_commas(prompt: bytes) -> None:
    """Ids are counted by their commas, whatever space is around them."""
    body = msgspec.json.decode(b'{"prompt":%b}' % prompt, type=dict[str, msgspec.Raw])
    assert read_features(COMPLETIONS, body).prompt_tokens == 3
