"""Mistakes inside the JSON of a setting are found on the line of the file, in plain words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.k8s.inner_lines import line_inside, nearest, offsets
from app.k8s.rules import Rule
from tests.app.k8s.manifests import Copy, needs_kubectl
from tests.app.k8s.mistakes import SERVE

INNER = '{"a": 1,\n "b": {"c": [1,\n  {"d": 2}]}}'


@needs_kubectl
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            '"soft_limit": 16',
            '"softlimit": 16',
            "softlimit: unknown key softlimit: soft_limit is meant?",
        ),
        (
            '"max_num_seqs": 32',
            '"max_num_seq": 32',
            "engine.max_num_seq: unknown key max_num_seq: max_num_seqs is meant?",
        ),
        (
            '"kv_cache_memory_bytes": 34359738368',
            '"gpu_memory_utilization": 0.9',
            "engine.gpu_memory_utilization: unknown key gpu_memory_utilization: kv_cache_memory",
        ),
        (
            '"soft_limit": 16,',
            '"soft_limit": 16',
            'this is no JSON after "soft_limit": 16: a comma or a closing bracket is missing',
        ),
        ('"enforce_eager": false', '"enforce_eager": False', "a value has to follow"),
        (
            '"max_model_len": 16384',
            '"max_model_len": 1',
            "engine.max_model_len: must be greater than or equal",
        ),
    ],
)
def test_a_mistake_in_a_setting_has_its_own_line(old: str, new: str, words: str, tmp_path: Path) -> None:
    """The line of serve.yaml where the mistake stands, and what is meant."""
    copy = Copy(tmp_path)
    copy.edit(SERVE, old, new)
    lines = (copy.root / SERVE).read_text(encoding="utf-8").splitlines()
    expected = next(number for number, line in enumerate(lines, 1) if new in line)

    found = [item for item in copy.findings("prod") if item.rule is Rule.SETTINGS]

    assert [(SERVE, expected)] == [(item.file, item.line) for item in found]
    assert words in found[0].message


def test_the_parts_of_a_json_text() -> None:
    """Every key and item begins where it stands."""
    places = offsets(INNER)

    assert '"c": [1' == INNER[places["b", "c"] :][:7]
    assert '{"d"' == INNER[places["b", "c", 1] :][:4]
    assert places["b", "c", 1, "d"] == nearest(places, ("b", "c", 1, "d", "e"))


@pytest.mark.parametrize("text", ["{}", "[]", ' {"a":[ ] , "b":{}} ', '"a"', '{"\\u0061\\"": "}"}'])
def test_any_json_text_is_read_to_its_end(text: str) -> None:
    """Blanks, escapes and brackets in texts do not lead astray."""
    assert isinstance(json.loads(text), dict) <= ({()} <= set(offsets(text)))


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("x: 1\na: >-\n  {0}\n", 5),
        ("x: 1\na: | # JSON\n\n  {0}\n", 6),
        ("x: 1\na: '{0}'\n", 4),
        ("x: 1\na:\n  '{0}'\n", 5),
        ("x: 1\na: {1}\n", 2),
    ],
)
def test_each_form_of_a_text_in_yaml(yaml: str, expected: int) -> None:
    """Folded, literal and quoted; a text in double quotes has the line where it begins."""
    text = yaml.replace("{0}", INNER.replace("\n", "\n  ")).replace("{1}", json.dumps(INNER))

    assert expected == line_inside(text, ("a",), INNER, INNER.index('"d"'))
