"""The private parts of Ray Serve that we touch, each behind one function with a contract test."""

from __future__ import annotations

from typing import Any


def log_handler_fault() -> str | None:
    """Why Serve's log handler in this replica is broken, None while it works.

    `is_allocated()` asks every replica for its log path after a restart of the Serve controller.
    Where a `logging.config.dictConfig` has closed the handler it raises, and Serve then stops
    every such replica.
    """
    from ray.serve._private.logging_utils import get_component_logger_file_path  # noqa: PLC0415

    try:
        path = get_component_logger_file_path()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None if path else "no log file"


def deploy(config: dict[str, Any]) -> None:
    """Deploy a declarative config, as `serve run FILE` does; Serve must have been started.

    Raises pydantic's ValidationError for a config that Serve does not accept.
    """
    from ray.serve.context import _get_global_client  # noqa: PLC0415
    from ray.serve.schema import ServeDeploySchema  # noqa: PLC0415

    _get_global_client().deploy_apps(ServeDeploySchema.model_validate(config))


def details() -> dict[str, Any]:
    """Serve's own picture of applications, deployments and replicas, with pids."""
    from ray.serve.context import _get_global_client  # noqa: PLC0415

    found: dict[str, Any] = _get_global_client().get_serve_details()
    return found


def by_value(handle: Any) -> Any:
    """The same deployment, called over gRPC with the arguments in the message.

    By default each call and each answer is an object in Ray's store, which costs both sides about twice the
    processor time; a controller of a thousand replicas could not take their reports on one core.
    """
    return handle.options(_by_reference=False)
