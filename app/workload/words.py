"""What an instruction asks for: verbs in a few languages, questions, code, sums; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Verb(StrEnum):
    """What is asked for, by the first word that says so."""

    SUMMARIZE = "summarize"
    TRANSLATE = "translate"
    EXTRACT = "extract"  # names, counts or labels what the prompt holds
    REWRITE = "rewrite"  # gives a text of the prompt or an earlier answer back, changed
    PROGRAM = "program"
    SOLVE = "solve"  # arithmetic
    WRITE = "write"  # a text that is nowhere in the prompt


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_WORDS: Final[Mapping[Verb, str]] = MappingProxyType(
    {
        Verb.SUMMARIZE: """summarize summarise summary tl;dr tldr recap condense fasse zusammenfassung
            résume résumez résumé resume resuma resumen""",
        Verb.TRANSLATE: """translate translation übersetze übersetzen übersetzung traduis traduisez
            traduire traduction traduce traduzca traducir traducción""",
        Verb.EXTRACT: """extract identify classify categorize categorise label count find highlight
            evaluate analyze analyse sort extrahiere klassifiziere extrais extraire extrae clasifica""",
        Verb.REWRITE: """rewrite rephrase paraphrase proofread correct fix edit improve shorten refactor
            rename reformat convert revise polish complete continue korrigiere verbessere überarbeite
            kürze corrige corrigez améliore réécris reescribe mejora""",
        Verb.PROGRAM: "implement code program debug programmiere",
        Verb.SOLVE: "solve calculate compute simplify berechne calcule calcula",
        Verb.WRITE: """write compose draft craft invent imagine create describe explain suggest pretend
            schreibe schreib erzähle écris rédige invente escribe""",
    }
)
VERBS: Final[Mapping[str, Verb]] = MappingProxyType(
    {word: verb for verb, words in _WORDS.items() for word in words.split()}
)

# Bytes of UTF-8 to lower case, what is no letter of ASCII to a space: a fifth of a regular expression's time.
_NO_LETTER: Final = re.compile(rb"[^a-z]")
_LETTERS: Final = _NO_LETTER.sub(b" ", bytes(range(256)).lower())
# The longest run of such letters in each verb: of "übersetze" that is "bersetze".
_VERB_PARTS: Final = frozenset(max(_NO_LETTER.split(word.encode()), key=len) for word in VERBS)

MANY: Final = 120  # words that are looked at for repetition
ASKING: Final = 64  # characters before a verb in which words of asking are looked for
# A verb asks where a sentence begins or after words of asking; elsewhere it is a part of some text.
_POLITE = r"please|bitte|now|then|(?:can|could|would|will) you"
_ASKED = re.compile(
    rf"(?:^|[.!?:,\n]\s*|\b(?:{_POLITE}|you to|me|us)\s+)"
    rf"(?:(?:{_POLITE}|a|an|the|one|short|brief|your|eine|un|une)\s+)*"
    r"([^\W\d_]+(?:;dr)?)"
)
_QUESTION_WORDS: Final = _set(
    """who what when where which why how whose is are was were do does did can could will would should
    has have wer wann wo welche warum wie qui quand où pourquoi quién qué cuándo dónde cómo"""
)
_SUMS = re.compile(
    r"\bhow (?:many|much|long|old|far|fast|high)\b|\b(?:probability|remainder|equation|percent(?:age)?"
    r"|total|sum of|product of|value of|average)\b|wie viele|combien|cuánt"
)
_SIGNS: Final = "+*\u00d7="
_OPERATION = re.compile(r"[0-9] ?[+*\u00d7=] ?[0-9]")
_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_NUMBER_WORDS: Final = _set(
    "two three four five six seven eight nine ten eleven twelve half twice double dozen times"
)
_PROGRAM = re.compile(
    r"\b(?:python|javascript|typescript|java|c\+\+|rust|golang|sql|regex|html|css|bash|script|program"
    r"|function|algorithm|unit tests?|source code)(?!\w)"
)
_PROGRAM_WORDS: Final = frozenset(  # one of them is in whatever `_PROGRAM` finds
    b"""python javascript typescript java c rust golang sql regex html css bash script program function
    algorithm unit units source""".split()
)
_CODE_ENDS: Final = (";", "{", "}", "):", "]:")
_CODE_STARTS: Final = (
    *("    ", "\t"),
    *("def ", "class ", "import ", "from ", "return ", "if (", "for (", "while (", "function ", "const "),
    *("let ", "var ", "public ", "private ", "static ", "#include", "package ", "func ", "fn ", "SELECT "),
    *("@", "//", "/*", ">>> ", "async ", "export ", "elif ", "else:", "try:", "except"),
)
_CODE_FIRST: Final = frozenset(start[0] for start in _CODE_STARTS)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of an instruction, and its runs of ASCII letters in lower case, which settle most questions."""

    text: str
    parts: Sequence[bytes]


def piece_of(text: str) -> Piece:
    """Cut a text into its runs of letters."""
    return Piece(text, text.encode(errors="replace").translate(_LETTERS).split())


def asked_for(piece: Piece) -> tuple[Verb | None, int]:
    """The first verb that asks, and where it ends."""
    verbs = [part.decode() for part in _VERB_PARTS.intersection(piece.parts)]
    if not verbs:
        return None, 0
    text = piece.text.lower()
    last = max(map(text.rfind, verbs))
    for found in _ASKED.finditer(text, max(0, min(map(text.find, verbs)) - ASKING)):
        if found.start(1) > last:
            break
        verb = VERBS.get(found[1])
        if verb is not None:
            return verb, found.end()
    return None, 0


def asks(line: str) -> bool:
    """Whether a line is a question."""
    line = line.strip()
    if not line:
        return False
    first = line.split(None, 1)[0].strip("¿\"'").lower()
    return line.endswith(("?", "\uff1f")) or first in _QUESTION_WORDS or first.startswith("question")


def about_sums(text: str, question: bool) -> bool:
    """Whether a short text is a problem of arithmetic: an operation, or a question about quantities."""
    if any(map(text.__contains__, _SIGNS)) and _OPERATION.search(text) is not None:
        return True
    return question and _about_quantities(text.lower())


def _about_quantities(text: str) -> bool:
    quantities = len(_NUMBER.findall(text)) + sum(map(_NUMBER_WORDS.__contains__, text.split()))
    return quantities >= 3 or (quantities == 2 and _SUMS.search(text) is not None)


def about_programs(piece: Piece) -> bool:
    """Whether an instruction speaks of a program."""
    return not _PROGRAM_WORDS.isdisjoint(piece.parts) and _PROGRAM.search(piece.text.lower()) is not None


def code_share(text: str) -> float:
    """The share of code in a text, 0..1: between fences, or lines that look like a program."""
    if not text:
        return 0.0
    if "```" in text:
        return sum(map(len, text.split("```")[1::2])) / len(text)
    lines = text.split("\n")
    if len(lines) == 1:
        return 0.0
    code = [line for line in lines if line and _is_code(line)]
    return min(1.0, (sum(map(len, code)) + len(code)) / len(text))


def _is_code(line: str) -> bool:
    return line.endswith(_CODE_ENDS) or (line[0] in _CODE_FIRST and line.startswith(_CODE_STARTS))


def repetition(text: str) -> float:
    """The share of words that were there before, 0..1; of a long text its first words tell as much."""
    words = text.split(None, MANY)[:MANY]
    return 1.0 - len(set(words)) / len(words) if words else 0.0
