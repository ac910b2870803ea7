"""What makes two replicas serve the same model."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import pytest

from deployments.fingerprint import SMALL_FILES, model_fingerprint


def safetensors(header: dict[str, object], data: bytes) -> bytes:
    raw = json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + data


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    for name in SMALL_FILES:
        (folder / name).write_text(f"{name} of the model")
    weights = {"w": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 8]}}
    (folder / "model.safetensors").write_bytes(safetensors(weights, b"12345678"))
    return folder


def test_a_copy_elsewhere_is_the_same_model(model: Path, tmp_path: Path) -> None:
    """Neither the place, nor a file that shapes no answer, nor the time of a file makes another model."""
    before = model_fingerprint(model, "bfloat16", None)
    copy = tmp_path / "elsewhere" / "renamed"
    shutil.copytree(model, copy)
    (copy / "README.md").write_text("read me")
    (copy / "model.safetensors").touch()
    assert before == model_fingerprint(copy, "bfloat16", None)
    assert len(before) == 64


@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "tokenizer.model",
        "chat_template.jinja",
        "chat_template.json",
        "model.safetensors.index.json",
    ],
)
def test_each_small_file_counts(model: Path, name: str) -> None:
    """A change in configuration, tokenizer or template is another model, and so is its absence."""
    before = model_fingerprint(model, "bfloat16", None)
    (model / name).write_text("changed")
    changed = model_fingerprint(model, "bfloat16", None)
    (model / name).unlink()
    absent = model_fingerprint(model, "bfloat16", None)
    assert len({before, changed, absent}) == 3


def test_dtype_and_quantization_count(model: Path) -> None:
    """The same files in another number format answer differently."""
    found = {
        model_fingerprint(model, *how) for how in (("bfloat16", None), ("float32", None), ("bfloat16", "fp8"))
    }
    assert len(found) == 3


def test_the_weights_header_and_size_count(model: Path) -> None:
    """A tensor of another shape, more bytes, one more file or another file name is another model."""
    weights = model / "model.safetensors"
    found = [model_fingerprint(model, "bfloat16", None)]
    wider = {"w": {"dtype": "BF16", "shape": [4, 1], "data_offsets": [0, 8]}}
    weights.write_bytes(safetensors(wider, b"12345678"))
    found.append(model_fingerprint(model, "bfloat16", None))
    weights.write_bytes(safetensors(wider, b"1234567890"))
    found.append(model_fingerprint(model, "bfloat16", None))
    shutil.copy(weights, model / "more.safetensors")
    found.append(model_fingerprint(model, "bfloat16", None))
    (model / "more.safetensors").rename(model / "other.safetensors")
    found.append(model_fingerprint(model, "bfloat16", None))
    assert len(set(found)) == 5


def test_content_does_not_move_between_files(model: Path) -> None:
    """The same text under another name is a different configuration."""
    before = model_fingerprint(model, "bfloat16", None)
    one, two = model / "chat_template.jinja", model / "chat_template.json"
    one_text, two_text = one.read_text(), two.read_text()
    one.write_text(two_text)
    two.write_text(one_text)
    assert before != model_fingerprint(model, "bfloat16", None)


def test_two_fine_tunes_of_one_base_differ(tmp_path: Path) -> None:
    """Same header and size, other weights: another model."""
    import struct

    header = b'{"w":{"dtype":"F32","shape":[65536],"data_offsets":[0,262144]}}'
    prints = set()
    for fill in (b"\x00", b"\x01"):
        folder = tmp_path / fill.hex()
        folder.mkdir()
        (folder / "config.json").write_text("{}")
        weights = struct.pack("<Q", len(header)) + header + fill * 262144
        (folder / "model.safetensors").write_bytes(weights)
        prints.add(model_fingerprint(folder, "bfloat16", None))
    assert len(prints) == 2
