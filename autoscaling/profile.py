"""The profile: what a measurement of this model on these machines says about the engines' steps.

One JSON file, checked here; reading it from the disk is `deployments.profile_source`.  Its format is
described in docs/concepts/profile.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import from_json

from autoscaling.policy_problem import field_name, shown, shown_key
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role

SCHEMA_VERSION = 1
MEAN = "mean"  # the key of the average over all classes
MOST_CLASSES = 100  # they travel in every snapshot
MOST_ERRORS = 5  # more are not read by anybody

# A step takes milliseconds: above these a number is in another unit.
StepSeconds = Annotated[float, Field(ge=0, le=60)]
SecondsEach = Annotated[float, Field(ge=0, le=1)]
TokensPerStep = Annotated[float, Field(ge=1, le=1000)]


class ProfileError(ValueError):
    """A text that is no profile; the words name the file, the field, the value and what to do."""


class ProfileState(StrEnum):
    """What becomes of the profile."""

    NONE = "none"  # there is none
    MEASURED = "measured"  # it is of the model that is served: limits rest on it
    STALE = "stale"  # it is of another model: limits are unmeasured
    INVALID = "invalid"  # the file cannot be read as one: the last good profile stays, if there was one


@dataclass(frozen=True, slots=True)
class Profile:
    """A measurement that was read and checked."""

    fingerprint: str  # of the model that was measured, as in `Capabilities`
    made_at: float  # Unix seconds
    context_tokens: float  # S: context per sequence that is typical for the service
    costs: Mapping[Role, StepCost]  # of the pools that were measured
    tokens_per_step: Mapping[str, float]  # class -> tokens of a sequence per step with drafts; has `MEAN`


def usable(profile: Profile | None, fingerprint: str | None) -> Profile | None:
    """The profile when it is of the served model; None without one, or while no model is known."""
    return None if profile is None or profile.fingerprint != fingerprint else profile


def read_profile(text: str, name: str) -> Profile:
    """The profile in a text; ProfileError, which calls the text `name`, when it is none."""
    try:
        data = from_json(text)
    except ValueError as error:
        raise ProfileError(f"{name}: not JSON: {error}: write the profile anew") from None
    version = data.get("schemaVersion") if isinstance(data, dict) else None
    if type(version) is int and version != SCHEMA_VERSION:
        raise ProfileError(
            f"{name}: schemaVersion is {version}, known here is {SCHEMA_VERSION}: "
            "write the profile anew with this version of twinpool, or update twinpool"
        )
    try:
        found = _File.model_validate_json(text)
    except ValidationError as error:
        errors = error.errors()[:MOST_ERRORS]
        words = "; ".join(_words(one["loc"], one["msg"], one["input"]) for one in errors)
        raise ProfileError(f"{name}: {words}: mend the field, or write the profile anew") from None
    return found.profile()


class _Section(BaseModel):
    """Frozen, strict, camelCase; a newer writer's fields are ignored."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", strict=True, alias_generator=to_camel, allow_inf_nan=False
    )


class _Step(_Section):
    base_seconds: StepSeconds
    per_token_seconds: SecondsEach
    per_context_seconds: SecondsEach = 0.0
    draft_seconds: StepSeconds = 0.0
    draft_length: Annotated[int, Field(ge=0, le=1000)] = 0

    @property
    def costs_nothing(self) -> bool:
        """Whether a step of whatever size takes no time at all."""
        drafting = self.draft_seconds if self.draft_length > 0 else 0.0
        return self.base_seconds + self.per_token_seconds + self.per_context_seconds + drafting == 0

    def cost(self) -> StepCost:
        return StepCost(
            base_s=self.base_seconds,
            per_token_s=self.per_token_seconds,
            per_context_s=self.per_context_seconds,
            draft_s=self.draft_seconds,
            draft_length=self.draft_length,
        )


class _Pools(_Section):
    speculative: _Step | None = None
    plain: _Step | None = None

    def measured(self) -> dict[Role, _Step]:
        steps = {Role.SPECULATIVE: self.speculative, Role.PLAIN: self.plain}
        return {role: step for role, step in steps.items() if step is not None}


class _File(_Section):
    schema_version: Annotated[int, Field(ge=SCHEMA_VERSION, le=SCHEMA_VERSION)]
    fingerprint: Annotated[str, Field(min_length=1)]
    made_at: AwareDatetime
    context_tokens: Annotated[float, Field(ge=0, le=100_000_000)]
    pools: _Pools
    tokens_per_step: Annotated[dict[str, TokensPerStep], Field(max_length=MOST_CLASSES)]

    @model_validator(mode="after")
    def _steps(self) -> _File:
        measured = self.pools.measured()
        if not measured:
            raise ValueError(f"pools has neither {' nor '.join(Role)}: nothing is measured")
        for role, step in measured.items():
            if step.costs_nothing:
                raise ValueError(f"pools.{role}: a step costs nothing at all, which no engine's does")
        if (plain := self.pools.plain) is not None and plain.draft_length > 0:
            raise ValueError(
                f"pools.plain.draftLength is {plain.draft_length}, but the plain pool drafts nothing: "
                "are the pools exchanged?"
            )
        return self

    @model_validator(mode="after")
    def _mean(self) -> _File:
        if MEAN not in self.tokens_per_step:
            raise ValueError(f"tokensPerStep has no {MEAN!r}: give the average over all classes")
        drafts = self.pools.speculative
        for name, tokens in self.tokens_per_step.items():
            if drafts is not None and tokens > 1 + drafts.draft_length:
                raise ValueError(
                    f"tokensPerStep.{shown_key(name)} is {tokens:g}, but a step with draftLength "
                    f"{drafts.draft_length} brings {1 + drafts.draft_length} at most"
                )
        return self

    def profile(self) -> Profile:
        return Profile(
            fingerprint=self.fingerprint,
            made_at=self.made_at.timestamp(),
            context_tokens=self.context_tokens,
            costs={role: step.cost() for role, step in self.pools.measured().items()},
            tokens_per_step=dict(self.tokens_per_step),
        )


def _words(path: tuple[int | str, ...], message: str, given: Any) -> str:
    if not path:
        return message.removeprefix("Value error, ")
    if message == "Field required":
        return f"{field_name(path)} is missing"
    return f"{field_name(path)} is {shown(given)}: {message[0].lower()}{message[1:]}"
