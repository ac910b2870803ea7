"""`twinpool k8s render`: what kustomize makes of an overlay."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from app.cli import process
from app.cli.output import FINDING, fail

LIMIT_S = 60.0
OVERLAYS = Path("k8s/overlays")


class CannotRender(Exception):  # noqa: N818  # an outcome for the user
    """Why there is no render; `mend` says what to do, `code` is the command's."""

    def __init__(self, message: str, mend: str, *, broken: bool = False) -> None:
        super().__init__(message)
        self.mend = mend
        self.broken = broken  # the manifests are, not the tools


def render(
    overlay: Annotated[
        Path, typer.Argument(metavar="OVERLAY", help="A kustomize folder, or its name below k8s/overlays.")
    ],
) -> None:
    """Print the objects of an overlay, as `kubectl apply -k` would send them.

    Exit codes: 0 rendered, 1 kustomize refuses the overlay, 2 there is no kustomize or no such folder.
    """
    try:
        print(rendered(folder_of(overlay)), end="")
    except CannotRender as error:
        fail(str(error), error.mend, *([FINDING] if error.broken else []))


def folder_of(overlay: Path) -> Path:
    """The folder that is meant; raises CannotRender."""
    for folder in (overlay, OVERLAYS / overlay):
        if folder.is_dir():
            return folder
    raise CannotRender(
        f"{overlay}: no such folder, nor {OVERLAYS / overlay}",
        "name a folder with a kustomization.yaml; run this where k8s/ lies",
    )


def rendered(folder: Path) -> str:
    """What kustomize makes of a folder; raises CannotRender."""
    kubectl, kustomize = shutil.which("kubectl"), shutil.which("kustomize")
    if kubectl is not None:
        command = [kubectl, "kustomize", str(folder)]
    elif kustomize is not None:
        command = [kustomize, "build", str(folder)]
    else:
        raise CannotRender(
            "there is neither kubectl nor kustomize on the PATH",
            "install kubectl; it renders without any cluster",
        )
    try:
        done = process.run(command, LIMIT_S)
    except subprocess.TimeoutExpired:
        raise CannotRender(
            f"{' '.join(command)}: no answer in {LIMIT_S:.0f} s",
            "a kustomization that names a remote base fetches it: name local folders only",
        ) from None
    except OSError as error:
        raise CannotRender(f"{command[0]}: {error.strerror}", "mend or replace it") from error
    if done.returncode != 0:
        words = " ".join(done.stderr.decode(errors="replace").split()) or f"exit status {done.returncode}"
        raise CannotRender(f"{folder}: {words}", "mend the file that it names", broken=True)
    try:
        return done.stdout.decode()
    except UnicodeDecodeError as error:
        raise CannotRender(
            f"{' '.join(command)}: what it prints is no UTF-8: {error.reason} at byte {error.start}",
            "see what it prints, and write the file that it comes from in UTF-8",
        ) from error
