"""`model_fingerprint`: what makes two replicas serve the same model, as one hash."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path

# What shapes an answer besides the weights: vocabulary, prompt format, sampling defaults.
SMALL_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "chat_template.jinja",
    "chat_template.json",
    "model.safetensors.index.json",
)


def model_fingerprint(folder: Path, dtype: str, quantization: str | None) -> str:
    """SHA-256 over the model's small files, each weight file's index and size, dtype and quantisation.

    Weight bytes are not read: a header names every tensor with its shape and place, and the size
    pins the rest well enough to tell two published models apart in milliseconds.
    """
    digest = hashlib.sha256()
    digest.update(json.dumps({"dtype": dtype, "quantization": quantization}, sort_keys=True).encode())
    for name in SMALL_FILES:
        path = folder / name
        if path.is_file():
            digest.update(name.encode() + hashlib.sha256(path.read_bytes()).digest())
    for path in sorted(folder.glob("*.safetensors")):
        digest.update(f"{path.name}:{path.stat().st_size}".encode() + _header(path))
    return digest.hexdigest()


def _header(path: Path) -> bytes:
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        return file.read(min(length, 64 << 20))  # a header above 64 MiB would be corrupt
