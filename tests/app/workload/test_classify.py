"""Each rule by an example, and that the rules leave nothing out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.samples import samples
from app.workload.classify import RULES, Reason, Workload, WorkloadClass, classify
from app.workload.features import Features
from app.workload.words import Verb
from tests.app.workload.bodies import CHAT, COMPLETIONS, DOCUMENT, assistant, classed, features, system, user

FUNCTION = "def area(width, height):\n    return width * height\n"
TOOL = {"type": "function", "function": {"name": "look", "parameters": {}}}

# What the samples were written as, and the classes that may be found for it.
OF_LABEL = {
    "code": {"code", "chat"},  # a later turn may speak of a program without naming one
    "summarize": {"grounded"},
    "rag": {"grounded"},
    "structured": {"structured"},
    "chat": {"chat"},
    "creative": {"chat"},
    "translate": {"translate"},
    "bulk": {"chat", "structured"},
    "other": {"chat", "math"},
}

EXAMPLES: list[tuple[Reason, str, list[Any], dict[str, Any]]] = [
    (Reason.TOOLS, "structured", ["Will it rain?"], {"tools": [TOOL]}),
    (Reason.RESPONSE_FORMAT, "structured", ["Two colours."], {"response_format": {"type": "json_object"}}),
    (Reason.RESPONSE_FORMAT, "structured", ["Yes or no?"], {"guided_choice": ["yes", "no"]}),
    (Reason.RESPONSE_FORMAT, "structured", ["Yes or no?"], {"structured_outputs": {"choice": ["yes"]}}),
    (Reason.NO_TEXT, "other", [""], {}),
    (Reason.CODE_GIVEN, "code", [f"Make it faster.\n\n```python\n{FUNCTION * 3}```"], {}),
    (Reason.CODE_GIVEN, "code", [f"Translate to Rust:\n{FUNCTION * 3}"], {}),
    (Reason.VERB_TRANSLATE, "translate", ["Translate to French: the mill is closed."], {}),
    (Reason.VERB_TRANSLATE, "translate", ["Could you translate this?\n\nDie Mühle steht still."], {}),
    (Reason.VERB_TRANSLATE, "translate", ["Bitte übersetze ins Englische: Die Mühle steht still."], {}),
    (Reason.VERB_TRANSLATE, "translate", ["Traduis en anglais : le moulin est fermé."], {}),
    (Reason.VERB_TRANSLATE, "translate", ["Traduce al inglés: el molino está cerrado."], {}),
    (Reason.VERB_TRANSLATE, "translate", [system("Translate what the user says."), "Die Mühle."], {}),
    (Reason.VERB_EXTRACT, "structured", [f"Extract all years as a list.\n\n{DOCUMENT}"], {}),
    (Reason.VERB_SUMMARIZE, "grounded", [f"Summarize: {DOCUMENT}"], {}),
    (Reason.VERB_SUMMARIZE, "grounded", [f"TL;DR:\n{DOCUMENT}"], {}),
    (Reason.VERB_SUMMARIZE, "grounded", [f"Give me a summary.\n\n{DOCUMENT}"], {}),
    (Reason.VERB_SUMMARIZE, "grounded", [f"Fasse den Text zusammen.\n\n{DOCUMENT}"], {}),
    (Reason.VERB_SUMMARIZE, "grounded", [f"{DOCUMENT}\n\nPlease summarize."], {}),
    (Reason.VERB_REWRITE, "grounded", ["Rewrite politely: send me the flour now, or else you lose me."], {}),
    (Reason.VERB_REWRITE, "grounded", ["A haiku.", assistant("Wheel in the water"), "Now shorten it."], {}),
    (Reason.SUMS, "math", ["Ada has 12 apples and eats 5. How many apples are left?"], {}),
    (Reason.SUMS, "math", ["17 * 23"], {}),
    (Reason.SUMS, "math", ["Solve for x in the following terms."], {}),
    (Reason.QUESTION_ON_TEXT, "grounded", [f"{DOCUMENT}\n\nWhen did the mill grind most?"], {}),
    (Reason.QUESTION_ON_TEXT, "grounded", [system(DOCUMENT), "When did the mill grind most?"], {}),
    (Reason.LONG_PROMPT, "grounded", [f"{DOCUMENT} {DOCUMENT} Go on."], {}),
    (Reason.CODE_ASKED, "code", ["Write a Python script that counts words."], {}),
    (Reason.CODE_ASKED, "code", ["Implement quicksort."], {}),
    (Reason.FREE_TEXT, "chat", ["Who discovered the source of the river?"], {}),
    (Reason.FREE_TEXT, "chat", ["Write a story about a miller."], {}),
    (Reason.FREE_TEXT, "chat", ["Summarize."], {}),  # there is nothing to summarize
]


@pytest.mark.parametrize(("reason", "kind", "messages", "more"), EXAMPLES)
def test_a_request_has_the_class_of_its_first_rule(
    reason: Reason, kind: str, messages: list[Any], more: dict[str, Any]
) -> None:
    """The reason names the rule that decided, and the class is the rule's."""
    assert Workload(WorkloadClass(kind), reason) == classed(*messages, **more)


def test_every_rule_has_an_example() -> None:
    """No rule is without a request that it decides, and each reason has one rule."""
    assert {reason for reason, *_ in EXAMPLES} == set(Reason)
    assert [workload.reason for workload, _ in RULES] == list(Reason)


def test_every_class_has_a_rule() -> None:
    """A class that nothing is put into would be a word too many."""
    assert {workload.kind for workload, _ in RULES} == set(WorkloadClass)


@pytest.mark.parametrize("workload", sorted(OF_LABEL))
def test_samples_are_classified_as_they_were_written(workload: str) -> None:
    """Each built-in request has a class that its label maps to."""
    found = {
        one.id: classify(features(path=CHAT, **one.body)).kind.value
        for one in samples()
        if one.workload == workload
    }
    assert found
    assert {} == {name: kind for name, kind in found.items() if kind not in OF_LABEL[workload]}


def test_a_completion_is_read_like_a_turn() -> None:
    """The prompt of the older endpoint has the same rules; a bare program is code without any verb."""
    assert Reason.CODE_GIVEN is classify(features(path=COMPLETIONS, prompt=FUNCTION * 4)).reason
    assert Reason.VERB_SUMMARIZE is classify(features(path=COMPLETIONS, prompt=f"Recap: {DOCUMENT}")).reason


def test_token_ids_have_no_class() -> None:
    """Nothing can be read in numbers."""
    found = classify(features(path=COMPLETIONS, prompt=[1, 2, 3]))
    assert Workload(WorkloadClass.OTHER, Reason.NO_TEXT) == found


def test_a_verb_inside_material_asks_nothing() -> None:
    """Words of a document that happen to be verbs are no instruction."""
    text = f"The guides translate and summarize while people write. {DOCUMENT}\n\nWho keeps the mill?"
    assert Workload(WorkloadClass.GROUNDED, Reason.QUESTION_ON_TEXT) == classed(user(text))


def test_one_word_changes_nothing_by_itself() -> None:
    """A discount code is no program."""
    assert WorkloadClass.CHAT is classed("My discount code is refused, and I do not see the reason.").kind


@given(
    st.builds(
        Features,
        prompt_chars=st.integers(0, 10_000_000),
        turns=st.integers(0, 100),
        has_history=st.booleans(),
        structured=st.booleans(),
        tools=st.booleans(),
        code_share=st.floats(0, 1),
        verb=st.none() | st.sampled_from(Verb),
        question=st.booleans(),
        sums=st.booleans(),
        program=st.booleans(),
        context_share=st.floats(0, 1),
    )
)
def test_every_request_has_one_class(seen: Features) -> None:
    """The rules are total and say the same each time; the reason belongs to the class."""
    found = classify(seen)
    assert found == classify(seen)
    assert found in [workload for workload, _ in RULES]
