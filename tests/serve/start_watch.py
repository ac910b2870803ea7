"""What Ray Serve calls the application while it starts, as JSON lines on standard output.

`python -m tests.serve.start_watch ADDRESS` joins the cluster at ADDRESS and only asks; it ends when the
application has been called RUNNING for two seconds, or after four minutes.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time

from deployments.config import APP_NAME

EVERY_S = 0.05
RUNNING_FOR_S = 2.0
LIMIT_S = 240.0


def main(address: str) -> None:
    """Print `{"status", "running"}` at each look; `running` has the replicas that Serve runs, per pool."""
    import ray
    from ray import serve

    ray.init(
        address=address,
        namespace="serve",
        log_to_driver=False,
        logging_level="ERROR",
        _node_ip_address="127.0.0.1",
    )
    end = time.monotonic() + LIMIT_S
    called = False
    while time.monotonic() < end:
        # There is no Serve at first.
        with contextlib.suppress(Exception):
            application = serve.status().applications.get(APP_NAME)
            if application is not None:
                status = str(getattr(application.status, "value", application.status))
                running = {}
                for role in ("speculative", "plain"):
                    found = application.deployments.get(role)
                    states = {} if found is None else found.replica_states
                    names = {str(getattr(state, "value", state)): count for state, count in states.items()}
                    running[role] = names.get("RUNNING", 0)
                print(json.dumps({"status": status, "running": running}), flush=True)
                if status == "RUNNING" and not called:
                    called = True
                    end = time.monotonic() + RUNNING_FOR_S
        time.sleep(EVERY_S)


if __name__ == "__main__":
    main(sys.argv[1])
