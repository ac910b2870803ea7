"""Read the user's own prompts from a file of JSON lines, one request a line."""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from app.bench.prompt import Prompt, PromptsError, context_of
from app.workload.classify import WorkloadClass, classify
from app.workload.features import read_features
from autoscaling.profile_file import MOST_CLASSES

MOST_BYTES: Final = 100_000_000
MOST_KINDS: Final = MOST_CLASSES - 1  # of a profile, which has the mean of all beside them
MOST_SHOWN: Final = 10  # lines that are named in an error; the others are counted
CHAT: Final = "/v1/chat/completions"
# What shapes an answer and is sent as it stands.
KEPT: Final = frozenset(
    {
        *("temperature", "top_p", "top_k", "min_p", "seed"),
        *("presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias"),
        *("tools", "tool_choice", "parallel_tool_calls", "response_format", "structured_outputs"),
        "chat_template_kwargs",
    }
)
LIMITS: Final = ("max_tokens", "max_completion_tokens", "output_tokens")  # the last one is of `vllm bench`
WORDS: Final = ("class", "workload")
_OURS: Final = frozenset(("messages", "prompt", "id", *LIMITS, *WORDS))
_ROLES: Final = ("system", "developer", "user", "assistant", "tool")
_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}")
_MEAN: Final = "mean"  # stands for all of them in a profile
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _LineError(Exception):
    """What is wrong with one line, and what to do."""


def _to_stderr(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def read_prompts(path: Path, say: Callable[[str], None] = _to_stderr) -> tuple[Prompt, ...]:
    """The prompts of a file, in its order; what is left out of usable lines is told by `say`.

    A line is an object with `messages` (a chat) or `prompt` (a string, sent as a chat of one message);
    optional are `id`, `class` or `workload`, `max_tokens`, and what is in `KEPT`.  Without a class the line
    is classified as the ingress would do it.  A line that says the same as an earlier one is left out.
    Raises PromptsError, with every line that cannot be used, and when there is none that can.
    """
    found: list[Prompt] = []
    wrong: list[str] = []
    dropped: Counter[str] = Counter()
    ids: dict[str, int] = {}
    seen: dict[str, int] = {}
    repeated: list[int] = []
    for number, raw in enumerate(_read(path).split(b"\n"), 1):
        if not raw.strip():
            continue
        try:
            fields = _object(raw)
            prompt = _prompt(fields, number)
            if prompt.id in ids:
                raise _LineError(f"id {prompt.id!r} is that of line {ids[prompt.id]} too: give each its own")
        except _LineError as error:
            wrong.append(f"{path}:{number}: {error}")
            continue
        ids[prompt.id] = number
        dropped.update(fields.keys() - KEPT - _OURS)
        if seen.setdefault(json.dumps([prompt.workload, prompt.body], sort_keys=True), number) != number:
            repeated.append(number)
            continue
        found.append(prompt)
    if wrong:
        more = [f"and {len(wrong) - MOST_SHOWN} more lines"] if len(wrong) > MOST_SHOWN else []
        raise PromptsError("\n".join([*wrong[:MOST_SHOWN], *more]))
    if not found:
        raise PromptsError(f'{path}: there is no prompt in it; write lines such as {{"prompt": "a text"}}')
    if (kinds := len({prompt.workload for prompt in found})) > MOST_KINDS:
        raise PromptsError(
            f"{path}: {kinds} classes, a profile holds at most {MOST_KINDS}: give fewer, wider ones"
        )
    _tell(path, say, found, dropped, repeated)
    return tuple(found)


def _tell(
    path: Path,
    say: Callable[[str], None],
    found: list[Prompt],
    dropped: Mapping[str, int],
    repeated: list[int],
) -> None:
    if dropped:
        names = ", ".join(f"{name} ({times})" for name, times in sorted(dropped.items()))
        say(f"{path}: these fields are not sent, the number of lines behind each: {names}")
    if repeated:
        shown = ", ".join(map(str, repeated[:MOST_SHOWN])) + (", ..." if len(repeated) > MOST_SHOWN else "")
        say(f"{path}: {len(repeated)} lines say the same as earlier ones and are left out: {shown}")
    others = sorted({prompt.workload for prompt in found} - set(WorkloadClass))
    if others:
        say(f"{path}: measured, but no classes that requests are routed by: {', '.join(others)}")


def _read(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise PromptsError(
                f"{path} has {size / 1e6:.0f} MB, the limit is {MOST_BYTES // 10**6} MB: "
                "a few hundred prompts are enough, so take a sample of it"
            )
        return path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise PromptsError(
            f"{path} cannot be read: {error.strerror or error}; name a file of JSON lines"
        ) from error


def _object(raw: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise _LineError(f"byte {error.start + 1} is not UTF-8: save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise _LineError(
            f"no JSON at character {error.colno}, {error.msg}: write one object a line"
        ) from None
    except (ValueError, RecursionError) as error:
        raise _LineError(f"no JSON, {error}: write one object a line") from None
    if not isinstance(fields, dict):
        raise _LineError(f"a {_kind(fields)} and no object: write messages or a prompt in braces")
    return fields


def _prompt(fields: Mapping[str, Any], number: int) -> Prompt:
    messages = _messages(fields)
    body = {name: value for name, value in fields.items() if name in KEPT and value is not None}
    heat = body.get("temperature", 0)
    if isinstance(heat, bool) or not isinstance(heat, int | float) or not 0 <= heat < math.inf:
        raise _LineError(f"temperature is {heat!r}: give a number of 0 or more, or leave it out")
    for name in LIMITS:
        limit = fields.get(name)
        if limit is not None and (type(limit) is not int or limit < 1):
            raise _LineError(f"{name} is {limit!r}: give a whole number of at least 1, or leave it out")
        if limit is not None:
            body.setdefault("max_tokens", limit)
    body["messages"] = messages
    given = fields.get("id")
    if given is not None and (isinstance(given, bool) or not isinstance(given, str | int) or given == ""):
        raise _LineError(f"id is {given!r}: give a text or a whole number, or leave it out")
    try:
        sent = _fields.decode(json.dumps(body))
    except msgspec.DecodeError as error:  # half of a surrogate pair, which no server takes
        raise _LineError(f"it cannot be sent, {error}: correct the text") from None
    workload = _workload(fields) or str(classify(read_features(CHAT, sent)).kind)
    return Prompt(f"line-{number}" if given is None else str(given), workload, body, context_of(messages))


def _messages(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    messages, prompt = fields.get("messages"), fields.get("prompt")
    if (messages is None) == (prompt is None):
        have = "neither messages nor a prompt" if messages is None else "both messages and a prompt"
        raise _LineError(f"{have}: write one of them")
    if prompt is not None:
        if not isinstance(prompt, str) or not prompt.strip():
            raise _LineError(f"prompt is {_kind(prompt)}: write one text that is not empty")
        return [{"role": "user", "content": prompt}]
    if not isinstance(messages, list) or not messages:
        raise _LineError(f"messages is {_kind(messages)}: write a list with at least one message")
    for at, message in enumerate(messages, 1):
        role = message.get("role") if isinstance(message, dict) else None
        if role not in _ROLES:
            raise _LineError(f"message {at} has the role {role!r}: give one of {', '.join(_ROLES)}")
        content = message.get("content")
        if not isinstance(content, str | list) and not (content is None and role == "assistant"):
            raise _LineError(f"message {at} has {_kind(content)} as content: write a text")
    return messages


def _workload(fields: Mapping[str, Any]) -> str | None:
    words = {fields[name] for name in WORDS if isinstance(fields.get(name), str)}
    for name in WORDS:
        word = fields.get(name)
        if word is not None and (not isinstance(word, str) or not _WORD.fullmatch(word) or word == _MEAN):
            raise _LineError(
                f"{name} is {word!r}: give one word of at most 32 letters and digits, other than {_MEAN!r}"
            )
    if len(words) > 1:
        raise _LineError(f"class and workload differ, {' and '.join(sorted(words))}: write one of them")
    return words.pop() if words else None


def _kind(value: Any) -> str:
    if isinstance(value, str | list | dict) and not (value.strip() if isinstance(value, str) else value):
        return "empty"
    names = {str: "text", list: "list", dict: "object", bool: "truth value", type(None): "null"}
    return names.get(type(value), "number")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")
