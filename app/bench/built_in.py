"""Prompts for whoever has none of his own: seven kinds of work in three lengths, all of real texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Any, Final

from app.bench import asks
from app.bench.prompt import CHARS_PER_TOKEN, Context, Prompt, PromptsError, context_of
from app.bench.texts import Text, lines, texts
from app.samples import samples

TOKENS: Final[Mapping[Context, int]] = MappingProxyType({"short": 128, "medium": 512, "long": 1250})
NUMBER: Final = 24  # made of each kind and length
ROWS: Final = 5  # of a table in a short prompt
# Kinds of the samples, and the workload that they count as; others need tools or a grammar, or have no text.
SAMPLES: Final = MappingProxyType(
    {"code": "code", "summarize": "grounded", "rag": "grounded", "chat": "chat", "creative": "chat"}
    | {"translate": "translate"}
)

Messages = list[dict[str, Any]]


def built_in(workloads: Sequence[str], contexts: Sequence[Context] = ("short",)) -> tuple[Prompt, ...]:
    """The built-in prompts of these workloads, one workload after the other, the contexts in their order.

    At least 16 of each workload and context, 40 of `chat` and 24 of `copy` where they are short, and all
    different.  Raises PromptsError for a workload that is not in `WORKLOADS`.
    """
    unknown = [word for word in workloads if word not in _MAKERS]
    if unknown:
        raise PromptsError(
            f"no built-in prompts of workload {unknown[0]!r}: choose of {', '.join(WORKLOADS)}"
        )
    return tuple(
        Prompt(f"{workload}-{context}-{number}", workload, {"messages": messages}, context)
        for workload in workloads
        for context in contexts
        for number, messages in enumerate(_all(workload, context), 1)
    )


def for_workloads(names: Sequence[str]) -> tuple[Prompt, ...]:
    """Built-in prompts for workloads whose names may say a length: `copy`, or `copy-long`.

    Raises PromptsError for a name that is neither.
    """
    found: list[Prompt] = []
    for name in names:
        workload, _, length = name.partition("-")
        contexts = [context for context in TOKENS if context == (length or "short")]
        if not contexts:
            raise PromptsError(f"no prompts of length {length!r}: choose of {', '.join(TOKENS)}")
        found += (replace(prompt, workload=name) for prompt in built_in([workload], contexts))
    return tuple(found)


def _all(workload: str, context: Context) -> list[Messages]:
    kept = [
        list(sample.body["messages"])
        for sample in samples()
        if SAMPLES.get(sample.workload) == workload and context_of(sample.body["messages"]) == context
    ]
    return [*_MAKERS[workload](context), *kept]


def _chat(context: Context) -> Iterator[Messages]:
    if context == "short":
        yield from (_user(question) for question in lines("questions"))
        return
    talks = texts("talks")
    others = [f"Something else: {question}" for question in lines("questions")]
    for at in range(NUMBER):
        lap, start = divmod(at, len(talks))
        chosen = (talks[start:] + talks[:start])[: 1 if context == "medium" else len(talks)]
        asked = (*chosen[-1].questions, *others[start :: len(talks)])[lap]
        # The time of day makes prompts with the same talk differ from their first line on.
        system = f"You are a friendly assistant. It is {9 + at // 6}:{at * 7 % 60:02} on Monday, 4 May."
        turns = [
            message
            for talk in chosen
            for message in (_message("user", talk.text), _message("assistant", talk.reply))
        ]
        yield [_message("system", system), *turns, _message("user", asked)]


def _copy(context: Context) -> Iterator[Messages]:
    programs, records = texts("code"), texts("records")
    if context == "short":
        code = _blocks(programs)
        rows = [rows for record in records for rows in _rows(record)]
    else:
        code, rows = [one.text for one in programs], [one.text for one in records]
    of_code = _asked(asks.COPY_CODE, code, context)
    of_rows = _asked(asks.COPY_RECORDS, rows, context)
    half = NUMBER // 2
    for first, second in zip(islice(of_code, half), islice(of_rows, half), strict=True):
        yield first
        yield second


def _code(context: Context) -> Iterator[Messages]:
    programs = texts("code")
    pieces = _blocks(programs) if context == "short" else [one.text for one in programs]
    yield from islice(_asked(asks.CODE, pieces, context), NUMBER)


def _math(context: Context) -> Iterator[Messages]:
    pieces = list(lines("problems"))
    if context == "long":  # a sheet of problems, with a table now and then
        for at, record in enumerate(texts("records")):
            pieces.insert(5 * at + 2, f"{asks.TABLE}\n{record.text}")
    yield from islice(_asked(asks.MATH, pieces, context), NUMBER)


def _translate(context: Context) -> Iterator[Messages]:
    yield from islice(_asked(asks.TRANSLATE, _prose(context), context), NUMBER)


def _grounded(context: Context) -> Iterator[Messages]:
    if context != "short":
        reports = texts("reports")
        for at, report in enumerate(reports):
            pieces = [one.text for one in (*reports[at:], *reports[:at])]
            for question in report.questions:
                text = _filled(pieces, 0, context, 2 * len(question))
                yield _user(f"{question} Answer from the text below.\n\n{text}\n\n{question}")
    yield from islice(_asked(asks.GROUNDED, _prose(context), context), NUMBER)


def _structured(context: Context) -> Iterator[Messages]:
    mails = [one.text for one in texts("mails")]
    pieces = mails if context == "short" else [*mails, *_prose("medium")]
    yield from islice(_asked(asks.STRUCTURED, pieces, context), NUMBER)


_MAKERS: Final[Mapping[str, Callable[[Context], Iterator[Messages]]]] = MappingProxyType(
    {
        "chat": _chat,
        "copy": _copy,
        "code": _code,
        "math": _math,
        "translate": _translate,
        "grounded": _grounded,
        "structured": _structured,
    }
)
WORKLOADS: Final = tuple(_MAKERS)


def _asked(asked: Sequence[str], pieces: Sequence[str], context: Context) -> Iterator[Messages]:
    """Every piece with every instruction before it, further pieces behind it up to the length."""
    for at in range(len(asked) * len(pieces)):
        lap, start = divmod(at, len(pieces))
        instruction = asked[(start + lap) % len(asked)]
        yield _user(f"{instruction}\n\n{_filled(pieces, start, context, len(instruction))}")


def _filled(pieces: Sequence[str], start: int, context: Context, used: int) -> str:
    """Pieces from `start` on, as many as bring the prompt nearest to its length."""
    left = TOKENS[context] * CHARS_PER_TOKEN - used - len(pieces[start])
    chosen = [pieces[start]]
    for piece in (*pieces[start + 1 :], *pieces[:start]):
        if len(piece) > 2 * left:
            break
        chosen.append(piece)
        left -= len(piece)
    return "\n\n".join(chosen)


def _prose(context: Context) -> list[str]:
    """Paragraphs for a short prompt, whole reports for a longer one."""
    reports = [one.text for one in texts("reports")]
    return [part for text in reports for part in text.split("\n\n")] if context == "short" else reports


def _blocks(programs: Sequence[Text]) -> list[str]:
    """Functions and statements, without those that are too short to be worth a request."""
    blocks = [block for one in programs for block in one.text.split("\n\n")]
    return [block.strip("\n") for block in blocks if len(block) >= 160]


def _rows(record: Text) -> Iterator[str]:
    """A few lines at a time, below the first one, which names the columns."""
    head, *rows = record.text.split("\n")
    for start in range(0, len(rows), ROWS):
        yield "\n".join((head, *rows[start : start + ROWS]))


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def _user(text: str) -> Messages:
    return [_message("user", text)]
