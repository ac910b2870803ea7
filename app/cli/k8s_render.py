"""`twinpool k8s render`: what kustomize makes of an overlay."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from app.cli import process
from app.cli.k8s_refusal import refusal
from app.cli.output import CANNOT_TELL, FINDING, fail, printable
from app.k8s.named_files import NAMES

LIMIT_S = 60.0
OVERLAYS = Path("k8s/overlays")


class CannotRender(Exception):  # noqa: N818  # an outcome for the user
    """Why there is no render; `mend` says what to do, `whole` is what kustomize said, where it refuses."""

    def __init__(self, message: str, mend: str, whole: str = "") -> None:
        super().__init__(message)
        self.mend = mend
        self.whole = whole

    @property
    def code(self) -> int:
        """Of the command: the manifests are wrong, or else what is needed is not there."""
        return FINDING if self.whole else CANNOT_TELL


def render(
    overlay: Annotated[
        Path, typer.Argument(metavar="OVERLAY", help="A kustomize folder, or its name below k8s/overlays.")
    ],
) -> None:
    """Print the objects of an overlay, as `kubectl apply -k` would send them.

    Exit codes: 0 rendered, 1 kustomize refuses the overlay, 2 there is no kustomize or no such overlay.
    """
    try:
        print(rendered(folder_of(overlay)), end="")
    except CannotRender as error:
        if error.whole:
            print(printable(f"kustomize: {error.whole}"), file=sys.stderr)
        fail(str(error), error.mend, error.code)


def folder_of(overlay: Path) -> Path:
    """The folder that is meant; raises CannotRender."""
    for folder in (overlay, OVERLAYS / overlay):
        if folder.is_dir():
            if any((folder / name).is_file() for name in NAMES):
                return folder
            raise CannotRender(f"{folder}: there is no {NAMES[0]} here", _instead(folder))
    raise CannotRender(
        f"{overlay}: no such folder, nor {OVERLAYS / overlay}",
        "name a folder with a kustomization.yaml; run this where k8s/ lies",
    )


def _instead(folder: Path) -> str:
    """The overlays below a folder that is none, or what makes it one."""
    places = [folder, folder / OVERLAYS.name, folder / OVERLAYS]
    found = [
        str(path.parent)
        for place in places
        for path in sorted(place.glob(f"*/{NAMES[0]}"))
        if place.name == OVERLAYS.name
    ]
    return f"name one of {', '.join(found)}" if found else f"give it one, as {OVERLAYS / 'prod'} has it"


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
        found = refusal(done.stderr.decode(errors="replace") or f"exit status {done.returncode}", folder)
        raise CannotRender(f"{folder}: {found.cause}", found.mend, found.whole)
    try:
        return done.stdout.decode()
    except UnicodeDecodeError as error:
        raise CannotRender(
            f"{' '.join(command)}: what it prints is no UTF-8: {error.reason} at byte {error.start}",
            "see what it prints, and write the file that it comes from in UTF-8",
        ) from error
