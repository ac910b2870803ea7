"""The numbers of a simulation as a table, JSON, Markdown and a page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from rich.console import Console

from app.simulation.report.document import as_json
from app.simulation.report.over_time import line, resolution, together
from app.simulation.report.page import html, markdown, svg_files
from app.simulation.report.rows import clock, cost_cells, move_cells, rate_words
from app.simulation.report.subject import Subject
from app.simulation.report.table import table
from autoscaling.types import Role, Tier
from tests.app.html_page import Page
from tests.app.simulation.report.samples import LATE, MOVE, moment, scores, subject, tier

SECTIONS = [
    "What was found",
    "What callers got, and what it took",
    "Demand and capacity over time",
    "In time, and time per token, over time",
    "Moves of capacity, and why",
    "What it costs",
    "What was simulated, and how far to trust it",
]
EVIL = "<script>alert('x')</script>|`$a_b$` & co"


def two() -> Subject:
    return subject({"mine": LATE, "other": scores()}, price_per_hour=2.5)


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(html(two()))


def shown(found: Subject) -> str:
    console = Console(width=200, highlight=False)
    with console.capture() as captured:
        console.print(table(found))
    return captured.get()


def test_the_table_has_a_row_for_each_policy_and_tier() -> None:
    """What the policy took stands in its first row; who missed says so."""
    rows = [" ".join(row.split()) for row in shown(two()).splitlines()]

    assert [
        "policy tier in time TTFT p95, s TPOT p95, ms tokens/s refused moves undone accel.-hours "
        "switching cost",
        "mine interactive 90.0 % missed 0.48 31.2 16.7 20 1 0 4.00 0.05 10.0",
        "batch no objective 0.48 - 83.3 0",
        "other interactive 98.0 % 0.48 31.2 16.7 0 1 0 4.00 0.05 10.0",
        "batch no objective 0.48 - 83.3 0",
    ] == rows


def test_a_policy_that_served_nobody_has_a_row_of_dashes() -> None:
    """What it took is known all the same."""
    rows = shown(subject({"mine": replace(scores(), tiers={})})).splitlines()

    assert "mine - - - - - - 1 0 4.00 0.05" == " ".join(rows[1].split())


def test_programs_get_every_number() -> None:
    """Ratios 0 to 1, seconds, null for unknown; the series only when asked for."""
    found = as_json(two())
    mine = found["policies"]["mine"]

    assert found == json.loads(json.dumps(found, allow_nan=False))
    assert ("mine", "other") == (found["asked"], found["best"])
    assert ["interactive"] == mine["missed"]
    assert {"ttftSeconds": 1.0, "tpotSeconds": 0.05} == found["objectives"]["interactive"]
    assert (0.9, None) == (
        mine["tiers"]["interactive"]["attainment"],
        mine["tiers"]["batch"]["tpotP95Seconds"],
    )
    batch = mine["tiers"]["batch"]
    assert (500, None, None, None) == tuple(
        batch[key] for key in ("answered", "inTime", "late", "attainment")
    )
    assert {"interactive": 1.0, "batch": None} == mine["series"][0]["attainment"]
    assert {
        "atSeconds": 130.0,
        "source": "plain",
        "receiver": "speculative",
        "count": 1,
        "reason": "shortfall",
        "state": "done",
        "tookSeconds": 64.0,
    } == mine["moves"][0]
    assert 10.0 == mine["cost"]
    assert (10.0, 360) == (mine["intervalSeconds"], len(mine["series"]))
    assert {"speculative": 16, "plain": 64} == mine["series"][0]["capacity"]
    assert "series" not in as_json(two(), series=False)["policies"]["mine"]


def test_the_sections_come_in_the_order_in_which_questions_arise(page: Page) -> None:
    """The same in Markdown; every tag is closed."""
    assert SECTIONS == page.titles
    assert [] == page.open
    assert SECTIONS == [row[3:] for row in markdown(two()).splitlines() if row.startswith("## ")]


def test_the_page_begins_with_the_answer(page: Page) -> None:
    """The first words below the title and the subject."""
    text = "".join(page.text)

    assert text.index("mine misses an objective") < text.index("What to do") < text.index("Words used here")


def test_every_plot_is_drawn_and_well_formed() -> None:
    """One of the pools for each policy, attainment, time per token, and all policies as points."""
    files = svg_files(two())

    assert {"trade.svg", "capacity-0.svg", "capacity-1.svg", "attainment.svg", "time-per-token.svg"} == set(
        files
    )
    for text in files.values():
        ElementTree.fromstring(text)  # our own
    assert "promised: 95%" in files["attainment.svg"]
    assert "50.0 ms" in files["time-per-token.svg"]
    assert "minutes since the trace began" in files["capacity-0.svg"]
    assert "sequences" in files["capacity-0.svg"]


def test_how_many_requests_come_is_told() -> None:
    """On average and in the fullest ten seconds, by tier: in words, for programs, and in the report."""
    found = as_json(two())["requests"]

    assert (
        "requests/s, on average and in the fullest 10 s: interactive 0.28, at most 2.10; batch 0.14, at most "
        "1.30; all 0.42, at most 3.10"
    ) == rate_words(two())
    assert "| batch | 500 | 0.14 | 1.30 |" in markdown(two()).splitlines()
    assert {"requests": 500, "meanPerSecond": 0.1389, "peakPerSecond": 1.3} == found["tiers"]["batch"]
    assert (10.0, ["all", "interactive", "batch"]) == (found["peakWindowSeconds"], list(found["tiers"]))
    assert "" == rate_words(subject(rates=()))


def test_a_tier_without_objectives_is_never_in_time() -> None:
    """Nobody can say so: not in the tables, and not as a line of 100 % in a plot."""
    found = two()
    (batch,) = {row for row in markdown(found).splitlines() if row.startswith("| mine | batch |")}

    assert "| mine | batch | no objective | 0.48 | - | 83.3 | 500 | - | - | 0 | 0 |" == batch
    assert ">batch<" not in svg_files(found)["attainment.svg"]
    assert "attainment.svg" not in svg_files(subject(promises={}))


def test_axes_begin_at_nothing() -> None:
    """A difference looks as large as it is: policies as points, time per token, demand and replicas."""
    for name, text in svg_files(two()).items():
        ticks = re.findall(r">([\d.]+)</text>", text)
        assert ticks.count("0") + ticks.count("0.0") >= 2, name


def test_one_policy_alone_is_compared_with_nobody() -> None:
    """So there is no plot of all, and no heading above its pools."""
    assert "trade.svg" not in svg_files(subject())
    assert "### mine" not in markdown(subject()).splitlines()


@pytest.mark.long
def test_many_policies_are_all_in_the_tables() -> None:
    """Lines of more than six could not be told apart; it is said how many are left out."""
    found = subject({f"p{at}": scores() for at in range(8)})
    text = markdown(found)

    assert "capacity-5.svg" in svg_files(found)
    assert "capacity-6.svg" not in svg_files(found)
    assert 8 == len(re.findall(r"^\| p\d \| interactive \|", text, re.MULTILINE))
    assert "The plots show the first 6 policies; 2 more are in the tables." in text.splitlines()


def test_a_series_without_anything_known_is_no_plot() -> None:
    """It says so instead of drawing nothing."""
    found = subject({"mine": replace(scores(), series=())})
    text = markdown(found, "plots")

    assert {} == svg_files(found)
    assert "The pools of mine over time are not known." in text.splitlines()
    assert "No request was answered, so there is nothing to show over time." in text.splitlines()


def test_moves_are_told_with_their_reason() -> None:
    """When, what, why, how it ended and how long it took; many are folded."""
    assert ("0:02:10", "1 from plain to speculative", "shortfall", "done", "64 s") == move_cells(MOVE)
    given_back = replace(MOVE, receiver=None, state="timed_out", took_s=None)
    assert ("0:02:10", "1 from plain to the free budget", "shortfall", "timed out", "-") == move_cells(
        given_back
    )
    assert "details" in Page(html(subject({"mine": scores(moves=(MOVE,) * 15)}))).tags
    assert "mine moved nothing." in markdown(subject({"mine": scores(moves=())})).splitlines()


def test_costs_need_a_price() -> None:
    """2.50 for each of 4 hours are 10.0, of which 360,000 tokens came; without one the option is named."""
    found = two()

    assert ("mine", "4.00", "1.2 %", "90,000", "10.0", "27.8") == cost_cells(found, "mine")
    assert ("mine", "4.00", "1.2 %", "90,000") == cost_cells(subject(), "mine")
    assert (
        "Give the price of one accelerator-hour with --accelerator-hour-price to see costs."
        in markdown(subject()).splitlines()
    )


def test_names_are_text() -> None:
    """A policy may be called anything, and a trace as well: no tag, no formula, no link, no column."""
    found = subject({EVIL: scores(), "other": LATE}, words={EVIL: EVIL}, about=(EVIL,), title=EVIL)
    seen, text = Page(html(found)), markdown(found)

    assert "script" not in seen.tags
    assert SECTIONS == seen.titles
    assert EVIL in "".join(seen.text)
    assert "<script" not in text
    for drawn in svg_files(found).values():
        assert "<script" not in drawn


def test_nothing_is_fetched_and_ids_are_used_once(page: Page) -> None:
    """No script, picture, style or font from elsewhere; plots share the page."""
    links = [value or "" for key, value in page.attributes if key in {"src", "href", "xlink:href"}]
    ids = [value for key, value in page.attributes if key == "id"]

    assert {"script", "link", "img", "iframe"}.isdisjoint(page.tags)
    assert [] == [link for link in links if not link.startswith("#")]
    assert len(set(ids)) == len(ids)
    assert set() == {link[1:] for link in links} - set(ids)


def test_the_same_scores_give_the_same_report() -> None:
    """Byte by byte: no date, no random id."""
    assert html(two()) == html(two())


def test_unknown_values_are_never_numbers() -> None:
    """Percentiles, shares and pools over time may each be missing."""
    bare = replace(tier(10, 0), ttft_p50_s=None, ttft_p95_s=None, tpot_p50_s=None, tpot_p95_s=None)
    blind = replace(moment(0.0, capacity={}, demand={}, attainment=None), tpot_p95_s={Tier.INTERACTIVE: None})
    found = subject({"mine": scores(bare, series=[blind])})
    seen, text = Page(html(found)), markdown(found, "plots")

    assert re.search(r"\b(nan|inf|None)\b", "".join(seen.text) + text) is None


def test_markdown_has_one_sentence_per_line() -> None:
    """Outside tables no line has a second sentence, and none is empty twice."""
    text = markdown(two(), "plots")
    prose = [row for row in text.splitlines() if row and row[0] not in "|!"]

    assert [] == [row for row in prose if re.search(r"[a-z0-9)]\. [A-Z]", row)]
    assert "\n\n\n" not in text
    assert "\u2014" not in text


def test_markdown_links_the_plots_that_exist() -> None:
    """In the folder that it is given; without a folder none."""
    assert set(svg_files(two())) == set(re.findall(r"\]\(plots/([^)]*)\)", markdown(two(), "plots")))
    assert "![" not in markdown(two())


def test_a_long_series_is_drawn_in_fewer_points() -> None:
    """The mean of what is known in each; a day in hours."""
    day = replace(scores(series=[moment(10.0 * at) for at in range(8640)]), seconds=86_400.0)
    x, y = line(day, lambda found: found.demand[Role.SPECULATIVE])

    assert 29 == together(day)
    assert (299, 8.0, 24.0) == (len(x), y[0], x[-1])
    assert "One point is the mean of 29 intervals of 10.0 s." == resolution(day)
    assert "One point is the mean of 2 intervals of 10.0 s." == resolution(scores())


def test_moments_are_told_by_the_clock_of_the_trace() -> None:
    """Hours, minutes, seconds."""
    assert ["0:00:00", "0:04:10", "25:00:01"] == [clock(seconds) for seconds in (0.0, 250.0, 90_001.0)]
