"""What the application's `args` may say; everything about a pool is in that pool's environment."""

from __future__ import annotations

from pydantic import Field

from deployments.config import Settings


class IngressSettings(Settings):
    """How the ingress relays."""

    longest_generation_s: float = Field(300.0, gt=0, description="L: the longest wait for a first byte.")
    between_chunks_s: float = Field(60.0, gt=0, description="Silence in a begun stream that ends it.")
    poll_s: float = Field(0.25, gt=0, le=3, description="How often the snapshot is fetched.")


class AppSettings(Settings):
    """The whole of `args`."""

    ingress: IngressSettings = IngressSettings()
