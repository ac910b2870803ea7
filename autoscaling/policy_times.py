"""The parts of a policy that hold at certain times: schedules and overrides; import them from `policy`."""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field

from autoscaling.policy_parts import MOST_REPLICAS, Name, Part, Reason, Replicas
from autoscaling.types import Role


class Day(StrEnum):
    """Day of the week on which a schedule's window starts."""

    MON = "Mon"
    TUE = "Tue"
    WED = "Wed"
    THU = "Thu"
    FRI = "Fri"
    SAT = "Sat"
    SUN = "Sun"


def _moment(value: Any) -> Any:
    # Pydantic alone also takes a count of seconds, or a time without a zone.
    if not isinstance(value, str):
        return value
    wanted = r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)"
    if re.fullmatch(wanted, value, re.ASCII):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f"{value!r} is no time that exists in a calendar") from None
    zone = ": the zone is missing" if re.fullmatch(wanted, value + "Z", re.ASCII) else ""
    raise ValueError(
        f"{value[:60]!r} is not a time with a zone{zone}; write it as 2026-12-01T18:00:00Z or ...+01:00"
    )


def _clock_time(value: str) -> str:
    if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", value, re.ASCII):
        raise ValueError(f"{value[:60]!r} is not a time of day: write it in quotes as HH:MM, such as '08:00'")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_moment)]
ClockTime = Annotated[
    str, AfterValidator(_clock_time), Field(json_schema_extra={"pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"})
]


class PoolBounds(Part):
    """Bounds of a pool while a schedule holds."""

    min_replicas: Replicas | None = Field(None, description="In place of the pool's own minimum.")
    max_replicas: Annotated[int, Field(ge=1, le=MOST_REPLICAS)] | None = Field(
        None, description="In place of the pool's own maximum."
    )


class ScheduledPools(Part):
    """Which pools a schedule bounds."""

    speculative: PoolBounds | None = Field(None, description="Bounds of the speculative pool.")
    plain: PoolBounds | None = Field(None, description="Bounds of the plain pool.")


class Schedule(Part):
    """Other bounds at certain times of the week, by a place's own clock."""

    name: Name = Field(description="Shown wherever the schedule acts.")
    time_zone: str = Field(
        min_length=1, description="IANA zone, such as Europe/Berlin; summer time follows it."
    )
    days: Annotated[tuple[Day, ...], Field(min_length=1)] = Field(
        description="Days on which the window starts."
    )
    start: ClockTime = Field(description="Local time at which the window starts, `HH:MM` in quotes.")
    end: ClockTime = Field(
        description="Local time at which it ends; at or before `start` it is on the next day."
    )
    pools: ScheduledPools = Field(description="The bounds; a later schedule wins over an earlier one.")


class PolicyOverride(Part):
    """A forced value with an end."""

    name: Name = Field(description="Shown wherever the override acts.")
    pool: Role = Field(description="The pool that is forced.")
    replicas: Replicas | None = Field(None, description="Exactly so many; or give bounds instead.")
    min_replicas: Replicas | None = Field(None, description="Never fewer while it holds.")
    max_replicas: Annotated[int, Field(ge=1, le=MOST_REPLICAS)] | None = Field(
        None, description="Never more while it holds."
    )
    until: Moment = Field(description="When it ends: RFC 3339 with a zone, such as 2026-12-01T18:00:00Z.")
    reason: Reason = Field(description="Why; shown wherever the override acts.")
