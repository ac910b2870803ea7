"""A draft model cut from a model: the right bytes, made once, whole or not at all; prescribed acceptance."""

from __future__ import annotations

import json
import os
import resource
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deployments import truncated_draft as truncated_draft_module
from deployments.model_fetch import ModelError
from deployments.synthetic_acceptance import is_synthetic, synthetic
from deployments.truncated_draft import main, truncated_draft

CONFIG = {"model_type": "llama", "num_hidden_layers": 3, "vocab_size": 2, "layer_types": ["a", "b", "c"]}


def tensors(layers: int = 3) -> dict[str, bytes]:
    """Name -> data of a tiny model; each tensor is two numbers of two bytes."""
    names = ["model.embed_tokens.weight"]
    names += [f"model.layers.{layer}.mlp.up_proj.weight" for layer in range(layers)]
    names += ["model.norm.weight", "lm_head.weight"]
    return {name: bytes([at, 1, at, 2]) for at, name in enumerate(names)}


def write_safetensors(path: Path, found: dict[str, bytes]) -> None:
    header, at = {}, 0
    for name, data in found.items():
        header[name] = {"dtype": "BF16", "shape": [2], "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(found.values()))


def read_safetensors(path: Path) -> dict[str, bytes]:
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    assert 0 == length % 8
    header = json.loads(raw[8 : 8 + length])
    assert {"format": "pt"} == header.pop("__metadata__")
    data = raw[8 + length :]
    assert max(facts["data_offsets"][1] for facts in header.values()) == len(data)
    return {name: data[slice(*facts["data_offsets"])] for name, facts in header.items()}


def write_model(folder: Path, *, config: Any = CONFIG, found: dict[str, bytes] | None = None) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text("{}", encoding="utf-8")
    (folder / "generation_config.json").write_text("{}", encoding="utf-8")
    (folder / "README.md").write_text("not needed", encoding="utf-8")
    write_safetensors(folder / "model.safetensors", tensors() if found is None else found)
    return folder


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_draft_has_the_first_layers_and_all_that_is_no_layer(tmp_path: Path) -> None:
    """Two of three layers, embeddings, norm and head, byte for byte."""
    draft = truncated_draft(write_model(tmp_path / "model"), 2, cache=tmp_path / "cache")

    expected = tensors()
    del expected["model.layers.2.mlp.up_proj.weight"]
    assert expected == read_safetensors(draft / "model.safetensors")


def test_the_config_says_what_the_draft_is(tmp_path: Path) -> None:
    """The number of layers is that of the draft, and so is the length of a list with an item for each."""
    draft = truncated_draft(write_model(tmp_path / "model"), 2, cache=tmp_path / "cache")

    expected = CONFIG | {"num_hidden_layers": 2, "layer_types": ["a", "b"]}
    assert expected == json.loads((draft / "config.json").read_text(encoding="utf-8"))


def test_tokenizer_and_generation_files_come_along(tmp_path: Path) -> None:
    """Nothing else of the model's folder does, and nothing unfinished stays in the cache."""
    draft = truncated_draft(write_model(tmp_path / "model"), 1, cache=tmp_path / "cache")

    assert [
        "config.json",
        "generation_config.json",
        "manifest.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ] == names_in(draft)
    assert ["drafts", "drafts.lock"] == names_in(tmp_path / "cache")
    assert [draft.name] == names_in(tmp_path / "cache" / "drafts")


def test_a_model_in_several_files_gives_the_same_draft(tmp_path: Path) -> None:
    """The tensors of all files of the index are found, in whichever they are."""
    single = write_model(tmp_path / "single")
    sharded = write_model(tmp_path / "sharded")
    (sharded / "model.safetensors").unlink()
    shards: dict[str, dict[str, bytes]] = {"one.safetensors": {}, "two.safetensors": {}}
    for at, (name, data) in enumerate(tensors().items()):
        shards[("one.safetensors", "two.safetensors")[at % 2]][name] = data
    for file, found in shards.items():
        write_safetensors(sharded / file, found)
    index = {"weight_map": {name: file for file, found in shards.items() for name in found}}
    (sharded / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")

    drafts = [truncated_draft(model, 2, cache=tmp_path / "cache") for model in (single, sharded)]

    first, second = (read_safetensors(draft / "model.safetensors") for draft in drafts)
    assert first == second
    assert drafts[0] != drafts[1]
    assert "model.safetensors.index.json" not in names_in(drafts[1])


def test_the_second_time_writes_nothing(tmp_path: Path) -> None:
    """A believed draft is returned as it is."""
    model = write_model(tmp_path / "model")
    first = truncated_draft(model, 2, cache=tmp_path / "cache")
    made = (first / "model.safetensors").stat()

    assert first == truncated_draft(model, 2, cache=tmp_path / "cache")
    assert made.st_ino == (first / "model.safetensors").stat().st_ino


def test_other_content_or_layers_make_another_draft(tmp_path: Path) -> None:
    """The folder is named by both, so that a changed model never gets the draft of the former."""
    model = write_model(tmp_path / "model")
    first = truncated_draft(model, 1, cache=tmp_path / "cache")
    second = truncated_draft(model, 2, cache=tmp_path / "cache")
    write_safetensors(model / "model.safetensors", dict.fromkeys(tensors(), b"\7\7\7\7"))
    third = truncated_draft(model, 2, cache=tmp_path / "cache")

    assert 3 == len({first, second, third})
    assert first.name.startswith("model-1-layers-")
    assert {b"\7\7\7\7"} == set(read_safetensors(third / "model.safetensors").values())


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "manifest.json").unlink(),
        lambda folder: (folder / "manifest.json").write_text("[]", encoding="utf-8"),
        lambda folder: (folder / "manifest.json").write_text('{"files": 1}', encoding="utf-8"),
        lambda folder: (folder / "model.safetensors").write_bytes(b"half"),
        lambda folder: (folder / "config.json").write_text("{}", encoding="utf-8"),
        lambda folder: (folder / "tokenizer.json").unlink(),
    ],
    ids=["no-manifest", "a-list", "no-files", "half-weights", "other-config", "no-tokenizer"],
)
def test_what_is_not_whole_is_made_again(tmp_path: Path, damage: Any) -> None:
    """A draft is believed only with a manifest that fits it."""
    model = write_model(tmp_path / "model")
    draft = truncated_draft(model, 2, cache=tmp_path / "cache")
    damage(draft)

    assert draft == truncated_draft(model, 2, cache=tmp_path / "cache")
    assert "model.layers.1.mlp.up_proj.weight" in read_safetensors(draft / "model.safetensors")
    assert 2 == json.loads((draft / "config.json").read_text(encoding="utf-8"))["num_hidden_layers"]
    assert (draft / "tokenizer.json").is_file()


def test_an_interrupted_write_leaves_nothing_that_is_believed(tmp_path: Path) -> None:
    """What a killed run has left unfinished is thrown away by the next."""
    unfinished = tmp_path / "cache" / "drafts" / "unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "model.safetensors").write_bytes(b"half")
    (unfinished / "stray.bin").write_bytes(b"x")

    draft = truncated_draft(write_model(tmp_path / "model"), 2, cache=tmp_path / "cache")

    assert [draft.name] == names_in(tmp_path / "cache" / "drafts")
    assert "stray.bin" not in names_in(draft)


def test_two_processes_at_once_make_one_draft(tmp_path: Path) -> None:
    """Both print the same folder, and it is whole."""
    model = write_model(tmp_path / "model")
    command = [sys.executable, "-m", "deployments.truncated_draft", str(model), "--layers", "2"]
    environment = os.environ | {"TWINPOOL_CACHE": str(tmp_path / "cache")}
    started = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    ended = [(process.communicate(), process.returncode) for process in started]

    draft = truncated_draft(model, 2, cache=tmp_path / "cache")
    assert [((f"{draft}\n", ""), 0)] * 2 == ended
    assert 5 == len(read_safetensors(draft / "model.safetensors"))
    assert [draft.name] == names_in(tmp_path / "cache" / "drafts")


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    """Files of this process may have 100 bytes, as on a full disk: words, and no half of a draft."""
    model = write_model(tmp_path / "model")
    ended = subprocess.run(
        [sys.executable, "-m", "deployments.truncated_draft", str(model), "--layers", "2"],
        env=os.environ | {"TWINPOOL_CACHE": str(tmp_path / "cache")},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (2, "") == (ended.returncode, ended.stdout)
    assert f"the cache folder {tmp_path / 'cache'} cannot be used: File too large" in ended.stderr
    assert [] == names_in(tmp_path / "cache" / "drafts")


@pytest.mark.parametrize("layers", [-1, 0, 3, 40])
def test_a_draft_has_fewer_layers_than_its_model(tmp_path: Path, layers: int) -> None:
    """At least one, and fewer than the model; the message names both and what to choose."""
    model = write_model(tmp_path / "model")

    with pytest.raises(ModelError) as caught:
        truncated_draft(model, layers, cache=tmp_path / "cache")

    assert f"a draft of {layers} layers cannot be cut from {model}, which has 3" == caught.value.message
    assert "choose 1 to 2 layers" == caught.value.mend
    assert not (tmp_path / "cache").exists()


def test_other_names_of_tensors_are_refused(tmp_path: Path) -> None:
    """GPT-2 calls its layers h.N: there is nothing that could be cut."""
    model = write_model(tmp_path / "model", found={"wte.weight": b"1234", "h.0.attn.weight": b"1234"})

    with pytest.raises(ModelError, match=r"has no tensor model\.embed_tokens\.weight: it is not Llama-like"):
        truncated_draft(model, 1, cache=tmp_path / "cache")


def test_a_layer_that_is_missing_is_named(tmp_path: Path) -> None:
    """The config speaks of more layers than the files hold."""
    model = write_model(tmp_path / "model", found=tensors(layers=1))

    with pytest.raises(ModelError, match=r"has no tensor model\.layers\.1\.: it is not Llama-like"):
        truncated_draft(model, 2, cache=tmp_path / "cache")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda model: (model / "model.safetensors").unlink(), "has neither model.safetensors nor"),
        (lambda model: (model / "model.safetensors").write_bytes(b"1234"), "or only a part of one"),
        (lambda model: (model / "model.safetensors").write_bytes(b"\xff" * 99), "or only a part of one"),
        (
            lambda model: (model / "model.safetensors").write_bytes(struct.pack("<Q", 4) + b"nope"),
            "cannot be read (JSONDecodeError)",
        ),
        (
            lambda model: (model / "model.safetensors").write_bytes(
                (model / "model.safetensors").read_bytes()[:-1]
            ),
            "is cut off: lm_head.weight is not wholly in it",
        ),
        (
            lambda model: (model / "model.safetensors.index.json").write_text(
                '{"weight_map": {"a": "../b"}}'
            ),
            "names '../b', which is not there",
        ),
        (
            lambda model: (model / "model.safetensors.index.json").write_text('{"weight_map": {"a": 1}}'),
            "names 1, which is not there",
        ),
        (
            lambda model: (model / "model.safetensors.index.json").write_text("{}"),
            "cannot be read (KeyError)",
        ),
        (lambda model: (model / "config.json").unlink(), "config.json cannot be read: No such file"),
        (lambda model: (model / "config.json").write_text("{"), "config.json is no JSON"),
        (lambda model: (model / "config.json").write_bytes(b"\xff"), "config.json is no JSON"),
        (lambda model: (model / "config.json").write_text("[]"), "has no num_hidden_layers"),
        (
            lambda model: (model / "config.json").write_text('{"num_hidden_layers": true}'),
            "has no num_hidden_layers",
        ),
    ],
)
def test_a_model_that_is_not_whole_is_refused_with_words(tmp_path: Path, damage: Any, words: str) -> None:
    """Whatever is wrong with it is a ModelError that says what, and no draft is left behind."""
    model = write_model(tmp_path / "model")
    damage(model)

    with pytest.raises(ModelError) as caught:
        truncated_draft(model, 2, cache=tmp_path / "cache")

    assert words in caught.value.message
    assert "give a folder of a Llama-like model" in caught.value.mend
    assert not (tmp_path / "cache").exists()


def test_a_cache_that_is_a_file_is_named(tmp_path: Path) -> None:
    """The message names the folder and the variable that chooses another."""
    (tmp_path / "cache").write_text("", encoding="utf-8")

    with pytest.raises(ModelError, match=r"the cache folder .*/cache cannot be used: .* \(TWINPOOL_CACHE\)"):
        truncated_draft(write_model(tmp_path / "model"), 2, cache=tmp_path / "cache")


def test_the_command_tells_an_error_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2, the message and what to do; nothing on standard output."""
    assert 2 == main([str(tmp_path / "nothing")])

    out, error = capsys.readouterr()
    assert "" == out
    assert error.startswith("error: ")
    assert "nothing/config.json cannot be read: No such file or directory\nmend: give a folder of" in error


def test_the_command_makes_a_draft_of_the_embedded_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name, with the layers asked for; the folder is alone on standard output."""
    model = write_model(tmp_path / "smollm2")
    monkeypatch.setattr(truncated_draft_module, "ensure_embedded_model", lambda _say: model)
    monkeypatch.setenv("TWINPOOL_CACHE", str(tmp_path / "cache"))
    assert 0 == main(["embedded", "--layers", "2"])

    draft = Path(capsys.readouterr().out.removesuffix("\n"))
    assert tmp_path / "cache" / "drafts" == draft.parent
    assert 2 == json.loads((draft / "config.json").read_text(encoding="utf-8"))["num_hidden_layers"]


def test_synthetic_acceptance_is_added_to_a_config() -> None:
    """One rate for each position, the share of drafts accepted up to there; the rest stays as it was."""
    config = {"method": "draft_model", "num_speculative_tokens": 3, "synthetic_acceptance_length": 2.0}

    assert {
        "method": "draft_model",
        "num_speculative_tokens": 3,
        "rejection_sample_method": "synthetic",
        "synthetic_acceptance_rates": [0.8, 0.5, 0.5],
    } == synthetic(config, [0.8, 0.5, 0.5])
    assert 2.0 == config["synthetic_acceptance_length"]


@pytest.mark.parametrize(
    ("length", "rates", "words"),
    [
        (None, [0.5], "num_speculative_tokens is None: give a whole number of at least 1"),
        (0, [], "num_speculative_tokens is 0: give a whole number of at least 1"),
        (2, [0.5], "1 acceptance rates for 2 draft tokens: give one for each position"),
        (1, [1.1], "acceptance rate 1 is 1.1: give a number from 0 to 1"),
        (1, [-0.1], "acceptance rate 1 is -0.1: give a number from 0 to 1"),
        (1, [float("nan")], "acceptance rate 1 is nan: give a number from 0 to 1"),
        (1, ["0.5"], "acceptance rate 1 is '0.5': give a number from 0 to 1"),
        (1, [True], "acceptance rate 1 is True: give a number from 0 to 1"),
        (
            2,
            [0.5, 0.6],
            "acceptance rate 2 is 0.6, above the 0.5 before it: "
            "a rate is the share of drafts accepted up to that position, so it never rises",
        ),
    ],
)
def test_rates_that_the_engine_would_refuse_are_refused_with_words(
    length: int | None, rates: list[Any], words: str
) -> None:
    """The message names the position, the value and what would do."""
    with pytest.raises(ValueError, match=r"give|never rises") as caught:
        synthetic({"num_speculative_tokens": length}, rates)

    assert words == str(caught.value)


def test_a_config_tells_whether_its_acceptance_is_prescribed() -> None:
    """Only the method synthetic prescribes it."""
    assert is_synthetic(synthetic({"num_speculative_tokens": 1}, [0.5]))
    assert not is_synthetic({"num_speculative_tokens": 1})
    assert not is_synthetic({"rejection_sample_method": "standard"})
