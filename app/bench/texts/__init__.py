"""Texts that the built-in prompts are made of: reports, mails, programs, records, problems, questions."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True, slots=True)
class Text:
    """One text of a file."""

    title: str
    text: str
    reply: str  # what an assistant has said to it; empty where nobody has
    questions: tuple[str, ...]  # that can be asked about it


def texts(name: str) -> tuple[Text, ...]:
    """All texts of a file such as `reports`; each begins with a line `=== title`."""
    parts = _read(name).split("=== ")[1:]
    return tuple(_text(*part.split("\n", 1)) for part in parts)


def lines(name: str) -> tuple[str, ...]:
    """The lines of a file such as `questions`."""
    return tuple(line for line in _read(name).split("\n") if line)


def _read(name: str) -> str:
    return resources.files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8")


def _text(title: str, rest: str) -> Text:
    text, _, tail = rest.partition("\n? ")
    text, _, reply = text.partition("\n>>> ")
    questions = tuple(question.strip() for question in tail.split("\n? ") if question.strip())
    return Text(title, text.strip(), reply.strip(), questions)
