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
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "chat_template.json",
    "model.safetensors.index.json",
)

WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")
SAMPLES = 64
SAMPLE_BYTES = 1024


def model_fingerprint(folder: Path, dtype: str, quantization: str | None) -> str:
    """SHA-256 over the model's small files, samples of each weight file, dtype and quantisation.

    Of a weight file its size, its header (every tensor's name, shape and place) and 64 samples are
    read: two fine-tunes of one base differ in nearly every block, and it takes milliseconds.
    """
    digest = hashlib.sha256()
    digest.update(json.dumps({"dtype": dtype, "quantization": quantization}, sort_keys=True).encode())
    for name in SMALL_FILES:
        path = folder / name
        if path.is_file():
            digest.update(name.encode() + hashlib.sha256(path.read_bytes()).digest())
    for pattern in WEIGHTS:
        for path in sorted(folder.glob(pattern)):
            digest.update(f"{path.name}:{path.stat().st_size}".encode())
            if path.suffix == ".safetensors":
                digest.update(_header(path))
            digest.update(_samples(path))
    return digest.hexdigest()


def _header(path: Path) -> bytes:
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        return file.read(min(length, 64 << 20))  # a header above 64 MiB would be corrupt


def _samples(path: Path) -> bytes:
    """Blocks at even distances, the first and the last among them."""
    size = path.stat().st_size
    step = max(1, (size - SAMPLE_BYTES) // (SAMPLES - 1))
    with path.open("rb") as file:
        parts = []
        for start in range(0, max(1, size - SAMPLE_BYTES + 1), step):
            file.seek(start)
            parts.append(file.read(SAMPLE_BYTES))
    return b"".join(parts)
