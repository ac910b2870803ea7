"""Settings of `serve`: what wins over what, and errors that name file and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cli.settings import Options, SettingsError, is_loopback, load, unchanging


def test_the_command_line_wins_over_the_file_and_the_file_over_the_defaults(tmp_path: Path) -> None:
    """Each value comes from the strongest source that says it."""
    file = tmp_path / "s.yaml"
    file.write_text(
        "port: 8100\nfront: haproxy\n"
        "plain:\n  replicas: 3\n  engine:\n    model: /from/file\n    max_num_seqs: 64\n"
    )
    found = load(Options(port=8200, model="/from/line", settings=file))
    assert (8200, "haproxy", "127.0.0.1") == (found.port, found.front, found.host)
    assert (3, 64, "/from/line") == (
        found.plain.replicas,
        found.plain.engine.max_num_seqs,
        found.plain.engine.model,
    )
    assert found.speculative.engine.model == "/from/line"


def test_a_draft_given_on_the_command_line_replaces_the_whole_one() -> None:
    """`speculative_config` is one value: no key of the default one stays behind."""
    found = load(Options(speculation='{"method": "eagle", "model": "m", "num_speculative_tokens": 2}'))
    assert {"method": "eagle", "model": "m", "num_speculative_tokens": 2} == (
        found.speculative.engine.speculative_config
    )
    assert found.plain.engine.speculative_config is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("plain: [1", ["s.yaml"]),
        ("- 1\n", ["s.yaml", "mapping"]),
        ("plain:\n  replica: 1\n", ["s.yaml", "plain.replica"]),
        ("plain:\n  soft_limit: 9\n  hard_limit: 3\n", ["soft_limit 9", "hard_limit 3"]),
        ("plain:\n  engine:\n    speculative_config: {method: ngram}\n", ["pool plain"]),
        ("plain:\n  port_range: [30, 20]\n", ["plain.port_range"]),
    ],
)
def test_a_bad_file_is_located(tmp_path: Path, text: str, words: list[str]) -> None:
    """File, field and reason are in the message."""
    file = tmp_path / "s.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError) as raised:
        load(Options(settings=file))
    assert all(word in str(raised.value) for word in words), raised.value


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("x", False),
    ],
)
def test_loopback(host: str, expected: bool) -> None:
    """A name that cannot be judged counts as reachable by others."""
    assert expected == is_loopback(host)


def test_what_cannot_change_while_serving() -> None:
    """Address and front stay; more replicas than the cluster was started for are refused."""
    old = load(Options())
    assert unchanging(old, load(Options(plain_replicas=1)), 2).plain.replicas == 1
    for options in (Options(port=1234), Options(front="haproxy"), Options(plain_replicas=2)):
        with pytest.raises(SettingsError):
            unchanging(old, load(options), 2)
