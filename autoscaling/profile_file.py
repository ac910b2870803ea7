"""The profile's file: its fields, their units and bounds, and what a file must not say.

Strict: a value of another type is refused, a field that is not known is ignored.  Fields are described in
docs/concepts/profile.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from autoscaling.policy_problem import shown_key
from autoscaling.profiling.findings import PoolAnswer
from autoscaling.types import Role

SCHEMA_VERSION = 1
MEAN = "mean"  # the key of the average over all classes
MOST_CLASSES = 100  # they travel in every snapshot
MOST_ROWS = 1000

# A step takes milliseconds: above these a number is in another unit.
StepSeconds = Annotated[float, Field(ge=0, le=60)]
SecondsEach = Annotated[float, Field(ge=0, le=1)]
TokensPerStep = Annotated[float, Field(ge=1, le=1000)]
DraftLength = Annotated[int, Field(ge=0, le=1000)]
Share = Annotated[float, Field(ge=0, le=1)]
NotNegative = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
Words = Annotated[str, Field(min_length=1, max_length=1000)]


class _Section(BaseModel):
    """Frozen, strict, camelCase; a newer writer's fields are ignored."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", strict=True, alias_generator=to_camel, allow_inf_nan=False
    )


class FitSection(_Section):
    """How well the cost of a pool holds."""

    points: Annotated[int, Field(ge=0)]
    error: NotNegative | None = None
    hold_out_error: NotNegative | None = None
    accepted: bool
    refused_because: Words | None = None


class PoolSection(_Section):
    """The cost of a pool's step, and its memory."""

    base_seconds: StepSeconds
    per_token_seconds: SecondsEach
    per_context_seconds: SecondsEach = 0.0
    draft_seconds: StepSeconds = 0.0
    draft_length: DraftLength = 0
    per_draft_seconds: StepSeconds = 0.0
    draft_per_token_seconds: SecondsEach = 0.0
    draft_per_context_seconds: SecondsEach = 0.0
    drafted_tokens: Annotated[float, Field(ge=0, le=1000)] | None = None
    per_prefill_seconds: SecondsEach | None = None
    hinge_tokens: NotNegative = 0.0
    past_hinge_seconds: SecondsEach = 0.0
    kv_cache_tokens: Count | None = None
    fit: FitSection | None = None

    @property
    def costs_nothing(self) -> bool:
        """Whether a step of whatever size takes no time at all."""
        costs = [self.base_seconds, self.per_token_seconds, self.per_context_seconds, self.past_hinge_seconds]
        if self.draft_length > 0:
            costs += [self.draft_seconds, self.per_draft_seconds]
            costs += [self.draft_per_token_seconds, self.draft_per_context_seconds]
        return sum(costs) == 0


class PoolsSection(_Section):
    """The pools that were measured."""

    speculative: PoolSection | None = None
    plain: PoolSection | None = None

    def measured(self) -> dict[Role, PoolSection]:
        """Those that are in the file."""
        steps = {Role.SPECULATIVE: self.speculative, Role.PLAIN: self.plain}
        return {role: step for role, step in steps.items() if step is not None}


class MeasuredOnSection(_Section):
    """What was measured, beside the model; unknown where it is not given."""

    engine: Words | None = None
    engine_version: Words | None = None
    device: Words | None = None
    tensor_parallel: Count | None = None
    max_model_len: Count | None = None
    method: Words | None = None
    draft: Words | None = None
    draft_length_max: DraftLength | None = None


class TaxSection(_Section):
    """What a speculative engine without drafts loses at one batch."""

    sequences: Count
    ratio: Annotated[float, Field(gt=0)]


class MoveSection(_Section):
    """How long an engine takes to start and to stop."""

    start: NotNegative | None = None
    stop: NotNegative | None = None


class PoolsAnswerSection(_Section):
    """Which pools sell most at one objective."""

    tpot_seconds: Annotated[float, Field(gt=0, le=60)]
    answer: PoolAnswer
    margin: NotNegative | None = None


class ProfileFile(_Section):
    """The whole file."""

    schema_version: Annotated[int, Field(ge=SCHEMA_VERSION, le=SCHEMA_VERSION)]
    fingerprint: Annotated[str, Field(min_length=1)]
    measured_on: MeasuredOnSection = MeasuredOnSection()
    made_at: AwareDatetime
    context_tokens: Annotated[float, Field(ge=0, le=100_000_000)]
    pools: PoolsSection
    tokens_per_step: Annotated[dict[str, TokensPerStep], Field(max_length=MOST_CLASSES)]
    tokens_per_step_by_length: Annotated[
        dict[str, Annotated[dict[DraftLength, TokensPerStep], Field(max_length=MOST_ROWS)]],
        Field(max_length=MOST_CLASSES),
    ] = {}
    survival: Annotated[
        dict[str, Annotated[tuple[Share, ...], Field(max_length=MOST_ROWS)]], Field(max_length=MOST_CLASSES)
    ] = {}
    synthetic_acceptance: bool = False
    draft_table: Annotated[tuple[tuple[Count, Count, DraftLength], ...], Field(max_length=MOST_ROWS)] = ()
    k0_tax: Annotated[tuple[TaxSection, ...], Field(max_length=MOST_ROWS)] = ()
    move_seconds: MoveSection = MoveSection()
    two_pools: Annotated[tuple[PoolsAnswerSection, ...], Field(max_length=MOST_ROWS)] = ()

    @model_validator(mode="after")
    def _steps(self) -> ProfileFile:
        measured = self.pools.measured()
        if not measured:
            raise ValueError(f"pools has neither {' nor '.join(Role)}: nothing is measured")
        for role, step in measured.items():
            if step.costs_nothing:
                raise ValueError(f"pools.{role}: a step costs nothing at all, which no engine's does")
            if step.drafted_tokens is not None and step.drafted_tokens > step.draft_length:
                raise ValueError(
                    f"pools.{role}.draftedTokens is {step.drafted_tokens:g}, above draftLength "
                    f"{step.draft_length}"
                )
            if step.fit is not None and step.fit.accepted and (step.fit.error is None or not step.fit.points):
                raise ValueError(
                    f"pools.{role}.fit: accepted, but without an error on any points: "
                    "nothing shows that the cost holds"
                )
        if (plain := self.pools.plain) is not None and plain.draft_length > 0:
            raise ValueError(
                f"pools.plain.draftLength is {plain.draft_length}, but the plain pool drafts nothing: "
                "are the pools exchanged?"
            )
        return self

    @model_validator(mode="after")
    def _gains(self) -> ProfileFile:
        if MEAN not in self.tokens_per_step:
            raise ValueError(f"tokensPerStep has no {MEAN!r}: give the average over all classes")
        drafts = self.pools.speculative
        if drafts is not None:
            _within("tokensPerStep", "draftLength", self.tokens_per_step, drafts.draft_length)
        for name, by_length in self.tokens_per_step_by_length.items():
            for length, tokens in by_length.items():
                place = f"tokensPerStepByLength.{shown_key(name)}"
                _within(place, "a draft length of", {str(length): tokens}, length)
        return self

    @model_validator(mode="after")
    def _survival(self) -> ProfileFile:
        for name, shares in self.survival.items():
            for index, (before, share) in enumerate(pairwise(shares), start=1):
                if share > before:
                    raise ValueError(
                        f"survival.{shown_key(name)}[{index}] is {share:g}, above {before:g} before it: "
                        "no draft survives longer than its beginning"
                    )
        return self

    @model_validator(mode="after")
    def _table(self) -> ProfileFile:
        following, most = 1, self.pools.speculative
        for index, (first, last, length) in enumerate(self.draft_table):
            if first != following:
                raise ValueError(
                    f"draftTable[{index}] begins at {first}, but {following} is next: leave no gap"
                )
            if last < first:
                raise ValueError(f"draftTable[{index}] ends at {last}, before its begin at {first}")
            if most is not None and length > most.draft_length:
                raise ValueError(
                    f"draftTable[{index}] drafts {length}, but no more than pools.speculative.draftLength "
                    f"{most.draft_length} was measured"
                )
            following = last + 1
        return self

    @model_validator(mode="after")
    def _answers(self) -> ProfileFile:
        objectives = [row.tpot_seconds for row in self.two_pools]
        for index, (before, value) in enumerate(pairwise(objectives), start=1):
            if value <= before:
                raise ValueError(
                    f"twoPools[{index}].tpotSeconds is {value:g}, not above {before:g} before it: "
                    "sort the objectives, each once"
                )
        return self


def _within(place: str, name: str, gains: Mapping[str, float], length: int) -> None:
    """Raises ValueError where a step brings more than its drafts and one token."""
    for key, tokens in gains.items():
        if tokens > 1 + length:
            raise ValueError(
                f"{place}.{shown_key(key)} is {tokens:g}, but a step with {name} {length} brings "
                f"{1 + length} at most"
            )
