"""Features -> the class of a request, with the word that decided; pure and total."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from app.workload.features import Features
from app.workload.words import Verb

CODE_SHARE: Final = 0.3  # above it the prompt is a program with words around it
MATERIAL_BYTES: Final = 300  # supplied text that an answer can be made from
LONG_BYTES: Final = 2000  # a prompt of this length without a request holds material


class WorkloadClass(StrEnum):
    """What kind of answer is asked for, as far as drafts can tell the difference."""

    STRUCTURED = "structured"  # JSON, calls of tools, labels: much of it is in the prompt or repeats
    CODE = "code"
    TRANSLATE = "translate"
    GROUNDED = "grounded"  # made from a text that came along: summaries, RAG, edits
    MATH = "math"  # arithmetic in words: the answer repeats the problem and itself
    CHAT = "chat"  # new text: questions, advice, stories
    OTHER = "other"  # nothing to read


class Reason(StrEnum):
    """What decided; in the order of the rules."""

    TOOLS = "tools"
    RESPONSE_FORMAT = "response_format"
    NO_TEXT = "no_text"  # token ids, or nothing that can be read
    CODE_GIVEN = "code_given"
    VERB_TRANSLATE = "verb_translate"
    VERB_EXTRACT = "verb_extract"
    VERB_SUMMARIZE = "verb_summarize"
    VERB_REWRITE = "verb_rewrite"
    SUMS = "sums"
    QUESTION_ON_TEXT = "question_on_text"
    LONG_PROMPT = "long_prompt"
    CODE_ASKED = "code_asked"
    FREE_TEXT = "free_text"


@dataclass(frozen=True, slots=True)
class Workload:
    """A class and why."""

    kind: WorkloadClass
    reason: Reason


Rule = tuple[Workload, Callable[[Features], bool]]


def classify(features: Features) -> Workload:
    """The first rule that holds decides; the last one always does."""
    return next(workload for workload, holds in RULES if holds(features))


def _material(seen: Features) -> bool:
    return seen.context_share * seen.prompt_chars >= MATERIAL_BYTES


def _rewrites(seen: Features) -> bool:
    return seen.verb is Verb.REWRITE and (seen.has_history or seen.context_share >= 0.5)


def _rule(kind: WorkloadClass, reason: Reason, holds: Callable[[Features], bool]) -> Rule:
    return Workload(kind, reason), holds


RULES: Final[tuple[Rule, ...]] = (
    _rule(WorkloadClass.STRUCTURED, Reason.TOOLS, lambda seen: seen.tools),
    _rule(WorkloadClass.STRUCTURED, Reason.RESPONSE_FORMAT, lambda seen: seen.structured),
    _rule(WorkloadClass.OTHER, Reason.NO_TEXT, lambda seen: seen.prompt_chars == 0),
    _rule(WorkloadClass.CODE, Reason.CODE_GIVEN, lambda seen: seen.code_share >= CODE_SHARE),
    _rule(WorkloadClass.TRANSLATE, Reason.VERB_TRANSLATE, lambda seen: seen.verb is Verb.TRANSLATE),
    _rule(
        WorkloadClass.STRUCTURED,
        Reason.VERB_EXTRACT,
        lambda seen: seen.verb is Verb.EXTRACT and _material(seen),
    ),
    _rule(
        WorkloadClass.GROUNDED,
        Reason.VERB_SUMMARIZE,
        lambda seen: seen.verb is Verb.SUMMARIZE and _material(seen),
    ),
    _rule(WorkloadClass.GROUNDED, Reason.VERB_REWRITE, _rewrites),
    _rule(WorkloadClass.MATH, Reason.SUMS, lambda seen: seen.sums or seen.verb is Verb.SOLVE),
    _rule(
        WorkloadClass.GROUNDED,
        Reason.QUESTION_ON_TEXT,
        lambda seen: seen.question and _material(seen) and not seen.has_history,
    ),
    _rule(WorkloadClass.GROUNDED, Reason.LONG_PROMPT, lambda seen: seen.prompt_chars >= LONG_BYTES),
    _rule(WorkloadClass.CODE, Reason.CODE_ASKED, lambda seen: seen.program or seen.verb is Verb.PROGRAM),
    _rule(WorkloadClass.CHAT, Reason.FREE_TEXT, lambda _: True),
)
