"""Settings of `serve`: what wins over what, and errors that name file and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cli.settings import Options, SettingsError, load, unchanging


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
    ("text", "words"),
    [
        ("slots: 1", ["slots is 1", "1 speculative and 1 plain replicas take 2"]),
        ("slots: 0", ["slots"]),
        ("policies: x", ["policies"]),
    ],
)
def test_bad_capacity_is_located(tmp_path: Path, text: str, words: list[str]) -> None:
    """Fewer slots than the replicas take, and mistyped names."""
    file = tmp_path / "s.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError) as raised:
        load(Options(settings=file))
    assert all(word in str(raised.value) for word in words), raised.value


def test_where_the_controller_keeps_its_things(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths become absolute: the controller runs elsewhere.  The line wins over the file."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "s.yaml"
    file.write_text("policy: from-file.yaml\nstate_dir: from-file\nslots: 6\n")
    found = load(Options(settings=file))
    assert (f"{tmp_path}/from-file.yaml", f"{tmp_path}/from-file", None, 6) == (
        found.policy,
        found.state_dir,
        found.record_dir,
        found.slots,
    )
    found = load(
        Options(
            settings=file,
            policy=Path("own.yaml"),
            state_dir="own",
            record=Path("records"),
            slots=5,
            profile=Path("p.json"),
        )
    )
    assert (f"{tmp_path}/own.yaml", f"{tmp_path}/own", f"{tmp_path}/records", 5, f"{tmp_path}/p.json") == (
        found.policy,
        found.state_dir,
        found.record_dir,
        found.slots,
        found.profile,
    )


def test_the_users_own_folder_keeps_the_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One per port, so that two services do not share it; `none` keeps nothing."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert f"{tmp_path}/twinpool/8100" == load(Options(port=8100)).state_dir
    assert load(Options(state_dir="none")).state_dir is None
    assert load(Options()).policy is None


def test_what_cannot_change_while_serving() -> None:
    """Address and front stay; more than the cluster was started for is refused with both numbers."""
    old = load(Options())
    assert unchanging(old, load(Options(plain_replicas=1)), 2).plain.replicas == 1
    for options in (Options(port=1234), Options(front="haproxy")):
        with pytest.raises(SettingsError, match="cannot change while serving"):
            unchanging(old, load(options), 2)
    for options in (Options(plain_replicas=2), Options(slots=3)):
        with pytest.raises(SettingsError, match="3 engine slots are wanted, this cluster was started with 2"):
            unchanging(old, load(options), 2)


def test_the_slots_of_a_running_cluster_stay() -> None:
    """Fewer replicas leave the ceiling where it was: it is the cluster's."""
    old = load(Options(plain_replicas=3, slots=5))
    for options in (Options(plain_replicas=1), Options(plain_replicas=3, slots=5)):
        assert 5 == unchanging(old, load(options), 5).slots
