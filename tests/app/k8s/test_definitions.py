"""`--crds`: definitions in every form that people have them, and what is said of those that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.canned import run

OBJECT = "apiVersion: example.com/v1\nkind: Cache\nmetadata: {name: a}\nspec: {size: 3}\n"
GOOD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: caches.example.com}
spec:
  group: example.com
  names: {kind: Cache}
  versions:
    - name: v1
      schema:
        openAPIV3Schema:
          type: object
          properties:
            apiVersion: {type: string}
            kind: {type: string}
            spec:
              type: object
              properties: {size: {type: integer}}
"""


def linted(folder: Path, text: str = OBJECT) -> tuple[int, str]:
    """Exit code and words of a lint by the definitions in `folder`."""
    file = folder.parent / "object.yaml"
    file.write_text(text, encoding="utf-8")
    done = run("k8s", "lint", "--crds", str(folder), str(file))
    return done.exit_code, done.output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "crds"
    found.mkdir()
    return found


def test_an_object_of_another_group_is_checked_by_its_definition(folder: Path) -> None:
    """It was not before, however it was given."""
    (folder / "cache.yaml").write_text(GOOD, encoding="utf-8")

    assert 0 == linted(folder)[0]
    code, words = linted(folder, OBJECT.replace("size", "sizes"))
    assert 1 == code
    assert "spec.sizes: there is no such field: size is meant? [crd-schema]" in words


def test_several_definitions_in_one_file_and_in_a_list(folder: Path) -> None:
    """As a release has them, and as `kubectl get crd -o yaml` prints them."""
    other = GOOD.replace("Cache", "Store").replace("caches", "stores")
    listed = "".join(f"  {line}\n" if line else "\n" for line in other.splitlines()).replace(
        "  api", "- api", 1
    )
    (folder / "all.yaml").write_text(f"---\n{GOOD}---\napiVersion: v1\nkind: List\nitems:\n{listed}", "utf-8")

    for kind in ("Cache", "Store"):
        code, words = linted(folder, OBJECT.replace("Cache", kind).replace("size", "sizes"))
        assert (1, True) == (code, "[crd-schema]" in words)


def test_a_folder_with_the_name_of_a_file_is_passed_over(folder: Path) -> None:
    """It holds nothing to read."""
    (folder / "x.yaml").mkdir()
    (folder / "cache.yaml").write_text(GOOD, encoding="utf-8")

    assert 0 == linted(folder)[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"\xff\xfe", "codec can't decode"),
        (b"a: [\n", "bad.yaml: line 2: "),
        (GOOD.replace("openAPIV3Schema", "schema").encode(), "has no schema for its version v1"),
        (
            GOOD.replace("type: integer", "type: number of items").encode(),
            "the schema of Cache in example.com/v1",
        ),
        (GOOD.replace("properties: {size: {type: integer}}", "properties: 5").encode(), "spec.properties"),
        (GOOD.replace("names: {kind: Cache}", "names: 3").encode(), "lacks spec.group, spec.names.kind"),
    ],
)
def test_a_definition_that_is_none(folder: Path, text: bytes, words: str) -> None:
    """Exit code 2, with the file, what is wrong with it and what to do; never a traceback."""
    (folder / "bad.yaml").write_bytes(text)

    code, said = linted(folder)

    assert 2 == code
    assert words in " ".join(said.split())
    assert "bad.yaml" in said
    assert "mend: " in said


def test_a_pattern_of_another_dialect_is_passed_over(folder: Path) -> None:
    r"""Go's expressions are not Python's: `\p{L}` cannot be judged here."""
    (folder / "cache.yaml").write_text(
        GOOD.replace("type: integer", "type: integer, pattern: '\\p{L}'"), "utf-8"
    )

    assert 0 == linted(folder)[0]


def test_definitions_of_others_only(folder: Path) -> None:
    """The note says which were found, and which of Ray's were not."""
    (folder / "cache.yaml").write_text(GOOD, encoding="utf-8")

    assert "--crds has Cache, and not RayCluster, RayJob, RayService" in " ".join(linted(folder)[1].split())
