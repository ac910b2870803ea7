"""Forms in which people have objects: Lists, marked files, remote bases, links, and rarer fields."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.cli import k8s_lint
from app.cli.k8s_render import CannotRender
from app.k8s.documents import read
from app.k8s.lint import lint
from app.k8s.named_files import Broken, Remote
from app.k8s.quantities import quantity
from app.k8s.sources import tree
from tests.app.canned import run
from tests.app.k8s.manifests import plain_schemas, read_file

LISTED = """\
apiVersion: v1
kind: List
metadata: {resourceVersion: ""}
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: a}
  datas: {}
- apiVersion: apps/v1
  kind: Deploymnt
  metadata: {name: b}
- apiVersion: v1
  kind: Secret
  metadata: {name: c}
  data: {a: b}
"""


def found_in(text: str) -> list[tuple[int, str, str]]:
    report = lint(read(text, "file"), None, plain_schemas(), "file")
    return [(item.line, item.field, item.rule.value) for item in report.findings]


def test_the_items_of_a_list_are_checked() -> None:
    """Each finding at its line and named by its own object, as in a file without the List."""
    assert [
        (8, "ConfigMap/a: datas", "core-schema"),
        (10, "Deploymnt/b: kind", "kind"),
        (15, "data", "secret-data"),
    ] == found_in(LISTED)


@pytest.mark.parametrize("items", ["[3]", "[{kind: List, items: [a]}]"])
def test_an_item_that_is_no_object(items: str, tmp_path: Path) -> None:
    """Its line, and exit code 1."""
    file = tmp_path / "list.yaml"
    file.write_text(f"apiVersion: v1\nkind: List\nitems: {items}\n", encoding="utf-8")

    done = run("k8s", "lint", str(file))

    assert 1 == done.exit_code
    assert f"{file}:3: an object is a mapping" in done.stdout


def test_what_is_marked_as_local_is_checked_in_a_file() -> None:
    """kustomize leaves it out of an overlay; `kubectl apply -f` sends it."""
    marked = 'metadata: {name: a, annotations: {config.kubernetes.io/local-config: "true"}}'

    assert [(1, "ConfigMap/a: datas", "core-schema")] == found_in(
        f"{{apiVersion: v1, kind: ConfigMap, {marked}, datas: {{}}}}"
    )


@pytest.mark.parametrize(
    "text",
    [
        "kind: HTTPRoute\napiVersion: gateway.networking.k8s.io/v1\nmetadata: {name: a}\n"
        "spec: {rules: [{matches: [{queryParams: [{name: a, value: b}]}]}]}",
        "kind: PrometheusRule\napiVersion: monitoring.coreos.com/v1\nmetadata: {name: a}\n"
        "spec: {groups: [{name: a, limit: 5, query_offset: 1m, "
        "rules: [{alert: a, expr: up, for: 1m, keep_firing_for: 5m}]}]}",
        "kind: PodMonitor\napiVersion: monitoring.coreos.com/v1\nmetadata: {name: a}\n"
        "spec: {selector: {}, sampleLimit: 5, podMetricsEndpoints: "
        "[{port: a, followRedirects: true, enableHttp2: false, oauth2: {}}]}\nstatus: {}",
    ],
)
def test_rarer_fields_of_other_operators_are_known(text: str) -> None:
    """They are fields of the version that is installed."""
    assert [] == found_in(text)


@pytest.mark.parametrize(
    ("text", "number"), [("8000000u", 8.0), ("8000000000n", 8.0), ("8000m", 8.0), ("3u", 3e-6)]
)
def test_the_small_units_of_quantities(text: str, number: float) -> None:
    """As a quantity is printed whose parts are small."""
    assert number == quantity(text)


REMOTE = [
    "https://github.com/ray-project/kuberay//config?ref=v1.7.0",
    "github.com/ray-project/kuberay/config",
    "git@github.com:ray-project/kuberay.git",
    "https://example.com/a.yaml",
]


@pytest.mark.parametrize("name", REMOTE)
def test_a_remote_base_is_not_followed(name: str, tmp_path: Path) -> None:
    """It is no folder below the overlay: a note says that it was not looked into."""
    file = tmp_path / "kustomization.yaml"
    file.write_text(f"resources:\n  - {name}\n", encoding="utf-8")

    found = tree(tmp_path, read_file)

    assert ([], [Remote(str(file), 2, name, ("resources", 0))]) == (found.broken, found.remote)
    (note, *_) = (note for note in lint([], found, plain_schemas(), "a").notes if "remote" in note)
    assert note.startswith(f"{file}:2: {name} is remote: its files are not looked into")


def test_a_remote_base_that_does_not_render(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finding at its line, with the renderer's own words."""

    def refused(_folder: Path) -> str:
        raise CannotRender("no such host", "mend", "no such host")

    file = tmp_path / "kustomization.yaml"
    file.write_text(f"resources:\n  - {REMOTE[0]}\n", encoding="utf-8")
    monkeypatch.setattr(k8s_lint, "rendered", refused)

    done = run("k8s", "lint", "-o", "json", str(tmp_path))

    (found,) = json.loads(done.stdout)[0]["findings"]
    assert (1, str(file), 2, "yaml") == (done.exit_code, found["file"], found["line"], found["rule"])
    assert "is remote, and the render fails: no such host" in found["message"]


@pytest.mark.parametrize("entry", ["null", "3", "''", "{a: b}"])
def test_an_entry_that_names_nothing(entry: str, tmp_path: Path) -> None:
    """Its place in the kustomization, and no file of that name."""
    file = tmp_path / "kustomization.yaml"
    file.write_text(f"resources:\n  - {entry}\n", encoding="utf-8")

    (found,) = tree(tmp_path, read_file).broken

    assert (str(file), 2, ("resources", 0)) == (found.file, found.line, found.path)
    assert found.message.endswith(": name a file or a folder, or take it out")


def test_links_in_a_circle(tmp_path: Path) -> None:
    """A link to itself is named; folders that hold links to themselves are read once."""
    file = tmp_path / "kustomization.yaml"
    file.write_text("resources: [self, here, again]\n", encoding="utf-8")
    (tmp_path / "self").symlink_to("self")
    (tmp_path / "here").symlink_to(".")
    (tmp_path / "again").symlink_to(".")

    found = tree(tmp_path, k8s_lint._read)

    words = "the link self leads nowhere, or in a circle"
    assert [Broken(str(file), 1, words, ("resources", 0))] == found.broken
    assert 1 == len(found.kustomizations)
