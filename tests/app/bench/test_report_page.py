"""What the report says, and what it must never show."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from app.bench.report.page import html, markdown, svg_files
from autoscaling.profiling.findings import Estimate, Findings, Fit, PoolAnswer, PoolsAt, TableRow
from autoscaling.profiling.load import Load, Mix
from autoscaling.types import Role
from tests.app.bench.findings_sample import CONTEXT, PLAIN, empty, renamed, sample, synthetic
from tests.app.html_page import Page

PLOTS = {"speed-up.svg", "acceptance.svg", "frontier.svg", "parts.svg", "break-even.svg"}
SECTIONS = [
    "The answer",
    "Can this be trusted?",
    "Speed-up against concurrency",
    "How many draft tokens are accepted",
    "Time per token against throughput",
    "Where the time goes",
    "Switching drafts off, and moving capacity",
    "When a draft pays",
    "Cost per million output tokens",
    "Appendix: how it was measured, and every cell",
]
EVIL = "<script>alert('x')</script>|`$a_b$` & co"


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(html(sample(), 2.5))


def lines(findings: Findings, price_per_hour: float | None = None) -> list[str]:
    return markdown(findings, price_per_hour).splitlines()


def test_the_sections_come_in_the_order_in_which_questions_arise(page: Page) -> None:
    """The answer, whether to trust it, what it rests on; the same in Markdown, every tag closed."""
    assert SECTIONS == page.titles
    assert [] == page.open
    assert SECTIONS == [line[3:] for line in lines(sample()) if line.startswith("## ")]


def test_the_answer_is_a_sentence() -> None:
    """Where it pays, with which K, and where it does not."""
    found = lines(sample())

    assert "**For copy (K = 4) speculation pays up to about 10 sequences at once (9.2 to 11).**" in found
    assert (
        "**For chat (K = 2) speculation does not pay at any batch that was measured, up to 16 sequences.**"
        in found
    )
    assert "  It surely gains with 1, 2, 4 and 8 at once." in found
    assert "  By the cost models it pays up to about 10 sequences at once (9.2 to 11)." in found
    assert "  K = 2 gives less but pays up to about 14 sequences at once (12 to 16)." in found


def test_an_objective_that_nothing_keeps_gets_no_recommendation() -> None:
    """It is named, and the others are as before."""
    pools = tuple(replace(one, in_time=0.1 if one.tpot_s < 0.03 else 1.0) for one in sample().pools)
    found = lines(replace(sample(), pools=pools))
    none = lines(replace(sample(), pools=tuple(replace(one, in_time=0.1) for one in pools)))

    assert (
        "A promised time per output token of 25 ms is kept by no configuration for half of the interactive "
        "tokens: nothing is recommended for it."
    ) in found
    assert not any(line.startswith("| 25 ms | 1.00 | none") for line in found)
    assert (
        "Two pools are the better choice at a promised time per output token of 35 ms "
        "(1.17 times the best single pool)."
    ) in found
    assert not any("is enough" in line for line in none)


def test_pools_are_recommended_by_objective() -> None:
    """With what is gained; within 5 % one pool is as good."""
    found = lines(sample())
    words = "at a promised time per output token of"

    assert f"Two pools are the better choice {words} 35 ms (1.17 times the best single pool)." in found
    assert f"One plain pool is enough {words} 60 ms." in found
    assert f"One speculative pool with the engine's K table is enough {words} 25 ms." in found
    assert "| 60 ms | 0.99 | 1.00 | 0.91 | one plain pool | as good as the next best within 5 % |" in found
    assert (
        "| 25 ms | 1.00 | none | 0.98 | one speculative pool with the engine's K table "
        "| as good as the next best within 5 % |"
    ) in found


def test_one_pool_everywhere_is_said_plainly() -> None:
    """No list of objectives, and by which rule."""
    pools = tuple(replace(one, answer=PoolAnswer.ONE_PLAIN, margin=1.2) for one in sample().pools)
    found = lines(replace(sample(), pools=pools))

    assert "One plain pool is enough at every promised time per output token below." in found
    assert "Of configurations that differ by less than 5 % the simplest is recommended." in found


def test_what_to_set_can_be_pasted() -> None:
    """The engine's K table as JSON, and a policy value with its reason."""
    found = lines(sample())

    assert '"num_speculative_tokens_per_batch_size": [[1, 5, 4], [6, 13, 2], [14, 16, 0]]' in found
    assert (
        "| spec.pools.speculative.limits.softInflight | 13 "
        "| the largest batch at which drafting still pays for the prompts that gain |"
    ) in found


def test_a_refused_fit_is_a_warning() -> None:
    """The answer is what was measured, and the reason is in the table."""
    refused = Fit(Role.PLAIN, PLAIN, 24, 0.2, 0.31, 8, accepted=False, refused_because="off by 31 %")
    found = lines(replace(sample(), fits={**sample().fits, Role.PLAIN: refused}))

    assert (
        "**Up to which batch speculation pays cannot be told: the cost model of the plain engine is refused, "
        "off by up to 31.0 %.**"
    ) in found
    assert "**Measured for sure: copy (K = 4) gains with 1, 2, 4 and 8 and loses with 16 at once.**" in found
    assert "> The cost models are not good enough to act on." in found
    assert "| plain | 24 | 20.0 % | 31.0 % | 8 | refused: off by 31 % |" in found
    assert "The cost model may be trusted" not in "".join(found)


def test_formulas_stand_beside_the_measurement() -> None:
    """Alpha 0.46 gives the 1.80 tokens of K = 4; the rule of thumb knows neither cost nor batch."""
    row = next(line for line in lines(sample()) if line.startswith("| copy | 4 | 0.46"))

    assert "| copy | 4 | 0.46 | 1.52 | 1.78 | 1.58 (1.52 to 1.65) | 0.91 (0.87 to 0.95) |" == row


def test_names_are_text() -> None:
    """A kind of prompts may be called anything: it makes no tag, no formula, no link and no column."""
    found = renamed(EVIL)
    page = Page(html(found, None))
    text = markdown(found, None)

    assert "script" not in page.tags
    assert SECTIONS == page.titles
    assert EVIL in "".join(page.text)
    assert "<script" not in text
    row = next(line for line in text.splitlines() if line.startswith("| &lt;script") and "| 4 | 1.58" in line)
    assert 8 == len(re.findall(r"(?<!\\)\|", row)) - 1
    for drawn in svg_files(found).values():
        assert "<script" not in drawn
        ElementTree.fromstring(drawn)  # our own


def test_names_keep_to_their_line() -> None:
    """Line ends and control characters are shown, not obeyed, and a long name is cut."""
    found = lines(renamed("a\n# b\x1b[31m" + 60 * "x"))

    assert SECTIONS == [line[3:] for line in found if line.startswith("## ")]
    assert not [line for line in found if line.startswith("# b")]
    assert any("a\\\\x0a# b\\\\x1b\\[31mx" in line for line in found)


def test_nothing_is_fetched(page: Page) -> None:
    """No script, no picture, style or font from elsewhere: links lead into the page."""
    links = [value for key, value in page.attributes if key in {"src", "href", "xlink:href"}]

    assert {"script", "link", "img", "iframe"}.isdisjoint(page.tags)
    assert [] == [link for link in links if not (link or "").startswith("#")]
    assert [] == re.findall(r"url\((?!#)|@import", html(sample(), None))


def test_ids_are_used_once(page: Page) -> None:
    """Several plots share a page, and each refers to parts of its own."""
    ids = [value for key, value in page.attributes if key == "id"]
    used = {(value or "")[1:] for key, value in page.attributes if key in {"href", "xlink:href"}}

    assert len(set(ids)) == len(ids)
    assert set() == used - set(ids)


@pytest.mark.long
def test_the_same_findings_give_the_same_report() -> None:
    """Byte by byte: no date, no random id."""
    assert html(sample(), 2.5) == html(sample(), 2.5)
    assert svg_files(sample()) == svg_files(sample())


def test_unknown_values_are_never_numbers() -> None:
    """Of nothing measured every section says so, and no plot is drawn."""
    page = Page(html(empty(), None))
    text = markdown(empty(), None, "plots")

    assert SECTIONS == page.titles
    assert "svg" not in page.tags
    assert {} == svg_files(empty())
    assert "![" not in text
    assert re.search(r"\b(nan|inf|None)\b", "".join(page.text) + text) is None
    assert "**Whether speculation pays was not measured.**" in text.splitlines()
    assert "| plain | - | - | it drafts nothing | 16 | - |" in text.splitlines()
    assert "Making the drafts of one step at the largest K, for one sequence: not measured." in text


def test_single_unknown_values_are_a_dash() -> None:
    """Bounds, model, parts, hold-out error, acceptance: each may be missing alone."""
    whole = sample()
    found = replace(
        whole,
        speed_ups=tuple(
            replace(
                one,
                measured=Estimate(one.measured.value),
                modelled=None,
                verification=None,
                drafting=None,
                rest=None,
            )
            for one in whole.speed_ups
        ),
        fits={role: replace(fit, hold_out_error=None) for role, fit in whole.fits.items()},
        survivals={key: replace(one, acceptance_rate=None) for key, one in whole.survivals.items()},
        pools=tuple(replace(one, margin=float("inf")) for one in whole.pools),
        draft_s=None,
        kv_loss=None,
    )
    page, text = Page(html(found, None)), markdown(found, None, "plots")

    assert PLOTS - {"parts.svg"} == set(svg_files(found))
    assert re.search(r"\b(nan|inf|None)\b", "".join(page.text) + text) is None
    assert "| plain | 24 | 1.7 % | - | 8 | good enough |" in text.splitlines()
    assert "| copy | 4 | 0.46 | 1.52 | - | 1.58 | 0.91 |" in text.splitlines()
    assert "The parts of a speculative step: not measured." in text.splitlines()
    assert "| 35 ms | 1.00 | 0.79 | 0.85 | two pools | the best single pool cannot keep the promise |" in text


def test_synthetic_acceptance_is_labelled_wherever_it_counts() -> None:
    """A banner, the title of each plot, and the headings and tables that rest on it; costs are real."""
    page, text = Page(html(synthetic(), 2.5)), markdown(synthetic(), 2.5, "plots")
    real = {1, 6, 9}
    label = " (synthetic acceptance)"

    assert [title + ("" if at in real else label) for at, title in enumerate(SECTIONS)] == page.titles
    assert "Synthetic acceptance." in page.text
    assert "> **Synthetic acceptance.**" in text.splitlines()
    assert PLOTS == {name for name, drawn in svg_files(synthetic()).items() if f"{label}</text>" in drawn}
    assert 5 == len(re.findall(r"!\[[^\]]*\(synthetic acceptance\)\]", text))
    assert f"Speed-up of every draft length K at every batch of B sequences{label}:" in text.splitlines()
    assert "synthetic acceptance" not in html(sample(), 2.5)


def test_costs_need_a_price() -> None:
    """2.50 an hour at 32.0 tokens per second are 21.7 a million; without a price the option is named."""
    costs = [line for line in lines(sample(), 2.5) if line.startswith("| chat | plain | 21.7 |")]

    assert 1 == len(costs)
    assert "Give the price of one accelerator hour with --accelerator-hour-price to see this." in lines(
        sample()
    )


def test_a_price_is_for_all_accelerators_of_a_replica() -> None:
    """Twice the accelerators, twice the cost."""
    whole = sample()
    found = replace(whole.measurement, fingerprint=replace(whole.measurement.fingerprint, tensor_parallel=2))

    assert [line for line in lines(replace(whole, measurement=found), 2.5) if "| plain | 43.4 |" in line]


def test_markdown_has_one_sentence_per_line() -> None:
    """Outside tables and code no line has a second sentence, and none is empty twice."""
    text = markdown(sample(), 2.5, "plots")
    prose = [line for line in text.splitlines() if line and line[0] not in '|"!`']

    assert [] == [line for line in prose if re.search(r"[a-z0-9)]\. [A-Z]", line)]
    assert "\n\n\n" not in text
    assert "\u2014" not in text


def test_markdown_links_the_plots_that_exist() -> None:
    """In the folder that it is given; without a folder none."""
    found = set(re.findall(r"\]\(figures/([^)]*)\)", markdown(sample(), None, "figures")))

    assert PLOTS == found == set(svg_files(sample()))
    assert "![" not in markdown(sample(), None)


def test_every_cell_is_in_the_appendix() -> None:
    """Batches 1, 4, 16 in four rounds and 2, 8 in two, for two kinds of prompts and four engines and K."""
    text = markdown(sample(), None)

    assert "Every cell in every round (128):" in text.splitlines()
    assert 128 == len(re.findall(r"^\| (?:plain|speculative) \| (?:chat|copy) \| \d \|", text, re.MULTILINE))
    assert f"| context of a sequence | {CONTEXT:.0f} tokens |" in text.splitlines()


def test_what_an_engine_runs_at_once_is_said_where_capacity_ends_at_it() -> None:
    """A ratio of two capacities that end there would otherwise look like one of speeds."""
    found = sample()
    largest = max(found.capacities, key=lambda one: one.plain_sequences)
    engines = tuple(
        replace(one, max_num_seqs=largest.plain_sequences if one.role is Role.PLAIN else 999)
        for one in found.measurement.engines
    )
    ends = replace(found, measurement=replace(found.measurement, engines=engines))
    never = replace(
        found,
        measurement=replace(
            found.measurement, engines=tuple(replace(one, max_num_seqs=999) for one in engines)
        ),
    )
    words = f"than it is set to: speculative 999, plain {largest.plain_sequences}."

    assert words in markdown(ends, None, "plots")
    assert "runs no more sequences at once" not in markdown(never, None, "plots")


def test_the_load_that_pools_are_judged_for_is_said() -> None:
    """What was stated of it, and what becomes of the answer with other numbers of batch requests."""
    load = Load(1.0, 64.0, 100.0, 16, 64.0, 100.0)
    other = PoolsAt(
        replace(load, batch_streams=32),
        tuple(replace(one, answer=PoolAnswer.ONE_PLAIN) for one in sample().pools),
    )
    mix = Mix(interactive=("copy",))
    found = lines(replace(sample(), load=load, mix=mix, other_loads=(other,)))

    assert (
        "Assumed are 2 interactive answers open on average and 16 batch requests at once on two replicas, "
        "interactive ones of copy and batch ones of all prompts together, with answers of 64 tokens and "
        "prompts of 100."
    ) in found
    assert "| 16 | 35 ms (1.17) | 25 ms and 60 ms |" in found
    assert "| 32 | none | 25 ms, 35 ms and 60 ms |" in found
    assert not any("Assumed are" in line for line in lines(sample()))


def test_what_all_prompts_together_are_is_said() -> None:
    """By the steps of each kind: limits and the K table rest on that mix."""
    assert any(re.fullmatch(r"All prompts are \d+ % chat and \d+ % copy\.", line) for line in lines(sample()))


def test_a_table_of_one_row_needs_no_table() -> None:
    """The K that the engine is set to does the same."""
    one_row = lines(replace(sample(), table=(TableRow(1, 16, 4),)))

    assert any(line.endswith("as it has one row, that K without a table does the same.") for line in one_row)
    assert not any("without a table" in line for line in lines(sample()))


def test_a_break_even_near_the_rate_is_no_verdict() -> None:
    """0.33 needed and 0.34 measured do not tell which is larger; nothing at all is needed below 0."""
    whole = sample()
    rate = whole.survivals["copy"].acceptance_rate
    assert rate is not None
    thetas = {1: -0.13, 2: 0.95 * rate, 4: 0.5 * rate}
    found = lines(
        replace(
            whole,
            break_evens=tuple(
                replace(one, theta=thetas[one.sequences])
                for one in whole.break_evens
                if one.workload == "copy" and one.sequences in thetas
            ),
        )
    )
    rows = [line for line in found if re.match(r"\| copy \| [124] \|.* \| (pays|is about even) \|", line)]

    assert ["any is enough", "is about even", "pays"] == [
        rows[0].split(" | ")[3],
        rows[1].split(" | ")[5],
        rows[2].split(" | ")[5],
    ]
