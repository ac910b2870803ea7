"""The child process that converts the embedded model: the one place that imports torch, and it ends soon."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from deployments.model_fetch import EXIT_MISSING_PACKAGE


def convert(gguf: Path, out: Path) -> None:
    """Dequantise a GGUF file and write it as bfloat16 safetensors with its tokenizer."""
    for package in ("accelerate", "gguf"):
        importlib.import_module(package)  # transformers needs both and says so late and unclearly
    import torch  # noqa: PLC0415 - heavy, and only in the child
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig  # noqa: PLC0415

    folder, name = str(gguf.parent), gguf.name
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    model = AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=name, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
    )
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert one file; EXIT_MISSING_PACKAGE when that needs a package which is not there."""
    parser = argparse.ArgumentParser(description="Convert a GGUF file to bfloat16 safetensors.")
    parser.add_argument("gguf", type=Path)
    parser.add_argument("out", type=Path, help="existing folder for the model and its tokenizer")
    options = parser.parse_args(arguments)
    try:
        convert(options.gguf, options.out)
    except ImportError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_MISSING_PACKAGE
    return 0


if __name__ == "__main__":
    sys.exit(main())
