"""vLLM general plugin: an EngineCore or worker ends when its replica is gone, and survives its requests.

vLLM 0.32 leaves EngineCore running for ever after a kill -9 of the API process; `vllm_guards` has what
else is mended in it.
Loaded by vLLM in each of its processes through the `vllm.general_plugins` entry point; does
nothing unless a replica set `PARENT_ENV` for its children.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from deployments.process_tree import ProcessMark, is_alive

PARENT_ENV = "TWINPOOL_REPLICA_PROCESS"
POLL_S = 1.0

_watched: set[int] = set()  # pids: a forked child inherits the entry of its parent, but no thread


def register() -> None:
    """Start watching the replica process named in the environment; idempotent."""
    text = os.environ.get(PARENT_ENV)
    if text is None or os.getpid() in _watched:
        return
    mark = ProcessMark.parse(text)
    if mark.pid == os.getpid():
        return  # the replica itself
    _watched.add(os.getpid())
    _guard()
    threading.Thread(target=_end_with, args=(mark,), name="twinpool-parent-watch", daemon=True).start()


def _guard() -> None:
    """Mend vLLM in this process, and make K adjustable; one that cannot be serves as it is, and says so."""
    if "vllm" not in sys.modules:
        return  # vLLM imports itself before its plugins
    try:
        from deployments import vllm_draft_length, vllm_synthetic_acceptance  # noqa: PLC0415  # in a child only
        from deployments.vllm_guards import guard_top_k_under_speculation  # noqa: PLC0415

        guard_top_k_under_speculation()
        vllm_draft_length.register()
        vllm_synthetic_acceptance.register()
    except (ImportError, AttributeError) as error:
        sys.stderr.write(f"twinpool: vLLM is not as expected, a guard is left out: {error}\n")


def _end_with(parent: ProcessMark) -> None:
    while is_alive(parent):
        time.sleep(POLL_S)
    # SIGKILL: with the front end gone nobody can read an answer, and a clean exit may hang.
    os.kill(os.getpid(), signal.SIGKILL)
