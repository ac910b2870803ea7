"""The first second of every command: Ctrl-C while its modules are still being loaded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.policies import policy

# Ctrl-C at the moment in which a module is looked for, wherever in the start that is.
AT_IMPORT = """
import os, signal, sys

class CtrlC:
    def find_spec(self, name, *_):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, CtrlC())
from app.cli.__main__ import main
main()
"""


def stopped_at(module: str, *arguments: str, ignored: bool = False) -> subprocess.CompletedProcess[str]:
    handler = signal.SIG_IGN if ignored else signal.SIG_DFL
    return subprocess.run(
        [sys.executable, "-c", AT_IMPORT.format(module=module), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        # A test run in the background of a shell ignores it, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, handler),
    )


@pytest.mark.parametrize("module", ["app.cli.main", "typer", "aiohttp", "app.cli.why"])
def test_ctrl_c_while_a_command_loads_ends_it_without_a_word(module: str) -> None:
    """Exit code 130, no traceback, whatever was just being imported."""
    done = stopped_at(module, "policy", "starters")

    assert (130, "", "") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("module", ["numpy", "scipy.special", "app.simulation.traces.load"])
def test_ctrl_c_while_a_command_loads_more_ends_it_too(module: str, tmp_path: Path) -> None:
    """What only a simulation needs is loaded when it is asked for."""
    file = tmp_path / "policy.yaml"
    file.write_text(policy(2, 2), encoding="utf-8")
    done = stopped_at(
        module, "simulate", str(file), "--trace", "generated:code,hours=0.01", "--profile", "h100-8b"
    )

    assert (130, "", "") == (done.returncode, done.stdout, done.stderr)


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """A script that goes on in the background is not ended by the Ctrl-C for another one."""
    done = stopped_at("app.cli.main", "policy", "starters", ignored=True)

    assert (0, "") == (done.returncode, done.stderr)
    assert "interactive-first" in done.stdout
