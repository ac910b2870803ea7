"""Our service for `benchmarks.path`, with a front to choose, in a Ray cluster of its own until SIGTERM."""

from __future__ import annotations

import argparse
import signal
import sys
from types import FrameType

from benchmarks.simulation import service_settings
from deployments.local_cluster import local_cluster


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serve_path", description=__doc__)
    parser.add_argument("--front", choices=("proxy", "haproxy"), required=True)
    parser.add_argument("--port", type=int, required=True)
    asked = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    with local_cluster(service_settings(asked.front, asked.port)):
        for number in (signal.SIGTERM, signal.SIGINT):  # Ray has put its own in their place
            signal.signal(number, _stop)
        while True:
            signal.pause()


def _stop(_number: int, _frame: FrameType | None) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # once is enough: the stop must run to its end
    sys.exit(0)


if __name__ == "__main__":
    main()
