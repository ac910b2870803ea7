"""A draft model in seconds: the first layers of a model, with its embeddings, final norm and head.

It is untrained.  Such drafts of the embedded model had 0.01 to 0.03 of their tokens accepted, so one shows
what a draft model costs, not what it gains; `synthetic` prescribes an acceptance for the gain.

`python -m deployments.truncated_draft MODEL --layers 4` makes one and prints its folder.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from deployments.embedded_model import EMBEDDED, ensure_embedded_model
from deployments.fingerprint import model_fingerprint
from deployments.model_cache import LOCK_WAIT_S, MANIFEST, SMALL_BYTES, cache_folder
from deployments.model_fetch import ModelError, sha256_of
from deployments.safetensors_slice import SINGLE, FormatError, Tensor, tensors_of, write
from deployments.synthetic_acceptance import is_synthetic, synthetic

__all__ = ["is_synthetic", "synthetic", "truncated_draft"]

SCHEMA: Final = 1
LAYERS: Final = 4
_LAYER: Final = re.compile(r"model\.layers\.(\d+)\.")
_NEEDED: Final = ("model.embed_tokens.weight", "model.norm.weight")
# What a tokenizer and the defaults of generation consist of, and the code of a model that brings its own.
_BESIDE: Final = (
    *("tokenizer*", "vocab.*", "merges.txt", "special_tokens_map.json", "added_tokens.json", "*.tiktoken"),
    *("spiece.model", "chat_template*", "generation_config.json", "*.py"),
)
_MEND: Final = "give a folder of a Llama-like model: config.json and safetensors with model.layers.N. names"


def truncated_draft(model: Path, layers: int = LAYERS, *, cache: Path | None = None) -> Path:
    """The folder of a draft that has the first `layers` layers of `model`; made if it is not there yet.

    It lies in the cache folder, named by the model's content.  The draft is untrained: 0.01 to 0.03 of its
    tokens were accepted, so it shows a draft model's cost and not its gain.  Raises ModelError.
    """
    model = model.expanduser().absolute()
    cache = (cache or cache_folder()).absolute()
    with _readable(model):
        config = _config(model, layers)
        wanted = _wanted(model, layers)
        made_from = model_fingerprint(model, "as stored", None)
    name = re.sub(r"[^\w.-]", "-", model.name)[:60]
    folder = cache / "drafts" / f"{name}-{layers}-layers-{made_from[:12]}"
    facts = {"schema": SCHEMA, "model": made_from, "layers": layers}
    if _believed(folder, facts):
        return folder
    with _alone(cache):
        if not _believed(folder, facts):  # another process may have made it meanwhile
            _make(model, config, wanted, folder, facts)
    return folder


def _config(model: Path, layers: int) -> dict[str, Any]:
    """The draft's config.json; lists with an item for each layer are cut too."""
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    has = config.get("num_hidden_layers") if isinstance(config, dict) else None
    if type(has) is not int:
        raise ModelError(f"{model / 'config.json'} has no num_hidden_layers", _MEND)
    if not 1 <= layers < has:
        raise ModelError(
            f"a draft of {layers} layers cannot be cut from {model}, which has {has}",
            f"choose 1 to {has - 1} layers" if has > 1 else "choose a model with more than one layer",
        )
    cut = {
        name: value[:layers]
        for name, value in config.items()
        if "layer" in name and isinstance(value, list) and len(value) == has
    }
    return {**config, **cut, "num_hidden_layers": layers}


def _wanted(model: Path, layers: int) -> tuple[Tensor, ...]:
    """The tensors of the draft."""
    tensors = tensors_of(model)
    names = {tensor.name for tensor in tensors}
    found = {int(match[1]) for name in names if (match := _LAYER.match(name))}
    missing = [name for name in _NEEDED if name not in names]
    missing += [f"model.layers.{layer}." for layer in range(layers) if layer not in found]
    if missing:
        raise ModelError(f"{model} has no tensor {missing[0]}: it is not Llama-like", _MEND)
    return tuple(one for one in tensors if (at := _LAYER.match(one.name)) is None or int(at[1]) < layers)


def _make(
    model: Path, config: dict[str, Any], wanted: tuple[Tensor, ...], folder: Path, facts: dict[str, Any]
) -> None:
    unfinished = folder.parent / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)  # of a run that was killed: this one holds the lock
    try:
        needed = sum(tensor.size for tensor in wanted) + SMALL_BYTES
        if (free := shutil.disk_usage(folder.parent).free) < needed:
            raise ModelError(
                f"{free // 10**6} MB free at {folder.parent}, {needed // 10**6} MB needed (TWINPOOL_CACHE)",
                "make room, or choose another disk: TWINPOOL_CACHE=PATH",
            )
        unfinished.mkdir()
        try:
            write(wanted, unfinished / SINGLE)
        except FormatError as error:
            raise ModelError(str(error), _MEND) from error
        (unfinished / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        for path in {path for pattern in _BESIDE for path in model.glob(pattern) if path.is_file()}:
            shutil.copyfile(path, unfinished / path.name)
        files = {
            path.name: {"size": path.stat().st_size, "sha256": sha256_of(path)}
            for path in sorted(unfinished.iterdir())
        }
        manifest = json.dumps({**facts, "files": files}, indent=2) + "\n"
        (unfinished / MANIFEST).write_text(manifest, encoding="utf-8")
        os.sync()  # so that the rename cannot overtake the data
        shutil.rmtree(folder, ignore_errors=True)
        unfinished.replace(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _believed(folder: Path, facts: Mapping[str, Any]) -> bool:
    """Whether the manifest fits; files up to SMALL_BYTES are hashed, larger ones only measured."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files: dict[str, Any] = manifest.pop("files")
        if manifest != facts or not {"config.json", SINGLE} <= set(files):
            return False
        return all(_is(folder / name, found["size"], found["sha256"]) for name, found in files.items())
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return False


def _is(path: Path, size: int, digest: str) -> bool:
    return path.stat().st_size == size and (size > SMALL_BYTES or sha256_of(path) == digest)


@contextlib.contextmanager
def _readable(model: Path) -> Iterator[None]:
    """Tell a model that is none from a programming error."""
    try:
        yield
    except OSError as error:
        raise ModelError(
            f"{error.filename or model} cannot be read: {error.strerror or error}", _MEND
        ) from error
    except ValueError as error:  # FormatError says which file; JSON and UTF-8 do not
        words = (
            str(error) if isinstance(error, FormatError) else f"{model / 'config.json'} is no JSON: {error}"
        )
        raise ModelError(words, _MEND) from error


@contextlib.contextmanager
def _alone(cache: Path) -> Iterator[None]:
    """Hold the lock of the drafts, and tell a full disk or a folder of another user."""
    try:
        (cache / "drafts").mkdir(parents=True, exist_ok=True)
        with FileLock(cache / "drafts.lock").acquire(timeout=LOCK_WAIT_S):
            yield
    except Timeout:
        raise ModelError(
            f"another process has held {cache / 'drafts.lock'} for {LOCK_WAIT_S / 60:.0f} minutes",
            "end that process and try again",
        ) from None
    except OSError as error:
        raise ModelError(
            f"the cache folder {cache} cannot be used: {error.strerror or error} (TWINPOOL_CACHE)",
            "make room or change its owner, or choose another folder: TWINPOOL_CACHE=PATH",
        ) from error


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Make a draft and print its folder; 2 when it cannot be made."""
    parser = argparse.ArgumentParser(
        prog="python -m deployments.truncated_draft",
        description="Make an untrained draft model from the first layers of a model, and print its folder.",
    )
    parser.add_argument(
        "model", metavar="MODEL", help="`embedded`, or a folder with config.json and safetensors"
    )
    parser.add_argument("--layers", type=int, default=LAYERS, help="how many layers (default: %(default)s)")
    given = parser.parse_args(arguments)
    try:
        model = ensure_embedded_model(_say) if given.model == EMBEDDED else Path(given.model)
        folder = truncated_draft(model, given.layers)
    except ModelError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write(f"{folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
