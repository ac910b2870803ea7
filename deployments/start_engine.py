"""Which engine a pool runs, and with which model."""

from __future__ import annotations

import asyncio
import logging

from deployments.config import PoolSettings
from deployments.engine import Engine, EngineConfigError

logger = logging.getLogger("ray.serve")


async def make_engine(settings: PoolSettings, cores: tuple[int, ...], oversubscribed: bool) -> Engine:
    """The engine of a replica, not yet started.

    Fetches or finds the model first.  Raises EngineConfigError naming the setting.
    """
    if settings.engine.kind == "simulated":
        from deployments.simulated.engine import SimulatedEngine  # noqa: PLC0415  # one of the two is enough

        return SimulatedEngine(settings.engine, settings.role)
    from deployments.embedded_model import ModelError, resolve_model  # noqa: PLC0415
    from deployments.vllm_engine import VLLMEngine  # noqa: PLC0415  # imports vllm at start

    try:
        model = await asyncio.to_thread(resolve_model, settings.engine.model, logger.info)
    except ModelError as error:
        raise EngineConfigError(str(error)) from error
    return VLLMEngine(settings.engine, settings.role, model, cores, oversubscribed)
