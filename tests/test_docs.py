"""The documents say what the code says: codes, reasons, settings, options, commands, files, links."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from app.cli.main import cli
from app.cli.settings import Options, load
from app.cli.try_it import suggestions
from app.tiers import _SERVICE_TIERS
from autoscaling.route_reasons import RouteReason
from autoscaling.types import Tier
from deployments.error_catalogue import CATALOGUE, Code
from tests.by_path import module_at
from tests.test_make import TARGETS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
# A template, and what only exists once the software runs.
NOT_HERE = {"benchmarks/results/NAME.json"}


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def rows(page: Path) -> list[list[str]]:
    """The cells of every table row of a page."""
    return [
        [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        for line in text(page).splitlines()
        if line.startswith("|")
    ]


@pytest.mark.parametrize("code", Code)
def test_every_error_is_in_the_table(code: Code) -> None:
    """Status, type, whether to send again and Retry-After of each code are the catalogue's."""
    entry = CATALOGUE[code]
    expected = [
        f"`{code.value}`",
        str(entry.status),
        f"`{entry.type.value}`",
        "permanent" if entry.permanent else "may be sent again",
        "-" if entry.retry_after_s is None else str(entry.retry_after_s),
    ]
    found = [row[:5] for row in rows(DOCS / "api.md") if len(row) == 6 and row[0] == expected[0]]

    assert [expected] == found


def test_every_route_reason_is_explained() -> None:
    """Each reason has a row in api.md and a place in the README."""
    explained = {row[0].strip("`") for row in rows(DOCS / "api.md")}

    assert {reason.value for reason in RouteReason} <= explained
    assert all(f"`{reason.value}`" in text(ROOT / "README.md") for reason in RouteReason)


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "api.md"], ids=name)
def test_every_word_for_a_tier_is_named(page: Path) -> None:
    """The words that a client may send are all there."""
    words = {*(tier.value for tier in Tier), *_SERVICE_TIERS} - {"auto"}

    assert {word for word in words if word not in text(page)} == set()


# --- settings and options


@pytest.fixture
def generator() -> ModuleType:
    return module_at("docs/generate.py")


def test_the_settings_page_is_what_the_models_say(generator: ModuleType) -> None:
    """When it differs: python docs/generate.py."""
    old = text(DOCS / "configuration.md")

    assert generator.page(old) == old


def test_the_generator_has_words_for_fields_without_a_description(generator: ModuleType) -> None:
    """Exactly for those: a description in the model replaces them."""
    for model in generator.TITLES:
        silent = {field for field, info in model.model_fields.items() if not info.description}

        assert set(generator.WORDS[model]) == silent


def test_the_example_of_a_settings_file_loads(tmp_path: Path) -> None:
    """Every YAML block of configuration.md is taken by the command's own loader, and changes something."""
    blocks = re.findall(r"```yaml\n(.*?)```", text(DOCS / "configuration.md"), re.DOTALL)
    assert blocks
    for block in blocks:
        file = tmp_path / "settings.yaml"
        file.write_text(block, encoding="utf-8")

        assert load(Options(settings=file)) != load(Options())


@pytest.fixture(scope="module")
def options() -> dict[str, set[str]]:
    """The options of each subcommand, such as `override set`, by its help; not those named in its words."""
    found = {}
    for command in commands():
        shown = CliRunner().invoke(cli, [*command, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
        assert shown.exit_code == 0
        listed = re.findall(r"^[│|*\s]+(--[a-z][a-z-]+)", shown.output, re.MULTILINE)
        found[" ".join(command)] = set(listed) - {"--help"}
    return found


def commands() -> list[list[str]]:
    """The words of every subcommand, those of the groups included."""
    found: list[list[str]] = []
    groups: list[tuple[list[str], Any]] = [([], typer.main.get_command(cli))]
    while groups:
        words, group = groups.pop()
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                groups.append(([*words, name], command))
            else:
                found.append([*words, name])
    return found


def test_every_command_and_option_is_documented(options: dict[str, set[str]]) -> None:
    """operations.md has each subcommand, and each of its options but those of `serve`, by their names."""
    page = text(DOCS / "operations.md")
    missing = {command for command in options if f"twinpool {command}" not in page}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page))

    assert set() == missing
    assert {} == {
        command: found - named for command, found in options.items() if command != "serve" and found - named
    }


def test_every_option_of_serve_is_documented(options: dict[str, set[str]]) -> None:
    """The table of configuration.md has exactly the options of `twinpool serve`."""
    page = rows(DOCS / "configuration.md")
    documented = {row[0].strip("`") for row in page if row[0].startswith("`--")}

    assert options["serve"] == documented


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_page_invents_an_option(page: Path, options: dict[str, set[str]]) -> None:
    """What stands alone as an option is one of some subcommand's."""
    known = set().union(*options.values())
    others = {"--check", "--no-deps", "--verify"}  # of pip and of our own modules
    named = set(re.findall(r"(?<![\w-])`(--[a-z][a-z-]+)", text(page)))

    assert named - known - others == set()


# --- commands, files, links


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_make_targets_exist(page: Path) -> None:
    """Every `make X` is a target, and the README has them all."""
    named = set(re.findall(r"`make ([a-z][a-z-]*)|^make ([a-z][a-z-]*)", text(page), re.MULTILINE))
    targets = {one or other for one, other in named}

    assert targets <= TARGETS
    if page.name == "README.md" and page.parent == ROOT:
        assert targets == TARGETS


def test_the_readme_has_the_three_calls() -> None:
    """As `twinpool serve` prints them."""
    printed = suggestions("http://127.0.0.1:8000", "smollm2-135m")
    calls = re.findall(r"^(?:curl .*\\\n.*|TWINPOOL_URL=.*)$", printed, re.MULTILINE)

    assert len(calls) == 3
    assert [call for call in calls if call not in text(ROOT / "README.md")] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_exist(page: Path) -> None:
    """Every path in code marks that begins with one of our folders is there."""
    folders = r"(?:app|autoscaling|benchmarks|deployments|docs|locks|tests)"
    named = set(re.findall(rf"`(?:python3? )?({folders}/[\w./-]+)", text(page)))

    assert {path for path in named - NOT_HERE if not (ROOT / path).exists()} == set()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_resolve(page: Path) -> None:
    """Links within the repository lead to a file, and to a heading where they name one."""
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text(page)):
        if link.startswith(("http://", "https://")):
            continue
        path, _, heading = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (heading and heading not in anchors(target)):
            broken.append(link)

    assert broken == []


def anchors(page: Path) -> set[str]:
    """What headings of a page are called in a link."""
    headings = re.findall(r"^#+ (.+)$", text(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_record_is_listed_and_whole() -> None:
    """The index names every decision record, and each has the parts of the template, in order."""
    folder = DOCS / "adr"
    parts = re.findall(r"^## .+$", text(folder / "template.md"), re.MULTILINE)
    records = sorted(folder.glob("[0-9]*.md"))
    assert [f"{number:04}" for number in range(1, len(records) + 1)] == [r.name[:4] for r in records]
    for record in records:
        found = re.findall(r"^## .+$", text(record), re.MULTILINE)

        assert [part for part in found if part in parts] == parts, record.name
        assert f"({record.name})" in text(folder / "README.md")
