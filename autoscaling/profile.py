"""The profile: what a measurement of this model on these machines says about the engines' steps.

One JSON file, whose fields are `autoscaling.profile_file`; reading it from the disk is
`deployments.profile_source`, what of it counts `autoscaling.profile_match`.  Its format is described in
docs/concepts/profile.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from autoscaling.policy_problem import field_name, shown
from autoscaling.profile_file import MEAN as MEAN  # noqa: PLC0414  # passed on to the readers of this module
from autoscaling.profile_file import SCHEMA_VERSION as SCHEMA_VERSION  # noqa: PLC0414
from autoscaling.profile_file import FitSection, PoolSection, ProfileFile
from autoscaling.profiling.findings import PoolAnswer, TableRow
from autoscaling.profiling.measured import Fingerprint
from autoscaling.routing_rules import StepCost
from autoscaling.types import Role

MOST_ERRORS = 5  # more are not read by anybody


class ProfileError(ValueError):
    """A text that is no profile; the words name the file, the field, the value and what to do."""


class ProfileState(StrEnum):
    """What becomes of the profile."""

    NONE = "none"  # there is none
    MEASURED = "measured"  # it is of what is served: limits rest on it
    STALE = "stale"  # it is of something else: limits are unmeasured, and it may only lower them
    INVALID = "invalid"  # the file cannot be read as one: the last good profile stays, if there was one


@dataclass(frozen=True, slots=True)
class FitQuality:
    """How well the cost of a pool holds."""

    points: int  # cells and rounds that it rests on
    error: float | None  # mean |predicted - measured| / measured; None where nothing was measured
    hold_out_error: float | None  # the same on cells that the fit has not seen
    accepted: bool  # whether it passed the quality gate
    refused_because: str | None = None


@dataclass(frozen=True, slots=True)
class PoolsAt:
    """Which pools sell most at one objective, as predicted from the measurement."""

    tpot_s: float
    answer: PoolAnswer
    margin: float | None  # its goodput over that of the best other kind


@dataclass(frozen=True, slots=True)
class Profile:
    """A measurement that was read and checked."""

    measured_on: Fingerprint
    made_at: float  # Unix seconds
    context_tokens: float  # S: context per sequence that is typical for the service
    costs: Mapping[Role, StepCost]  # of the pools that were measured
    tokens_per_step: Mapping[str, float]  # class -> tokens of a sequence per step with drafts; has `MEAN`
    tokens_by_length: Mapping[str, Mapping[int, float]] = field(
        default_factory=dict
    )  # class -> K -> the same
    survival: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # class -> s_1, s_2, ...
    synthetic_acceptance: bool = False  # gains and survival were prescribed, and tell nothing of the drafter
    kv_cache_tokens: Mapping[Role, int] = field(default_factory=dict)  # tokens that fit at once
    fits: Mapping[Role, FitQuality] = field(default_factory=dict)  # of the pools that say
    draft_table: tuple[TableRow, ...] = ()  # the K that pays best at each batch
    k0_tax: tuple[tuple[int, float], ...] = ()  # sequences, plain tokens/s over the speculative at K = 0
    start_s: float | None = None  # of an engine: the receiver's part of a move
    stop_s: float | None = None
    two_pools: tuple[PoolsAt, ...] = ()  # by growing objective

    @property
    def fingerprint(self) -> str:
        """Of the model that was measured, as in `Capabilities`."""
        return self.measured_on.model


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
        return _profile(ProfileFile.model_validate_json(text))
    except ValidationError as error:
        errors = error.errors()[:MOST_ERRORS]
        words = "; ".join(_words(one["loc"], one["msg"], one["input"]) for one in errors)
        raise ProfileError(f"{name}: {words}: mend the field, or write the profile anew") from None


def _profile(found: ProfileFile) -> Profile:
    pools, on, move = found.pools.measured(), found.measured_on, found.move_seconds
    return Profile(
        measured_on=Fingerprint(
            model=found.fingerprint,
            engine=on.engine,
            engine_version=on.engine_version,
            device=on.device,
            tensor_parallel=on.tensor_parallel,
            max_model_len=on.max_model_len,
            method=on.method,
            draft=on.draft,
            draft_length_max=on.draft_length_max,
        ),
        made_at=found.made_at.timestamp(),
        context_tokens=found.context_tokens,
        costs={role: _cost(pool) for role, pool in pools.items()},
        tokens_per_step=dict(found.tokens_per_step),
        tokens_by_length={name: dict(gains) for name, gains in found.tokens_per_step_by_length.items()},
        survival=dict(found.survival),
        synthetic_acceptance=found.synthetic_acceptance,
        kv_cache_tokens={
            role: pool.kv_cache_tokens for role, pool in pools.items() if pool.kv_cache_tokens is not None
        },
        fits={role: _fit(pool.fit) for role, pool in pools.items() if pool.fit is not None},
        draft_table=tuple(TableRow(*row) for row in found.draft_table),
        k0_tax=tuple((tax.sequences, tax.ratio) for tax in found.k0_tax),
        start_s=move.start,
        stop_s=move.stop,
        two_pools=tuple(PoolsAt(row.tpot_seconds, row.answer, row.margin) for row in found.two_pools),
    )


def _cost(pool: PoolSection) -> StepCost:
    return StepCost(
        base_s=pool.base_seconds,
        per_token_s=pool.per_token_seconds,
        per_context_s=pool.per_context_seconds,
        draft_s=pool.draft_seconds,
        draft_length=pool.draft_length,
        per_draft_s=pool.per_draft_seconds,
        draft_per_token_s=pool.draft_per_token_seconds,
        draft_per_context_s=pool.draft_per_context_seconds,
        drafted=pool.drafted_tokens,
        per_prefill_s=pool.per_prefill_seconds,
        hinge_tokens=pool.hinge_tokens,
        past_hinge_s=pool.past_hinge_seconds,
    )


def _fit(fit: FitSection) -> FitQuality:
    return FitQuality(fit.points, fit.error, fit.hold_out_error, fit.accepted, fit.refused_because)


def _words(path: tuple[int | str, ...], message: str, given: Any) -> str:
    if not path:
        return message.removeprefix("Value error, ")
    if message == "Field required":
        return f"{field_name(path)} is missing"
    return f"{field_name(path)} is {shown(given)}: {message[0].lower()}{message[1:]}"
