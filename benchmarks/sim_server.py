"""One simulated engine on a port of its own, without Ray, gate or token: what a client would reach directly.

The app, the engine's settings and uvicorn's are those of a replica.  Ends at SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
import asyncio

import uvicorn

from autoscaling.types import Role
from benchmarks.simulation import engine_settings
from deployments.replica_server import KEEP_ALIVE_S
from deployments.simulated.engine import SimulatedEngine


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sim_server", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    port: int = parser.parse_args().port
    config = uvicorn.Config(
        "",  # the app exists only once the engine runs
        host="127.0.0.1",
        port=port,
        interface="asgi3",
        lifespan="off",
        access_log=False,
        log_config=None,
        log_level="warning",
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=1,
    )
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(_serve(config))


async def _serve(config: uvicorn.Config) -> None:
    engine = SimulatedEngine(engine_settings(), Role.PLAIN)
    await engine.start()
    try:
        config.app = engine.app
        await uvicorn.Server(config).serve()
    finally:
        await engine.stop()


if __name__ == "__main__":
    main()
