"""Which model an engine is given: the one that comes with twinpool, a folder, or a hub id.

`python -m deployments.embedded_model` prepares the one that comes with twinpool and prints its folder.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from deployments.model_cache import ensure_embedded_model
from deployments.model_fetch import OUTSIDE, ModelError, Ports, Progress

__all__ = ["ModelError", "ensure_embedded_model", "resolve_model"]

EMBEDDED = "embedded"
# A `/` alone does not make a path: hub ids are ORGANISATION/NAME.
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def resolve_model(
    name: str, progress: Progress, *, environ: Mapping[str, str] = os.environ, ports: Ports = OUTSIDE
) -> str:
    """Turn the setting `engine.model` into what the engine is given: a folder, or a hub id.

    Raises ModelError, which names the setting, when it can be neither.
    """
    if name == EMBEDDED:
        return str(ensure_embedded_model(progress, ports=ports))
    setting = f"engine.model: {name!r}"
    mend = "set engine.model to `embedded`, an existing model folder, or a hub id like organisation/name"
    try:
        path = Path(name).expanduser()
    except RuntimeError as error:  # ~NAME of an unknown user
        raise ModelError(f"{setting}: {error}", mend) from error
    if name and path.is_dir():
        if not (path / "config.json").is_file():
            raise ModelError(f"{setting} is a folder without config.json, so it holds no model", mend)
        return str(path.absolute())
    if path.is_file():
        raise ModelError(f"{setting} is a file; a folder with config.json and safetensors is needed", mend)
    if name.startswith(("/", ".", "~")) or name.count("/") > 1 or name.endswith("/"):
        raise ModelError(f"{setting} does not exist", mend)
    if not HUB_ID.fullmatch(name):
        raise ModelError(f"{setting} is neither a folder nor a hub id", mend)
    if _offline(environ) and not _in_hub_cache(name, environ):
        raise ModelError(
            f"{setting} is not in the local hub cache, and HF_HUB_OFFLINE forbids to fetch it",
            "unset HF_HUB_OFFLINE, or set engine.model to `embedded` or a local folder",
        )
    return name


def _offline(environ: Mapping[str, str]) -> bool:
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    return any(environ.get(name, "").strip().upper() in {"1", "ON", "YES", "TRUE"} for name in names)


def _in_hub_cache(name: str, environ: Mapping[str, str]) -> bool:
    home = environ.get("HF_HOME") or str(Path(environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    cache = Path(environ.get("HF_HUB_CACHE") or str(Path(home) / "hub")).expanduser()
    repository = cache / f"models--{name.replace('/', '--')}"
    return any(repository.glob("snapshots/*/config.json"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Prepare the embedded model and print its folder."""
    parser = argparse.ArgumentParser(description="Prepare the embedded model and print its folder.")
    parser.add_argument("--verify", action="store_true", help="hash the weights too")
    options = parser.parse_args(arguments)

    def say(text: str) -> None:
        sys.stderr.write(f"{text}\n")

    try:
        folder = ensure_embedded_model(say, verify=options.verify)
    except ModelError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write(f"{folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
