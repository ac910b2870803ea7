"""Take some tensors of a safetensors model into a new file, byte by byte; no torch, no numpy.

The format: 8 bytes with the length of a header, the header as JSON (dtype, shape and place of each tensor),
then the data.  The bytes of a tensor are copied as they are, so that every dtype is exact.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
MOST_HEADER = 100 << 20  # bytes; the format allows no longer header
CHUNK_BYTES = 8 << 20
ALIGNMENT = 8  # of the data, as the format's own writer has it


class FormatError(ValueError):
    """A file is no whole safetensors model; the message names it and what is wrong."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """Where one tensor is: its bytes begin at `start` of `file`."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: Path
    start: int
    size: int


def tensors_of(model: Path) -> tuple[Tensor, ...]:
    """All tensors of a model folder, one file or several, in the order of their bytes.

    Raises FormatError, and OSError when a file cannot be read.
    """
    found = [tensor for file in _files(model) for tensor in _tensors(file)]
    if len({tensor.name for tensor in found}) != len(found):
        raise FormatError(f"{model}: a tensor is in two of its safetensors files")
    return tuple(found)


def write(tensors: tuple[Tensor, ...], target: Path) -> None:
    """Write these tensors as one new file; raises FormatError when a source ends early, and OSError."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for tensor in tensors:
        header[tensor.name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [at, at + tensor.size],
        }
        at += tensor.size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    with target.open("xb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors:
            with tensor.file.open("rb") as source:
                source.seek(tensor.start)
                _copy(source, out.write, tensor)


def _copy(source: BinaryIO, write_: Callable[[bytes], object], tensor: Tensor) -> None:
    left = tensor.size
    while left:
        chunk = source.read(min(left, CHUNK_BYTES))
        if not chunk:
            raise FormatError(f"{tensor.file} ends inside of {tensor.name}")
        write_(chunk)
        left -= len(chunk)


def _files(model: Path) -> list[Path]:
    if not (model / INDEX).is_file():
        if not (model / SINGLE).is_file():
            raise FormatError(f"{model} has neither {SINGLE} nor {INDEX}")
        return [model / SINGLE]
    try:
        names = sorted(set(json.loads((model / INDEX).read_text(encoding="utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"{model / INDEX} cannot be read ({type(error).__name__})") from error
    if not names:
        raise FormatError(f"{model / INDEX} names no file")
    for name in names:
        if not isinstance(name, str) or Path(name).name != name or not (model / name).is_file():
            raise FormatError(f"{model / INDEX} names {name!r}, which is not there")
    return [model / name for name in names]


def _tensors(file: Path) -> list[Tensor]:
    whole = file.stat().st_size
    with file.open("rb") as stream:
        first = stream.read(8)
        length = struct.unpack("<Q", first)[0] if len(first) == 8 else 0
        if not 2 <= length <= min(MOST_HEADER, whole - 8):
            raise FormatError(f"{file} is no safetensors file, or only a part of one")
        text = stream.read(length)
    try:
        header = json.loads(text)
        header.pop("__metadata__", None)
        found = [_tensor(name, facts, file, 8 + length) for name, facts in header.items()]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"the header of {file} cannot be read ({type(error).__name__})") from error
    for tensor in found:
        if tensor.size < 0 or not 8 + length <= tensor.start <= whole - tensor.size:
            raise FormatError(f"{file} is cut off: {tensor.name} is not wholly in it")
    return sorted(found, key=lambda tensor: (tensor.start, tensor.size))


def _tensor(name: str, facts: dict[str, Any], file: Path, data: int) -> Tensor:
    start, end = (int(at) for at in facts["data_offsets"])
    shape = tuple(int(size) for size in facts["shape"])
    return Tensor(name, str(facts["dtype"]), shape, file, data + start, end - start)
