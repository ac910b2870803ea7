"""Programs that are started end with all that they have started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.cli import k8s_render, kubectl, process
from app.cli.k8s_render import CannotRender
from app.cli.kubectl import Kubectl, KubectlError, Why
from tests.app.canned import run

# Its child writes its number into a file and would go on for ever.
SCRIPT = '#!/bin/sh\nsh -c \'echo $$ >"{file}.new"; mv "{file}.new" "{file}"; exec sleep 600\' &\nwait\n'
STATES_OF_THE_DEAD = ("Z", "X")


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the number of the child of a `kubectl` that never ends."""
    file = tmp_path / "child"
    program = tmp_path / "kubectl"
    program.write_text(SCRIPT.format(file=file), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return file


def has_ended(number: int) -> bool:
    """Whether a process is gone, or is dead and not collected yet."""
    stat = Path(f"/proc/{number}/stat")
    return (
        not stat.exists()
        or stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] in STATES_OF_THE_DEAD
    )


def wait_for(file: Path) -> int:
    while not file.exists():
        time.sleep(0.01)
    return int(file.read_text(encoding="utf-8"))


def wait_for_the_end(number: int) -> None:
    while not has_ended(number):
        time.sleep(0.01)


def test_children_end_at_the_limit(child: Path) -> None:
    """Kubectl's own child, such as a login plugin, is not left behind."""
    with pytest.raises(subprocess.TimeoutExpired):
        process.run([str(child.parent / "kubectl")], 2)

    wait_for_the_end(wait_for(child))


def test_the_limit_of_kubectl_and_of_a_render(child: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both say that nothing has answered."""
    monkeypatch.setattr(kubectl, "LIMIT_S", 0.5)
    monkeypatch.setattr(k8s_render, "LIMIT_S", 0.5)

    with pytest.raises(KubectlError) as raised:
        Kubectl.found().run("version")
    with pytest.raises(CannotRender, match="no answer in"):
        k8s_render.rendered(child.parent)

    assert Why.NO_ANSWER == raised.value.why


@pytest.mark.parametrize("verb", ["render", "lint"])
def test_an_interrupt_ends_children(verb: str, child: Path) -> None:
    """Ctrl-C reaches a command whose children are in a session of their own, and ends both."""
    folder = child.parent / "overlay"
    folder.mkdir()
    (folder / "kustomization.yaml").write_text("resources: []\n", encoding="utf-8")
    command = [sys.executable, "-m", "app.cli.main", "k8s", verb, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        number = wait_for(child)
        started.send_signal(signal.SIGINT)
        started.communicate(timeout=60)

    wait_for_the_end(number)
    assert 130 == started.returncode


def test_a_renderer_that_prints_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 2, with the byte and what to do; in its errors such bytes are shown as they can be."""
    program = tmp_path / "kubectl"
    program.write_text("#!/bin/sh\nprintf 'a: \\377\\n'\n", encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "kustomization.yaml").write_text("resources: []\n", encoding="utf-8")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    done = run("k8s", "render", str(tmp_path))

    assert 2 == done.exit_code
    assert "is no UTF-8: invalid start byte at byte 3" in " ".join(done.stderr.split())
    program.write_text("#!/bin/sh\nprintf 'a: \\377\\n' >&2\nexit 1\n", encoding="utf-8")
    done = run("k8s", "render", str(tmp_path))
    assert (1, True) == (done.exit_code, "a: \ufffd" in done.stderr)
