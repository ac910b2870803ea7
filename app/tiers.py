"""Which tier a request gets, and whether it names its pool; pure.

The caller asks, by the first that is given: the header `x-twinpool-tier`, OpenAI's `service_tier`
(`auto` asks for nothing), the alias `<model>:<tier>`.  The answer is never above the caller's ceiling.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeVar

from app import errors
from autoscaling.types import Role, Tier

Headers = Sequence[tuple[bytes, bytes]]

TIER_HEADER: Final = b"x-twinpool-tier"
POOL_HEADER: Final = b"x-twinpool-pool"

_RANK: Final[Mapping[Tier, int]] = MappingProxyType({Tier.BATCH: 0, Tier.STANDARD: 1, Tier.INTERACTIVE: 2})
_SERVICE_TIERS: Final[Mapping[str, Tier | None]] = MappingProxyType(
    {
        "auto": None,
        "default": Tier.STANDARD,
        "scale": Tier.STANDARD,
        "priority": Tier.INTERACTIVE,
        "fast": Tier.INTERACTIVE,
        "flex": Tier.BATCH,
    }
)
_Word = TypeVar("_Word", bound=StrEnum)


class TierSource(StrEnum):
    """Where the tier came from."""

    HEADER = "header"
    SERVICE_TIER = "service_tier"
    ALIAS = "alias"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class TierChoice:
    """The tier that a request is served at."""

    tier: Tier  # used: never above the ceiling
    requested: Tier | None  # asked for; None when the caller left it to us
    source: TierSource
    model: str | None  # without the tier of an alias; None when no model is known yet


def choose_tier(
    headers: Headers,
    service_tier: str | None,
    model: str | None,
    served_names: Sequence[str],
    *,
    ceiling: Tier = Tier.INTERACTIVE,
    default: Tier = Tier.STANDARD,
) -> TierChoice:
    """Apply the contract; raises ApiError for an unknown word or model.

    Every word is checked, also one that a stronger source overrules.  `model` None is the first served
    name.  With no served name known nothing can be called unknown: routing will find no replica.
    """
    by_header = _one_word(headers, TIER_HEADER, Tier)
    by_service_tier = _from_service_tier(service_tier)
    base, by_alias = _split_alias(model, served_names)
    sources = (
        (TierSource.HEADER, by_header),
        (TierSource.SERVICE_TIER, by_service_tier),
        (TierSource.ALIAS, by_alias),
    )
    for source, asked in sources:
        if asked is not None:
            return TierChoice(_lower(asked, ceiling), asked, source, base)
    return TierChoice(_lower(default, ceiling), None, TierSource.DEFAULT, base)


def pool_pin(headers: Headers) -> Role | None:
    """Read the pool that the caller names; raises ApiError for an unknown one."""
    return _one_word(headers, POOL_HEADER, Role)


def _lower(tier: Tier, ceiling: Tier) -> Tier:
    return tier if _RANK[tier] <= _RANK[ceiling] else ceiling


def _from_service_tier(word: str | None) -> Tier | None:
    if word is None:
        return None
    if word not in _SERVICE_TIERS:
        raise errors.invalid_value("service_tier", word, _SERVICE_TIERS)
    return _SERVICE_TIERS[word]


def _split_alias(model: str | None, served_names: Sequence[str]) -> tuple[str | None, Tier | None]:
    """Split off the tier, when the name is an alias that carries one."""
    name = model or next(iter(served_names), None)
    if name is None:
        return None, None
    if served_names and name not in served_names:
        raise errors.model_not_found(name, served_names)
    base, _, suffix = name.rpartition(":")
    if base and suffix in _RANK and (base in served_names or not served_names):
        return base, Tier(suffix)
    return name, None


def _one_word(headers: Iterable[tuple[bytes, bytes]], name: bytes, kind: type[_Word]) -> _Word | None:
    """Read the single word of a header; said twice it must be the same, in any case of letters.

    A proxy may have joined two headers with a comma.
    """
    values = [value.decode("latin-1") for key, value in headers if key.lower() == name]
    if not values:
        return None
    joined = ",".join(values)
    words = {part.strip().lower() for part in joined.split(",")}
    try:
        (word,) = words
        return kind(word)
    except ValueError:
        raise errors.invalid_value(name.decode(), joined, [member.value for member in kind]) from None
