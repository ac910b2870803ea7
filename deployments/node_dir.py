"""The folder of this node and user for locks and process records; gone after a reboot is fine."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def node_dir(name: str) -> Path:
    """A private folder `name` below the node's folder, made when absent.

    `TWINPOOL_NODE_DIR` names another place; containers of one pod that share cores must share it.
    """
    root = os.environ.get("TWINPOOL_NODE_DIR") or f"{tempfile.gettempdir()}/twinpool-{os.getuid()}"
    path = Path(root) / name
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path
