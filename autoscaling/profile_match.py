"""What of a profile counts for the replicas that serve now: all of it, a part, or as a prior only; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pydantic.alias_generators import to_camel

from autoscaling.profile import PoolsAt, Profile
from autoscaling.profiling.measured import Fingerprint
from autoscaling.types import Capabilities, Role

PARTS = ("engine", "engine_version", "device", "tensor_parallel", "max_model_len")
OF_SPECULATION = ("method", "draft", "draft_length_max")  # a plain replica has none of them


@dataclass(frozen=True, slots=True)
class Served:
    """What replicas that serve report of themselves, as far as a profile depends on it."""

    model: str | None = None  # model_fingerprint; None while no replica has told
    replicas: Mapping[Role, frozenset[Fingerprint]] = field(default_factory=dict)  # each kind once
    kv_cache_tokens: Mapping[Role, int] = field(default_factory=dict)  # the smallest of a pool


def served(model: str | None, capabilities: Iterable[Capabilities]) -> Served:
    """What serves, of the replicas that run; one of another model than `model` does not."""
    kinds: dict[Role, set[Fingerprint]] = {}
    tokens: dict[Role, int] = {}
    for one in capabilities:
        if one.fingerprint != model:
            continue
        kinds.setdefault(one.role, set()).add(_fingerprint(one))
        if one.kv_cache_tokens is not None:
            tokens[one.role] = min(one.kv_cache_tokens, tokens.get(one.role, one.kv_cache_tokens))
    return Served(model, {role: frozenset(found) for role, found in kinds.items()}, tokens)


def differences(profile: Profile, served: Served) -> tuple[str, ...] | None:
    """In words, each part that was another one when the profile was measured; None while no model is known.

    A part that is unknown on either side is no difference.
    """
    if served.model is None:
        return None
    on, found = profile.measured_on, []
    if on.model != served.model:
        found.append(f"fingerprint was {on.model}, now it is {served.model}")
    for role in Role:
        for part in (*PARTS, *(OF_SPECULATION if role is Role.SPECULATIVE else ())):
            known = {getattr(one, part) for one in served.replicas.get(role, ())} - {None}
            was = getattr(on, part)
            others = sorted(map(str, known - {was}))
            if was is not None and others:
                found.append(f"{to_camel(part)} was {was}, the {role} pool has {' and '.join(others)}")
    return tuple(found)


def measured(profile: Profile | None, served: Served) -> Profile | None:
    """The part of a profile that limits and predictions rest on; None for none, or for a stale one."""
    return _trusted(profile, served) if profile is not None and differences(profile, served) == () else None


def prior(profile: Profile | None, served: Served) -> Profile | None:
    """The part of a stale profile that may lower limits; None for none, or for one that is measured."""
    return _trusted(profile, served) if profile is not None and differences(profile, served) else None


def fitted(profile: Profile | None, served: Served) -> bool:
    """Whether both pools have a measured cost that passed its quality gate, and the gains are real."""
    if profile is None or profile.synthetic_acceptance or differences(profile, served) != ():
        return False
    return all(role in profile.costs and _passed(profile, role) for role in Role)


def doubts(profile: Profile) -> tuple[str, ...]:
    """In words, what of the profile is left out whatever serves, and what follows."""
    found = [
        f"the fit of the {role} pool is refused"
        f"{'' if fit.refused_because is None else f' ({fit.refused_because})'}: its limit is unmeasured"
        for role, fit in sorted(profile.fits.items())
        if not fit.accepted
    ]
    if profile.synthetic_acceptance:
        found.append(
            "its acceptance was prescribed, not measured: only costs are used, "
            "the limit of the speculative pool is unmeasured"
        )
    return tuple(found)


def pools_at(profile: Profile, tpot_s: float | None) -> PoolsAt | None:
    """Which pools sell most at an objective; None outside what was measured, and where it says two things.

    Between two measured objectives both have to have the same answer; the smaller margin counts.
    """
    if tpot_s is None:
        return None
    below = [row for row in profile.two_pools if row.tpot_s <= tpot_s][-1:]
    above = [row for row in profile.two_pools if row.tpot_s >= tpot_s][:1]
    if not below or not above or below[0].answer is not above[0].answer:
        return None
    margins = (below[0].margin, above[0].margin)
    known = [margin for margin in margins if margin is not None]
    return PoolsAt(tpot_s, below[0].answer, min(known) if len(known) == len(margins) else None)


def _trusted(profile: Profile, served: Served) -> Profile:
    """Without the costs of refused fits and prescribed gains, and with the smaller memory of both sides."""
    tokens = dict(profile.kv_cache_tokens)
    for role, now in served.kv_cache_tokens.items():
        tokens[role] = min(now, tokens.get(role, now))
    return replace(
        profile,
        costs={role: cost for role, cost in profile.costs.items() if not _refused(profile, role)},
        tokens_per_step={} if profile.synthetic_acceptance else profile.tokens_per_step,
        kv_cache_tokens=tokens,
    )


def _refused(profile: Profile, role: Role) -> bool:
    return role in profile.fits and not profile.fits[role].accepted


def _passed(profile: Profile, role: Role) -> bool:
    return role in profile.fits and profile.fits[role].accepted


def _fingerprint(found: Capabilities) -> Fingerprint:
    return Fingerprint(
        model=found.fingerprint,
        engine=found.engine,
        engine_version=found.engine_version,
        device=found.device,
        tensor_parallel=found.tensor_parallel,
        max_model_len=found.max_model_len,
        method=found.method,
        draft=found.draft,
        draft_length_max=found.draft_length_max,
    )
