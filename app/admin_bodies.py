"""The bodies of the operator's requests, and what is said when one does not fit."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from app import errors
from app.errors import ApiError
from autoscaling.one_line import one_line
from autoscaling.policy import MOST_REPLICAS, Reason
from autoscaling.types import Role

LONGEST_FOR_S = 366 * 86_400  # a year; what should last longer belongs into the policy file

WHO_MAX = 100
Who = Annotated[str, Field(min_length=1, max_length=WHO_MAX), AfterValidator(one_line)]
ForSeconds = Annotated[float, Field(gt=0, le=LONGEST_FOR_S)]
Replicas = Annotated[int, Field(ge=0, le=MOST_REPLICAS)]


class Body(BaseModel):
    """Base of the bodies: strict, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class HoldBody(Body):
    """Hold the targets; without `for_s` until a release."""

    reason: Reason
    who: Who
    for_s: ForSeconds | None = None


class ReleaseBody(Body):
    """End an operator's hold."""

    who: Who


class OverrideBody(Body):
    """Force a pool's size, or its bounds, for a time."""

    pool: Role
    replicas: Replicas | None = None
    min_replicas: Replicas | None = None
    max_replicas: Annotated[int, Field(ge=1, le=MOST_REPLICAS)] | None = None
    for_s: ForSeconds
    reason: Reason
    who: Who

    @model_validator(mode="after")
    def _one_way(self) -> OverrideBody:
        low, high = self.min_replicas, self.max_replicas
        if (self.replicas is None) == (low is None and high is None):
            raise ValueError("give either replicas, or min_replicas and max_replicas or one of them")
        if low is not None and high is not None and low > high:
            raise ValueError(f"min_replicas {low} is above max_replicas {high}")
        return self


_B = TypeVar("_B", bound=Body)


def read(content_type: str, body: bytes, model: type[_B]) -> _B:
    """Validate a body; raises ApiError that names the field."""
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise errors.unsupported_media_type(content_type)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise _said(error.errors(include_url=False)[0], model) from None


def _said(problem: Any, model: type[Body]) -> ApiError:
    if problem["type"] == "json_invalid":
        return errors.invalid_json(problem["ctx"]["error"])
    if not problem["loc"] and problem["type"] in ("model_type", "dataclass_type"):
        return errors.invalid_body()
    if not problem["loc"]:
        return errors.refused_field(None, f"{problem['msg'].removeprefix('Value error, ')}.")
    field = str(problem["loc"][0])
    if problem["type"] == "extra_forbidden":
        return errors.unknown_field(field, model.model_fields)
    return errors.refused_field(field, f"{field}: {problem['msg'].removeprefix('Value error, ')}.")
