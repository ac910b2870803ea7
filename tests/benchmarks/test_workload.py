"""The analysis behind `make bench-workload`: what is measured, what is predicted, what is written."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from rich.console import Console

from app.samples import samples
from app.workload.classify import WorkloadClass
from benchmarks.errors import BenchError, UnfitError
from benchmarks.workload import Plan, bench
from benchmarks.workload_analysis import (
    PREDICT,
    Answered,
    Predictor,
    Scored,
    by_class,
    crossed,
    held_out,
    joined,
    means,
    moved,
    pooled,
    rank_auc,
    ranking_auc,
    sent_auc,
    without,
)
from benchmarks.workload_ask import ask_all
from benchmarks.workload_lines import Line, line_of, lines_of, read_lines
from benchmarks.workload_prompts import HUMAN_EVAL, SPEC_BENCH, Prompt, find
from benchmarks.workload_report import (
    CLASS_HEAD,
    class_rows,
    confusion,
    figures,
    page,
    predictor_rows,
    without_rows,
)

STORY = "Write a story about mill number {}."
COPY = "Summarize: " + "In this year the mill on the river ground rye. " * 12 + "{}"


def prompt(id_: str, text: str, category: str = "any") -> Prompt:
    body = {"messages": [{"role": "user", "content": text}], "max_tokens": 96, "temperature": 0}
    return Prompt(id_, category, body)


def text_line(id_: str, tokens: int, accepted: int | None) -> str:
    drafts = None if accepted is None else {"num_accepted_draft_tokens": accepted}
    row = {
        "id": id_,
        "cat": "any",
        "usage": {"completion_tokens": tokens},
        "m": {"speculative_decoding": drafts},
    }
    return json.dumps(row)


@pytest.fixture(scope="module")
def answers() -> list[Answered]:
    """Twenty stories of one token per step, and twenty summaries of two."""
    stories = [prompt(f"story-{n}", STORY.format(n), "writing") for n in range(20)]
    copies = [prompt(f"copy-{n}", COPY.format(n), "copying") for n in range(20)]
    lines = [Line(one.id, 96, 0) for one in stories] + [Line(one.id, 96, 48) for one in copies]
    return joined([*stories, *copies], lines)


# --- lines


@pytest.mark.parametrize(
    ("tokens", "accepted", "expected"),
    [(96, 0, 1.0), (96, 48, 2.0), (10, 8, 5.0), (1, 0, 1.0), (4, None, 1.0)],
)
def test_tokens_per_step_count_all_steps(tokens: int, accepted: int | None, expected: float) -> None:
    """Every step gives one token beside what it accepts, whether it had a draft or not."""
    line = line_of(text_line("a", tokens, accepted))
    assert line is not None
    assert expected == line.tokens_per_step


@pytest.mark.parametrize(
    "row",
    [
        {"id": "a", "err": "500: broken", "usage": None, "m": None},
        {"id": "a", "err": None, "usage": None, "m": None},
        {"id": "a", "err": None, "usage": {"completion_tokens": 0}, "m": None},
    ],
)
def test_an_answer_without_a_token_measures_nothing(row: dict[str, Any]) -> None:
    """Errors and empty answers are left out."""
    assert line_of(json.dumps(row)) is None


def test_answers_that_tell_of_no_drafts_are_of_the_wrong_pool() -> None:
    """One of them may have had nothing to draft; all of them were not asked in the speculative pool."""
    assert 2 == len(lines_of([text_line("a", 5, None), text_line("b", 5, 1), ""]))
    with pytest.raises(ValueError, match="speculative pool"):
        lines_of([text_line("a", 5, None), text_line("b", 5, None)])


@pytest.mark.parametrize("content", ["[]\n", "nothing\n", '{"cat": "qa"}\n'])
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: str) -> None:
    """The error names the file and what to give."""
    path = tmp_path / "lines.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(BenchError, match=r"lines\.jsonl.*--save"):
        read_lines(path)


# --- prompts


def test_data_sets_are_read_from_a_folder(tmp_path: Path) -> None:
    """The first turn of each question, and each function between fences."""
    question = {"question_id": 81, "category": "writing", "turns": ["Write.", "Again."]}
    (tmp_path / SPEC_BENCH).write_text(json.dumps(question) + "\n", encoding="utf-8")
    with gzip.open(tmp_path / HUMAN_EVAL, "wt", encoding="utf-8") as file:
        file.write(json.dumps({"task_id": "HumanEval/0", "prompt": "def one():\n"}) + "\n")
    words, found = find(tmp_path)
    assert "Spec-Bench and HumanEval" == words
    assert [("sb81", "writing"), ("HumanEval/0", "humaneval")] == [(one.id, one.category) for one in found]
    assert "Write." == found[0].body["messages"][0]["content"]
    assert (
        "Complete this Python function.\n\n```python\ndef one():\n```"
        == found[1].body["messages"][0]["content"]
    )


def test_a_folder_without_data_is_refused(tmp_path: Path) -> None:
    """A folder that was named must have them; silently asking other prompts would mislead."""
    with pytest.raises(BenchError, match="--data"):
        find(tmp_path)


def test_without_data_the_samples_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with tools need an engine with a parser for them, and are left out."""
    monkeypatch.setattr("benchmarks.workload_prompts.BESIDE", tmp_path)
    words, found = find(None)
    assert "the built-in samples without tools" == words
    assert {one.id for one in samples() if "tools" not in one.body} == {one.id for one in found}


# --- analysis


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], None),
        ([(1.0, True)], None),
        ([(1.0, False), (2.0, False)], None),
        ([(1.0, False), (2.0, True)], 1.0),
        ([(2.0, False), (1.0, True)], 0.0),
        ([(1.0, False), (1.0, True)], 0.5),
        ([(1.0, False), (2.0, True), (3.0, False), (4.0, True)], 0.75),
        ([(1.0, True), (1.0, False), (2.0, True), (2.0, False)], 0.5),
    ],
)
def test_the_auc_is_the_chance_to_be_above(pairs: list[tuple[float, bool]], expected: float | None) -> None:
    """Of all pairs of a marked and an unmarked value; a tie is half; without both kinds there is none."""
    assert expected == rank_auc(pairs)


def test_two_questions_are_asked_of_a_prediction() -> None:
    """Whether what is sent has more tokens per step, and whether what pays was predicted higher."""
    scored = [Scored(1.4, 2.0), Scored(1.4, 1.1), Scored(1.2, 1.2), Scored(1.0, 1.0)]
    assert 0.75 == sent_auc(scored)
    assert 5 / 6 == pytest.approx(ranking_auc(scored))


def test_answers_join_their_prompts() -> None:
    """An answer to an unknown prompt, and a prompt without an answer, are left out."""
    found = joined([prompt("a", "Hi."), prompt("b", "Ho.")], [Line("b", 4, 1), Line("c", 4, 1)])
    assert ["b"] == [one.line.id for one in found]


def test_means_are_over_tokens_and_need_five_answers() -> None:
    """All tokens by all steps; a class of fewer answers keeps its prior."""
    prompts = [prompt(str(n), STORY.format(n)) for n in range(6)]
    lines = [Line(str(n), 10, 0) for n in range(5)] + [Line("5", 100, 50)]
    assert {"chat": 1.5, "mean": 1.5} == means(joined(prompts, lines))
    assert 1.5 == pooled(joined(prompts, lines))
    assert {} == means(joined(prompts[:4], lines))


def test_halves_predict_each_other(answers: list[Answered]) -> None:
    """Each answer is predicted once, and never with a mean that it is a part of."""
    predict = PREDICT[Predictor.CLASS]
    late = held_out(answers, predict)
    assert 0 < len(late) < len(answers) == len(crossed(answers, predict))
    lone = [one for one in answers if not one.calibrates]
    learned = means([one for one in answers if one.calibrates])
    assert [predict(one, learned) for one in lone] == [one.predicted for one in late]


def test_a_class_that_tells_the_difference_is_found(answers: list[Answered]) -> None:
    """Stories are chat and are not sent, summaries are grounded and are; nothing else is known."""
    assert [WorkloadClass.GROUNDED, WorkloadClass.CHAT] == list(by_class(answers))
    found = figures(answers)
    assert (1.0, 1.0, 1.0, 1.0) == (
        found["acceptance_auc"],
        found["acceptance_auc_heldout"],
        found["acceptance_auc_class_only"],
        found["acceptance_auc_prior"],
    )
    assert (0.5, 0.5) == (found["acceptance_auc_tier_only"], found["ranking_auc_tier_only"])
    assert (40.0, 0.5, 2.0, 1.0) == (
        found["answers"],
        found["sent_share"],
        found["tokens_per_step_sent"],
        found["tokens_per_step_rest"],
    )


def test_without_a_class_its_requests_are_chat(answers: list[Answered]) -> None:
    """What a class adds is what is lost without it."""
    fewer = without(answers, WorkloadClass.GROUNDED)
    assert [WorkloadClass.CHAT] == list(by_class(fewer))
    assert 0 < moved(answers, fewer, PREDICT[Predictor.CLASS])
    assert 0 == moved(answers, answers, PREDICT[Predictor.CLASS])


def test_a_figure_that_cannot_be_told_is_absent() -> None:
    """Where all requests are sent alike there is no difference to measure."""
    stories = [prompt(str(n), STORY.format(n)) for n in range(3)]
    found = figures(joined(stories, [Line(str(n), 9, 0) for n in range(3)]))
    assert "acceptance_auc" not in found
    assert 3.0 == found["answers"]


def test_the_tables(answers: list[Answered]) -> None:
    """One row per category, class, predictor and class taken away."""
    head, rows = confusion(answers)
    assert ["category", "grounded", "chat"] == head
    assert [["copying", "20", ""], ["writing", "", "20"]] == rows
    first = class_rows(answers)[0]
    assert len(CLASS_HEAD) == len(first)
    assert ["grounded", "20", "2.00", "2.00", "2.00", "2.00", "2.00", "1.00"] == first[:-1]
    assert [one.value for one in Predictor] == list(map(str, Predictor))
    assert len(Predictor) == len(predictor_rows(answers))
    assert ["none", "grounded"] == [row[0] for row in without_rows(answers)]
    assert "40 answers of a speculative pool to two kinds" in page("two kinds", answers)


# --- the command


def test_saved_answers_are_analysed(tmp_path: Path) -> None:
    """Figures and page are written, and the exit status says whether the targets hold."""
    measured = tmp_path / "lines.jsonl"
    asked = [one for one in samples() if "tools" not in one.body]
    helped = {"code", "summarize", "rag", "structured"}
    measured.write_text(
        "\n".join(text_line(one.id, 96, 60 if one.workload in helped else 4) for one in asked),
        encoding="utf-8",
    )
    plan = Plan("http://127.0.0.1:1", None, measured, None, tmp_path / "results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmarks.workload_prompts.BESIDE", tmp_path)
        assert 0 == bench(plan, Console(quiet=True))
    written = json.loads((tmp_path / "results" / "workload.json").read_text(encoding="utf-8"))
    assert len(asked) == written["figures"]["answers"]
    assert {"acceptance_auc": [">=", 0.7], "acceptance_auc_heldout": [">=", 0.7]} == written["targets"]
    assert "## What each class adds" in (tmp_path / "results" / "workload.md").read_text(encoding="utf-8")


def test_answers_of_other_prompts_are_refused(tmp_path: Path) -> None:
    """Without one answer that belongs to a prompt the run is void."""
    measured = tmp_path / "lines.jsonl"
    measured.write_text(text_line("nobody", 5, 1), encoding="utf-8")
    plan = Plan("http://127.0.0.1:1", None, measured, None, tmp_path)
    with pytest.raises(BenchError, match="--data"):
        bench(plan, Console(quiet=True))


# --- asking


class Service:
    """As much of the endpoint as is asked: ready, and one answer per prompt."""

    def __init__(self) -> None:
        self.status = 200
        self.bodies: list[dict[str, Any]] = []
        self.pools: list[str | None] = []

    async def ready(self, _request: web.Request) -> web.Response:
        return web.Response(status=self.status)

    async def chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.bodies.append(body)
        self.pools.append(request.headers.get("x-twinpool-pool"))
        text = body["messages"][0]["content"]
        if text == "fail":
            return web.Response(status=503, text="no room")
        events: list[dict[str, Any]] = [{"choices": [{"delta": {"content": "a"}}]}]
        drafts = {"speculative_decoding": {"num_accepted_draft_tokens": 3}}
        events.append({"choices": [], "usage": {"completion_tokens": 8}, "metrics": drafts})
        if text == "break":
            events.append({"error": {"code": "engine_gone"}})
        lines = [f"data: {json.dumps(event)}\n\n" for event in events]
        return web.Response(text="".join([*lines, "data: [DONE]\n\n"]), content_type="text/event-stream")


@pytest.fixture
async def service() -> AsyncIterator[tuple[Service, str]]:
    """A service on a free port."""
    made = Service()
    app = web.Application()
    app.router.add_get("/ready", made.ready)
    app.router.add_post("/v1/chat/completions", made.chat)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    yield made, f"http://127.0.0.1:{port}"
    await runner.cleanup()


async def test_every_prompt_is_asked_in_the_speculative_pool(service: tuple[Service, str]) -> None:
    """As a stream with its usage; the answers come in the order of the prompts, and the pace is said."""
    made, url = service
    said: list[str] = []
    rows = await ask_all(url, [prompt(str(n), "hi") for n in range(40)], said.append)
    assert [str(n) for n in range(40)] == [row["id"] for row in rows]
    assert {"speculative"} == set(made.pools)
    assert {True} == {body["stream"] and body["stream_options"]["include_usage"] for body in made.bodies}
    assert [Line(str(n), 8, 3) for n in range(40)] == lines_of(json.dumps(row) for row in rows)
    assert 20 == len(said)
    assert said[-1].endswith("40 of 40 answers")


@pytest.mark.parametrize(("text", "word"), [("fail", "503: no room"), ("break", "engine_gone")])
async def test_a_failed_answer_measures_nothing(service: tuple[Service, str], text: str, word: str) -> None:
    """A few are left out with their reason; of many the run is void."""
    _, url = service
    prompts = [prompt(str(n), "hi") for n in range(39)]
    rows = await ask_all(url, [*prompts, prompt("bad", text)], lambda _: None)
    assert word in rows[-1]["err"]
    assert 39 == len(lines_of(json.dumps(row) for row in rows))
    with pytest.raises(BenchError, match=word):
        await ask_all(url, [prompt("bad", text)], lambda _: None)


async def test_a_service_that_is_not_ready_is_not_asked(service: tuple[Service, str]) -> None:
    """The machine is unfit, and the mend is named; no prompt was sent."""
    made, url = service
    made.status = 503
    with pytest.raises(UnfitError, match="ready says 503"):
        await ask_all(url, [prompt("a", "hi")], lambda _: None)
    with pytest.raises(UnfitError, match="make serve"):
        await ask_all("http://127.0.0.1:1", [prompt("a", "hi")], lambda _: None)
    assert [] == made.bodies
