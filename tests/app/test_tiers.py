"""The tier-in and pool-in contracts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import ApiError
from app.tiers import TierChoice, TierSource, choose_tier, pool_pin
from autoscaling.types import Role, Tier

SERVED = ("m", "m:interactive", "m:batch")
INTERACTIVE, STANDARD, BATCH = Tier.INTERACTIVE, Tier.STANDARD, Tier.BATCH
Header = tuple[bytes, bytes]


def tier_header(*values: bytes) -> list[Header]:
    return [(b"x-twinpool-tier", value) for value in values]


@pytest.mark.parametrize(
    ("headers", "service_tier", "model", "expected"),
    [
        ([], None, None, TierChoice(STANDARD, None, TierSource.DEFAULT, "m")),
        ([], None, "m", TierChoice(STANDARD, None, TierSource.DEFAULT, "m")),
        ([], "auto", "m", TierChoice(STANDARD, None, TierSource.DEFAULT, "m")),
        ([], "priority", "m", TierChoice(INTERACTIVE, INTERACTIVE, TierSource.SERVICE_TIER, "m")),
        ([], "fast", "m", TierChoice(INTERACTIVE, INTERACTIVE, TierSource.SERVICE_TIER, "m")),
        ([], "default", "m", TierChoice(STANDARD, STANDARD, TierSource.SERVICE_TIER, "m")),
        ([], "scale", "m", TierChoice(STANDARD, STANDARD, TierSource.SERVICE_TIER, "m")),
        ([], "flex", "m", TierChoice(BATCH, BATCH, TierSource.SERVICE_TIER, "m")),
        ([], None, "m:batch", TierChoice(BATCH, BATCH, TierSource.ALIAS, "m")),
        ([], None, "m:interactive", TierChoice(INTERACTIVE, INTERACTIVE, TierSource.ALIAS, "m")),
        ([], "auto", "m:batch", TierChoice(BATCH, BATCH, TierSource.ALIAS, "m")),
        ([], "priority", "m:batch", TierChoice(INTERACTIVE, INTERACTIVE, TierSource.SERVICE_TIER, "m")),
        (tier_header(b"batch"), "priority", "m", TierChoice(BATCH, BATCH, TierSource.HEADER, "m")),
        (tier_header(b" BATCH "), None, "m", TierChoice(BATCH, BATCH, TierSource.HEADER, "m")),
        (tier_header(b"batch", b"Batch"), None, "m", TierChoice(BATCH, BATCH, TierSource.HEADER, "m")),
        ([(b"X-Twinpool-Tier", b"batch")], None, "m", TierChoice(BATCH, BATCH, TierSource.HEADER, "m")),
    ],
)
def test_sources_of_a_tier(
    headers: list[Header], service_tier: str | None, model: str | None, expected: TierChoice
) -> None:
    """The header comes before `service_tier`, that before the alias; nothing said is the default."""
    assert expected == choose_tier(headers, service_tier, model, SERVED)


@pytest.mark.parametrize(
    ("asked", "ceiling", "used"),
    [
        ("interactive", INTERACTIVE, INTERACTIVE),
        ("interactive", STANDARD, STANDARD),
        ("interactive", BATCH, BATCH),
        ("standard", INTERACTIVE, STANDARD),
        ("standard", BATCH, BATCH),
        ("batch", INTERACTIVE, BATCH),
        ("batch", STANDARD, BATCH),
    ],
)
def test_tiers_are_clamped_to_the_ceiling(asked: str, ceiling: Tier, used: Tier) -> None:
    """A caller gets what was asked for, or the ceiling if that is lower; what was asked stays known."""
    found = choose_tier(tier_header(asked.encode()), None, "m", SERVED, ceiling=ceiling)
    assert (used, Tier(asked)) == (found.tier, found.requested)


def test_default_is_clamped_too() -> None:
    """A default above the ceiling gives the ceiling."""
    found = choose_tier([], None, "m", SERVED, ceiling=BATCH, default=INTERACTIVE)
    assert found == TierChoice(BATCH, None, TierSource.DEFAULT, "m")


@pytest.mark.parametrize(
    ("headers", "service_tier", "param"),
    [
        (tier_header(b"gold"), None, "x-twinpool-tier"),
        (tier_header(b""), None, "x-twinpool-tier"),
        (tier_header(b"batch", b"interactive"), None, "x-twinpool-tier"),
        (tier_header(b"batch, interactive"), None, "x-twinpool-tier"),
        (tier_header(b"\xff"), None, "x-twinpool-tier"),
        ([], "gold", "service_tier"),
        ([], "", "service_tier"),
        ([], "Priority", "service_tier"),
        (tier_header(b"batch"), "gold", "service_tier"),
    ],
)
def test_unknown_and_contradicting_words(headers: list[Header], service_tier: str | None, param: str) -> None:
    """A word outside the list is a 400 that names where it stood, even if it would have been overruled."""
    with pytest.raises(ApiError) as caught:
        choose_tier(headers, service_tier, "m", SERVED)
    assert (caught.value.status, caught.value.code.value) == (400, "invalid_value")
    assert param == caught.value.answer.param


@pytest.mark.parametrize("model", ["nope", "nope:batch", "m:standard", "m:gold", "M", ":batch", "m "])
def test_unknown_model(model: str) -> None:
    """A name that no replica serves is a permanent 404, an alias of it as well."""
    with pytest.raises(ApiError) as caught:
        choose_tier([], None, model, SERVED)
    assert (caught.value.status, caught.value.code.value) == (404, "model_not_found")
    assert caught.value.answer.permanent


def test_a_colon_in_a_model_name_is_no_alias_by_itself() -> None:
    """`x:batch` is a model of that name unless `x` is served, too."""
    assert choose_tier([], None, "x:batch", ("x:batch",)) == TierChoice(
        STANDARD, None, TierSource.DEFAULT, "x:batch"
    )


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (None, TierChoice(STANDARD, None, TierSource.DEFAULT, None)),
        ("any", TierChoice(STANDARD, None, TierSource.DEFAULT, "any")),
        ("any:batch", TierChoice(BATCH, BATCH, TierSource.ALIAS, "any")),
    ],
)
def test_before_any_model_is_known(model: str | None, expected: TierChoice) -> None:
    """While no replica is known no model can be called unknown: 'not ready' is routing's to say."""
    assert expected == choose_tier([], None, model, ())


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], None),
        ([b"speculative"], Role.SPECULATIVE),
        ([b"Plain"], Role.PLAIN),
        ([b"plain", b"PLAIN"], Role.PLAIN),
    ],
)
def test_pool_pin(values: list[bytes], expected: Role | None) -> None:
    """The pool header names a pool, in any case of letters."""
    assert expected is pool_pin([(b"x-twinpool-pool", value) for value in values])


@pytest.mark.parametrize("values", [[b"fast"], [b""], [b"plain", b"speculative"]])
def test_unknown_pool(values: list[bytes]) -> None:
    """Any other word in the pool header is a 400."""
    with pytest.raises(ApiError) as caught:
        pool_pin([(b"x-twinpool-pool", value) for value in values])
    assert (caught.value.code.value, caught.value.answer.param) == ("invalid_value", "x-twinpool-pool")


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"x-twinpool-tier", b"X-TWINPOOL-TIER", b"other"]), st.binary(max_size=12)
        ),
        max_size=3,
    ),
    st.none() | st.text(max_size=8) | st.sampled_from(["priority", "flex", "auto"]),
    st.none() | st.text(max_size=8) | st.sampled_from(SERVED),
    st.sampled_from(list(Tier)),
    st.sampled_from(list(Tier)),
)
def test_never_above_the_ceiling(
    headers: list[Header], service_tier: str | None, model: str | None, ceiling: Tier, default: Tier
) -> None:
    """Whatever a caller sends, the tier is at most the ceiling, or the answer is 400 or 404."""
    rank = [Tier.BATCH, Tier.STANDARD, Tier.INTERACTIVE]
    found: TierChoice | ApiError
    try:
        found = choose_tier(headers, service_tier, model, SERVED, ceiling=ceiling, default=default)
    except ApiError as error:
        found = error
    if isinstance(found, ApiError):
        assert found.status in (400, 404)
    else:
        assert rank.index(found.tier) <= rank.index(ceiling)
